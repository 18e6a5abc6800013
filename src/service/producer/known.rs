//! A run that there is already when somebody asks for work on its item: it goes on if it waits, and
//! if it has ended another one was asked for. If only its end is not shown yet, that is tried.

use chrono::{DateTime, SubsecRound, Utc};

use super::AdmitError;
use super::asking::by_its_clock;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::{PausedBy, Record};
use crate::forge::FoundItem;
use crate::service::Service;
use crate::service::forges::Connected;
use crate::store::{Admission, Request, Run, StoreError};
use crate::task::command::Command;
use crate::task::id::{RunId, TaskId};

impl Service {
    /// Returns the admission, or a new one where the known run has ended since; where it was
    /// `asked` to go on, only if it ended without having heard that.
    pub(super) async fn unless_over(
        &self,
        admission: Admission,
        asked: Option<&str>,
        task: &TaskId,
        title: &str,
        record: &serde_json::Value,
    ) -> Result<Admission, StoreError> {
        let store = &self.services.store;
        let Admission::Known(run) = admission else {
            return Ok(admission);
        };
        if store.run(run).await?.is_some_and(|run| !run.state.is_final()) {
            return Ok(admission);
        }
        if let Some(command) = asked
            && !is_unheard(&store.requests(run).await?, command)
        {
            return Ok(admission);
        }
        store.admit(task, title, record).await
    }

    /// Has a run go on that waits for people; returns what it was asked, if it waits.
    pub(super) async fn let_go_on(&self, run: RunId) -> Result<Option<String>, AdmitError> {
        let store = &self.services.store;
        let Some(stored) = store.run(run).await?.filter(|run| run.state.is_set_aside()) else {
            return Ok(None);
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
        Ok(Some(command))
    }

    /// Returns the unfinished run of an item if its end was decided, and could not be shown yet.
    pub(super) async fn ending_of(&self, task: &TaskId) -> Result<Option<Run>, AdmitError> {
        let Some(run) = self.services.store.unfinished_of(task).await? else {
            return Ok(None);
        };
        let has_ended = Interruption::of_decided_end(&Record::read(&run)?).is_some();
        Ok(has_ended.then_some(run))
    }

    /// Has the end of a run be shown at once that is to be shown later, if somebody who may have
    /// the program work has put the label on since that was tried. The label stays on the item, so
    /// that by itself it would have each search try again, whatever time the forge named.
    pub(super) async fn show_end_at_once(
        &self,
        connected: &Connected,
        item: &FoundItem,
        ending: &Run,
    ) -> Result<(), AdmitError> {
        let now = Utc::now();
        if ending.not_before.is_none_or(|due| due <= now) {
            return Ok(());
        }
        let Some(asked) = self.let_in(connected, item).await? else {
            return Ok(());
        };
        let forge_now = connected.forge.now(&item.task).await?;
        let tried = by_its_clock(ending.updated_at, Utc::now(), forge_now);
        if came_after(asked.at, tried) && self.services.store.make_due(ending.id).await? {
            self.wake_ups.wake_one();
        }
        Ok(())
    }
}

/// Returns true if somebody asked after an attempt; within one second, which is all that forges
/// tell, they count as having done so.
fn came_after(asked: DateTime<Utc>, tried: DateTime<Utc>) -> bool {
    asked >= tried.trunc_subsecs(0)
}

/// Returns true if the newest of the requests is this command. An older one does not count: what
/// was asked after it, such as a pause, would have the last word.
fn ends_with(requests: &[Request], command: &str) -> bool {
    requests.last().is_some_and(|request| request.text == command)
}

/// Returns true if a run has not heard this command: what it has heard is no request any more.
fn is_unheard(requests: &[Request], command: &str) -> bool {
    requests.iter().any(|request| request.text == command)
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_label_has_an_end_tried_again_once() {
        let at = |milliseconds| DateTime::UNIX_EPOCH + TimeDelta::milliseconds(milliseconds);
        let tried = [9_900, 10_900, 11_100].map(|tried| came_after(at(10_000), at(tried)));
        assert_eq!(tried, [true, true, false]);
    }

    fn requests(texts: &[&str]) -> Vec<Request> {
        let request = |text: &&str| Request {
            id: Uuid::nil(),
            text: (*text).to_owned(),
            by: None,
        };
        texts.iter().map(request).collect()
    }

    #[test]
    fn a_command_that_stands_among_the_requests_was_not_heard() {
        let left: [&[&str]; 3] = [&[], &["pause"], &["resume", "pause"]];
        let unheard = left.map(|texts| is_unheard(&requests(texts), "resume"));
        assert_eq!(unheard, [false, false, true]);
    }

    #[test]
    fn what_was_asked_before_a_pause_is_asked_again_after_it() {
        let requests = requests(&["resume", "pause", "resume"]);
        let asked = [0, 1, 2, 3].map(|count| ends_with(&requests[..count], "resume"));
        assert_eq!(asked, [false, true, false, true]);
    }
}
