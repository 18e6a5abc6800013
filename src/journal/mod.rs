//! Every fact once: numbered in the store, from which subscribers read, and as a line of the JSONL
//! journal, which is its export. And the log files beside it, which tell of the facts that people
//! should know as well.
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
mod log_line;
mod numbering;
mod old_file;
pub mod reading;
pub mod statistics;
pub mod subscription;
#[cfg(test)]
mod tests;
mod writing;

use std::fs;
use std::fs::OpenOptions;
use std::io;
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
use tokio::sync::mpsc::error::TrySendError;
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
    /// Returns the folder for whole tool outputs, with a folder for each run. They are deleted with
    /// the logs of their day.
    pub fn outputs(&self) -> PathBuf {
        self.directory.join(old_file::OUTPUTS)
    }

    /// Tries whether the files of today can be written, and leaves nothing behind but the folder.
    pub fn try_out(&self) -> Result<(), LogError> {
        let tried = || -> io::Result<()> {
            let probe = self.directory.join(".doctor");
            fs::create_dir_all(&self.directory)?;
            fs::write(&probe, b"")?;
            fs::remove_file(&probe)?;
            let day = Utc::now().date_naive();
            for name in [old_file::log_name(day), old_file::journal_name(day)] {
                match OpenOptions::new().append(true).open(self.directory.join(&name)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(io::Error::other(format!("{name}: {error}")));
                    }
                    Ok(_) | Err(_) => {}
                }
            }
            Ok(())
        };
        tried().map_err(|error| LogError::unusable(self, &error))
    }
}

/// The reason why there are no logs. The operator must act.
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
    /// The facts that [`Journal::keep_in`] takes.
    unnumbered: Option<mpsc::Receiver<Message>>,
    /// Those who hear facts as they are recorded.
    listeners: Vec<mpsc::Sender<Arc<Entry>>>,
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
                listeners: Vec::new(),
            })),
            redactor,
            newest: watch::Sender::new(0),
            closing: CancellationToken::new(),
        })
    }

    /// Numbers facts and stores them in `store` from now on, including those that were recorded
    /// before. A second call changes nothing.
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

    /// Records a fact, and logs it if people should know it. Returns at once.
    #[expect(clippy::needless_pass_by_value, reason = "the caller makes the fact on the spot")]
    pub fn record(&self, subject: &Subject, fact: Fact) {
        let entry = Arc::new(Entry {
            at: Utc::now().trunc_subsecs(3),
            subject: subject.clone(),
            fact: fact.cleaned(&self.redactor),
        });
        log_line::write(&entry);
        let mut outlets = self.lock();
        outlets.file.write(&entry);
        outlets.store.write(&entry);
        // Whoever is too slow misses facts; whoever is gone is forgotten.
        outlets
            .listeners
            .retain(|listener| !matches!(listener.try_send(Arc::clone(&entry)), Err(TrySendError::Closed(_))));
    }

    /// Returns the facts that this process records from now on, until the journal is closed. They
    /// have no numbers, and whoever does not take them in time misses some: for whom that is too
    /// little there is [`Self::subscribe`].
    pub fn overhear(&self) -> mpsc::Receiver<Arc<Entry>> {
        let (sender, facts) = mpsc::channel(WAITING_FACTS);
        self.lock().listeners.push(sender);
        facts
    }

    /// Returns the facts of `store` after the number `after`, and those to come; 0 is before the
    /// first.
    pub fn subscribe(&self, store: &Store, filter: FactFilter, after: u64) -> Subscription {
        Subscription::new(store.clone(), self.newest.subscribe(), filter, after)
    }

    /// Writes everything recorded so far to the file and to the store, and closes both. Later
    /// records are lost.
    pub async fn close(&self) {
        let (file, store) = {
            let mut outlets = self.lock();
            outlets.listeners.clear();
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

/// Waits until a writer has written everything that it received.
async fn close(writer: Option<mpsc::Sender<Message>>) {
    let Some(writer) = writer else { return };
    let (done, closed) = oneshot::channel();
    if writer.send(Message::Close(done)).await.is_ok() {
        // An error means that the writer is gone, and so is what it had to write.
        let _ = closed.await;
    }
}
