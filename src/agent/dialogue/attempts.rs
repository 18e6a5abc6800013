//! Lists the model's last tool calls with their results, for a conversation that begins anew.

use std::collections::VecDeque;
use std::fmt::Write as _;

use serde_json::Value;

use crate::conversation::{ToolCall, ToolResult};
use crate::plain::one_line;

/// Number of different attempts that are remembered.
const MOST: usize = 12;
/// Longest attempt and longest outcome, in characters.
const LONGEST: usize = 160;

/// The latest attempts, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    different: VecDeque<Attempt>,
    last: Option<ToolResult>,
}

#[derive(Debug, PartialEq, Eq)]
struct Attempt {
    what: String,
    outcome: String,
    times: usize,
}

impl Attempts {
    /// Records the results of a reply; the same attempt with the same outcome is only counted.
    pub(crate) fn note(&mut self, results: &[ToolResult]) {
        self.last = results.last().cloned().or_else(|| self.last.take());
        for result in results {
            let mut attempt = Attempt {
                what: cut(&called(&result.call)),
                outcome: outcome(result),
                times: 1,
            };
            let is_same = |known: &Attempt| known.what == attempt.what && known.outcome == attempt.outcome;
            if let Some(known) = self
                .different
                .iter()
                .position(is_same)
                .and_then(|place| self.different.remove(place))
            {
                attempt.times += known.times;
            }
            self.different.push_back(attempt);
            if self.different.len() > MOST {
                self.different.pop_front();
            }
        }
    }

    /// Returns the last result; `None` before the first.
    pub(crate) fn last(&self) -> Option<&ToolResult> {
        self.last.as_ref()
    }

    /// Lists the attempts, one per line.
    pub(crate) fn list(&self) -> String {
        self.different.iter().fold(String::new(), |mut text, attempt| {
            let times = match attempt.times {
                1 => String::new(),
                times => format!(" ({times} times)"),
            };
            let _ = writeln!(text, "- {}{times}: {}", attempt.what, attempt.outcome);
            text
        })
    }
}

/// Returns the tool of a call, with the argument that says most.
pub(crate) fn called(call: &ToolCall) -> String {
    let args = &call.args;
    let telling = ["command", "path"].iter().find_map(|name| args.get(*name)?.as_str());
    let telling = telling
        .or_else(|| args.values().find_map(Value::as_str))
        .unwrap_or_default();
    let tool = call.tool.rsplit('/').next().unwrap_or_default();
    format!("{tool} {telling}")
}

/// Returns the line of a result that says most: the last two of a command, which say what it
/// changed and how it ended, and otherwise the first.
fn outcome(result: &ToolResult) -> String {
    let lines: Vec<&str> = result.output.lines().filter(|line| !line.trim().is_empty()).collect();
    let is_command = lines
        .last()
        .is_some_and(|line| line.starts_with('[') && line.ends_with(']'));
    let mut said = if is_command {
        lines[lines.len().saturating_sub(2)..].join(" ")
    } else {
        lines.first().copied().unwrap_or("nothing").to_owned()
    };
    // The same outcome took another time.
    if is_command
        && let Some((before, last)) = said.rsplit_once(", ")
        && last.ends_with(" s]")
    {
        said = format!("{before}]");
    }
    cut(&said)
}

/// Returns the beginning of a text on one line.
pub(crate) fn cut(text: &str) -> String {
    let line = one_line(text);
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(tool: &str, arg: (&str, &str), output: &str) -> ToolResult {
        ToolResult {
            call: ToolCall {
                id: String::new(),
                tool: format!("workspace/{tool}"),
                args: serde_json::Map::from_iter([(arg.0.to_owned(), arg.1.into())]),
            },
            output: output.to_owned(),
            is_error: false,
        }
    }

    #[test]
    fn the_same_attempt_is_counted_and_old_ones_are_forgotten() {
        let mut attempts = Attempts::default();
        for seconds in [12, 14] {
            let output = format!("long output\n[no file changed]\n[exit code 0, {seconds}.0 s]");
            attempts.note(&[result("execute_command", ("command", "sed -i\ns/a/b/ x"), &output)]);
        }
        attempts.note(&[result(
            "str_replace",
            ("path", "x"),
            "not_found 404: old does not occur\n1: a",
        )]);
        assert_eq!(
            attempts.list(),
            "- execute_command sed -i s/a/b/ x (2 times): [no file changed] [exit code 0]\n\
             - str_replace x: not_found 404: old does not occur\n"
        );
        for number in 0..MOST {
            attempts.note(&[result("read_file", ("path", &number.to_string()), "")]);
        }
        assert!(!attempts.list().contains("sed") && attempts.list().contains("- read_file 11: nothing"));
    }
}
