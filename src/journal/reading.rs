//! Facts read back, from the files of the journal and from the store.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use chrono::NaiveDate;
use flate2::read::MultiGzDecoder;

use super::fact::Entry;
use super::old_file;
use crate::store::{FactFilter, Store, StoreError};

/// Number of facts that are read from the store at once.
const PAGE: u32 = 1_000;

/// Reads a journal that grows: each look goes on where the last one ended.
#[derive(Debug)]
pub struct Reader {
    directory: PathBuf,
    /// Number of bytes that were read of each day's file; `None` before the first look.
    read: Option<BTreeMap<NaiveDate, u64>>,
}

impl Reader {
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            read: None,
        }
    }

    /// Passes new facts to `each`, oldest day first. Lines that are no facts (cut short by a crash)
    /// and files that another process has just removed are skipped. Compressed files are read at
    /// the first look only: a file that is compressed later was read while it was plain.
    pub fn look(&mut self, mut each: impl FnMut(Entry)) -> io::Result<()> {
        let found = match old_file::all(&self.directory) {
            // Nothing has been written yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            found => found?,
        };
        let mut files: Vec<_> = found.into_iter().filter(old_file::OldFile::is_journal).collect();
        // Compressed lines of a day are older than the others.
        files.sort_by_key(|file| (file.day, !file.is_compressed));
        let is_first = self.read.is_none();
        let read = self.read.get_or_insert_default();
        for file in files.iter().filter(|file| is_first || !file.is_compressed) {
            let Ok(mut opened) = File::open(&file.path) else {
                continue;
            };
            if file.is_compressed {
                hand_over(BufReader::new(MultiGzDecoder::new(opened)), &mut each);
                continue;
            }
            let place = read.entry(file.day).or_default();
            if opened.seek(SeekFrom::Start(*place)).is_ok() {
                *place += hand_over(BufReader::new(opened), &mut each);
            }
        }
        Ok(())
    }
}

/// Passes the facts of the store behind the number `after` to `each`, oldest first, and moves the
/// number on. One of another version, which this one does not know, is left to that version.
pub async fn each_in_store(
    store: &Store,
    filter: &FactFilter,
    after: &mut u64,
    mut each: impl FnMut(Entry),
) -> Result<(), StoreError> {
    loop {
        let facts = store.facts(*after, filter, PAGE).await?;
        let Some(newest) = facts.last() else { return Ok(()) };
        *after = newest.sequence;
        for fact in &facts {
            if let Ok(entry) = serde_json::from_str(&fact.document) {
                each(entry);
            }
        }
    }
}

/// Passes the facts of the whole lines to `each` and returns the number of bytes; the last line may
/// still be incomplete.
fn hand_over(mut lines: BufReader<impl Read>, each: &mut impl FnMut(Entry)) -> u64 {
    let (mut bytes, mut line) = (0, Vec::new());
    while let Ok(length) = lines.read_until(b'\n', &mut line) {
        if line.last() != Some(&b'\n') {
            break;
        }
        bytes += length as u64;
        if let Ok(entry) = serde_json::from_slice(&line) {
            each(entry);
        }
        line.clear();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::io::Write;

    #[test]
    fn each_look_goes_on_where_the_last_one_ended() {
        let folder = tempfile::tempdir().unwrap();
        let write = |day: &str, text: &str| {
            let path = folder.path().join(format!("journal-{day}.jsonl"));
            let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        };
        let fact = |second: u32| format!(r#"{{"at":"2026-11-22T12:00:{second:02}Z","fact":"claimed"}}"#);
        let mut reader = Reader::new(folder.path());
        let mut seen = || {
            let mut seconds = Vec::new();
            let looked = reader.look(|entry| seconds.push(entry.at.timestamp() % 60));
            looked.unwrap();
            seconds
        };
        write("2026-11-21", &format!("{}\nno fact\n", fact(1)));
        assert_eq!(seen(), [1]);
        assert_eq!(seen(), [0_i64; 0]);
        let (begin, end) = (fact(2).split_at(20).0.to_owned(), fact(2).split_at(20).1.to_owned());
        write("2026-11-21", &begin);
        assert_eq!(seen(), [0_i64; 0], "a line on its way is left for the next look");
        write("2026-11-21", &format!("{end}\n"));
        write("2026-11-22", &format!("{}\n", fact(3)));
        assert_eq!(seen(), [2, 3]);
    }
}
