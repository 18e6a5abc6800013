//! Whether the work on a task is over, so that all that is stored of it can be erased.

use super::Forgotten;
use crate::service::Service;
use crate::store::{NumberedFact, Run, StoreError};
use crate::task::id::{RunId, TaskId};
use crate::task::state::State;

/// The names of the facts with which a worker takes up a run and puts it down.
const CLAIMED: &str = "claimed";
const PUT_DOWN: &str = "put_down";

impl Service {
    /// Returns the runs of a task, all of which are finished and put down; else why it cannot be
    /// forgotten. After the end of a run its worker gives back the claim on the item, removes the
    /// container, and tells of that.
    pub(super) async fn finished_runs(&self, task: &TaskId) -> Result<Result<Vec<RunId>, Forgotten>, StoreError> {
        let store = &self.services.store;
        let runs = store.runs(Some(task), u32::MAX).await?;
        let ids = match finished(&runs) {
            Ok(ids) => ids,
            Err(state) => {
                let task = task.clone();
                return Ok(Err(Forgotten::Unfinished { task, state }));
            }
        };
        for run in store.held_beyond_end(task).await? {
            let claimed = store.newest_of(run, CLAIMED).await?;
            let put_down = store.newest_of(run, PUT_DOWN).await?;
            if !is_put_down(claimed.as_ref(), put_down.as_ref()) {
                return Ok(Err(Forgotten::ClearingUp { task: task.clone() }));
            }
        }
        Ok(Ok(ids))
    }
}

/// Tells by the newest facts about its claims and their ends whether a run is in no worker's hands.
/// One that was never claimed, such as one that was stopped in the queue, was in none.
fn is_put_down(claimed: Option<&NumberedFact>, put_down: Option<&NumberedFact>) -> bool {
    let Some(claimed) = claimed else { return true };
    put_down.is_some_and(|put_down| put_down.sequence > claimed.sequence)
}

/// Returns the ids of these runs, or the state of one that is unfinished. It is told by the same
/// answer of the store, since a run that is admitted after a question for unfinished ones would be
/// among them.
fn finished(runs: &[Run]) -> Result<Vec<RunId>, State> {
    let ids = runs.iter().map(|run| {
        if run.state.is_final() {
            Ok(run.id)
        } else {
            Err(run.state)
        }
    });
    ids.collect()
}

#[cfg(test)]
mod tests {
    use chrono::Utc;
    use serde_json::Value;

    use super::*;
    use crate::journal::fact::Fact;

    fn run(state: State) -> Run {
        let now = Utc::now();
        Run {
            id: RunId::new(),
            task: "github:acme/widgets#7".parse().unwrap(),
            title: "Greet".to_owned(),
            state,
            record: Value::Null,
            created_at: now,
            updated_at: now,
            not_before: None,
        }
    }

    #[test]
    fn a_task_with_an_unfinished_run_among_others_is_refused() {
        let over = [run(State::Done), run(State::Failed), run(State::Stopped)];
        let ids: Vec<RunId> = over.iter().map(|run| run.id).collect();
        assert_eq!(finished(&over), Ok(ids));
        assert_eq!(finished(&[run(State::Queued), run(State::Done)]), Err(State::Queued));
        assert_eq!(finished(&[]), Ok(Vec::new()));
    }

    #[test]
    fn a_run_is_in_a_worker_s_hands_from_its_newest_claim_until_that_is_put_down() {
        let fact = |sequence, name: &str| NumberedFact {
            sequence,
            document: name.to_owned(),
        };
        let (claimed, later) = (fact(2, CLAIMED), fact(6, CLAIMED));
        let put_down = fact(4, PUT_DOWN);
        assert!(is_put_down(None, None));
        assert!(!is_put_down(Some(&claimed), None));
        assert!(is_put_down(Some(&claimed), Some(&put_down)));
        assert!(!is_put_down(Some(&later), Some(&put_down)));
    }

    #[test]
    fn the_facts_are_called_what_the_journal_calls_them() {
        let claimed = Fact::Claimed {
            machine: None,
            state: String::new(),
        };
        let put_down = Fact::PutDown { ending: String::new() };
        for (fact, name) in [(claimed, CLAIMED), (put_down, PUT_DOWN)] {
            assert_eq!(serde_json::to_value(&fact).unwrap()["fact"], name);
        }
    }
}
