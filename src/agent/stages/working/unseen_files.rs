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
use crate::conversation::{Message, ToolCall, ToolResult};
use crate::evidence::language::is_among_tests;
use crate::llm::chat::Chat;
use crate::repository::RepositoryError;
use crate::syntax::fragment;

/// Largest file that is looked at, in bytes; none that is larger was shown.
const LARGEST: u64 = 256 * 1024;

/// Words by which the result of a call that was left out is recognised.
const LEFT_ALONE: &str = "so it stays as it is.";

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
    let mirror = source::mirror_at_hand(run).await?;
    let (mut kept, mut refused) = (Vec::new(), Vec::new());
    for call in calls.drain(..) {
        let (path, content) = (argument(&call, "path"), argument(&call, "content"));
        if !writes_whole(&call) || first.iter().any(|(shown, _)| shown == path) {
            kept.push(call);
            continue;
        }
        let text = match mirror.file(&base, path, LARGEST).await {
            Ok(bytes) => bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
            Err(RepositoryError::Unexpected { .. }) => Some(String::new()),
            Err(error) => return Err(error.into()),
        };
        let is_test = is_among_tests(path);
        let is_safe = |text: &str| {
            was_printed_whole(chat.messages(), text) || (!is_test && fragment::merge(path, text, content).is_some())
        };
        if text.as_deref().is_none_or(is_safe) {
            kept.push(call);
        } else {
            refused.push((why(path, is_test), call));
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

/// Tells whether the model was told to print the file first, and then to write it.
pub(super) fn is_to_be_printed(result: &ToolResult) -> bool {
    was_left_alone(result) && !is_among_tests(argument(&result.call, "path"))
}

fn argument<'call>(call: &'call ToolCall, name: &str) -> &'call str {
    call.args.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn writes_whole(call: &ToolCall) -> bool {
    call.tool.ends_with("write_file") && call.args.get("mode").is_some_and(|mode| mode == files::PUT)
}

/// Tells whether a command of the model has printed the whole file.
fn was_printed_whole(messages: &[Message], text: &str) -> bool {
    // Results stand in messages of their own, or in a user message in the form of a call.
    let has_results = |message: &&Message| match message {
        Message::Results { .. } => true,
        Message::User { text, .. } => text.starts_with("bash "),
        Message::System { .. } | Message::Summary { .. } | Message::Assistant { .. } => false,
    };
    messages
        .iter()
        .filter(has_results)
        .any(|message| shown::has_lines(std::slice::from_ref(message), &[], text))
}

fn why(path: &str, is_test: bool) -> String {
    if is_test {
        return format!(
            "{path} is a test that you have not seen whole, {LEFT_ALONE} Write the file that it tests instead."
        );
    }
    format!(
        "{path} is there already, and you have not seen it whole: what you have not seen would be lost, {LEFT_ALONE} Print it \
         first (`cat {path}` between ```bash and ```), or write the function that changes alone."
    )
}
