//! The journal read back, for `logs` and for tests.

use std::fs::File;
use std::io;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::fact::Entry;
use super::old_file;

/// Returns all facts in `directory`, oldest day first. Lines that are no facts (cut short by a crash) and files that
/// another process has just removed are passed over.
pub fn entries(directory: &Path) -> io::Result<impl Iterator<Item = Entry> + use<>> {
    let found = match old_file::all(directory) {
        // Nothing has been written yet.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        found => found?,
    };
    let mut files: Vec<_> = found.into_iter().filter(old_file::OldFile::is_journal).collect();
    // Compressed lines of a day are older than the others.
    files.sort_by_key(|file| (file.day, !file.is_compressed));
    Ok(files
        .into_iter()
        .filter_map(|file| lines(&file).ok())
        .flatten()
        .filter_map(|line| serde_json::from_slice(&line).ok()))
}

fn lines(file: &old_file::OldFile) -> io::Result<impl Iterator<Item = Vec<u8>> + use<>> {
    let opened = File::open(&file.path)?;
    let content: Box<dyn Read> = if file.is_compressed {
        Box::new(MultiGzDecoder::new(opened))
    } else {
        Box::new(opened)
    };
    Ok(BufReader::new(content).split(b'\n').map_while(Result::ok))
}
