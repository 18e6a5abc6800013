//! Every fact once: as a line of the JSONL journal and to live subscribers. And the log files
//! beside it.
//!
//! Guarantees: the journal and the subscribers get the same facts in the same order, without
//! secrets; a line is whole even when several processes write to one folder or one of them is
//! killed; recording never waits for the disk. Does not keep state: what the program needs to go on
//! is in the store.

pub mod erasing;
pub mod fact;
pub mod log_file;
mod bounded_file;
mod old_file;
pub mod reading;
mod writing;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::SubsecRound;
use chrono::Utc;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::Serialize;
use tokio::sync::broadcast;
use tokio::sync::mpsc;
use tokio::sync::oneshot;

use crate::secret::Redactor;
use fact::Entry;
use fact::Fact;
use fact::Subject;

/// Where the log files and the journal lie, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// Folder of the log files and the journal; made when it is not there.
    pub directory: PathBuf,
    /// Older files are deleted.
    pub retention_days: u32,
    /// The least urgent lines that are written.
    pub level: Level,
    /// Largest size, in bytes, of a day's log file; what comes after that is left out until the
    /// next day. The journal has no such limit.
    pub max_file_bytes: u64,
}

/// How much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            directory: PathBuf::from("./logs"),
            retention_days: 30,
            level: Level::Info,
            max_file_bytes: 100 * 1024 * 1024,
        }
    }
}

impl LogConfig {
    /// Returns where the whole of long tool outputs is kept, a folder for each run. They go with
    /// the logs of their day.
    pub fn outputs(&self) -> PathBuf {
        self.directory.join(old_file::OUTPUTS)
    }
}

/// Why there are no logs. The operator must act.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error(
        "the log folder {directory} cannot be used: {reason}; set logs.directory to a folder this user may write to"
    )]
    Unusable { directory: String, reason: String },
    #[error("the log files are open already; they can be opened once in a process")]
    OpenAlready,
}

impl LogError {
    fn unusable(config: &LogConfig, reason: &dyn std::fmt::Display) -> Self {
        Self::Unusable {
            directory: config.directory.display().to_string(),
            reason: reason.to_string(),
        }
    }
}

/// Facts that wait for the disk. More are counted and reported instead of holding up the work.
const WAITING_FACTS: usize = 4_096;
/// Facts that a slow subscriber may be behind.
const LIVE_FACTS: usize = 1_024;
const LONGEST_CLOSE: Duration = Duration::from_secs(10);

/// Takes down facts. Clones share one file.
#[derive(Debug, Clone)]
pub struct Journal {
    /// Locked while a fact goes to both, so that both get the same order.
    outlets: Arc<Mutex<Outlets>>,
    lost: Arc<AtomicU64>,
    redactor: Arc<Redactor>,
}

#[derive(Debug)]
struct Outlets {
    file: mpsc::Sender<Message>,
    live: broadcast::Sender<Arc<Entry>>,
}

enum Message {
    Write(Arc<Entry>),
    Close(oneshot::Sender<()>),
}

impl Journal {
    /// Opens today's file `journal-YYYY-MM-DD.jsonl` (UTC) and starts the thread that writes it.
    pub fn open(config: &LogConfig, redactor: Arc<Redactor>) -> Result<Self, LogError> {
        let (file, messages) = mpsc::channel(WAITING_FACTS);
        let lost = Arc::new(AtomicU64::new(0));
        let writer = writing::Writer::open(&config.directory, Arc::clone(&lost))
            .map_err(|error| LogError::unusable(config, &error))?;
        std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run(messages))
            .map_err(|error| LogError::unusable(config, &error))?;
        let live = broadcast::Sender::new(LIVE_FACTS);
        Ok(Self {
            outlets: Arc::new(Mutex::new(Outlets { file, live })),
            lost,
            redactor,
        })
    }

    /// Takes down what happened. Returns at once.
    #[expect(clippy::needless_pass_by_value, reason = "the caller makes the fact on the spot")]
    pub fn record(&self, subject: &Subject, fact: Fact) {
        let entry = Arc::new(Entry {
            at: Utc::now().trunc_subsecs(3),
            subject: subject.clone(),
            fact: fact.cleaned(&self.redactor),
        });
        let outlets = self.outlets.lock().unwrap_or_else(PoisonError::into_inner);
        if outlets.file.try_send(Message::Write(Arc::clone(&entry))).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        // Nobody may be listening.
        let _ = outlets.live.send(entry);
    }

    /// Returns what is recorded from now on. A subscriber that is too slow is told how many facts
    /// it missed.
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<Entry>> {
        let outlets = self.outlets.lock().unwrap_or_else(PoisonError::into_inner);
        outlets.live.subscribe()
    }

    /// Brings everything recorded so far to the disk and closes the file. What is recorded later
    /// reaches only subscribers.
    pub async fn close(&self) {
        let (done, closed) = oneshot::channel();
        let file = {
            let outlets = self.outlets.lock().unwrap_or_else(PoisonError::into_inner);
            outlets.file.clone()
        };
        let closing = async {
            if file.send(Message::Close(done)).await.is_ok() {
                // An error means that the writer is gone, and so is what it had to write.
                let _ = closed.await;
            }
        };
        if tokio::time::timeout(LONGEST_CLOSE, closing).await.is_err() {
            tracing::error!("the journal could not be closed: the disk does not answer");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::id::RunId;
    use std::path::Path;

    fn config(directory: &Path) -> LogConfig {
        LogConfig {
            directory: directory.to_owned(),
            ..LogConfig::default()
        }
    }

    fn subject() -> Subject {
        Subject {
            task: "github:owner/repo#12".parse().ok(),
            run: Some(RunId::new()),
        }
    }

    fn warned(text: impl Into<String>) -> Fact {
        Fact::Warned { text: text.into() }
    }

    fn entries(folder: &Path) -> Vec<Entry> {
        let mut all = Vec::new();
        let read = reading::Reader::new(folder).look(|entry| all.push(entry));
        read.unwrap();
        all
    }

    #[tokio::test]
    async fn what_is_recorded_is_read_back_and_heard_in_the_same_order() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(&config(folder.path()), Arc::default()).unwrap();
        let mut live = journal.subscribe();
        let subject = subject();
        journal.record(
            &subject,
            Fact::Admitted {
                title: "Greet".to_owned(),
            },
        );
        journal.record(
            &subject,
            Fact::PutDown {
                ending: "done".to_owned(),
            },
        );
        journal.record(&Subject::default(), Fact::WorkerStopped);
        journal.close().await;

        let written = entries(folder.path());
        assert_eq!(written.len(), 3);
        for entry in written {
            assert_eq!(entry, *live.recv().await.unwrap());
        }
    }

    #[tokio::test]
    async fn no_secret_reaches_the_file_or_a_subscriber() {
        let folder = tempfile::tempdir().unwrap();
        let redactor = Redactor::new(&["nope\nnope".into()]);
        let journal = Journal::open(&config(folder.path()), Arc::new(redactor)).unwrap();
        let mut live = journal.subscribe();
        journal.record(&subject(), warned("it said nope\nnope"));
        journal.close().await;

        let entry = entries(folder.path()).remove(0);
        assert_eq!(entry.fact, warned("it said [redacted]"));
        assert_eq!(live.recv().await.unwrap().fact, entry.fact);
    }

    #[tokio::test]
    async fn several_processes_write_whole_lines_to_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Journal::open(&config(folder.path()), Arc::default()).unwrap();
        let journals = [open(), open()];
        for number in 0..500 {
            for journal in &journals {
                journal.record(&Subject::default(), warned(format!("{number} {}", "x".repeat(1_000))));
            }
        }
        for journal in &journals {
            journal.close().await;
        }
        assert_eq!(entries(folder.path()).len(), 1_000);
    }

    #[tokio::test]
    async fn a_line_cut_short_by_a_crash_costs_no_other_line() {
        let folder = tempfile::tempdir().unwrap();
        let today = folder.path().join(format!("journal-{}.jsonl", Utc::now().date_naive()));
        std::fs::write(&today, r#"{"at":"2026-01-0"#).unwrap();
        let journal = Journal::open(&config(folder.path()), Arc::default()).unwrap();
        journal.record(&Subject::default(), Fact::WorkerStarted);
        journal.close().await;
        let facts: Vec<Fact> = entries(folder.path()).into_iter().map(|entry| entry.fact).collect();
        assert_eq!(facts, [Fact::WorkerStarted]);
    }

    #[tokio::test]
    async fn recording_after_the_close_is_harmless() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(&config(folder.path()), Arc::default()).unwrap();
        journal.close().await;
        journal.record(&Subject::default(), Fact::WorkerStopped);
        journal.close().await;
        assert_eq!(entries(folder.path()).len(), 0);
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = Journal::open(&config(&file.path().join("logs")), Arc::default()).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("logs cannot be used") && text.contains("set logs.directory"),
            "{text}"
        );
    }
}
