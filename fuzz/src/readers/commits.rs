//! Readers of what comes out of a container by way of git.

use coding_agent::lfs::Pointer;
use coding_agent::repository::commit::message;
use coding_agent::repository::incoming::judge;
use coding_agent::repository::reading::objects::{BatchReader, Object};

use super::text;

/// Reads git's raw difference, on which the judge of a container's commits decides.
pub fn raw_difference(bytes: &[u8]) {
    if let Ok((changes, total)) = judge::changes(bytes) {
        assert!(changes.len() <= total);
        for change in changes {
            let is_folder_of_git = |name: &[u8]| name.eq_ignore_ascii_case(b".git") || name == b"..";
            let mut names = change.path.split(|byte| matches!(byte, b'/' | b'\\'));
            assert!(!change.path.starts_with(b"/") && !names.any(is_folder_of_git));
        }
    }
    let (path, target) = bytes.split_at(bytes.len() / 2);
    if judge::judge_link(path, target).is_ok() {
        assert!(!target.starts_with(b"/"));
    }
    assert!(!judge::shown(bytes).chars().any(char::is_control));
}

/// Reads the objects that git prints, in a stream that may be cut anywhere.
pub fn added_objects(bytes: &[u8]) {
    let whole = read(&[bytes]);
    let (first, rest) = bytes.split_at(bytes.len() / 3);
    assert_eq!(read(&[first, rest]), whole);
}

fn read(chunks: &[&[u8]]) -> (Vec<(String, usize)>, bool) {
    let mut reading = BatchReader::default();
    let mut seen = Vec::new();
    for chunk in chunks {
        reading.take(chunk, &mut |object: Object<'_>| {
            seen.push((object.path.to_owned(), object.content.len()));
        });
    }
    (seen, reading.is_at_end())
}

/// Reads a file that may be a pointer of Git LFS, and a line before a content.
pub fn large_file(bytes: &[u8]) {
    let is_digest = |digest: &str| digest.len() == 64 && !digest.contains(|letter: char| !letter.is_ascii_hexdigit());
    let pointers = [Pointer::read(bytes), Pointer::of_line(&text(bytes))];
    for pointer in pointers.into_iter().flatten() {
        assert!(is_digest(pointer.digest()) && pointer.place().split('/').count() == 3);
        assert_eq!(Pointer::read(pointer.text().as_bytes()), Some(pointer.clone()));
        assert_eq!(Pointer::of_line(pointer.line().trim_end()), Some(pointer));
    }
}

/// Reads the message of a commit, as it is delivered.
pub fn message(bytes: &[u8]) {
    let once = message::delivered(&text(bytes), "7");
    assert!(once.len() <= 66 * 1024);
    assert!(!once.contains(|letter: char| letter.is_control() && !"\n\t".contains(letter)));
    let trailers = once
        .lines()
        .filter(|line| line.trim_start().starts_with("Coding-Agent-Run:"));
    assert_eq!(trailers.count(), 1);
    assert_eq!(message::delivered(&once, "7"), once);
}
