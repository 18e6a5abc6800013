//! `run`, `serve`, `produce`, `consume`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use crate::agent::record::stop::Stop;
use crate::chat::Chat;
use crate::cli::commands::dashboard;
use crate::cli::exit;
use crate::cli::session::{Session, complain, forge_configuration, mention, print};
use crate::service::Service;
use crate::service::running::Work;
use crate::store::try_exclusive;

/// Runs one cycle for cron: finds tasks, works until none is left, and ends.
pub async fn run(config: Option<&Path>) -> ExitCode {
    let config = match forge_configuration(config) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let _only = match try_exclusive(&config.state_dir) {
        Ok(Some(only)) => only,
        Ok(None) => {
            let folder = config.state_dir.display();
            let text = format!("another run is active on {folder}; nothing was done");
            return mention(&config, &text);
        }
        Err(error) => {
            complain(error);
            return exit::FAILED.into();
        }
    };
    let session = match Session::open(config).await {
        Ok(session) => session,
        Err(code) => return code,
    };
    let service = Arc::clone(&session.service);
    session
        .run(async move {
            if let Err(error) = service.recover().await {
                complain(error);
                return exit::FAILED.into();
            }
            let cycle = Box::pin(service.run_once(&complain)).await;
            for outcome in &cycle.outcomes {
                print(format_args!("{outcome}"));
            }
            let code = exit::of_all(cycle.outcomes.iter().map(|outcome| &outcome.ending));
            if cycle.has_faults && code == ExitCode::SUCCESS {
                exit::FAILED.into()
            } else {
                code
            }
        })
        .await
}

/// Finds tasks and works on them until stopped.
pub async fn serve(config: Option<&Path>) -> ExitCode {
    until_stopped(
        config,
        Work {
            produces: true,
            consumes: true,
        },
    )
    .await
}

/// Finds tasks and does not work on them, until stopped.
pub async fn produce(config: Option<&Path>) -> ExitCode {
    until_stopped(
        config,
        Work {
            produces: true,
            consumes: false,
        },
    )
    .await
}

/// Works on tasks that were found before, and searches for none, until stopped.
pub async fn consume(config: Option<&Path>) -> ExitCode {
    until_stopped(
        config,
        Work {
            produces: false,
            consumes: true,
        },
    )
    .await
}

async fn until_stopped(config: Option<&Path>, work: Work) -> ExitCode {
    let session = match Session::for_forge(config).await {
        Ok(session) => session,
        Err(code) => return code,
    };
    let (service, stop) = (Arc::clone(&session.service), session.stop.clone());
    session
        .run(async move {
            if work.consumes
                && let Err(error) = service.recover().await
            {
                complain(error);
                return exit::FAILED.into();
            }
            print("at work; SIGTERM or Ctrl-C stops at the next safe point");
            let served = dashboard::beside(&service, work, &stop);
            tokio::join!(
                Box::pin(service.run(work, &stop, &complain)),
                served,
                talking(&service, work, &stop)
            );
            exit::SUCCESS.into()
        })
        .await
}

/// Hears and answers people in messengers beside the work of `serve`, where one is configured.
async fn talking(service: &Arc<Service>, work: Work, stop: &Stop) {
    if !work.produces || !work.consumes {
        return;
    }
    match Chat::new(service) {
        Ok(Some(chat)) => Box::pin(chat.run(stop)).await,
        Ok(None) => {}
        Err(error) => complain(format_args!("no messenger can be spoken to: {error}")),
    }
}
