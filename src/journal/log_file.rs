//! The log files: one for each day (UTC), nothing on the terminal, no secrets, old ones compressed
//! and deleted.

use std::fs;
use std::io;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use chrono::Utc;
use tracing_appender::non_blocking::NonBlocking;
use tracing_appender::non_blocking::NonBlockingBuilder;
use tracing_appender::non_blocking::WorkerGuard;
use tracing_appender::rolling::RollingFileAppender;
use tracing_appender::rolling::Rotation;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::Level;
use super::LogConfig;
use super::LogError;
use super::bounded_file::BoundedFile;
use super::old_file;
use crate::secret::Redactor;

/// Interval between looks at the day. A wait until midnight would not notice that the clock was set
/// or the machine slept.
const LOOK_EVERY: Duration = Duration::from_mins(1);
/// Lines that wait for the disk; more are dropped rather than holding up the work.
const WAITING_LINES: usize = 16_384;

/// Holds the log files open. Dropping it writes what is still waiting: keep it to the end of
/// `main`.
#[derive(Debug)]
pub struct LogFiles {
    _worker: WorkerGuard,
    /// Its end ends the thread that tidies.
    _stop: mpsc::Sender<()>,
}

/// Sends all log lines of this process to `coding-agent.YYYY-MM-DD.log`, and tidies old files now
/// and at each change of day.
pub fn start(config: &LogConfig, redactor: Arc<Redactor>) -> Result<LogFiles, LogError> {
    fs::create_dir_all(&config.directory).map_err(|error| LogError::unusable(config, &error))?;
    let appender = RollingFileAppender::builder()
        .rotation(Rotation::DAILY)
        .filename_prefix("coding-agent")
        .filename_suffix("log")
        .build(&config.directory)
        .map_err(|error| LogError::unusable(config, &error))?;
    let (lines, worker) = NonBlockingBuilder::default()
        .buffered_lines_limit(WAITING_LINES)
        .finish(BoundedFile::new(
            appender,
            config.directory.clone(),
            config.max_file_bytes,
        ));
    let writer = move || CleanWriter {
        lines: lines.clone(),
        redactor: Arc::clone(&redactor),
    };
    tracing_subscriber::registry()
        .with(filter(config.level))
        .with(tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer))
        .try_init()
        .map_err(|_| LogError::OpenAlready)?;
    let stop = tidy_daily(config.clone()).map_err(|error| LogError::unusable(config, &error))?;
    Ok(LogFiles {
        _worker: worker,
        _stop: stop,
    })
}

/// Returns the filter of log lines. Libraries may only warn: their other lines contain what others
/// sent them, such as bodies of requests and the environment of containers. The MCP library logs
/// nothing, since it warns with the whole message, and any process in a container can make it do
/// so.
fn filter(level: Level) -> EnvFilter {
    EnvFilter::new(match level {
        Level::Error => "error,rmcp=off",
        Level::Warn => "warn,rmcp=off",
        Level::Info => "warn,rmcp=off,coding_agent=info,mcp=info",
        Level::Debug => "warn,rmcp=off,coding_agent=debug,mcp=debug",
        Level::Trace => "warn,rmcp=off,coding_agent=trace,mcp=trace",
    })
}

fn tidy_daily(config: LogConfig) -> io::Result<mpsc::Sender<()>> {
    let (stop, stopped) = mpsc::channel();
    std::thread::Builder::new().name("old-logs".to_owned()).spawn(move || {
        let mut tidied = None;
        loop {
            let day = old_file::first_open_day(Utc::now());
            if tidied != Some(day) {
                let (directory, days) = (&config.directory, config.retention_days);
                let problems = old_file::tidy(directory, day, days);
                for problem in problems.into_iter().chain(old_file::tidy_outputs(directory, day, days)) {
                    tracing::warn!("{problem}");
                }
                tidied = Some(day);
            }
            if stopped.recv_timeout(LOOK_EVERY) == Err(mpsc::RecvTimeoutError::Disconnected) {
                return;
            }
        }
    })?;
    Ok(stop)
}

/// Gets each event as one whole write, so no secret is split between two.
struct CleanWriter {
    lines: NonBlocking,
    redactor: Arc<Redactor>,
}

impl Write for CleanWriter {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let clean = self.redactor.clean(&String::from_utf8_lossy(event));
        self.lines.write_all(clean.as_str().as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lines.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One test, because a process has one log.
    #[test]
    fn lines_reach_the_day_s_file_without_secrets_and_old_files_are_compressed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("coding-agent.2020-01-01.log"), "old").unwrap();
        let yesterday = (Utc::now() - chrono::TimeDelta::hours(30)).date_naive();
        let old = folder.path().join(format!("coding-agent.{yesterday}.log"));
        fs::write(&old, "yesterday").unwrap();
        let config = LogConfig {
            directory: folder.path().to_owned(),
            level: Level::Debug,
            ..LogConfig::default()
        };
        let log = start(&config, Arc::new(Redactor::new(&["hunter2hunter2".into()]))).unwrap();
        tracing::debug!(password = "hunter2hunter2", "logged in");
        tracing::debug!(target: "bollard::docker", "a request body");
        tracing::info!(target: "octocrab", "another body");
        tracing::error!(target: "rmcp::service", "a message");
        tracing::info!(target: "mcp", "a server's line");
        assert!(matches!(start(&config, Arc::default()), Err(LogError::OpenAlready)));
        drop(log);

        let today = folder
            .path()
            .join(format!("coding-agent.{}.log", Utc::now().date_naive()));
        let text = fs::read_to_string(today).unwrap();
        assert!(text.contains("logged in password=\"[redacted]\""), "{text}");
        assert!(text.contains("a server's line"), "{text}");
        for others in ["request body", "another body", "a message"] {
            assert!(!text.contains(others), "{text}");
        }
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while old.exists() || folder.path().join("coding-agent.2020-01-01.log").exists() {
            assert!(std::time::Instant::now() < deadline, "the old files are still there");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let config = LogConfig {
            directory: file.path().join("logs"),
            ..LogConfig::default()
        };
        let error = start(&config, Arc::default()).unwrap_err().to_string();
        assert!(error.contains("set logs.directory"), "{error}");
    }
}
