//! A model that says that all is done, and has called no tool: it has neither looked at the project
//! nor changed it.
//!
//! Small models do that at their first reply, and the run ended as done, with nothing changed and
//! nothing checked. Where a plan was made, the planner has looked; in a later round, the model's
//! words may be all that is wanted.

use crate::agent::dialogue;
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::conversation::ToolResult;
use crate::llm::chat::Chat;

const ADVICE: &str = "`done` did not count: no tool was called, so nothing was read, changed or checked. Read the files that the \
     task is about, change them, and run the tests. If nothing has to be changed, find that out with a tool first.";

/// Whether the project is still untouched, as far as it matters.
#[derive(Debug)]
pub(super) struct Untouched {
    is_over: bool,
    was_told: bool,
}

impl Untouched {
    /// Begins with a conversation; one that goes on after a restart is not looked at again.
    pub(super) fn of(run: &Run) -> Self {
        let record = &run.claim.record;
        let is_planned = run.claim.services.settings.planning.enabled;
        Self {
            is_over: is_planned || record.request.round.is_some() || record.worked.turns > 0,
            was_told: false,
        }
    }

    pub(super) fn note(&mut self, results: &[ToolResult]) {
        self.is_over |= !results.is_empty();
    }

    /// Tells the model once that it is not done; returns whether it did.
    ///
    /// # Errors
    /// If it was told before: work that nobody did must not end as done.
    pub(super) fn sends_back(&mut self, run: &Run, chat: &mut Chat) -> Result<bool, Interruption> {
        if self.is_over {
            return Ok(false);
        }
        if self.was_told {
            return Err(Interruption::failed(
                "the model says that the task is done and has called no tool, though it was told that this does not count; a larger \
                 model may do better",
            ));
        }
        self.was_told = true;
        dialogue::tell(&run.claim, chat, ADVICE);
        Ok(true)
    }
}
