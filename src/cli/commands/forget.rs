//! `forget`: erases what is stored of a task.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use crate::cli::exit;
use crate::cli::session::{Session, complain, configuration_or_defaults, print};
use crate::plain::counted;
use crate::service::retention::{Erased, Forgotten};
use crate::task::id::TaskId;

/// Erases everything of `task`, unless a run of it is unfinished or its worker still clears up.
pub async fn run(config: Option<&Path>, task: &str) -> ExitCode {
    let task: TaskId = match task.parse() {
        Ok(task) => task,
        Err(error) => {
            complain(error);
            return exit::USAGE.into();
        }
    };
    let config = match configuration_or_defaults(config) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let session = match Session::open(config).await {
        Ok(session) => session,
        Err(code) => return code,
    };
    let service = session.service.clone();
    session
        .run(async move {
            match service.forget(&task).await {
                Ok(Forgotten::Erased(erased)) => {
                    print(format_args!("{task}: {}", told(&erased)));
                    exit::SUCCESS.into()
                }
                Ok(Forgotten::Unfinished { task: other, state }) => {
                    complain(format_args!(
                        "{task} cannot be forgotten: a run of {other} is unfinished ({state}); let it end, or end it with \
                         `coding-agent stop {other}`, and call this again"
                    ));
                    exit::USAGE.into()
                }
                Ok(Forgotten::ClearingUp { task: other }) => {
                    complain(format_args!(
                        "{task} cannot be forgotten yet: a run of {other} has ended, and its worker still clears up \
                         after it; call this again in a moment"
                    ));
                    exit::USAGE.into()
                }
                Err(error) => {
                    complain(service.clean(&format!("{error:#}; call this again to erase the rest")));
                    exit::FAILED.into()
                }
            }
        })
        .await
}

fn told(erased: &Erased) -> String {
    let mut text = if *erased
        == (Erased {
            broken: erased.broken,
            is_rest_left: erased.is_rest_left,
            is_left_to_others: erased.is_left_to_others,
            ..Erased::default()
        }) {
        "nothing is stored about it".to_owned()
    } else {
        format!(
            "erased {} with their conversations, {} of journal and logs, the kept outputs of {}, the kept commits of {}",
            counted(erased.runs, "run"),
            counted(erased.lines, "line"),
            counted(erased.outputs, "run"),
            counted(erased.kept, "run"),
        )
    };
    if erased.broken > 0 {
        let (are, them) = match erased.broken {
            1 => ("is broken and was left as it is", "it, and it is"),
            _ => ("are broken and were left as they are", "them, and each is"),
        };
        let mirrors = counted(erased.broken, "mirror");
        let _ = write!(
            text,
            "; {mirrors} {are}: the log names {them} made anew at its next use"
        );
    }
    if erased.is_rest_left {
        text.push_str(
            "; other processes are at work, so deleted parts of the store and of mirrors may be on the disk yet: call this again \
             when they have ended",
        );
    }
    if erased.is_left_to_others {
        text.push_str(
            "; the other machines that share the store erase what lies on their own disks, each within an hour in which it works",
        );
    }
    text
}
