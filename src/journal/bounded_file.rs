//! A day's log file that does not grow beyond a size.
//!
//! Programs that others wrote decide in part what is logged, so without a bound they decide how
//! full the disk gets. Several processes may write to one file: its size is looked at again from
//! time to time, so that all of them together exceed the bound by little.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use chrono::{NaiveDate, Utc};

use super::old_file;

/// Bytes that this process writes between two looks at the file.
const LOOK_AFTER: u64 = 1024 * 1024;

/// Passes lines on until the file of the day is full. Each write is one whole line.
pub(super) struct BoundedFile<File> {
    file: File,
    directory: PathBuf,
    max_bytes: u64,
    day: NaiveDate,
    size: u64,
    since_look: u64,
    is_full: bool,
}

impl<File: Write> BoundedFile<File> {
    pub(super) fn new(file: File, directory: PathBuf, max_bytes: u64) -> Self {
        let mut bounded = Self {
            file,
            directory,
            max_bytes,
            day: Utc::now().date_naive(),
            size: 0,
            since_look: 0,
            is_full: false,
        };
        bounded.look();
        bounded
    }

    fn look(&mut self) {
        let file = self.directory.join(old_file::log_name(self.day));
        // A file that is not there yet is empty.
        self.size = fs::metadata(file).map_or(0, |metadata| metadata.len());
        self.since_look = 0;
    }

    fn turn_to(&mut self, day: NaiveDate) {
        if day != self.day {
            self.day = day;
            self.is_full = false;
            self.look();
        }
    }

    fn pass_on(&mut self, line: &[u8]) -> io::Result<()> {
        self.file.write_all(line)?;
        self.size += line.len() as u64;
        self.since_look += line.len() as u64;
        if self.since_look >= LOOK_AFTER {
            // What waits in a buffer is not in the file's size.
            self.file.flush()?;
            self.look();
        }
        Ok(())
    }
}

impl<File: Write> Write for BoundedFile<File> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.turn_to(Utc::now().date_naive());
        if self.is_full {
            return Ok(line.len());
        }
        if self.size.saturating_add(line.len() as u64) > self.max_bytes {
            self.is_full = true;
            let limit = self.max_bytes;
            let last = format!(
                "{} WARN coding_agent::journal: this file has the {limit} bytes that logs.max_file_bytes allows; the rest of the day is left \
                 out\n",
                Utc::now().to_rfc3339()
            );
            self.pass_on(last.as_bytes())?;
            return Ok(line.len());
        }
        self.pass_on(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_day_says_so_once_and_the_next_day_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let mut written = Vec::new();
        let mut file = BoundedFile::new(&mut written, folder.path().to_owned(), 100);
        let line = [b'x'; 40];
        for _ in 0..5 {
            file.write_all(&line).unwrap();
        }
        file.turn_to(NaiveDate::MIN);
        assert!(!file.is_full);
        drop(file);
        let text = String::from_utf8(written).unwrap();
        assert!(
            text.starts_with(&"x".repeat(80)) && !text.starts_with(&"x".repeat(81)),
            "{text}"
        );
        assert_eq!(text.matches("logs.max_file_bytes").count(), 1, "{text}");
    }

    #[test]
    fn what_an_earlier_process_wrote_counts() {
        let folder = tempfile::tempdir().unwrap();
        let today = folder.path().join(old_file::log_name(Utc::now().date_naive()));
        fs::write(today, [b'y'; 90]).unwrap();
        let mut written = Vec::new();
        let mut file = BoundedFile::new(&mut written, folder.path().to_owned(), 100);
        file.write_all(&[b'x'; 40]).unwrap();
        drop(file);
        assert!(!String::from_utf8(written).unwrap().contains("xxx"));
    }
}
