//! `stop`, `pause`, `resume`, `approve`, `deny`, `budget`: what people tell a run from another
//! process.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use crate::agent::record::Record;
use crate::agent::text::waits::{Decided, decided, question_of};
use crate::agent::waiting::Visited;
use crate::approval::Word;
use crate::cli::exit;
use crate::cli::session::{Session, complain, forge_configuration, print};
use crate::service::Service;
use crate::service::attending::CommandOutcome;
use crate::store::Store;
use crate::task::command::Command;
use crate::task::id::{RunId, TaskId};

/// Time for a worker to act before the command ends: longer than the work of a run takes to save.
const PATIENCE: Duration = Duration::from_mins(2);
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What is told of a decision that counts while the run is paused.
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
            match service.tell(&task, &command, None).await {
                Ok(CommandOutcome::NoRun) => {
                    complain(format_args!(
                        "{task} has no unfinished run; `coding-agent status` lists the runs there are"
                    ));
                    exit::FAILED.into()
                }
                Ok(CommandOutcome::Here(Visited::Stays)) => match of_waiting(service.store(), &task, &command).await {
                    Ok(told) => {
                        print(format_args!("{task}: {told}"));
                        exit::SUCCESS.into()
                    }
                    Err(refused) => {
                        complain(format_args!("{task}: {refused}"));
                        exit::FAILED.into()
                    }
                },
                Ok(CommandOutcome::Here(visited)) => {
                    print(format_args!("{task}: {visited}"));
                    exit::SUCCESS.into()
                }
                Ok(CommandOutcome::Worker(run)) => {
                    print(format_args!(
                        "{task}: {}",
                        through_worker(&service, run, &command).await
                    ));
                    exit::SUCCESS.into()
                }
                Err(error) => {
                    complain(error);
                    exit::FAILED.into()
                }
            }
        })
        .await
}

/// Returns what is told of a command to a run that waits after it; the error says why a decision
/// does not count.
async fn of_waiting(store: &Store, task: &TaskId, command: &Command) -> Result<String, String> {
    let (digest, is_yes) = match command {
        Command::Approve(digest) => (digest.as_ref(), true),
        Command::Deny { digest, .. } => (digest.as_ref(), false),
        Command::Stop
        | Command::Pause
        | Command::Resume
        | Command::AutoApproveOff
        | Command::Budget(_)
        | Command::Help
        | Command::Unknown(_) => return Ok(Visited::Stays.to_string()),
    };
    let Some(run) = store.unfinished_of(task).await.map_err(|error| error.to_string())? else {
        return Ok("it has ended meanwhile".to_owned());
    };
    let record = Record::read(&run).map_err(|unreadable| unreadable.to_string())?;
    let word = Word { digest, is_later: true };
    let why = match question_of(&record).map(|question| question.takes(word)) {
        None => "nothing waits for approval".to_owned(),
        Some(Err(refusal)) => format!("{refusal}; `coding-agent status` shows the right one"),
        Some(Ok(())) => match decided(&record) {
            Some(Decided::Approved { .. }) if is_yes => return Ok(COUNTS.to_owned()),
            Some(Decided::Denied { .. }) if !is_yes => return Ok(COUNTS.to_owned()),
            Some(Decided::Approved { .. } | Decided::Denied { .. }) => "it is decided already".to_owned(),
            None => "what waits for approval has changed since".to_owned(),
        },
    };
    let done = if is_yes { "approved" } else { "denied" };
    Err(format!("nothing was {done}: {why}"))
}

/// Waits until the worker has handled the request, and returns the effect on the run.
async fn through_worker(service: &Service, run: RunId, command: &Command) -> String {
    let store = service.store();
    let acted = async {
        loop {
            let is_open = store.requests(run).await.is_ok_and(|requests| !requests.is_empty());
            // A run that ends before the worker hears the request leaves it open.
            if let Ok(Some(run)) = store.run(run).await
                && (!is_open || run.state.is_final())
            {
                return run.state.to_string();
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    match tokio::time::timeout(PATIENCE, acted).await {
        Ok(state) => state,
        Err(_) => format!("the worker was told to {command} and does so at its next safe point"),
    }
}

/// Pauses all runs of the installation, or lifts that pause.
pub async fn all(config: Option<&Path>, is_pause: bool) -> ExitCode {
    let config = match forge_configuration(config) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let done = async {
        let store = Store::open(config.store()).await?;
        if is_pause {
            store.pause_all().await
        } else {
            store.resume_all().await
        }
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
