//! Large files among what comes out of a container: commits hold pointers to them.

use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::time::timeout;

use crate::lfs::{self, Pointer};
use crate::repository::RepositoryError;
use crate::repository::incoming::accepting::Acceptance;
use crate::repository::incoming::receiving::Incoming;
use crate::repository::mirror::Mirror;
use crate::repository::reading::contents::ContentError;
use crate::repository::reading::large_files::{Asking, LargeFile};

/// Longest line between two contents.
const LONGEST_LINE: u64 = 200;

impl Incoming {
    /// Returns the files kept in Git LFS that the commits add, and refuses a content that stands in
    /// the place of its pointer: it would be in the repository's history for ever.
    ///
    /// Git in the container writes pointers by itself, so only who goes past its filter meets this,
    /// or adds a file before the attributes that name it.
    pub async fn large_files(&self, acceptance: &Acceptance) -> Result<Vec<LargeFile>, RepositoryError> {
        if !self.mirror.may_use_lfs() {
            return Ok(Vec::new());
        }
        let git = |what: &str| self.git(what);
        let asking = Asking {
            mirror: &self.mirror,
            git: &git,
        };
        let (base, head) = (acceptance.base.as_ref(), &acceptance.head);
        let Some(tracking) = asking.tracking_of(head).await? else {
            return Ok(Vec::new());
        };
        if let Some(base) = base {
            let raw = self
                .git("comparing commits")
                .args(["diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev"])
                .args([base.as_str(), head.as_str()])
                .bytes()
                .await?;
            let changed: Vec<Changed<'_>> = Changed::read(&raw);
            let tracked = asking.tracked(&tracking, changed.iter().map(|file| file.path)).await?;
            let changed: Vec<&Changed<'_>> = changed.iter().filter(|file| tracked.contains(file.path)).collect();
            let ids = changed.iter().flat_map(|file| [file.before, file.after]);
            let pointers = asking.pointers(ids.filter(|id| !is_nothing(id))).await?;
            let holds_content = |id: &str| !is_nothing(id) && id != EMPTY && !pointers.contains_key(id);
            // What held its content before may go on to do so.
            if let Some(wrong) = changed
                .iter()
                .find(|file| holds_content(file.after) && !holds_content(file.before))
            {
                return Err(RepositoryError::Unacceptable(format!(
                    "{} belongs into Git LFS by .gitattributes, and a commit holds its content in the place of a pointer, which \
                     `git add --renormalize` writes",
                    String::from_utf8_lossy(wrong.path).escape_debug()
                )));
            }
        }
        asking.added(&tracking, base, head).await
    }
}

impl Mirror {
    /// Refuses more bytes than a run may add.
    pub fn may_take_in(&self, pointers: &[Pointer]) -> Result<(), RepositoryError> {
        let limit = self.config().lfs.max_bytes;
        let bytes = pointers.iter().map(Pointer::size).fold(0, u64::saturating_add);
        if bytes > limit {
            return Err(RepositoryError::Unacceptable(format!(
                "their large files have {bytes} bytes, and {limit} are the limit (`git.lfs.max_bytes`)"
            )));
        }
        Ok(())
    }

    /// Keeps the contents that a container sends: those in `wanted` and no others, each checked.
    pub async fn take_in_contents(
        &self,
        stream: impl AsyncRead + Send + Unpin,
        wanted: &[Pointer],
    ) -> Result<(), RepositoryError> {
        let patience = Duration::from_secs(self.config().timeout_seconds);
        let taken = timeout(patience, self.take_in_all(stream, wanted)).await;
        taken.map_err(|_| {
            let seconds = patience.as_secs();
            RepositoryError::TooSlow(format!(
                "the container did not send their large files within {seconds} s"
            ))
        })?
    }

    async fn take_in_all(
        &self,
        stream: impl AsyncRead + Send + Unpin,
        wanted: &[Pointer],
    ) -> Result<(), RepositoryError> {
        let mut stream = BufReader::new(stream);
        let silence = Duration::from_secs(self.config().stall_seconds);
        let wrong = |reason: &str| RepositoryError::Unacceptable(format!("their large files: {reason}"));
        for _ in 0..=wanted.len() {
            let mut line = Vec::new();
            let read = (&mut stream).take(LONGEST_LINE).read_until(b'\n', &mut line).await;
            read.map_err(|error| wrong(&error.to_string()))?;
            if line == lfs::END.as_bytes() {
                return Ok(());
            }
            let line = String::from_utf8_lossy(&line);
            let pointer = Pointer::of_line(line.trim_end_matches('\n'));
            let Some(pointer) = pointer.filter(|pointer| wanted.contains(pointer)) else {
                return Err(wrong("the container sent what was not asked for"));
            };
            let content = (&mut stream).take(pointer.size());
            match self.keep_content(&pointer, content, silence).await {
                Ok(()) => {}
                Err(ContentError::Own(error)) => return Err(error),
                Err(ContentError::Wrong(reason) | ContentError::Broken(reason)) => return Err(wrong(&reason)),
            }
        }
        Err(wrong("the container sent more than was asked for"))
    }
}

/// Git's id of an empty file, which is its own pointer.
const EMPTY: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";

/// A file that differs between two commits, with its object before and after.
struct Changed<'raw> {
    before: &'raw str,
    after: &'raw str,
    path: &'raw [u8],
}

impl<'raw> Changed<'raw> {
    /// Parses `:mode mode id id status<NUL>path<NUL>`; links and submodules are left out.
    fn read(raw: &'raw [u8]) -> Vec<Self> {
        let mut fields = raw.split(|byte| *byte == 0);
        let mut changed = Vec::new();
        while let (Some(head), Some(path)) = (fields.next(), fields.next()) {
            let mut columns = std::str::from_utf8(head).unwrap_or_default().split(' ');
            let (_, Some(mode), Some(before), Some(after)) =
                (columns.next(), columns.next(), columns.next(), columns.next())
            else {
                break;
            };
            if mode.starts_with("100") {
                changed.push(Self { before, after, path });
            }
        }
        changed
    }
}

fn is_nothing(id: &str) -> bool {
    id.bytes().all(|digit| digit == b'0')
}
