//! `run`, `serve`, `produce`, `consume`.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::MissedTickBehavior;

use super::exit;
use super::session::{Session, complain, forge_configuration, print};
use crate::agent::record::stop::Stop;
use crate::service::Service;
use crate::store::try_exclusive;

/// How often a service that runs for months looks for containers that were left over.
const SWEEP_EVERY: Duration = Duration::from_mins(10);

/// Runs one round for cron: finds tasks, works until none is left, ends.
pub async fn run(config: Option<&Path>) -> ExitCode {
    let config = match forge_configuration(config) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let _only = match try_exclusive(&config.state_dir) {
        Ok(Some(only)) => only,
        Ok(None) => {
            print(format_args!(
                "another run is active on {}; nothing was done",
                config.state_dir.display()
            ));
            return exit::SUCCESS.into();
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
            if recover(&service).await.is_err() {
                return exit::FAILED.into();
            }
            let faults = produce_once(&service).await;
            attend(&service).await;
            let outcomes = service.work_until_idle().await;
            Box::pin(service.keep_retention()).await;
            for outcome in &outcomes {
                print(format_args!("{outcome}"));
            }
            let code = exit::of_all(outcomes.iter().map(|outcome| &outcome.ending));
            if faults && code == ExitCode::SUCCESS {
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

/// Only finds tasks, until stopped.
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

/// Only works on tasks that were found, until stopped.
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

#[derive(Clone, Copy)]
struct Work {
    produces: bool,
    consumes: bool,
}

async fn until_stopped(config: Option<&Path>, work: Work) -> ExitCode {
    let config = match forge_configuration(config) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let pause = Duration::from_secs(config.producer.interval_seconds);
    let session = match Session::open(config).await {
        Ok(session) => session,
        Err(code) => return code,
    };
    let (service, stop) = (Arc::clone(&session.service), session.stop.clone());
    session
        .run(async move {
            if work.consumes && recover(&service).await.is_err() {
                return exit::FAILED.into();
            }
            print("at work; SIGTERM or Ctrl-C stops at the next safe point");
            tokio::join!(
                async {
                    if work.produces {
                        produce_again_and_again(&service, &stop, pause).await;
                    }
                },
                async {
                    if work.consumes {
                        Box::pin(attend_again_and_again(&service, &stop, pause)).await;
                    }
                },
                async {
                    if work.consumes {
                        sweep_again_and_again(&service, &stop, pause).await;
                    }
                },
                async {
                    if work.consumes {
                        service.keep_warm().await;
                    }
                },
                async {
                    if work.consumes {
                        service.work_until_stopped().await;
                    }
                }
            );
            exit::SUCCESS.into()
        })
        .await
}

/// Applies retention and removes left-over containers, at intervals of [`SWEEP_EVERY`]. Where a
/// removal failed it tries again soon, not only at the next start.
async fn sweep_again_and_again(service: &Service, stop: &Stop, pause: Duration) {
    let mut swept_at = Instant::now();
    loop {
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = stop.asked.cancelled() => return,
        }
        if swept_at.elapsed() < SWEEP_EVERY && !service.has_litter() {
            continue;
        }
        swept_at = Instant::now();
        Box::pin(service.keep_retention()).await;
        if let Err(error) = Box::pin(service.sweep()).await {
            tracing::error!("old containers could not be looked for: {error}");
        }
    }
}

async fn recover(service: &Service) -> Result<(), ()> {
    service.recover().await.map_err(complain)
}

async fn produce_again_and_again(service: &Service, stop: &Stop, pause: Duration) {
    let mut ticks = tokio::time::interval(pause);
    // Missed ticks are dropped: otherwise several rounds would follow a long one at once.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = stop.asked.cancelled() => return,
        }
        produce_once(service).await;
    }
}

async fn attend_again_and_again(service: &Service, stop: &Stop, pause: Duration) {
    let mut ticks = tokio::time::interval(pause);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = stop.asked.cancelled() => return,
        }
        attend(service).await;
    }
}

/// Looks after the runs that wait for people.
async fn attend(service: &Service) {
    if let Err(error) = service.attend_all().await {
        tracing::error!("the runs that wait for people could not be looked after: {error}");
    }
}

/// Searches all forges once and prints what went wrong; returns whether anything did.
async fn produce_once(service: &Service) -> bool {
    let harvest = service.produce().await;
    for fault in &harvest.faults {
        complain(service.clean(fault));
    }
    !harvest.faults.is_empty()
}
