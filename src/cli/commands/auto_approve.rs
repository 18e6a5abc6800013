//! `auto-approve`: switches automatic approval on for a time, and off.

use std::path::Path;
use std::process::ExitCode;

use crate::agent::record::message::OPERATOR;
use crate::cli::arguments::AutoApprove;
use crate::cli::exit;
use crate::cli::session::{Session, complain, print};
use crate::service::automatic_approval::NotStarted;

/// Switches automatic approval, or prints whether it is on.
pub async fn switch(config: Option<&Path>, asked: AutoApprove) -> ExitCode {
    let session = match Session::for_forge(config).await {
        Ok(session) => session,
        Err(code) => return code,
    };
    let service = session.service.clone();
    session
        .run(async move {
            let done = match asked {
                AutoApprove::On { ttl } => match service.start_automatic_approval(OPERATOR, ttl).await {
                    Ok(until) => Ok(format!("automatic approval is on until {}", at(until))),
                    Err(NotStarted::Store(error)) => Err(error),
                    Err(refused @ NotStarted::NotEnabled) => {
                        complain(refused);
                        return exit::REFUSED.into();
                    }
                    Err(refused @ NotStarted::TooLong { .. }) => {
                        complain(refused);
                        return exit::USAGE.into();
                    }
                },
                AutoApprove::Off => service.end_automatic_approval(OPERATOR).await.map(|was_on| {
                    let words = if was_on {
                        "automatic approval is off now"
                    } else {
                        "automatic approval was not on"
                    };
                    words.to_owned()
                }),
                AutoApprove::Status => service.store().automatic_approval().await.map(|started| match started {
                    Some(started) => format!(
                        "automatic approval is on until {} ({} switched it on)",
                        at(started.until),
                        started.by
                    ),
                    None => "automatic approval is off".to_owned(),
                }),
            };
            match done {
                Ok(line) => {
                    print(line);
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

fn at(time: chrono::DateTime<chrono::Utc>) -> impl std::fmt::Display {
    time.format("%Y-%m-%d %H:%M UTC")
}
