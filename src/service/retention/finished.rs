//! Whether the work on a task is over, so that all that is stored of it can be erased.

use super::Forgotten;
use crate::service::Service;
use crate::store::{Run, StoreError};
use crate::task::id::{RunId, TaskId};
use crate::task::state::State;

impl Service {
    /// Returns the runs of a task, all of which are finished; else why it cannot be forgotten.
    pub(super) async fn finished_runs(&self, task: &TaskId) -> Result<Result<Vec<RunId>, Forgotten>, StoreError> {
        let runs = self.services.store.runs(Some(task), u32::MAX).await?;
        Ok(finished(&runs).map_err(|state| Forgotten::Unfinished {
            task: task.clone(),
            state,
        }))
    }
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
}
