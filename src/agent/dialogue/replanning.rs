//! Revision of the plan, when the work shows that it is wrong.

use crate::agent::claim::Claim;
use crate::agent::dialogue;
use crate::agent::dialogue::ask;
use crate::agent::prompt;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::redaction::clean_plan;
use crate::conversation::Reply;
use crate::conversation::decode::Unreadable;
use crate::journal::fact::Fact;
use crate::llm::chat::Chat;
use crate::plan::{self, Plan};

/// Maximum number of repetitions for a revised plan that cannot be parsed.
const RE_ASKS: u32 = 2;

/// Revises the plan at the model's request, or tells it that no revision is left.
pub(crate) async fn revise_plan_as_requested(
    claim: &mut Claim,
    chat: &mut Chat,
    reason: &str,
) -> Result<(), Interruption> {
    if may_revise_plan(claim) {
        return revise_plan(claim, chat, reason).await;
    }
    dialogue::tell(
        claim,
        chat,
        "The plan cannot be revised any more; finish with it what can be finished, and say what is open.",
    );
    Ok(())
}

fn may_revise_plan(claim: &Claim) -> bool {
    claim.record.planned.former_plans.len() < claim.services.settings.planning.replanning.max_revisions
}

/// Asks for a revised plan in a copy of the conversation, and adopts it; does nothing if the
/// maximum of revisions is reached. If the reply cannot be parsed, the old plan stays.
pub(crate) async fn revise_plan(claim: &mut Claim, chat: &mut Chat, reason: &str) -> Result<(), Interruption> {
    let Some(old) = claim.record.planned.plan.clone().filter(|_| may_revise_plan(claim)) else {
        return Ok(());
    };
    let most_subtasks = claim.services.settings.planning.max_subtasks;
    let mut aside = chat.clone();
    let question = prompt::revision(reason, most_subtasks);
    aside.hold_to(Some(plan::form::revision(most_subtasks)));
    aside.send_user_message(&claim.services.redactor.clean(&question));
    let read = |reply: &Reply| read(reply, most_subtasks);
    let new = match ask::ask_again(claim, &mut aside, read, RE_ASKS).await {
        Ok(new) => clean_plan(new, &claim.services.redactor),
        Err(Interruption::Failed(failure)) => {
            claim.note(Fact::Warned {
                text: format!(
                    "the plan was to be revised, but the old one stays: {}",
                    failure.in_words()
                ),
            });
            dialogue::tell(claim, chat, "No new plan came of it; the old one stays. Go on.");
            return Ok(());
        }
        Err(interruption) => return Err(interruption),
    };
    claim.note(Fact::Replanned {
        reason: reason.to_owned(),
        subtasks: new.task_decomposition.subtasks.len(),
    });
    dialogue::tell(claim, chat, &prompt::revised(&new));
    // A subtask stays finished if the new plan has it unchanged.
    let stays = |id: &String| old.subtask(id).is_some_and(|before| new.subtask(id) == Some(before));
    claim.record.worked.finished_subtasks.retain(stays);
    claim.record.planned.plan = Some(Plan {
        // The container is already running.
        selected_environment: old.selected_environment.clone(),
        ..new
    });
    claim.record.planned.former_plans.push(old);
    dialogue::save(claim, chat).await?;
    claim.note_plan();
    Ok(())
}

fn read(reply: &Reply, most_subtasks: usize) -> Result<Plan, Unreadable> {
    let plan = plan::read(reply)?;
    plan.validate(most_subtasks)?;
    Ok(plan)
}
