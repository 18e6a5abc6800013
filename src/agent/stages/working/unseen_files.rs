//! Files of the project that a model would write whole, and was not shown whole: what it has not
//! seen would be lost.
//!
//! Small models do that with tests above all: told some lines of one that fails, they write that
//! test again as they suppose it to be, and leave the code as it is.

use serde_json::Value;

use crate::agent::dialogue::ReplyForm;
use crate::agent::prompt::shown;
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::workspace::source;
use crate::conversation::decode::files;
use crate::conversation::{Message, ToolCall, ToolResult, excerpt};
use crate::evidence::language::is_among_tests;
use crate::llm::chat::Chat;
use crate::repository::mirror::Mirror;
use crate::repository::{CommitId, RepositoryError};
use crate::secret::Redactor;
use crate::syntax::fragment;
use crate::workspace::tools::code_search::beneath_root;

/// Words by which the result of a call that was left out is recognised.
const LEFT_ALONE: &str = "so it stays as it is.";

/// The base's file at a path.
enum AtBase {
    Nothing,
    Text(String),
    /// A file that is larger than the file tools take, or cannot be looked at.
    TooLarge,
}

/// What the model has before it.
struct Seen<'run> {
    messages: &'run [Message],
    redactor: &'run Redactor,
    /// Maximum bytes of the output of a command.
    most: usize,
}

/// Takes those calls out of `calls` that would write such a file, and returns their results. Pieces
/// of a file that is no test stay: they are put in the place of what they replace.
pub(super) async fn left_alone(
    run: &mut Run,
    chat: &Chat,
    calls: &mut Vec<ToolCall>,
) -> Result<Vec<ToolResult>, Interruption> {
    if !calls.iter().any(writes_whole) {
        return Ok(Vec::new());
    }
    let Some(base) = run.claim.record.planned.base.as_ref().map(|base| base.commit.clone()) else {
        return Ok(Vec::new());
    };
    let first = ReplyForm::of(&run.claim).shown(&run.claim, chat.messages());
    let is_shown = |path: &str| first.iter().any(|(shown, _)| shown == path);
    let most = run.claim.services.containers.config.files.max_bytes;
    let mirror = source::mirror_at_hand(run).await?;
    let seen = Seen {
        messages: chat.messages(),
        redactor: &run.claim.services.redactor,
        most: excerpt::most_bytes_of_output(run.claim.window(), 1),
    };
    let (mut kept, mut refused) = (Vec::new(), Vec::new());
    for call in calls.drain(..) {
        let path = argument(&call, "path");
        if !writes_whole(&call) || is_shown(path) {
            kept.push(call);
            continue;
        }
        // The executor takes a path that begins with the project's own as meant beneath it.
        let beneath = beneath_root(path);
        let (path, found) = match at_base(&mirror, &base, path, most).await? {
            AtBase::Nothing if beneath != path => (beneath.as_str(), at_base(&mirror, &base, &beneath, most).await?),
            found => (path, found),
        };
        match why_not(path, argument(&call, "content"), &found, &seen) {
            Some(why) if !is_shown(path) => refused.push((why, call)),
            Some(_) | None => kept.push(call),
        }
    }
    *calls = kept;
    // No failure: what else the reply writes is checked, and without anything it changed nothing.
    let result = |(output, call)| ToolResult {
        call,
        output,
        is_error: false,
    };
    Ok(refused.into_iter().map(result).collect())
}

/// Tells whether a call was left out for this.
pub(super) fn was_left_alone(result: &ToolResult) -> bool {
    result.call.tool.ends_with("write_file") && result.output.contains(LEFT_ALONE)
}

/// Tells whether the model was told to print the file first, and then to write it, or to change it
/// with commands.
pub(super) fn is_to_be_printed(result: &ToolResult) -> bool {
    was_left_alone(result) && !is_among_tests(argument(&result.call, "path"))
}

fn argument<'call>(call: &'call ToolCall, name: &str) -> &'call str {
    call.args.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn writes_whole(call: &ToolCall) -> bool {
    call.tool.ends_with("write_file") && call.args.get("mode").is_some_and(|mode| mode == files::PUT)
}

impl Seen<'_> {
    /// Tells whether commands of the model have printed the whole text, in one output or several.
    /// `shown` is the text without its secrets, as outputs have it.
    fn has(&self, shown: &str) -> bool {
        // Results stand in messages of their own, or in a user message in the form of a call.
        let has_results = |message: &&Message| match message {
            Message::Results { .. } => true,
            Message::User { text, .. } => text.starts_with("bash "),
            Message::System { .. } | Message::Summary { .. } | Message::Assistant { .. } => false,
        };
        shown::have_lines_together(self.messages.iter().filter(has_results), shown)
    }
}

async fn at_base(mirror: &Mirror, base: &CommitId, path: &str, most: u64) -> Result<AtBase, Interruption> {
    match mirror.file(base, path, most).await {
        Ok(None) => Ok(AtBase::Nothing),
        Ok(Some(bytes)) => {
            let text = String::from_utf8_lossy(&bytes);
            // The file tools show no byte order mark.
            Ok(AtBase::Text(text.trim_start_matches('\u{feff}').to_owned()))
        }
        Err(RepositoryError::Unexpected { .. }) => Ok(AtBase::TooLarge),
        Err(error) => Err(error.into()),
    }
}

/// Returns why `content` is not written to the file at `path`, unless nothing is lost by it.
fn why_not(path: &str, content: &str, found: &AtBase, seen: &Seen<'_>) -> Option<String> {
    let is_test = is_among_tests(path);
    let is_too_long = match found {
        AtBase::Nothing => return None,
        AtBase::Text(text) => {
            let shown = seen.redactor.clean(text);
            let is_piece = || !is_test && fragment::merge(path, text, content).is_some();
            if text.trim().is_empty() || seen.has(shown.as_str()) || is_piece() {
                return None;
            }
            shown.as_str().len() > seen.most
        }
        AtBase::TooLarge if is_test => true,
        AtBase::TooLarge => {
            return Some(format!(
                "{path} is there already and too large to be looked at, {LEFT_ALONE} Change it with commands \
                 (sed, a script) between ```bash and ```."
            ));
        }
    };
    if is_test {
        return Some(format!(
            "{path} is a test that you have not seen whole, {LEFT_ALONE} Write the file that it tests instead."
        ));
    }
    if is_too_long {
        return Some(format!(
            "{path} is there already, longer than an output, and you have not seen it whole: what you have not seen \
             would be lost, {LEFT_ALONE} Change it with commands (sed, a script) between ```bash and ```, or write the \
             function that changes alone."
        ));
    }
    Some(format!(
        "{path} is there already, and you have not seen it whole: what you have not seen would be lost, {LEFT_ALONE} Print it \
         first (`cat {path}` between ```bash and ```), or write the function that changes alone."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "import os\n\n\ndef one():\n    return 1\n\n\ndef two():\n    return 2\n";
    const PIECE: &str = "def one():\n    return 3\n";
    const OTHER: &str = "x = 1\n";

    fn printed(text: &str) -> Message {
        Message::User {
            text: format!("bash cat:\n{text}"),
            pictures: Vec::new(),
        }
    }

    fn why_not_after(messages: &[Message], path: &str, content: &str, found: &AtBase) -> Option<String> {
        let seen = Seen {
            messages,
            redactor: &Redactor::default(),
            most: 32 * 1024,
        };
        why_not(path, content, found, &seen)
    }

    #[test]
    fn a_file_is_written_whole_if_nothing_of_it_is_lost() {
        let found = AtBase::Text(TEXT.to_owned());
        let refused = why_not_after(&[printed("def one():")], "a.py", OTHER, &found).unwrap();
        assert!(refused.contains("Print it first"), "{refused}");
        for (path, content, messages) in [
            ("a.py", OTHER, vec![printed(TEXT)]),
            ("a.py", PIECE, Vec::new()),
            ("tests/test_a.py", OTHER, vec![printed(TEXT)]),
        ] {
            assert_eq!(
                why_not_after(&messages, path, content, &found),
                None,
                "{path}: {content}"
            );
        }
        let refused = why_not_after(&[], "tests/test_a.py", PIECE, &found).unwrap();
        assert!(refused.contains("is a test that you have not seen whole"), "{refused}");
        for found in [AtBase::Nothing, AtBase::Text("\n".to_owned())] {
            assert_eq!(why_not_after(&[], "tests/__init__.py", OTHER, &found), None);
        }
    }

    #[test]
    fn a_file_that_is_too_large_to_be_looked_at_is_changed_with_commands() {
        for messages in [Vec::new(), vec![printed(TEXT)]] {
            let refused = why_not_after(&messages, "data.json", "[]\n", &AtBase::TooLarge).unwrap();
            assert!(refused.contains("too large to be looked at, so it stays"), "{refused}");
        }
        let refused = why_not_after(&[], "tests/data.json", "[]\n", &AtBase::TooLarge).unwrap();
        assert!(refused.contains("is a test"), "{refused}");
    }

    #[test]
    fn a_file_that_is_longer_than_an_output_is_seen_in_several() {
        let lines: Vec<String> = (0..2_500)
            .map(|number| format!("value_{number} = {number}\n"))
            .collect();
        let found = AtBase::Text(lines.concat());
        let half = |lines: &[String]| printed(&lines.concat());
        let halves = [half(&lines[..1_250]), half(&lines[1_250..])];
        let refused = why_not_after(&halves[..1], "a.py", OTHER, &found).unwrap();
        assert!(refused.contains("Change it with commands"), "{refused}");
        assert_eq!(why_not_after(&halves, "a.py", OTHER, &found), None);
    }

    #[test]
    fn a_file_with_a_secret_is_seen_as_outputs_show_it() {
        // Built from parts, so that no scanner takes this file for a leak.
        let token = format!("ghp_{}", "Ab3dEf6hIj9lMn2p".repeat(3));
        let shown = "TOKEN = '[redacted:github-token]'\nDEBUG = False\n";
        let found = AtBase::Text(shown.replace("[redacted:github-token]", &token));
        assert_eq!(why_not_after(&[printed(shown)], "settings.py", OTHER, &found), None);
    }
}
