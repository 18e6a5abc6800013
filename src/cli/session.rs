//! Shared parts of the commands: output, configuration, and the [`Session`] (logs, journal,
//! service) that is opened at the start and closed in order at the end.

use std::fmt::Display;
use std::future::Future;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use secrecy::SecretString;

use super::{arguments, exit};
use crate::agent::record::stop::Stop;
use crate::config::Config;
use crate::environment::EngineAccess;
use crate::gateway::upstream::Upstream;
use crate::journal::fact::{Fact, Subject};
use crate::journal::{Journal, log_file};
use crate::private;
use crate::secret::Redactor;
use crate::service::shutdown::{Grace, Shutdown};
use crate::service::{Host, Service};
use crate::traces::Traces;
use crate::web;

/// Name prefixes of everything that the program keeps in its state folder.
const STATE: [&str; 14] = [
    "certificates",
    "claims",
    "coding-agent.db",
    "http-token",
    "instance",
    "mirrors",
    "operations",
    "pause",
    "restarts",
    "retention",
    "reviewers",
    "run.lock",
    "workers",
    ".doctor",
];

/// Name prefixes of everything that the program keeps in the folder of its logs.
const LOGS: [&str; 3] = ["coding-agent.", "journal-", "outputs"];

/// Time for a command that stops at once to remove its container.
const CLEARING_UP: Duration = Duration::from_secs(20);

/// The first failure to write to stdout. It belongs to the process, as the stream does.
static UNPRINTED: OnceLock<io::Error> = OnceLock::new();

/// Prints `text` to stderr, for the person at the terminal or for cron's mail.
pub fn complain(text: impl Display) {
    let line = format!("coding-agent: {text}\n");
    // Nobody is left who could be told that this failed.
    let _ = io::stderr().lock().write_all(line.as_bytes());
}

/// Prints a line of the command's result.
pub fn print(text: impl Display) {
    write(&format!("{text}\n"));
}

/// Writes a command's result to stdout unchanged. A failure ends no work; [`printed`] tells of it
/// at the end.
pub fn write(text: &str) {
    let mut stdout = io::stdout().lock();
    if let Err(error) = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        let _ = UNPRINTED.set(error);
    }
}

/// Prints what a person at the terminal wants to know. Elsewhere it goes to the log: of what a job
/// prints, cron sends a mail.
pub fn mention(config: &Config, text: &str) -> ExitCode {
    if io::stdout().is_terminal() {
        print(text);
        return exit::SUCCESS.into();
    }
    match log_file::start(&config.logs, Arc::new(Redactor::new(&config.secrets()))) {
        Ok(_logs) => {
            tracing::info!("{text}");
            exit::SUCCESS.into()
        }
        Err(error) => {
            complain(error);
            exit::CONFIGURATION.into()
        }
    }
}

/// Prints the answer to a command line that asks for help or the version, or is wrong, and returns
/// the exit code. A failure to write help is a failure to write a result.
pub fn answer(error: &clap::Error) -> ExitCode {
    let written = error.print().and_then(|()| io::stdout().flush());
    // What is wrong goes to stderr; nobody is left who could be told that this failed.
    if let (Err(failure), false) = (written, error.use_stderr()) {
        let _ = UNPRINTED.set(failure);
    }
    arguments::exit_code(error).into()
}

/// Tells whether nothing that is printed arrives any more.
pub fn is_unheard() -> bool {
    UNPRINTED.get().is_some()
}

/// Returns the exit code of a command that would end with `code`, and complains if its result could
/// not be written. A reader that closed the pipe (`| head`) has what it wanted.
pub fn printed(code: ExitCode) -> ExitCode {
    match UNPRINTED.get() {
        Some(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(format_args!("the result could not be written to stdout: {error}"));
            if code == ExitCode::SUCCESS {
                exit::FAILED.into()
            } else {
                code
            }
        }
        Some(_) | None => code,
    }
}

/// Looks up an environment variable.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads what the user has set"
)]
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Runs `command` to its end on a runtime of its own.
pub fn on_runtime(command: impl Future<Output = ExitCode>) -> ExitCode {
    // One TLS provider for all clients; a second call finds it there already.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => {
            let code = runtime.block_on(command);
            // Limited, so that blocking work that hangs (a name that does not resolve) cannot keep
            // the program from ending.
            runtime.shutdown_timeout(Duration::from_secs(1));
            code
        }
        Err(error) => {
            complain(format_args!("the program cannot start: {error}"));
            exit::FAILED.into()
        }
    }
}

/// Reads the configuration file. Prints each fault and returns the exit code for a wrong
/// configuration.
pub fn configuration(path: Option<&Path>) -> Result<Config, ExitCode> {
    let Some(path) = Config::find(path, &environment) else {
        complain(
            "there is no configuration: copy config.yaml.example to config.yaml and fill it in, or name a file with --config",
        );
        return Err(exit::CONFIGURATION.into());
    };
    Config::load(&path, &environment).map_err(|faults| refuse(&faults))
}

/// Reads the configuration file if there is one, else takes the defaults that `run --task` works
/// with: for commands that show what such a run did, or check what it needs.
pub fn configuration_or_defaults(path: Option<&Path>) -> Result<Config, ExitCode> {
    let file = Config::find(path, &environment);
    let config = match &file {
        Some(file) => configuration(Some(file))?,
        None => Config::from_environment(&environment).map_err(|faults| refuse(&faults))?,
    };
    not_of_another_user(config, file.as_deref())
}

/// Reads the configuration file for a command that works for a forge.
pub fn forge_configuration(path: Option<&Path>) -> Result<Config, ExitCode> {
    let file = Config::find(path, &environment);
    let config = not_of_another_user(configuration(file.as_deref())?, file.as_deref())?;
    if let Some(missing) = config.missing_source() {
        complain(missing);
        return Err(exit::CONFIGURATION.into());
    }
    Ok(config)
}

/// Refuses to let root write into the installation of another user, whose worker could not use what
/// root made there: a new day's log, a lock, a folder. The configuration comes from `file`, if from
/// any.
pub fn not_of_another_user(config: Config, file: Option<&Path>) -> Result<Config, ExitCode> {
    let store = config.state_dir.join("coding-agent.db");
    // Whoever made the store works with all the rest, whosever folder that lies in.
    let places = if store.exists() {
        vec![&store]
    } else {
        vec![&config.state_dir, &config.logs.directory]
    };
    for place in places {
        if let Some((owned, user)) = private::owner_besides_root(place) {
            let owned = owned.display();
            let about = if place.exists() {
                format!("{owned} belongs")
            } else {
                let wanted = std::path::absolute(place).unwrap_or_else(|_| place.clone());
                format!("{owned}, below which {} would be made, belongs", wanted.display())
            };
            complain(format_args!(
                "{about} to {user}, who could not use what root writes there: run `sudo -u {user} coding-agent{} ...`, \
                 make it root's (chown), or name folders of root's in state_dir and logs.directory",
                option_for(file)
            ));
            return Err(exit::CONFIGURATION.into());
        }
    }
    Ok(config)
}

/// Returns the option that names `file` from any folder, as a shell takes it: without it another
/// user's call may find another configuration, and so another state folder.
fn option_for(file: Option<&Path>) -> String {
    let Some(file) = file else {
        return String::new();
    };
    let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let file = file.display().to_string();
    let is_plain = file
        .chars()
        .all(|letter| letter.is_alphanumeric() || "/._-+,:@%".contains(letter));
    if is_plain {
        format!(" --config {file}")
    } else {
        format!(" --config '{}'", file.replace('\'', r"'\''"))
    }
}

/// Prints each fault of a configuration, and returns the exit code.
pub fn refuse(faults: &[crate::config::fault::Fault]) -> ExitCode {
    for fault in faults {
        complain(fault);
    }
    exit::CONFIGURATION.into()
}

/// Returns the program's knowledge of the machine it runs on.
pub fn host() -> Host {
    Host {
        // Where the kernel does not tell the path, the bare name has to do: the guard is then
        // looked for on the PATH.
        program: std::env::current_exe().unwrap_or_else(|_| "coding-agent".into()),
        engine: EngineAccess::from_variables(&environment),
        upstream: Arc::new(Upstream::from_variables(&environment)),
    }
}

/// Makes panics pass their message through the redactor: it can contain whatever was being read at
/// that moment.
fn say_panics_without_secrets(redactor: Arc<Redactor>) {
    std::panic::set_hook(Box::new(move |panic| {
        let text = redactor.clean(&format!("a fault of this program, please report it: {panic}"));
        tracing::error!("{text}");
        complain(text);
    }));
}

/// Removes other users' access to files that an older version of the program, or somebody by hand,
/// left readable.
///
/// Only files with a name of the program's are touched, and the folder itself only if it holds
/// nothing else: both folders may hold other things as well.
fn close_to_others(config: &Config) {
    for (folder, names) in [(&config.state_dir, &STATE[..]), (&config.logs.directory, &LOGS[..])] {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let is_own = |entry: &std::fs::DirEntry| {
            let name = entry.file_name();
            names.iter().any(|own| name.to_string_lossy().starts_with(own))
        };
        let (own, others): (Vec<_>, Vec<_>) = entries.partition(is_own);
        let changed: usize = own.iter().map(|entry| private::close_to_others(&entry.path())).sum();
        if others.is_empty() {
            private::close_to_others(folder);
        }
        if changed > 0 {
            complain(format_args!(
                "{changed} files and folders in {} could be read by other users of this machine; they are closed to them now",
                folder.display()
            ));
        }
    }
}

/// Returns the token that the program made for its dashboard, so that nothing shows it. Where it
/// cannot be read there is no dashboard, which says so.
fn token_of_dashboard(config: &Config) -> Option<SecretString> {
    let is_needed = config.http.listen.is_some() && config.http.users.is_empty();
    is_needed
        .then(|| web::own_token(&config.state_dir).ok())
        .flatten()
        .map(SecretString::from)
}

/// An assembled service with its logs open.
pub struct Session {
    pub service: Arc<Service>,
    pub stop: Stop,
    journal: Journal,
    traces: Option<Traces>,
    grace: Grace,
    _logs: log_file::LogFiles,
}

impl Session {
    /// Opens the session of a command that works for a forge; prints what went wrong.
    pub async fn for_forge(config: Option<&Path>) -> Result<Self, ExitCode> {
        Self::open(forge_configuration(config)?).await
    }

    /// Opens logs and journal, then the service; prints what went wrong.
    pub async fn open(config: Config) -> Result<Self, ExitCode> {
        close_to_others(&config);
        let mut secrets = config.secrets();
        secrets.extend(token_of_dashboard(&config));
        let redactor = Arc::new(Redactor::new(&secrets));
        let grace = Grace::for_work(Duration::from_secs(config.shutdown_grace_seconds));
        let opened = log_file::start(&config.logs, Arc::clone(&redactor))
            .and_then(|logs| Ok((logs, Journal::open(&config.logs, Arc::clone(&redactor))?)));
        let (logs, journal) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                complain(error);
                return Err(exit::CONFIGURATION.into());
            }
        };
        say_panics_without_secrets(Arc::clone(&redactor));
        let stop = Stop::default();
        // On the heap: the configuration is large, and every command would carry it about.
        let opening = Box::pin(Service::open(
            config,
            host(),
            journal.clone(),
            Arc::clone(&redactor),
            stop.clone(),
        ));
        match opening.await {
            Ok(service) => {
                let config = service.config();
                let traces = Traces::start(&config.traces, &config.llm, &journal);
                journal.record(&Subject::default(), Fact::WorkerStarted);
                Ok(Self {
                    service: Arc::new(service),
                    stop,
                    journal,
                    traces,
                    grace,
                    _logs: logs,
                })
            }
            Err(error) => {
                complain(redactor.clean(&format!("{error:#}")));
                Err(exit::FAILED.into())
            }
        }
    }

    /// Makes the first signal stop all work at once, for a command that a person waits for.
    #[must_use]
    pub fn ends_at_once(self) -> Self {
        Self {
            grace: Grace::for_clearing_up(CLEARING_UP),
            ..self
        }
    }

    /// Runs `work` until it is done or the program must end, then closes the journal.
    pub async fn run(self, work: impl Future<Output = ExitCode>) -> ExitCode {
        let shutdown = match Shutdown::listen() {
            Ok(shutdown) => shutdown,
            Err(error) => {
                complain(format_args!("signals cannot be listened to: {error}"));
                return exit::FAILED.into();
            }
        };
        let code = tokio::select! {
            code = work => code,
            () = shutdown.watch(self.stop.clone(), self.grace) => exit::KILLED.into(),
        };
        self.journal.record(&Subject::default(), Fact::WorkerStopped);
        self.journal.close().await;
        if let Some(traces) = self.traces {
            traces.end().await;
        }
        code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_named_as_a_shell_takes_it() {
        let option = |file: &str| option_for(Some(Path::new(file)));
        assert_eq!(option_for(None), "");
        assert_eq!(option("/etc/a.yaml"), " --config /etc/a.yaml");
        assert_eq!(option("/a b/it's"), r" --config '/a b/it'\''s'");
        assert!(option("config.yaml").starts_with(" --config /"));
    }
}
