//! Enumerates what commits add: the content and path of every new object, also of files that a
//! later commit deletes.

use std::ops::ControlFlow;

use crate::lfs::Pointer;
use crate::repository::git::failure::classify;
use crate::repository::git::limits::Effort;
use crate::repository::mirror::Mirror;
use crate::repository::{CommitId, RepositoryError};

/// Bytes of an object that are shown. By default no delivered file is longer (`max_file_bytes`).
const LONGEST_OBJECT: usize = 32 * 1024 * 1024;

/// A new or replaced object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Object<'a> {
    pub kind: ObjectKind,
    /// Path in the tree; empty for a commit and for the root folder.
    pub path: &'a str,
    pub content: &'a [u8],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    Commit,
    File,
    /// The content is git's tree format: mode, name and raw id of each entry.
    Folder,
}

impl Mirror {
    /// Calls `look` with each commit, folder and file that `base..head` adds and that is on none of
    /// the forge's branches. A pointer of Git LFS is followed by the content that it stands for, as
    /// far as that is here.
    pub async fn each_added(
        &self,
        base: &CommitId,
        head: &CommitId,
        mut look: impl FnMut(Object<'_>) + Send,
    ) -> Result<(), RepositoryError> {
        let listed = self
            .git(format!("listing what {head} brings along"))
            .with(Effort::Transfer, self.config())
            .args([
                "rev-list",
                "--objects",
                head.as_str(),
                "--not",
                "--branches",
                base.as_str(),
            ])
            .bytes()
            .await?;
        self.each_of(&listed, |object| {
            look(object);
            let pointer = Pointer::read(object.content).filter(|_| object.kind == ObjectKind::File);
            if let Some(content) = pointer.and_then(|pointer| self.read_content(&pointer, LONGEST_OBJECT as u64)) {
                look(Object {
                    content: &content,
                    ..object
                });
            }
        })
        .await
    }

    /// Calls `look` with the old content of each file that `base..head` changes or deletes.
    pub async fn each_replaced(
        &self,
        base: &CommitId,
        head: &CommitId,
        look: impl FnMut(Object<'_>) + Send,
    ) -> Result<(), RepositoryError> {
        let listed = self
            .git(format!("listing what {head} replaces"))
            .args(["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev"])
            .args([base.as_str(), head.as_str(), "--"])
            .bytes()
            .await?;
        let mut wanted = Vec::new();
        let mut fields = listed.split(|byte| *byte == 0);
        while let (Some(change), Some(path)) = (fields.next(), fields.next()) {
            // `:old-mode new-mode old-id new-id status`; the old id of a new file is zeros.
            let Some(id) = change.split(|byte| *byte == b' ').nth(2) else {
                break;
            };
            if id.iter().any(|digit| *digit != b'0') {
                wanted.extend_from_slice(id);
                wanted.push(b' ');
                wanted.extend_from_slice(path);
                wanted.push(b'\n');
            }
        }
        self.each_of(&wanted, look).await
    }

    /// Calls `look` with the id and the content of each of these files, by one process of git. What
    /// is missing is left out.
    pub async fn each_content(
        &self,
        ids: &[&str],
        mut look: impl FnMut(&str, &[u8]) + Send,
    ) -> Result<(), RepositoryError> {
        let wanted: String = ids.iter().flat_map(|id| [*id, " ", *id, "\n"]).collect();
        self.each_of(wanted.as_bytes(), |object| {
            if object.kind == ObjectKind::File {
                look(object.path, object.content);
            }
        })
        .await
    }

    /// Calls `look` with each object of `wanted`, which has a line `id path` per object.
    async fn each_of(&self, wanted: &[u8], mut look: impl FnMut(Object<'_>) + Send) -> Result<(), RepositoryError> {
        if wanted.is_empty() {
            return Ok(());
        }
        let what = "reading what the commits bring along";
        let mut reading = BatchReader::default();
        let ended = self
            .git(what)
            .with(Effort::Transfer, self.config())
            .args(["cat-file", "--batch=%(objecttype) %(objectsize) %(rest)"])
            .input(wanted)
            .each(|chunk| {
                reading.take(chunk, &mut look);
                ControlFlow::Continue(())
            })
            .await?;
        if ended.code != Some(0) {
            return Err(classify(what, &ended.complaint));
        }
        if !reading.is_at_end() {
            return Err(RepositoryError::Unexpected {
                what: what.to_owned(),
                reason: "git broke off".to_owned(),
            });
        }
        Ok(())
    }
}

/// Parses the output of `git cat-file --batch`: a line, the content and a line break per object.
#[derive(Debug, Default)]
pub struct BatchReader {
    line: Vec<u8>,
    object: Option<PartialObject>,
    answers: usize,
}

#[derive(Debug)]
struct PartialObject {
    /// `None` for an object that is not shown.
    kind: Option<ObjectKind>,
    path: String,
    /// Bytes still to come, including the final line break.
    left: usize,
    content: Vec<u8>,
}

impl BatchReader {
    /// Takes the next chunk of output, and calls `look` with each object that it completes.
    pub fn take(&mut self, chunk: &[u8], look: &mut impl FnMut(Object<'_>)) {
        let mut bytes = chunk;
        while !bytes.is_empty() {
            match &mut self.object {
                None => {
                    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
                        self.line.extend_from_slice(bytes);
                        return;
                    };
                    self.line.extend_from_slice(&bytes[..end]);
                    self.object = entry(&std::mem::take(&mut self.line));
                    self.answers += usize::from(self.object.is_none());
                    bytes = &bytes[end + 1..];
                }
                Some(entry) => {
                    let length = entry.left.min(bytes.len());
                    let room = LONGEST_OBJECT.saturating_sub(entry.content.len());
                    if entry.kind.is_some() {
                        entry.content.extend_from_slice(&bytes[..length.min(room)]);
                    }
                    entry.left -= length;
                    if entry.left == 0 {
                        if let Some(kind) = entry.kind {
                            // The last byte is the final line break.
                            let end = entry.content.len().saturating_sub(1);
                            look(Object {
                                kind,
                                path: &entry.path,
                                content: &entry.content[..end],
                            });
                        }
                        self.object = None;
                        self.answers += 1;
                    }
                    bytes = &bytes[length..];
                }
            }
        }
    }

    /// Returns for how many objects the answer is complete, those that are missing among them.
    pub fn answers(&self) -> usize {
        self.answers
    }

    /// Returns true if the output did not end within an object.
    pub fn is_at_end(&self) -> bool {
        self.object.is_none() && self.line.is_empty()
    }
}

/// Parses `blob 12 path`; `None` for `... missing`, which has no content.
fn entry(line: &[u8]) -> Option<PartialObject> {
    let mut fields = line.splitn(3, |byte| *byte == b' ');
    let kind = fields.next()?;
    let size: usize = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let path = fields.next().unwrap_or_default();
    Some(PartialObject {
        kind: match kind {
            b"commit" => Some(ObjectKind::Commit),
            b"blob" => Some(ObjectKind::File),
            b"tree" => Some(ObjectKind::Folder),
            _ => None,
        },
        path: String::from_utf8_lossy(path).into_owned(),
        left: size.checked_add(1)?,
        content: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PRINTED: &[u8] = b"commit 3 \nabc\ntree 2 \n\0\n\nblob 0 empty\n\nblob 4 a b.txt\n1\n2\n\n";

    fn read(chunks: &[&[u8]]) -> (Vec<(ObjectKind, String, Vec<u8>)>, bool) {
        let mut seen = Vec::new();
        let mut reading = BatchReader::default();
        for chunk in chunks {
            reading.take(chunk, &mut |object: Object<'_>| {
                seen.push((object.kind, object.path.to_owned(), object.content.to_owned()));
            });
        }
        (seen, reading.is_at_end())
    }

    #[test]
    fn commits_folders_and_files_are_shown_whole() {
        let shown = |kind, path: &str, content: &[u8]| (kind, path.to_owned(), content.to_owned());
        let expected = vec![
            shown(ObjectKind::Commit, "", b"abc"),
            shown(ObjectKind::Folder, "", b"\0\n"),
            shown(ObjectKind::File, "empty", b""),
            shown(ObjectKind::File, "a b.txt", b"1\n2\n"),
        ];
        assert_eq!(read(&[PRINTED]), (expected, true));
        assert!(!read(&[&PRINTED[..PRINTED.len() - 1]]).1);
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_the_stream_is_cut(cut in 0..PRINTED.len()) {
            prop_assert_eq!(read(&[&PRINTED[..cut], &PRINTED[cut..]]), read(&[PRINTED]));
        }

        #[test]
        fn no_bytes_make_it_fall_over(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&[&bytes]);
        }
    }
}
