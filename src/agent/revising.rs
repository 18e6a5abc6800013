//! A better plan, when the work shows that the first one is wrong.

use super::planning::cleaned;
use super::prompt;
use super::run::Run;
use super::setback::Setback;
use crate::conversation::Reply;
use crate::conversation::decode::Unreadable;
use crate::journal::fact::Fact;
use crate::llm::chat::Chat;
use crate::plan::{self, Plan};

/// How often a new plan that cannot be read is asked for again.
const RE_ASKS: u32 = 2;

impl Run {
    /// Asks for a better plan because the model wished it.
    pub(super) async fn revise_plan_as_wished(&mut self, chat: &mut Chat, reason: &str) -> Result<(), Setback> {
        if self.may_revise_plan() {
            return self.revise_plan(chat, reason).await;
        }
        self.tell(
            chat,
            "The plan cannot be revised any more; finish with it what can be finished, and say what is open.",
        );
        Ok(())
    }

    fn may_revise_plan(&self) -> bool {
        self.record.former_plans.len() < self.workshop.settings.planning.replanning.max_revisions
    }

    /// Asks for a better plan, aside, and goes on with it; does nothing where it was revised often
    /// enough. A plan that cannot be read changes nothing: the old one stays.
    pub(super) async fn revise_plan(&mut self, chat: &mut Chat, reason: &str) -> Result<(), Setback> {
        let Some(old) = self.record.plan.clone().filter(|_| self.may_revise_plan()) else {
            return Ok(());
        };
        let most_subtasks = self.workshop.settings.planning.max_subtasks;
        let mut aside = chat.clone();
        let question = prompt::revision(reason, most_subtasks);
        aside.hold_to(Some(plan::form::revision(most_subtasks)));
        aside.send_user_message(&self.workshop.redactor.clean(&question));
        let read = |reply: &Reply| read(reply, most_subtasks);
        let new = match self.ask_again(&mut aside, read, RE_ASKS).await {
            Ok(new) => cleaned(new, &self.workshop.redactor),
            Err(Setback::Failed(failure)) => {
                self.note(Fact::Warned {
                    text: format!("the plan was to be revised, but the old one stays: {}", failure.text),
                });
                self.tell(chat, "No new plan came of it; the old one stays. Go on.");
                return Ok(());
            }
            Err(setback) => return Err(setback),
        };
        self.note(Fact::Replanned {
            reason: reason.to_owned(),
            subtasks: new.task_decomposition.subtasks.len(),
        });
        self.tell(chat, &prompt::revised(&new));
        // A tick stays where the subtask did.
        let stays = |id: &String| old.subtask(id).is_some_and(|before| new.subtask(id) == Some(before));
        self.record.finished_subtasks.retain(stays);
        self.record.plan = Some(Plan {
            // The container runs already.
            selected_environment: old.selected_environment.clone(),
            ..new
        });
        self.record.former_plans.push(old);
        self.save_conversation(chat).await?;
        self.show_progress().await
    }

    /// Says something of the program's own to the model.
    pub(super) fn tell(&self, chat: &mut Chat, text: &str) {
        chat.send_user_message(&self.workshop.redactor.clean(text));
    }
}

fn read(reply: &Reply, most_subtasks: usize) -> Result<Plan, Unreadable> {
    let plan = plan::read(reply)?;
    plan.validate(most_subtasks)?;
    Ok(plan)
}
