//! Notices a model that goes round in circles: the same call with the same result again and again, or two in turn.
//!
//! The first time the model is told, the second time it is enough. A call whose result changes is no circle: whoever waits
//! for a build to finish asks the same thing, too.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::ToolResult;

/// How often a step, or a pair of steps, comes in a row before it counts as a circle.
const REPETITIONS: usize = 3;
/// Longest circle that is looked for, in replies.
const LONGEST: usize = 2;

/// Watches the replies of one conversation.
#[derive(Debug, Default, Clone)]
pub struct Watch {
    recent: VecDeque<u64>,
    has_warned: bool,
}

/// What to do about the last reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    GoOn,
    /// Tell the model.
    Warn,
    /// It was told and does not stop.
    Enough,
}

impl Watch {
    /// Takes the results of one reply into account.
    pub fn judge(&mut self, results: &[ToolResult]) -> Verdict {
        if results.is_empty() {
            return Verdict::GoOn;
        }
        self.recent.push_back(fingerprint(results));
        if self.recent.len() > LONGEST * REPETITIONS {
            self.recent.pop_front();
        }
        if !(1..=LONGEST).any(|length| self.repeats(length)) {
            return Verdict::GoOn;
        }
        self.recent.clear();
        if self.has_warned {
            return Verdict::Enough;
        }
        self.has_warned = true;
        Verdict::Warn
    }

    /// Tells whether the last replies are one piece of this length, over and over.
    fn repeats(&self, length: usize) -> bool {
        let needed = length * REPETITIONS;
        let Some(start) = self.recent.len().checked_sub(needed) else {
            return false;
        };
        (start + length..self.recent.len()).all(|place| self.recent[place] == self.recent[place - length])
    }
}

fn fingerprint(results: &[ToolResult]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for result in results {
        result.call.tool.hash(&mut hasher);
        serde_json::to_string(&result.call.args)
            .unwrap_or_default()
            .hash(&mut hasher);
        without_duration(&result.output).hash(&mut hasher);
    }
    hasher.finish()
}

/// The executor ends its answer with a line such as `[exit code 1, 12 ms]`, of which only the time differs.
fn without_duration(output: &str) -> &str {
    match output.rsplit_once(", ") {
        Some((before, last)) if last.ends_with("s]") => before,
        _ => output,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::ToolCall;

    fn results(command: &str, output: &str) -> Vec<ToolResult> {
        let args = serde_json::Map::from_iter([("command".to_owned(), command.into())]);
        let call = ToolCall {
            id: String::new(),
            tool: "workspace/execute_command".to_owned(),
            args,
        };
        vec![ToolResult {
            call,
            output: output.to_owned(),
            is_error: false,
        }]
    }

    fn check(steps: &[(&str, &str)], expected: &[Verdict]) {
        let mut watch = Watch::default();
        let verdicts: Vec<Verdict> = steps
            .iter()
            .map(|(command, output)| watch.judge(&results(command, output)))
            .collect();
        assert_eq!(verdicts, expected, "{steps:?}");
    }

    #[test]
    fn the_same_call_with_the_same_result_is_a_circle_whatever_time_it_took() {
        use Verdict::{Enough, GoOn, Warn};
        let step = |time: &'static str| ("make", time);
        check(
            &[
                step("no\n[exit code 2, 12 ms]"),
                step("no\n[exit code 2, 13 ms]"),
                step("no\n[exit code 2, 1.4 s]"),
                step("no\n[exit code 2, 12 ms]"),
                step("no\n[exit code 2, 12 ms]"),
                step("no\n[exit code 2, 12 ms]"),
            ],
            &[GoOn, GoOn, Warn, GoOn, GoOn, Enough],
        );
    }

    #[test]
    fn two_steps_in_turn_are_a_circle() {
        use Verdict::{GoOn, Warn};
        check(
            &[("a", "1"), ("b", "2"), ("a", "1"), ("b", "2"), ("a", "1"), ("b", "2")],
            &[GoOn, GoOn, GoOn, GoOn, GoOn, Warn],
        );
    }

    #[test]
    fn progress_is_no_circle() {
        check(
            &[
                ("make", "1 left"),
                ("make", "0 left"),
                ("make", "done"),
                ("make", "done"),
            ],
            &[Verdict::GoOn; 4],
        );
    }
}
