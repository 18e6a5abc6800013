//! The files that a conversation shows, read back from it: one that goes on after a restart has
//! nothing else of them.

use std::borrow::Cow;

use crate::conversation::Message;
use crate::conversation::decode::files::{self, Shown};
use crate::conversation::decode::paths;

/// Tells whether the model has `lines` before it, in whatever way: all of them stand in one message
/// that was not replaced by a summary, or in one of the texts that it gets `beside` them.
pub(crate) fn has_lines(messages: &[Message], beside: &[&str], lines: &str) -> bool {
    let lines: Vec<(&str, String)> = lines
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| (line, in_json(line)))
        .collect();
    let has_all = |text: &str| {
        lines
            .iter()
            .all(|(line, in_json)| text.contains(line) || text.contains(in_json.as_str()))
    };
    beside.iter().any(|text| has_all(text)) || messages.iter().any(|message| has_all(&text_of(message)))
}

/// Tells whether `messages` have `lines` together, whichever has which.
pub(crate) fn have_lines_together<'chat>(messages: impl Iterator<Item = &'chat Message>, lines: &str) -> bool {
    let texts: Vec<Cow<'_, str>> = messages.map(text_of).collect();
    has_lines(&[], &[texts.join("\n").as_str()], lines)
}

/// Returns a line as it stands in a text of JSON: results and arguments of calls are written so.
fn in_json(line: &str) -> String {
    let text = serde_json::Value::from(line).to_string();
    text[1..text.len() - 1].to_owned()
}

fn text_of(message: &Message) -> Cow<'_, str> {
    match message {
        Message::System { text } | Message::User { text, .. } | Message::Summary { text, .. } => text.into(),
        Message::Assistant { text, calls, .. } if calls.is_empty() => text.into(),
        Message::Assistant { text, calls, .. } => {
            let args = calls
                .iter()
                .map(|call| serde_json::Value::Object(call.args.clone()).to_string());
            [text.clone()]
                .into_iter()
                .chain(args)
                .collect::<Vec<_>>()
                .join("\n")
                .into()
        }
        Message::Results { results } => {
            let outputs: Vec<&str> = results.iter().map(|result| result.output.as_str()).collect();
            outputs.join("\n").into()
        }
    }
}

/// Returns the files of a message with their texts, in either form of
/// [`FileFence`](super::file_block::FileFence). `tag` is the run's tag for text from outside; files
/// stand behind what people wrote, which may hold blocks of its own.
pub(crate) fn files(tag: &str, message: &str) -> Vec<Shown> {
    let (open, close) = (format!(":\n<{tag}>\n"), format!("\n</{tag}>"));
    let mut rest = message;
    let mut found = Vec::new();
    while let Some((before, behind)) = rest.split_once(&open) {
        let Some((text, behind)) = behind.split_once(&close) else {
            break;
        };
        let line = before.rsplit('\n').next().unwrap_or_default();
        // Other blocks have a sentence above them.
        let word = Some(line).filter(|line| !line.is_empty() && !line.contains(' '));
        if let Some(path) = paths::of_heading(line).or(word) {
            found.push((path.to_owned(), format!("{text}\n")));
        }
        rest = behind;
    }
    found.extend(files::blocks_with_paths(rest));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::prompt::file_block::FileFence;
    use crate::conversation::{ToolCall, ToolResult};
    use serde_json::json;

    #[test]
    fn lines_are_known_however_they_were_shown() {
        let lines = "    def test_add(self):\n\n        self.assertEqual(\"a\", 5)";
        let user = |text: &str| Message::User {
            text: text.to_owned(),
            pictures: Vec::new(),
        };
        let args = json!({ "content": lines });
        let call = ToolCall {
            id: String::new(),
            tool: "workspace/write_file".to_owned(),
            args: args.as_object().unwrap().clone(),
        };
        let result = ToolResult {
            call: call.clone(),
            output: format!("1: x\n{lines}"),
            is_error: false,
        };
        for message in [
            user(&format!("The files:\n{lines}\n")),
            user(&json!({ "output": lines }).to_string()),
            Message::Results { results: vec![result] },
            Message::Assistant {
                text: String::new(),
                calls: vec![call],
                origin: None,
            },
        ] {
            assert!(has_lines(&[user("Begin."), message.clone()], &[], lines), "{message:?}");
        }
        // A runner that prints the test has shown it.
        let printed = ">   def test_add(self):\n>       self.assertEqual(\"a\", 5)\n";
        assert!(has_lines(&[], &["other", printed], lines));
        // Each half in another message is no whole.
        let halves = lines.split("\n\n").map(user).collect::<Vec<_>>();
        assert!(!has_lines(&halves, &[], lines));
    }

    #[test]
    fn files_are_read_back_whatever_their_paths_are() {
        for fence in [FileFence::Tag("d-1".to_owned()), FileFence::Backticks] {
            for path in ["docs/my file.md", "app/[slug]/page.tsx", "routes/$id.tsx", "a.py"] {
                let message = format!("The task.\n{}\nBegin.", fence.block(path, "x = 1"));
                assert_eq!(
                    files("d-1", &message),
                    [(path.to_owned(), "x = 1\n".to_owned())],
                    "{message}"
                );
            }
        }
    }

    #[test]
    fn files_are_read_back_and_other_blocks_are_not() {
        let message = "The task is this issue, x#1:\n<d-1>\nc.py\n```\nno\n```\n</d-1>\n\nThe project's files:\n<d-1>\na.py\n</d-1>\n\na.py:\n<d-1>\nx = 1\n</d-1>\n\n\
                       sub/b.py\n````\ny\n```\nz\n````\n";
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        assert_eq!(
            files("d-1", message),
            [file("a.py", "x = 1\n"), file("sub/b.py", "y\n```\nz\n")]
        );
    }
}
