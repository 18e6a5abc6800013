//! Takes what was noted of a task out of the journal and the log files.
//!
//! Other processes write to today's files meanwhile, at their ends and without a lock, so no file
//! is replaced that somebody may have open: lines are overwritten with blanks where they stand,
//! which moves nothing. Readers pass over such lines. Compressed files are nobody's any more and
//! are written anew beside the old one, which the new one replaces in one step.

use std::borrow::Cow;
use std::fs::{self, DirEntry, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use chrono::{DateTime, NaiveDate, Utc};
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use serde::Deserialize;

use super::LogConfig;
use super::old_file::{self, OldFile};
use crate::file_lock;

/// Longest wait for a process that compresses a file.
const PATIENCE: Duration = Duration::from_secs(30);
/// A file may be compressed by another process while the others are looked through.
const ROUNDS: usize = 3;

/// Names of what is to be erased: a task and its runs.
#[derive(Debug, Clone)]
pub struct Names(Vec<String>);

impl Names {
    /// Takes the names to search for. Empty ones, which every line contains, are left out.
    pub fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self(names.into_iter().filter(|name| !name.is_empty()).collect())
    }

    /// Tells whether a line contains one of the names.
    pub fn are_in(&self, line: &str) -> bool {
        !self.places(line).is_empty()
    }

    /// Returns where a line contains the names; `…#12` does not contain `…#1`.
    fn places(&self, line: &str) -> Vec<Range<usize>> {
        let mentions = self.0.iter().flat_map(|name| line.match_indices(name.as_str()));
        let places = mentions.map(|(at, name)| at..at + name.len());
        places
            .filter(|place| !line[place.end..].starts_with(|next: char| next.is_alphanumeric()))
            .collect()
    }

    fn have(&self, name: &str) -> bool {
        self.0.iter().any(|own| own == name)
    }
}

/// Erases the lines of all days up to `last` about `names`, and the names in lines about other
/// tasks; returns the number of lines. The next call completes what a crash interrupts.
pub fn erase_until(config: &LogConfig, names: &Names, last: NaiveDate) -> io::Result<u64> {
    // Two at once would write the same new file and put a mixture of both in the old one's place.
    fs::create_dir_all(&config.directory)?;
    let only = file_lock::open(&config.directory.join("coding-agent.erasing.lock"))?;
    lock(&only)?;
    let mut erased = 0;
    for _ in 0..ROUNDS {
        let mut found = 0;
        let files = old_file::all(&config.directory)?;
        for file in files.into_iter().filter(|file| file.day <= last) {
            let lines = if file.is_compressed {
                rewrite(&file, names)
            } else {
                blank_out(&file, names)
            };
            found += match lines {
                // Tidied away or compressed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
                lines => lines?,
            };
        }
        erased += found;
        if found == 0 {
            break;
        }
    }
    Ok(erased)
}

/// The subject of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// A task or run that is to be erased.
    Named,
    /// Another task.
    Other,
    /// No task in particular.
    None,
}

/// The fields of a fact that tell its subject.
#[derive(Deserialize)]
struct Fields {
    task: Option<String>,
    run: Option<String>,
}

/// Finds the parts of each line that are to be erased. The lines of a log event of several lines go
/// with its first. Of a line about another task only the names are erased: the rest is about that
/// task.
struct Finder<'a> {
    names: &'a Names,
    is_journal: bool,
    event: Subject,
}

impl<'a> Finder<'a> {
    fn new(file: &OldFile, names: &'a Names) -> Self {
        Self {
            names,
            is_journal: file.is_journal(),
            event: Subject::None,
        }
    }

    /// Returns the ranges of bytes of the line that are to be erased.
    fn taken(&mut self, line: &[u8]) -> Vec<Range<usize>> {
        let text = String::from_utf8_lossy(line);
        // Where bytes were exchanged, places in the text are none in the line.
        let is_text = matches!(text, Cow::Borrowed(_));
        let begins_event = self.is_journal || line.first().is_some_and(u8::is_ascii_digit);
        let places = self.names.places(&text);
        if begins_event {
            self.event = self.subject(&text);
        }
        if self.event == Subject::None && !places.is_empty() {
            self.event = Subject::Named;
        }
        match self.event {
            Subject::Named if !line.trim_ascii().is_empty() => {
                vec![Range {
                    start: 0,
                    end: line.strip_suffix(b"\n").unwrap_or(line).len(),
                }]
            }
            Subject::Other if is_text => places,
            Subject::Named | Subject::Other | Subject::None => Vec::new(),
        }
    }

    fn subject(&self, line: &str) -> Subject {
        let names: Vec<String> = if self.is_journal {
            let fields = serde_json::from_str::<Fields>(line).ok();
            fields
                .into_iter()
                .flat_map(|fields| [fields.task, fields.run])
                .flatten()
                .collect()
        } else {
            let words = line.split([' ', '{', '}', '\n']);
            let values = words.filter_map(|word| word.strip_prefix("task=").or(word.strip_prefix("run=")));
            values.map(|value| value.trim_matches('"').to_owned()).collect()
        };
        match names.as_slice() {
            [] => Subject::None,
            names if names.iter().any(|name| self.names.have(name)) => Subject::Named,
            _ => Subject::Other,
        }
    }
}

/// Overwrites lines with blanks, while nobody compresses the file.
fn blank_out(file: &OldFile, names: &Names) -> io::Result<u64> {
    let mut plain = OpenOptions::new().read(true).write(true).open(&file.path)?;
    lock(&plain)?;
    let (mut found, mut lines_found) = (Vec::new(), 0);
    let mut finder = Finder::new(file, names);
    let (mut place, mut line) = (0, Vec::new());
    let mut lines = BufReader::new(&plain);
    while lines.read_until(b'\n', &mut line)? > 0 {
        let taken = finder.taken(&line);
        lines_found += u64::from(!taken.is_empty());
        found.extend(taken.into_iter().map(|part| (place + part.start as u64, part.len())));
        place += line.len() as u64;
        line.clear();
    }
    for (place, length) in found {
        plain.seek(SeekFrom::Start(place))?;
        plain.write_all(&vec![b' '; length])?;
    }
    plain.sync_data()?;
    // The rest of a compression that was killed; the lock says that none is going on.
    remove_if_there(&file.path.with_added_extension("gz.partial"))?;
    Ok(lines_found)
}

fn rewrite(file: &OldFile, names: &Names) -> io::Result<u64> {
    let partial = file.path.with_added_extension("erasing");
    let mut finder = Finder::new(file, names);
    let mut found = 0;
    let mut kept = GzEncoder::new(File::create(&partial)?, Compression::default());
    let mut lines = BufReader::new(MultiGzDecoder::new(File::open(&file.path)?));
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        let taken = finder.taken(&line);
        found += u64::from(!taken.is_empty());
        for part in taken {
            line[part].fill(b' ');
        }
        if !line.trim_ascii().is_empty() {
            kept.write_all(&line)?;
        }
        line.clear();
    }
    kept.finish()?.sync_all()?;
    if found == 0 {
        fs::remove_file(&partial)?;
        return Ok(0);
    }
    fs::rename(&partial, &file.path)?;
    sync_folder(&file.path)?;
    Ok(found)
}

/// Returns the names of the runs to whose kept outputs nothing was added since then.
pub fn outputs_before(config: &LogConfig, before: DateTime<Utc>) -> Vec<String> {
    let is_old = |entry: &DirEntry| -> io::Result<bool> {
        let metadata = entry.metadata()?;
        Ok(metadata.is_dir() && DateTime::<Utc>::from(metadata.modified()?) < before)
    };
    let entries = fs::read_dir(config.outputs()).into_iter().flatten().flatten();
    entries
        .filter(|entry| is_old(entry).is_ok_and(|is_old| is_old))
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

/// Removes the kept outputs of a run; returns whether there were any.
pub fn erase_outputs(config: &LogConfig, run: &str) -> io::Result<bool> {
    match fs::remove_dir_all(config.outputs().join(run)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn lock(file: &File) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    while !file_lock::try_lock(file)? {
        if Instant::now() >= end {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use chrono::TimeDelta;

    use super::*;

    fn config(folder: &Path) -> LogConfig {
        LogConfig {
            directory: folder.to_owned(),
            ..LogConfig::default()
        }
    }

    fn erase(config: &LogConfig, names: &Names) -> io::Result<u64> {
        erase_until(config, names, NaiveDate::MAX)
    }

    fn fact(task: &str, text: &str) -> String {
        format!("{{\"at\":\"2026-11-22T12:00:00Z\",\"task\":\"{task}\",\"fact\":\"warned\",\"text\":\"{text}\"}}\n")
    }

    fn unpacked(path: &Path) -> String {
        let mut text = String::new();
        MultiGzDecoder::new(File::open(path).unwrap())
            .read_to_string(&mut text)
            .unwrap();
        text
    }

    #[test]
    fn the_lines_of_a_task_go_beside_somebody_who_writes_and_the_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let today = folder.path().join("journal-2026-11-22.jsonl");
        let log = folder.path().join("coding-agent.2026-11-22.log");
        let old = folder.path().join("journal-2026-11-21.jsonl.gz");
        let (one, twelve) = (fact("github:a/b#1", "secret"), fact("github:a/b#12", "kept"));
        fs::write(&today, format!("{one}{twelve}")).unwrap();
        fs::write(
            &log,
            "2026-11-22T12:00:00Z WARN x: task=github:a/b#1 secret\nmore of the secret\n2026-11-22T12:00:01Z INFO kept\n",
        )
        .unwrap();
        let mut packed = GzEncoder::new(File::create(&old).unwrap(), Compression::default());
        packed.write_all(format!("{twelve}{one}").as_bytes()).unwrap();
        packed.finish().unwrap();
        // Another process has the file open, as the writer of the journal has.
        let mut writer = OpenOptions::new().append(true).open(&today).unwrap();

        let names = Names::new(["github:a/b#1".to_owned(), String::new()]);
        let before = "2026-11-20".parse().unwrap();
        assert_eq!(erase_until(&config(folder.path()), &names, before).unwrap(), 0);
        assert_eq!(erase(&config(folder.path()), &names).unwrap(), 4);
        writer.write_all(twelve.as_bytes()).unwrap();
        assert_eq!(erase(&config(folder.path()), &names).unwrap(), 0);

        let now = fs::read_to_string(&today).unwrap();
        assert_eq!(now.replace(' ', ""), format!("\n{twelve}{twelve}"));
        assert_eq!(now.len(), one.len() + 2 * twelve.len(), "nothing moved");
        assert_eq!(
            fs::read_to_string(&log).unwrap().trim(),
            "2026-11-22T12:00:01Z INFO kept"
        );
        assert_eq!(unpacked(&old), twelve);
        // These three, and the lock that keeps two from erasing at once.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 4);
    }

    #[test]
    fn a_line_of_another_task_loses_the_name_and_keeps_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let today = folder.path().join("journal-2026-11-22.jsonl");
        let log = folder.path().join("coding-agent.2026-11-22.log");
        let old = folder.path().join("journal-2026-11-21.jsonl.gz");
        let other = fact("github:a/b#2", "like github:a/b#1, said github:a/b#12");
        fs::write(&today, format!("{other}{}", fact("github:a/b#1", "like github:a/b#2"))).unwrap();
        fs::write(
            &log,
            "2026-11-22T12:00:00Z WARN x: like github:a/b#1 task=github:a/b#2\n2026-11-22T12:00:01Z WARN x: github:a/b#1 waits\n",
        )
        .unwrap();
        let mut packed = GzEncoder::new(File::create(&old).unwrap(), Compression::default());
        packed.write_all(other.as_bytes()).unwrap();
        packed.finish().unwrap();

        let names = Names::new(["github:a/b#1".to_owned()]);
        assert_eq!(erase(&config(folder.path()), &names).unwrap(), 5);

        let left = other.replacen("github:a/b#1,", "            ,", 1);
        assert_eq!(fs::read_to_string(&today).unwrap().trim_end(), left.trim_end());
        assert_eq!(unpacked(&old), left);
        assert_eq!(
            fs::read_to_string(&log).unwrap().trim_end(),
            "2026-11-22T12:00:00Z WARN x: like              task=github:a/b#2"
        );
    }

    #[test]
    fn two_at_once_leave_each_file_whole() {
        let folder = tempfile::tempdir().unwrap();
        let old = folder.path().join("journal-2026-11-21.jsonl.gz");
        let mut packed = GzEncoder::new(File::create(&old).unwrap(), Compression::default());
        for number in 0..20_000 {
            packed
                .write_all(fact(&format!("github:a/b#{}", number % 3), &number.to_string()).as_bytes())
                .unwrap();
        }
        packed.finish().unwrap();

        let erases = |task: &str| {
            let (config, names) = (config(folder.path()), Names::new([task.to_owned()]));
            std::thread::spawn(move || erase(&config, &names).unwrap())
        };
        let both = [erases("github:a/b#0"), erases("github:a/b#1")];

        assert_eq!(both.map(|one| one.join().unwrap()), [6_667, 6_667]);
        let left = unpacked(&old);
        assert_eq!(left.lines().count(), 6_666);
        assert!(left.lines().all(|line| line.contains("github:a/b#2")));
    }

    #[test]
    fn outputs_go_once() {
        let folder = tempfile::tempdir().unwrap();
        let config = config(folder.path());
        fs::create_dir_all(config.outputs().join("run")).unwrap();
        fs::write(config.outputs().join("file"), "").unwrap();
        let now = Utc::now();
        assert_eq!(outputs_before(&config, now + TimeDelta::hours(1)), ["run"]);
        assert_eq!(outputs_before(&config, now - TimeDelta::hours(1)), [""; 0]);
        assert!(erase_outputs(&config, "run").unwrap());
        assert!(!erase_outputs(&config, "run").unwrap());
    }
}
