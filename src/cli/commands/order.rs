//! `stop`, `pause`, `resume`, `approve`, `deny`, `budget`: what people tell a run from another
//! process.

mod decision; // whether an approval or a denial counts

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use crate::agent::record::message::OPERATOR;
use crate::agent::waiting::Visited;
use crate::cli::exit;
use crate::cli::session::{Session, complain, forge_configuration, print};
use crate::config::Config;
use crate::journal::Journal;
use crate::journal::fact::{Fact, Subject};
use crate::secret::Redactor;
use crate::service::Service;
use crate::service::attending::CommandOutcome;
use crate::store::{Store, StoreError};
use crate::task::command::Command;
use crate::task::id::{RunId, TaskId};
use crate::task::state::State;
use decision::Decision;

/// Time for a worker to act before the command ends: longer than the work of a run takes to save.
const PATIENCE: Duration = Duration::from_mins(2);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The effect of a decision that counts while the run is paused, in words for the operator.
const COUNTS: &str = "it counts, and the run goes on when the pause ends";

/// Passes `command` to the unfinished run of `task`, and prints the effect on the run.
pub async fn tell(config: Option<&Path>, task: &str, command: &Command) -> ExitCode {
    let task: TaskId = match task.parse() {
        Ok(task) => task,
        Err(error) => {
            complain(error);
            return exit::USAGE.into();
        }
    };
    let session = match Session::for_forge(config).await {
        Ok(session) => session,
        Err(code) => return code,
    };
    let service = session.service.clone();
    let command = command.clone();
    session
        .run(async move {
            match pass_on(&service, &task, &command).await {
                Ok(told) => {
                    print(told);
                    exit::SUCCESS.into()
                }
                Err(refused) => {
                    complain(refused);
                    exit::FAILED.into()
                }
            }
        })
        .await
}

/// Passes `command` on; returns its effect on the run.
///
/// # Errors
/// If it has no effect: says why.
async fn pass_on(service: &Service, task: &TaskId, command: &Command) -> Result<String, String> {
    let store = service.store();
    let unreachable = |error: StoreError| error.to_string();
    let of_task = |why: String| format!("{task}: {why}");
    let no_run = || format!("{task} has no unfinished run; `coding-agent status` lists the runs there are");
    let Some(run) = store.unfinished_of(task).await.map_err(unreachable)? else {
        return Err(no_run());
    };
    let decision = Decision::of(command, &run).map_err(of_task)?;
    let told = match service.tell(task, command, None).await.map_err(unreachable)? {
        CommandOutcome::NoRun => return Err(no_run()),
        CommandOutcome::Here(Visited::Stays) if decision.is_some() => COUNTS.to_owned(),
        CommandOutcome::Here(visited) => visited.to_string(),
        CommandOutcome::Worker(run) => {
            let Some(state) = through_worker(store, run).await else {
                let later = format!("the worker was told to {command} and does so at its next safe point");
                return Ok(of_task(later));
            };
            state.to_string()
        }
    };
    let after = store.run(run.id).await.map_err(unreachable)?;
    let refusal = decision.zip(after).and_then(|(decision, run)| decision.refusal(&run));
    refusal.map_or_else(|| Ok(of_task(told)), |why| Err(of_task(why)))
}

/// Waits until the worker has handled the request, and returns the state of the run then; `None` if
/// that takes too long.
async fn through_worker(store: &Store, run: RunId) -> Option<State> {
    let acted = async {
        loop {
            let is_open = store.requests(run).await.is_ok_and(|requests| !requests.is_empty());
            // A run that ends before the worker hears the request leaves it open.
            if let Ok(Some(run)) = store.run(run).await
                && (!is_open || run.state.is_final())
            {
                return run.state;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    tokio::time::timeout(PATIENCE, acted).await.ok()
}

/// Pauses all runs of the installation, or lifts that pause.
pub async fn all(config: Option<&Path>, is_pause: bool) -> ExitCode {
    let config = match forge_configuration(config) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let done = async {
        let store = Store::open(config.store()).await?;
        let (command, is_new) = if is_pause {
            ("pause --all", store.pause_all().await?)
        } else {
            ("resume --all", store.resume_all().await?)
        };
        if is_new {
            note(&config, &store, command).await;
        }
        Ok::<(), StoreError>(())
    };
    match done.await {
        Ok(()) if is_pause => {
            print("all runs pause at their next safe point, until `coding-agent resume --all`");
            exit::SUCCESS.into()
        }
        Ok(()) => {
            print("work goes on");
            exit::SUCCESS.into()
        }
        Err(error) => {
            complain(error);
            exit::FAILED.into()
        }
    }
}

/// Notes in the journal that the operator gave a command, by which open dashboards hear of it. The
/// command holds also where it cannot be noted.
async fn note(config: &Config, store: &Store, command: &str) {
    let redactor = Arc::new(Redactor::new(&config.secrets()));
    match Journal::open(&config.logs, redactor) {
        Ok(journal) => {
            journal.keep_in(store);
            let fact = Fact::Ordered {
                by: OPERATOR.to_owned(),
                command: command.to_owned(),
            };
            journal.record(&Subject::default(), fact);
            journal.close().await;
        }
        Err(error) => complain(format_args!("{command} holds, but is not in the journal: {error}")),
    }
}
