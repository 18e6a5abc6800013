//! A run that there is already when somebody asks for work on its item: it goes on if it waits, and
//! if it has ended another one was asked for.

use super::AdmitError;
use crate::agent::record::{PausedBy, Record};
use crate::service::Service;
use crate::store::{Admission, Request, StoreError};
use crate::task::command::Command;
use crate::task::id::{RunId, TaskId};

impl Service {
    /// Returns the admission, or a new one where the known run has ended since.
    pub(super) async fn unless_over(
        &self,
        admission: Admission,
        task: &TaskId,
        title: &str,
        record: &serde_json::Value,
    ) -> Result<Admission, StoreError> {
        let store = &self.services.store;
        let Admission::Known(run) = admission else {
            return Ok(admission);
        };
        if store.run(run).await?.is_none_or(|run| run.state.is_final()) {
            return store.admit(task, title, record).await;
        }
        Ok(admission)
    }

    /// Has a run go on that waits for people; returns whether it waits.
    pub(super) async fn let_go_on(&self, run: RunId) -> Result<bool, AdmitError> {
        let store = &self.services.store;
        let Some(stored) = store.run(run).await?.filter(|run| run.state.is_set_aside()) else {
            return Ok(false);
        };
        let paused = Record::read(&stored)?.waiting.paused;
        let command = match paused.map(|paused| paused.by) {
            // Asked for anew, it gets its budget anew.
            Some(PausedBy::Limit(_)) => Command::Budget(self.config.budget.tokens.unwrap_or(u64::MAX)),
            _ => Command::Resume,
        }
        .to_string();
        // Whoever finds the item again need not ask again.
        if !ends_with(&store.requests(run).await?, &command) {
            store.ask(run, &command, None).await?;
        }
        Ok(true)
    }
}

/// Returns true if the newest of the requests is this command. An older one does not count: what
/// was asked after it, such as a pause, would have the last word.
fn ends_with(requests: &[Request], command: &str) -> bool {
    requests.last().is_some_and(|request| request.text == command)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn what_was_asked_before_a_pause_is_asked_again_after_it() {
        let requests = ["resume", "pause", "resume"].map(|text| Request {
            id: Uuid::nil(),
            text: text.to_owned(),
            by: None,
        });
        let asked = [0, 1, 2, 3].map(|count| ends_with(&requests[..count], "resume"));
        assert_eq!(asked, [false, true, false, true]);
    }
}
