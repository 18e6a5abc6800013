//! Files of days that are over: compressed, and deleted in the end.
//!
//! Only files with the names this program gives are touched. Several processes may tidy one folder,
//! and each may be killed in any moment: a file is there plain, compressed or (until the next time)
//! both, never half and never not at all.

use std::fs;
use std::fs::DirEntry;
use std::fs::File;
use std::io;
use std::io::BufReader;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;

use chrono::DateTime;
use chrono::Days;
use chrono::NaiveDate;
use chrono::TimeDelta;
use chrono::Utc;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::file_lock;

const LOG: (&str, &str) = ("coding-agent.", ".log");
const JOURNAL: (&str, &str) = ("journal-", ".jsonl");
/// A line that was on its way at midnight is written by now.
const MARGIN: TimeDelta = TimeDelta::minutes(5);

pub(super) struct OldFile {
    pub(super) path: PathBuf,
    pub(super) day: NaiveDate,
    pub(super) is_compressed: bool,
}

pub(super) fn log_name(day: NaiveDate) -> String {
    format!("{}{day}{}", LOG.0, LOG.1)
}

pub(super) fn journal_name(day: NaiveDate) -> String {
    format!("{}{day}{}", JOURNAL.0, JOURNAL.1)
}

/// Returns the day up to which (exclusive) files are finished at `now`.
pub(super) fn first_open_day(now: DateTime<Utc>) -> NaiveDate {
    (now - MARGIN).date_naive()
}

/// The folder with the whole outputs of tools, with a folder for each run.
pub(super) const OUTPUTS: &str = "outputs";

/// Deletes the outputs of runs whose last one is older than the retention. Returns the failures.
pub(super) fn tidy_outputs(directory: &Path, first_open_day: NaiveDate, retention_days: u32) -> Vec<String> {
    let oldest = oldest_day(first_open_day, retention_days);
    let Ok(entries) = fs::read_dir(directory.join(OUTPUTS)) else {
        // No output was ever too long.
        return Vec::new();
    };
    let tidy_one = |entry: &DirEntry| {
        let metadata = entry.metadata()?;
        // Only folders are ours; adding a file sets a folder's time.
        if metadata.is_dir() && DateTime::<Utc>::from(metadata.modified()?).date_naive() < oldest {
            gone(fs::remove_dir_all(entry.path()))
        } else {
            Ok(())
        }
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let error = tidy_one(&entry).err()?;
            Some(format!("{} cannot be tidied away: {error}", entry.path().display()))
        })
        .collect()
}

fn oldest_day(first_open_day: NaiveDate, retention_days: u32) -> NaiveDate {
    first_open_day
        .checked_sub_days(Days::new(retention_days.into()))
        .unwrap_or(NaiveDate::MIN)
}

/// Compresses files of days before `first_open_day` and deletes those that are more than
/// `retention_days` older. Returns the failures; they do not keep the rest from being done.
pub(super) fn tidy(directory: &Path, first_open_day: NaiveDate, retention_days: u32) -> Vec<String> {
    let files = match all(directory) {
        Ok(files) => files,
        Err(error) => return vec![format!("{} cannot be read: {error}", directory.display())],
    };
    let oldest = oldest_day(first_open_day, retention_days);
    let tidy_one = |file: &OldFile| {
        if file.day < oldest {
            gone(fs::remove_file(&file.path))
        } else if file.day < first_open_day && !file.is_compressed {
            compress(&file.path)
        } else {
            Ok(())
        }
    };
    files
        .iter()
        .filter_map(|file| {
            let error = tidy_one(file).err()?;
            Some(format!("{} cannot be tidied away: {error}", file.path.display()))
        })
        .collect()
}

/// Returns all log and journal files in `directory`.
pub(super) fn all(directory: &Path) -> io::Result<Vec<OldFile>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if let Some(file) = entry.file_name().to_str().and_then(|name| parse(directory, name))
            && entry.file_type()?.is_file()
        {
            files.push(file);
        }
    }
    Ok(files)
}

fn parse(directory: &Path, name: &str) -> Option<OldFile> {
    let plain = name.strip_suffix(".gz");
    let day = [LOG, JOURNAL].into_iter().find_map(|(before, after)| {
        let day = plain.unwrap_or(name).strip_prefix(before)?.strip_suffix(after)?;
        day.parse().ok()
    })?;
    Some(OldFile {
        path: directory.join(name),
        day,
        is_compressed: plain.is_some(),
    })
}

impl OldFile {
    pub(super) fn is_journal(&self) -> bool {
        let name = self.path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(JOURNAL.0))
    }
}

/// Replaces `path` by `path`.gz.
fn compress(path: &Path) -> io::Result<()> {
    let source = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    if !file_lock::try_lock(&source)? {
        // Another process is at it.
        return Ok(());
    }
    let target = with_ending(path, ".gz");
    if target.exists() && holds_the_same(&target, path)? {
        // A crash came between the rename and the removal.
        return gone(fs::remove_file(path));
    }
    let partial = with_ending(path, ".gz.partial");
    let mut output = File::create(&partial)?;
    if target.exists() {
        // Lines came after the first compression (the clock was set back): gzip files may simply
        // follow one another.
        io::copy(&mut File::open(&target)?, &mut output)?;
    }
    let mut encoder = GzEncoder::new(output, Compression::default());
    io::copy(&mut BufReader::new(source), &mut encoder)?;
    encoder.finish()?.sync_all()?;
    fs::rename(&partial, &target)?;
    if let Some(directory) = path.parent() {
        File::open(directory)?.sync_all()?;
    }
    gone(fs::remove_file(path))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn holds_the_same(compressed: &Path, plain: &Path) -> io::Result<bool> {
    let mut one = BufReader::new(MultiGzDecoder::new(File::open(compressed)?)).bytes();
    let mut other = BufReader::new(File::open(plain)?).bytes();
    loop {
        match (one.next().transpose()?, other.next().transpose()?) {
            (None, None) => return Ok(true),
            (one, other) if one == other => {}
            _ => return Ok(false),
        }
    }
}

/// Treats a missing file as removed: another process may have been faster.
fn gone(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TODAY: NaiveDate = NaiveDate::from_ymd_opt(2026, 3, 1).unwrap();

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            fs::write(folder.path().join(name), content).unwrap();
        }
        folder
    }

    fn names(folder: &tempfile::TempDir) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn unpacked(folder: &tempfile::TempDir, name: &str) -> String {
        let mut text = String::new();
        let file = File::open(folder.path().join(name)).unwrap();
        MultiGzDecoder::new(file).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn yesterday_is_compressed_the_old_deleted_and_everything_else_left_alone() {
        let folder = folder(&[
            ("coding-agent.2026-03-01.log", "today"),
            ("coding-agent.2026-02-28.log", "yesterday"),
            ("journal-2026-02-28.jsonl", "{}"),
            ("journal-2026-01-30.jsonl.gz", "last of the retention"),
            ("journal-2026-01-29.jsonl.gz", "too old"),
            ("coding-agent.2020-01-01.log", "too old"),
            ("coding-agent.2031-01-01.log", "from a clock that was wrong"),
            ("coding-agent.yesterday.log", "not ours"),
            ("notes.2020-01-01.log", "not ours"),
        ]);
        assert_eq!(tidy(folder.path(), TODAY, 30), Vec::<String>::new());
        assert_eq!(
            names(&folder),
            [
                "coding-agent.2026-02-28.log.gz",
                "coding-agent.2026-03-01.log",
                "coding-agent.2031-01-01.log",
                "coding-agent.yesterday.log",
                "journal-2026-01-30.jsonl.gz",
                "journal-2026-02-28.jsonl.gz",
                "notes.2020-01-01.log",
            ]
        );
        assert_eq!(unpacked(&folder, "coding-agent.2026-02-28.log.gz"), "yesterday");
    }

    #[test]
    fn a_crash_at_any_point_of_the_compression_loses_and_doubles_nothing() {
        let folder = folder(&[
            ("journal-2026-02-28.jsonl", "one\n"),
            ("journal-2026-02-28.jsonl.gz.partial", "half of it"),
        ]);
        tidy(folder.path(), TODAY, 30);
        fs::write(folder.path().join("journal-2026-02-28.jsonl"), "one\n").unwrap();
        tidy(folder.path(), TODAY, 30);
        assert_eq!(names(&folder), ["journal-2026-02-28.jsonl.gz"]);
        assert_eq!(unpacked(&folder, "journal-2026-02-28.jsonl.gz"), "one\n");
    }

    #[test]
    fn lines_that_come_after_the_compression_join_it() {
        let folder = folder(&[("journal-2026-02-28.jsonl", "one\n")]);
        tidy(folder.path(), TODAY, 30);
        fs::write(folder.path().join("journal-2026-02-28.jsonl"), "two\n").unwrap();
        tidy(folder.path(), TODAY, 30);
        assert_eq!(unpacked(&folder, "journal-2026-02-28.jsonl.gz"), "one\ntwo\n");
    }

    #[test]
    fn a_day_is_over_five_minutes_after_midnight() {
        let day = |text: &str| first_open_day(text.parse().unwrap()).to_string();
        assert_eq!(day("2026-03-01T00:04:59Z"), "2026-02-28");
        assert_eq!(day("2026-03-01T00:05:00Z"), "2026-03-01");
    }

    #[test]
    fn the_outputs_of_a_run_go_when_the_last_of_them_is_too_old() {
        let folder = folder(&[]);
        assert_eq!(tidy_outputs(folder.path(), TODAY, 30), Vec::<String>::new());
        for (name, day) in [("old", "2026-01-29T12:00:00Z"), ("kept", "2026-01-30T12:00:00Z")] {
            let run = folder.path().join(OUTPUTS).join(name);
            fs::create_dir_all(&run).unwrap();
            fs::write(run.join("turn-0001-0001.txt"), "long").unwrap();
            let day: DateTime<Utc> = day.parse().unwrap();
            File::open(&run).unwrap().set_modified(day.into()).unwrap();
        }
        assert_eq!(tidy_outputs(folder.path(), TODAY, 30), Vec::<String>::new());
        let left: Vec<_> = fs::read_dir(folder.path().join(OUTPUTS))
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, ["kept"]);
    }

    #[test]
    fn a_folder_that_is_not_there_is_reported() {
        let folder = folder(&[]);
        assert_eq!(tidy(&folder.path().join("none"), TODAY, 30).len(), 1);
    }
}
