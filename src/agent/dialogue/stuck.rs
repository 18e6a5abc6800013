//! Helps a model that repeats itself, does nothing, or cannot call its tools.

use crate::agent::claim::Claim;
use crate::agent::dialogue;
use crate::agent::dialogue::attempts::{Attempts, called, cut};
use crate::agent::dialogue::replanning;
use crate::agent::prompt;
use crate::agent::record::interruption::Interruption;
use crate::conversation::breaker::Trip;
use crate::conversation::circling::{Stuck, Verdict};
use crate::conversation::{ToolResult, ToolSpec};
use crate::llm::chat::Chat;
use crate::markdown::code::code;
use crate::plain::counted;
use crate::secret::Redactor;

/// Reacts to the verdicts on the last reply.
///
/// # Errors
/// If the model was told before, and it did not help.
pub(crate) async fn help(
    claim: &mut Claim,
    chat: &mut Chat,
    (verdict, trip): (Verdict, Trip),
    tools: &[ToolSpec],
    attempts: &Attempts,
) -> Result<(), Interruption> {
    let limit = claim.services.settings.planning.circuit_breaker.tool_failures;
    match trip {
        Trip::None => {}
        Trip::Tell => {
            let text = prompt::calls_fail(limit, tools);
            dialogue::tell(claim, chat, &text);
        }
        Trip::PlanAnew => {
            let calls = counted(limit, "more tool call");
            let reason = format!("{calls} in a row could not be carried out");
            replanning::revise_plan(claim, chat, &reason).await?;
        }
        Trip::Fail => {
            return Err(Interruption::failed(format!(
                "{} tool calls in a row could not be carried out, though the model was told what is wrong and the plan was made anew; \
                 a larger model may do better, or an item that names the files to change \
                 (planning.circuit_breaker.tool_failures has the limit)",
                3 * limit
            )));
        }
    }
    match verdict {
        Verdict::GoOn => Ok(()),
        // A model that repeats itself is told with the facts from which it begins anew.
        Verdict::Warn(stuck) => {
            if let Some(advice) = stuck.advice() {
                dialogue::tell(claim, chat, advice);
            }
            replanning::revise_plan(claim, chat, stuck.reason()).await
        }
        Verdict::Enough(stuck) => Err(Interruption::failed(in_vain(
            stuck,
            attempts.last(),
            &claim.services.redactor,
        ))),
    }
}

/// Returns why the work of a stuck model ends, with the call that it made last, which it repeated,
/// and the beginning of what came of it.
fn in_vain(stuck: Stuck, last: Option<&ToolResult>, redactor: &Redactor) -> String {
    let remedy = "a larger model may do better, or a task that names the files to change";
    let what = match stuck {
        Stuck::Repeating => "went round in circles",
        Stuck::Idle => "changed nothing for a long time",
    };
    // Without secrets before it is cut: nobody recognises half of one.
    let shown = |text: &str| code(&cut(redactor.clean(text).as_str()));
    let call = match last {
        Some(last) if last.output.trim().is_empty() => {
            format!(" Its last call: {}, without any output.", shown(&called(&last.call)))
        }
        Some(last) => format!(
            " Its last call: {}, of which came: {}",
            shown(&called(&last.call)),
            shown(&last.output)
        ),
        None => String::new(),
    };
    format!("the model {what} and was told so, in vain; {remedy}.{call}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::conversation::ToolCall;

    fn result(command: &str, output: &str) -> ToolResult {
        ToolResult {
            call: ToolCall {
                id: String::new(),
                tool: "workspace/execute_command".to_owned(),
                args: serde_json::Map::from_iter([("command".to_owned(), json!(command))]),
            },
            output: output.to_owned(),
            is_error: false,
        }
    }

    #[test]
    fn the_repeated_call_and_what_came_of_it_are_named_on_one_line() {
        let last = result("make check\n", "`cc` is missing\n@all see\n\n[exit code 2, 12 ms]");
        assert_eq!(
            in_vain(Stuck::Repeating, Some(&last), &Redactor::default()),
            "the model went round in circles and was told so, in vain; a larger model may do better, or a task that \
             names the files to change. Its last call: `execute_command make check`, of which came: \
             `` `cc` is missing @all see [exit code 2, 12 ms] ``"
        );
    }

    #[test]
    fn a_long_result_is_cut_and_an_empty_one_is_called_so() {
        let long = result("make", &"word ".repeat(1_000));
        let told = in_vain(Stuck::Idle, Some(&long), &Redactor::default());
        assert!(
            told.starts_with("the model changed nothing for a long time and was told so"),
            "{told}"
        );
        assert!(told.ends_with("word …`") && told.len() < 500, "{told}");
        let silent = in_vain(Stuck::Repeating, Some(&result("true", "\n")), &Redactor::default());
        assert!(
            silent.ends_with("Its last call: `execute_command true`, without any output."),
            "{silent}"
        );
    }
}
