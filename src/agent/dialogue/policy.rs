//! Tool calls that rules refuse: each refusal is returned to the model, noted in the journal and
//! counted. Three consecutive replies with nothing but refusals end the run.
//!
//! Replies are counted and not calls, since a model that makes five calls at once has not read the
//! first answer yet. A success resets the count; a failure for another reason leaves it unchanged.
//! A file that is missing, not UTF-8 or too large is no policy refusal: the model may read another
//! file, or use a command. A host that the network refused is noted and not counted: small models
//! install what they do not need, and a task that needs no network can still be done.

use serde_json::Value;

use crate::agent::claim::Claim;
use crate::agent::dialogue;
use crate::agent::record::interruption::Interruption;
use crate::conversation::ToolCall;
use crate::journal::fact::Fact;
use crate::llm::chat::Chat;
use crate::markdown::code::code;
use crate::tool::ToolOutput;
use crate::workspace::WORKSPACE;

/// Number of consecutive replies with only refusals that end a run.
const MOST: usize = 3;
/// Rule name of a refused connection.
pub(crate) const EGRESS: &str = "egress";
/// The planner's server, whose tools are file tools as well.
const REPOSITORY: &str = "repository";
/// Status codes of a file tool that refuses by a rule: a path or an extension that is not allowed,
/// an excluded file.
const BY_RULE: [u16; 2] = [400, 403];

/// Status recorded when a file tool fails without a status code.
const OTHERWISE: u16 = 500;

/// The rule that refused a call, and the text that the model was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) rule: String,
    pub(crate) reason: String,
}

/// The outcome of a call, for the journal.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Set for calls of file tools.
    pub(crate) status: Option<u16>,
    pub(crate) size: Option<u64>,
    pub(crate) refusal: Option<Refusal>,
}

impl Outcome {
    /// Classifies the output of a tool. Only the program's own file tools are trusted: the output
    /// of another server or of a command may imitate a refusal.
    pub(crate) fn of(call: &ToolCall, output: &ToolOutput) -> Self {
        if !is_own(call) || ran_a_command(output) {
            return Self::default();
        }
        let size = output
            .structured
            .as_ref()
            .and_then(|fields| fields.get("size")?.as_u64());
        if !output.is_error {
            return Self {
                status: is_about_a_file(call).then_some(200),
                size,
                refusal: None,
            };
        }
        let Some((rule, status)) = head(&output.text) else {
            return Self {
                status: is_about_a_file(call).then_some(OTHERWISE),
                ..Self::default()
            };
        };
        let refusal = BY_RULE.contains(&status).then(|| Refusal {
            rule: rule.to_owned(),
            reason: output.text.clone(),
        });
        Self {
            status: Some(status),
            size,
            refusal,
        }
    }

    /// Returns the outcome of a call that was refused before it reached the tool.
    pub(crate) fn forbidden(call: &ToolCall, rule: &str, status: u16, reason: String) -> Self {
        Self {
            status: is_about_a_file(call).then_some(status),
            size: None,
            refusal: Some(Refusal {
                rule: rule.to_owned(),
                reason,
            }),
        }
    }
}

/// Returns true if `output` is that of a command that ran, whatever its exit code.
pub(crate) fn ran_a_command(output: &ToolOutput) -> bool {
    let fields = output.structured.as_ref();
    fields.is_some_and(|fields| fields.get("exit_code").is_some())
}

/// Returns the path argument of a file tool's call.
pub(crate) fn path(call: &ToolCall) -> Option<&str> {
    let path = call.args.get("path").and_then(Value::as_str);
    path.filter(|_| is_about_a_file(call))
}

/// Returns true if `call` runs a command in the container.
pub(crate) fn is_own_command(call: &ToolCall) -> bool {
    is_own(call) && !is_about_a_file(call)
}

fn is_own(call: &ToolCall) -> bool {
    let server = call.tool.split('/').next();
    [Some(WORKSPACE), Some(REPOSITORY)].contains(&server)
}

fn is_about_a_file(call: &ToolCall) -> bool {
    is_own(call) && !call.tool.ends_with("/execute_command")
}

/// Parses rule and status at the start of a refusal, such as `path_escape 400: `.
fn head(text: &str) -> Option<(&str, u16)> {
    let (rule, status) = text.split_once(": ")?.0.split_once(' ')?;
    let is_word = rule.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_number = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
    (is_word && is_number).then(|| Some((rule, status.parse().ok()?)))?
}

/// Records a refusal in the journal.
pub(crate) fn note_refusal(claim: &Claim, refusal: &Refusal) {
    claim.note(Fact::PolicyRefused {
        rule: refusal.rule.clone(),
        reason: refusal.reason.clone(),
    });
}

/// Counts the refusals of one reply: warns the model before the last one, and ends the run if it
/// continues.
pub(crate) fn count_refusals(
    claim: &mut Claim,
    chat: &mut Chat,
    refused: &[Refusal],
    has_success: bool,
) -> Result<(), Interruption> {
    if has_success {
        claim.record.worked.refusals.clear();
    }
    let counted = refused.iter().find(|refusal| refusal.rule != EGRESS);
    let Some(first) = counted.filter(|_| !has_success) else {
        return Ok(());
    };
    let reason = claim.services.redactor.clean(&first.reason).into_string();
    claim.record.worked.refusals.push(reason);
    let refusals = &claim.record.worked.refusals;
    if refusals.len() >= MOST {
        let named: Vec<String> = refusals
            .iter()
            .map(|reason| format!("\n- {}", code(first_line(reason))))
            .collect();
        return Err(Interruption::refused_by_policy(format!(
            "the model asked {MOST} times in a row for what rules forbid, and nothing else came of it:\n{}\n\nAllow what is really \
             needed where the rule stands, or ask for something that does without it",
            named.concat()
        )));
    }
    if refusals.len() + 1 == MOST {
        dialogue::tell(
            claim,
            chat,
            "Rules refused what you asked for, twice in a row. The next refusal ends the run. Do what is allowed instead, or finish \
             and say what is open.",
        );
    }
    Ok(())
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_begins_with_a_word_and_a_number() {
        for (text, expected) in [
            ("path_escape 400: ../a leads out", Some(("path_escape", 400))),
            ("not_utf8 415: a: b", Some(("not_utf8", 415))),
            ("path_escape: 400", None),
            ("there is no tool x; there are 400: y", None),
            ("not found 404: x", None),
            ("a 4000: x", None),
            ("a +40: x", None),
            ("", None),
        ] {
            assert_eq!(head(text), expected, "{text}");
        }
    }
}
