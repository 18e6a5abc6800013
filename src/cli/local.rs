//! `run --task`: work on a folder, without a forge.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use super::exit;
use super::session::{Session, complain, configuration, environment, print, refuse};
use crate::agent::record::LocalTask;
use crate::agent::run::Ending;
use crate::agent::thread::Thread;
use crate::config::Config;

/// What the command line asks for.
pub struct Task {
    pub text: String,
    pub root: Option<PathBuf>,
    pub dry_run: bool,
    pub environment: Option<String>,
}

/// Works on the task, shows the difference and applies it unless it is only to be shown.
pub async fn run(config: Option<&Path>, task: Task) -> ExitCode {
    let config = match local_configuration(config) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let root = task.root.unwrap_or_else(|| PathBuf::from("."));
    let folder = match std::fs::canonicalize(&root) {
        Ok(folder) if folder.is_dir() => folder,
        Ok(folder) => {
            return wrong(format_args!(
                "{} is not a folder; name one with --root",
                folder.display()
            ));
        }
        Err(error) => return wrong(format_args!("{}: {error}; name a folder with --root", root.display())),
    };
    if let Some(name) = task
        .environment
        .as_ref()
        .filter(|name| !config.command_executor.environments.contains_key(*name))
    {
        let known: Vec<&str> = config
            .command_executor
            .environments
            .keys()
            .map(String::as_str)
            .collect();
        return wrong(format_args!(
            "there is no environment '{name}'; there are: {}",
            known.join(", ")
        ));
    }
    let session = match Session::open(config).await {
        Ok(session) => session,
        Err(code) => return code,
    };
    let service = Arc::clone(&session.service);
    let local = LocalTask {
        text: task.text,
        folder,
        dry_run: task.dry_run,
        environment: task.environment,
    };
    session
        .run(async move {
            let thread = Thread::Terminal {
                show: Arc::new(|text| complain(text)),
            };
            let outcome = match service.work_on_local(local, thread).await {
                Ok(outcome) => outcome,
                Err(error) => {
                    complain(service.clean(&format!("{error:#}")));
                    return exit::FAILED.into();
                }
            };
            if !outcome.diff.as_str().is_empty() {
                print(outcome.diff.as_str().trim_end());
            }
            if outcome.ending == Ending::Interrupted {
                return exit::KILLED.into();
            }
            exit::of(&outcome.ending).into()
        })
        .await
}

/// Reads the configuration file if there is one; else takes the defaults and the model the environment names.
fn local_configuration(path: Option<&Path>) -> Result<Config, ExitCode> {
    if Config::find(path, &environment).is_some() {
        return configuration(path);
    }
    Config::from_environment(&environment).map_err(|faults| refuse(&faults))
}

fn wrong(text: impl std::fmt::Display) -> ExitCode {
    complain(text);
    exit::USAGE.into()
}
