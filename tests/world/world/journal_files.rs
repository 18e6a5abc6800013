//! The journal as it lies on the disk, read without any code of the program.

use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

/// Returns the lines in a folder of logs, oldest day first and the last one perhaps in part. Files
/// of earlier days are compressed.
///
/// # Panics
/// If a file is there and cannot be read.
pub fn lines(logs: &Path) -> Vec<String> {
    let files = std::fs::read_dir(logs).into_iter().flatten().flatten();
    let is_journal = |file: &PathBuf| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(".jsonl") || name.ends_with(".jsonl.gz")
    };
    let mut journals: Vec<PathBuf> = files.map(|file| file.path()).filter(is_journal).collect();
    journals.sort();
    let texts: Vec<String> = journals.iter().map(|file| text_of(file)).collect();
    texts.iter().flat_map(|text| text.lines().map(str::to_owned)).collect()
}

/// Returns the text of a file; empty if it was compressed or removed meanwhile.
fn text_of(file: &Path) -> String {
    let bytes = match std::fs::read(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => return String::new(),
        bytes => bytes.unwrap_or_else(|error| panic!("{}: {error}", file.display())),
    };
    if file.extension().is_none_or(|extension| extension != "gz") {
        return String::from_utf8_lossy(&bytes).into_owned();
    }
    let mut text = String::new();
    MultiGzDecoder::new(bytes.as_slice())
        .read_to_string(&mut text)
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    text
}
