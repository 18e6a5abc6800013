//! The thread that owns the journal's file.

use std::fs;
use std::fs::File;
use std::fs::OpenOptions;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;

use chrono::NaiveDate;
use chrono::Utc;
use tokio::sync::mpsc::Receiver;

use super::Message;
use super::fact::Entry;
use super::fact::Fact;
use super::fact::Subject;
use super::old_file;
use crate::plain::{agreeing, counted};

/// Facts that go to the disk in one write.
const BATCH: usize = 256;

pub(super) struct Writer {
    directory: PathBuf,
    /// The open file and its day. `None` after an error, and is opened anew by the next fact.
    file: Option<(NaiveDate, File)>,
    /// Facts that did not fit into the channel.
    lost: Arc<AtomicU64>,
}

impl Writer {
    pub(super) fn open(directory: &Path, lost: Arc<AtomicU64>) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let today = Utc::now().date_naive();
        Ok(Self {
            directory: directory.to_owned(),
            file: Some((today, open(directory, today)?)),
            lost,
        })
    }

    /// Writes incoming facts until the journal is closed or its last clone dropped.
    pub(super) fn run(mut self, mut messages: Receiver<Message>) {
        let mut batch = Vec::with_capacity(BATCH);
        while messages.blocking_recv_many(&mut batch, BATCH) > 0 {
            let mut entries = Vec::with_capacity(batch.len() + 1);
            let mut closed = Vec::new();
            for message in batch.drain(..) {
                match message {
                    Message::Write(entry) => entries.push(entry),
                    Message::Close(done) => closed.push(done),
                }
            }
            entries.extend(self.report_of_losses());
            self.write(&entries);
            if closed.is_empty() {
                continue;
            }
            messages.close();
            if let Some((_, file)) = &self.file {
                // The lines are written; only a power cut in this moment could still take them.
                let _ = file.sync_data();
            }
            for done in closed {
                // Whoever asked may have stopped waiting.
                let _ = done.send(());
            }
        }
    }

    fn report_of_losses(&self) -> Option<Arc<Entry>> {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        (lost > 0).then(|| {
            Arc::new(Entry {
                at: Utc::now(),
                subject: Subject::default(),
                fact: Fact::Warned {
                    text: format!(
                        "{} {} missing here: the disk did not keep up",
                        counted(lost, "fact"),
                        agreeing(lost, "is", "are")
                    ),
                },
            })
        })
    }

    /// Writes all lines of a day at once: in append mode lines of several processes do not mix.
    fn write(&mut self, entries: &[Arc<Entry>]) {
        for day in entries.chunk_by(|one, next| one.at.date_naive() == next.at.date_naive()) {
            let lines: String = day
                .iter()
                .filter_map(|entry| serde_json::to_string(entry).ok())
                .flat_map(|line| [line, "\n".to_owned()])
                .collect();
            let written = self
                .file_of(day[0].at.date_naive())
                .and_then(|mut file| file.write_all(lines.as_bytes()));
            if let Err(error) = written {
                self.file = None;
                tracing::error!(
                    facts = day.len(),
                    directory = %self.directory.display(),
                    "facts are missing from the journal: {error}"
                );
            }
        }
    }

    /// Returns the file for the day of a fact. The clock may jump to any day, also back, so the
    /// fact's own time decides.
    fn file_of(&mut self, day: NaiveDate) -> io::Result<&File> {
        let file = match self.file.take() {
            Some((open_day, file)) if open_day == day => file,
            _ => open(&self.directory, day)?,
        };
        Ok(&self.file.insert((day, file)).1)
    }
}

/// Opens a day's file at its end, on a new line.
fn open(directory: &Path, day: NaiveDate) -> io::Result<File> {
    let path = directory.join(old_file::journal_name(day));
    let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
    if file.metadata()?.len() > 0 {
        let mut last = [0];
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
        }
    }
    Ok(file)
}
