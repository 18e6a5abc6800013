//! `run --task`: works on a folder, without a forge. Only the diff goes to stdout; all messages go
//! to stderr.

use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use crate::agent::record::LocalTask;
use crate::agent::record::outcome::RunOutcome;
use crate::agent::reporter::destination::ReportTarget;
use crate::cli::exit;
use crate::cli::progress::{Progress, harmless};
use crate::cli::session::{Session, complain, configuration, environment, not_of_another_user, refuse, write};
use crate::config::Config;
use crate::secret::Clean;
use crate::service::local::LocalOutcome;

/// Maximum size in bytes of a task that is read from stdin.
const LONGEST_TASK: u64 = 1024 * 1024;

/// A local task, as the command line gives it.
pub struct Task {
    /// The task, or `-` to read it from stdin.
    pub text: String,
    pub root: Option<PathBuf>,
    pub dry_run: bool,
    pub environment: Option<String>,
}

/// Works on the task, shows the diff and, unless this is a dry run, applies it.
pub async fn run(config: Option<&Path>, task: Task) -> ExitCode {
    let (config, local) = match prepare(config, task) {
        Ok(prepared) => prepared,
        Err(code) => return code,
    };
    let session = match Session::open(config).await {
        Ok(session) => session.ends_at_once(),
        Err(code) => return code,
    };
    let service = Arc::clone(&session.service);
    let progress = Progress::start();
    let thread = ReportTarget::Terminal {
        show: {
            let progress = progress.clone();
            Arc::new(move |text: &Clean| progress.now(text))
        },
    };
    let work = async {
        let outcome = service.work_on_local(local, thread).await;
        progress.clear();
        match outcome {
            Ok(outcome) => conclude(&outcome),
            Err(error) => {
                complain(service.clean(&format!("{error:#}")));
                exit::FAILED.into()
            }
        }
    };
    // Boxed: the whole work on a run is in it.
    let code = Box::pin(session.run(work)).await;
    progress.clear();
    code
}

/// Checks everything that can be checked before anything is touched.
fn prepare(config: Option<&Path>, task: Task) -> Result<(Config, LocalTask), ExitCode> {
    let root = task.root.unwrap_or_else(|| PathBuf::from("."));
    let folder = match std::fs::canonicalize(&root) {
        Ok(folder) if folder.is_dir() => folder,
        Ok(folder) => {
            return Err(wrong(format_args!(
                "{} is not a folder; name one with --root",
                folder.display()
            )));
        }
        Err(error) => {
            return Err(wrong(format_args!(
                "{}: {error}; name a folder with --root",
                root.display()
            )));
        }
    };
    let config = local_configuration(config, &folder)?;
    for (key, path) in [
        ("state_dir", &config.state_dir),
        ("logs.directory", &config.logs.directory),
    ] {
        if lies_in(path, &folder) {
            complain(format_args!(
                "{key} is {}, inside the folder that is worked on; set it to a folder elsewhere (without a configuration \
                 file: set HOME or XDG_STATE_HOME)",
                path.display()
            ));
            return Err(exit::CONFIGURATION.into());
        }
    }
    let environments = &config.command_executor.environments;
    if let Some(name) = task
        .environment
        .as_ref()
        .filter(|name| !environments.contains_key(*name))
    {
        let known: Vec<&str> = environments.keys().map(String::as_str).collect();
        return Err(wrong(format_args!(
            "there is no environment '{name}'; there are: {}",
            known.join(", ")
        )));
    }
    let text = if task.text == "-" { from_stdin()? } else { task.text };
    if text.trim().is_empty() {
        return Err(wrong("the task is empty; say with --task what is to be done"));
    }
    let local = LocalTask {
        text,
        folder,
        dry_run: task.dry_run,
        environment: task.environment,
    };
    Ok((config, local))
}

fn from_stdin() -> Result<String, ExitCode> {
    let mut text = String::new();
    match std::io::stdin().take(LONGEST_TASK + 1).read_to_string(&mut text) {
        Ok(length) if length as u64 <= LONGEST_TASK => Ok(text),
        Ok(_) => Err(wrong(format_args!(
            "the task on stdin is longer than {LONGEST_TASK} bytes; put it into a file of the folder and name that in the task"
        ))),
        Err(error) => Err(wrong(format_args!("the task cannot be read from stdin: {error}"))),
    }
}

/// Prints the outcome: the diff first, then the report, so that a person finds it at the end.
fn conclude(outcome: &LocalOutcome) -> ExitCode {
    let diff = outcome.diff.as_str();
    if std::io::stdout().is_terminal() {
        write(&harmless(diff));
    } else {
        write(diff);
    }
    complain(harmless(outcome.report.as_str()));
    match outcome.ending {
        RunOutcome::Interrupted => exit::KILLED.into(),
        _ => exit::of(&outcome.ending).into(),
    }
}

/// Reads the configuration file if there is one; else takes the defaults and the model the
/// environment names.
///
/// A file in the folder that is worked on is part of the work: a stranger's `config.yaml` may
/// belong to something else, or name programs to be started here. It counts only if it was named.
fn local_configuration(path: Option<&Path>, folder: &Path) -> Result<Config, ExitCode> {
    let file = Config::find_outside(path, folder, &environment);
    let config = match &file {
        Some(file) => configuration(Some(file))?,
        None => Config::from_environment(&environment).map_err(|faults| refuse(&faults))?,
    };
    not_of_another_user(config, file.as_deref())
}

/// Tells whether `path`, which need not exist, lies in `folder`.
fn lies_in(path: &Path, folder: &Path) -> bool {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let existing = path.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
    existing.is_some_and(|existing| existing.starts_with(folder)) || path.starts_with(folder)
}

fn wrong(text: impl std::fmt::Display) -> ExitCode {
    complain(text);
    exit::USAGE.into()
}
