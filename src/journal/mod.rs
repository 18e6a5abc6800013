//! Every fact once: numbered in the store, from which subscribers read, and as a line of the JSONL
//! journal, which is its export. And the log files beside it.
//!
//! Guarantees: the store and the file get the same facts in the same order, without secrets; a
//! line is whole even when several processes write to one folder or one of them is killed;
//! recording never waits for a disk or the store, and never fails. Where one of the two cannot be
//! written the other has the facts, and says how many are missing. A killed process takes those of
//! its last moments along. Does not keep state: what the program needs to go on is in the records
//! of the store.

pub mod erasing;
pub mod fact;
pub mod log_file;
mod bounded_file;
mod numbering;
mod old_file;
pub mod reading;
pub mod subscription;
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
use tokio::sync::mpsc;
use tokio::sync::oneshot;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::secret::Redactor;
use crate::store::FactFilter;
use crate::store::Store;
use fact::Entry;
use fact::Fact;
use fact::Subject;
use numbering::Numbering;
use subscription::Subscription;

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

/// Facts that wait for the disk, or for the store. More are counted and reported instead of holding
/// up the work.
const WAITING_FACTS: usize = 4_096;
const LONGEST_CLOSE: Duration = Duration::from_secs(10);

/// Takes down facts. Clones share one file and one store.
#[derive(Debug, Clone)]
pub struct Journal {
    /// Locked while a fact goes to both, so that both get the same order.
    outlets: Arc<Mutex<Outlets>>,
    redactor: Arc<Redactor>,
    /// The number of the newest fact that this process wrote.
    newest: watch::Sender<u64>,
    closing: CancellationToken,
}

#[derive(Debug)]
struct Outlets {
    file: Outlet,
    store: Outlet,
    /// What [`Journal::keep_in`] takes.
    unnumbered: Option<mpsc::Receiver<Message>>,
}

/// A way to something that writes facts, and how many it could not take.
#[derive(Debug)]
struct Outlet {
    messages: mpsc::Sender<Message>,
    lost: Arc<AtomicU64>,
}

enum Message {
    Write(Arc<Entry>),
    Close(oneshot::Sender<()>),
}

impl Outlet {
    fn new() -> (Self, mpsc::Receiver<Message>) {
        let (messages, received) = mpsc::channel(WAITING_FACTS);
        let lost = Arc::default();
        (Self { messages, lost }, received)
    }

    fn write(&self, entry: &Arc<Entry>) {
        if self.messages.try_send(Message::Write(Arc::clone(entry))).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Journal {
    /// Opens today's file `journal-YYYY-MM-DD.jsonl` (UTC) and starts the thread that writes it.
    pub fn open(config: &LogConfig, redactor: Arc<Redactor>) -> Result<Self, LogError> {
        let (file, messages) = Outlet::new();
        let (store, unnumbered) = Outlet::new();
        let writer = writing::Writer::open(&config.directory, Arc::clone(&file.lost))
            .map_err(|error| LogError::unusable(config, &error))?;
        std::thread::Builder::new()
            .name("journal".to_owned())
            .spawn(move || writer.run(messages))
            .map_err(|error| LogError::unusable(config, &error))?;
        Ok(Self {
            outlets: Arc::new(Mutex::new(Outlets {
                file,
                store,
                unnumbered: Some(unnumbered),
            })),
            redactor,
            newest: watch::Sender::new(0),
            closing: CancellationToken::new(),
        })
    }

    /// Has facts numbered and kept in `store` from now on, those that were recorded before as well.
    /// A second call changes nothing.
    pub fn keep_in(&self, store: &Store) {
        let mut outlets = self.lock();
        let lost = Arc::clone(&outlets.store.lost);
        if let Some(messages) = outlets.unnumbered.take() {
            let numbering = Numbering {
                store: store.clone(),
                messages,
                lost,
                newest: self.newest.clone(),
                closing: self.closing.clone(),
            };
            tokio::spawn(numbering.run());
        }
    }

    /// Takes down what happened. Returns at once.
    #[expect(clippy::needless_pass_by_value, reason = "the caller makes the fact on the spot")]
    pub fn record(&self, subject: &Subject, fact: Fact) {
        let entry = Arc::new(Entry {
            at: Utc::now().trunc_subsecs(3),
            subject: subject.clone(),
            fact: fact.cleaned(&self.redactor),
        });
        let outlets = self.lock();
        outlets.file.write(&entry);
        outlets.store.write(&entry);
    }

    /// Returns the facts of `store` behind the number `after`, and those to come; 0 is before the
    /// first.
    pub fn subscribe(&self, store: &Store, filter: FactFilter, after: u64) -> Subscription {
        Subscription::new(store.clone(), self.newest.subscribe(), filter, after)
    }

    /// Brings everything recorded so far to the file and to the store, and closes both. What is
    /// recorded later is lost.
    pub async fn close(&self) {
        let (file, store) = {
            let outlets = self.lock();
            let is_numbered = outlets.unnumbered.is_none();
            let store = outlets.store.messages.clone();
            (outlets.file.messages.clone(), is_numbered.then_some(store))
        };
        self.closing.cancel();
        let closing = async {
            tokio::join!(close(Some(file)), close(store));
        };
        if tokio::time::timeout(LONGEST_CLOSE, closing).await.is_err() {
            tracing::error!("the journal could not be closed: the disk does not answer");
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Outlets> {
        self.outlets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits until a writer has written what it got.
async fn close(writer: Option<mpsc::Sender<Message>>) {
    let Some(writer) = writer else { return };
    let (done, closed) = oneshot::channel();
    if writer.send(Message::Close(done)).await.is_ok() {
        // An error means that the writer is gone, and so is what it had to write.
        let _ = closed.await;
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

    async fn store(folder: &Path) -> Store {
        Store::open(folder).await.unwrap()
    }

    async fn numbered(store: &Store) -> Vec<Entry> {
        let facts = store.facts(0, &FactFilter::All, 100).await.unwrap();
        facts
            .iter()
            .map(|fact| serde_json::from_str(&fact.document).unwrap())
            .collect()
    }

    #[tokio::test]
    async fn what_is_recorded_is_in_the_file_and_in_the_store_in_the_same_order() {
        let folder = tempfile::tempdir().unwrap();
        let journal = Journal::open(&config(folder.path()), Arc::default()).unwrap();
        let subject = subject();
        let title = "Greet".to_owned();
        journal.record(&subject, Fact::Admitted { title });
        let store = store(folder.path()).await;
        journal.keep_in(&store);
        let ending = "done".to_owned();
        journal.record(&subject, Fact::PutDown { ending });
        journal.record(&Subject::default(), Fact::WorkerStopped);
        journal.close().await;

        let written = entries(folder.path());
        assert_eq!(written.len(), 3);
        assert_eq!(written, numbered(&store).await);
    }

    #[tokio::test]
    async fn a_subscriber_goes_on_behind_a_number_and_hears_of_other_processes() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path()).await;
        let [journal, other] = ["one", "other"].map(|name| {
            let journal = Journal::open(&config(&folder.path().join(name)), Arc::default()).unwrap();
            journal.keep_in(&store);
            journal
        });
        let (subject, stranger) = (subject(), subject());
        let of_run = FactFilter::OfRun(subject.run.unwrap());
        let mut facts = journal.subscribe(&store, of_run.clone(), 0);
        journal.record(&stranger, warned("not of this run"));
        journal.record(&subject, warned("first"));
        let first = facts.next().await;
        assert_eq!(first.entry.fact, warned("first"));
        journal.record(&subject, warned("second"));
        assert_eq!(facts.next().await.entry.fact, warned("second"));
        other.record(&subject, warned("third"));
        assert_eq!(facts.next().await.entry.fact, warned("third"));

        let mut again = journal.subscribe(&store, of_run, first.sequence);
        let rest: Vec<_> = again.take().await.into_iter().map(|fact| fact.entry.fact).collect();
        assert_eq!(rest, [warned("second"), warned("third")]);
    }

    #[tokio::test]
    async fn facts_wait_for_a_store_that_cannot_be_written_and_nobody_waits_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let (store, file) = (store(folder.path()).await, folder.path().join("coding-agent.db"));
        let tamper = async |statement: &str| {
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(&file);
            let pool = sqlx::SqlitePool::connect_with(options).await.unwrap();
            sqlx::query(sqlx::AssertSqlSafe(statement.to_owned()))
                .execute(&pool)
                .await
                .unwrap();
            pool.close().await;
        };
        tamper("CREATE TRIGGER full BEFORE INSERT ON facts BEGIN SELECT RAISE(FAIL, 'the disk is full'); END").await;
        let journal = Journal::open(&config(folder.path()), Arc::default()).unwrap();
        journal.keep_in(&store);
        for number in 0..2 * WAITING_FACTS {
            journal.record(&Subject::default(), warned(number.to_string()));
        }
        tamper("DROP TRIGGER full").await;
        let mut facts = journal.subscribe(&store, FactFilter::All, 0);
        assert_eq!(facts.next().await.entry.fact, warned("0"));
        journal.close().await;
        let kept = store.facts(0, &FactFilter::All, u32::MAX).await.unwrap();
        let missing = kept
            .iter()
            .filter(|fact| fact.document.contains("the store did not keep up"));
        assert_eq!(missing.count(), 1);
        assert!(kept.len() < 2 * WAITING_FACTS, "nothing was left out");
    }

    #[tokio::test]
    async fn no_secret_reaches_the_file_or_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let redactor = Redactor::new(&["nope\nnope".into()]);
        let journal = Journal::open(&config(folder.path()), Arc::new(redactor)).unwrap();
        let store = store(folder.path()).await;
        journal.keep_in(&store);
        journal.record(&subject(), warned("it said nope\nnope"));
        journal.close().await;

        for entries in [entries(folder.path()), numbered(&store).await] {
            assert_eq!(entries[0].fact, warned("it said [redacted]"));
        }
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
