//! Helps a model that repeats itself, does nothing, or cannot call its tools.

use crate::agent::claim::Claim;
use crate::agent::dialogue;
use crate::agent::dialogue::replanning;
use crate::agent::prompt;
use crate::agent::record::interruption::Interruption;
use crate::conversation::ToolSpec;
use crate::conversation::breaker::Trip;
use crate::conversation::circling::Verdict;
use crate::llm::chat::Chat;
use crate::plain::counted;

/// Reacts to the verdicts on the last reply.
///
/// # Errors
/// If the model was told before, and it did not help.
pub(crate) async fn help(
    claim: &mut Claim,
    chat: &mut Chat,
    (verdict, trip): (Verdict, Trip),
    tools: &[ToolSpec],
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
        Verdict::Enough => Err(Interruption::failed(
            "the model went round in circles and was told so, in vain; a larger model may do better, or a task that \
             names the files to change",
        )),
    }
}
