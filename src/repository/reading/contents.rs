//! Contents of files that are kept in Git LFS, on this machine: beside the mirror, by digest.
//!
//! Only contents whose size and digest were checked are kept. Those that a run made are pinned to
//! it until it is forgotten, and go with it; of the others the ones that were not used for longest
//! go when they are too many.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};
use tokio::fs::{self, File};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use uuid::Uuid;

use crate::lfs::Pointer;
use crate::repository::RepositoryError;
use crate::repository::git::lock;
use crate::repository::mirror::{Mirror, accepted_ref};
use crate::repository::missing::{entries, unless_missing};

/// Beginning of the names of indexes in use, which are removed like contents that are not whole.
pub(in crate::repository) const INDEX: &str = "index-";
/// Beginning of the names of contents that are not whole yet.
const UNFINISHED: &str = "tmp-";
/// Age at which the leftovers of a killed process are removed; a living one writes meanwhile.
const ABANDONED: Duration = Duration::from_hours(1);

/// Why a content was not kept.
#[derive(Debug, thiserror::Error)]
pub(in crate::repository) enum ContentError {
    /// It is not what the pointer names.
    #[error("{0}")]
    Wrong(String),
    /// The stream broke off, or nothing came any more.
    #[error("{0}")]
    Broken(String),
    #[error(transparent)]
    Own(#[from] RepositoryError),
}

impl Mirror {
    /// Returns the file with a content, if it is here.
    pub async fn content(&self, pointer: &Pointer) -> Option<PathBuf> {
        let path = self.content_place(pointer);
        let there = fs::metadata(&path).await.ok()?;
        (there.is_file() && there.len() == pointer.size()).then_some(path)
    }

    /// Returns those of `pointers` whose contents are not here, each once.
    pub async fn missing_contents(&self, pointers: &[Pointer]) -> Vec<Pointer> {
        let mut wanted = pointers.to_vec();
        wanted.sort_by_key(|pointer| (pointer.size(), pointer.digest().to_owned()));
        wanted.dedup();
        let mut missing = Vec::new();
        for pointer in wanted {
            if self.content(&pointer).await.is_none() {
                missing.push(pointer);
            }
        }
        missing
    }

    /// Keeps a content, if it is the one that the pointer names. At most one byte more is read.
    /// Gives up when nothing comes for `patience`.
    pub(in crate::repository) async fn keep_content(
        &self,
        pointer: &Pointer,
        source: impl AsyncRead + Unpin,
        patience: Duration,
    ) -> Result<(), ContentError> {
        let folder = self.path().join("lfs");
        let own = |error: &io::Error| ContentError::Own(lock::at(&folder, error));
        fs::create_dir_all(&folder).await.map_err(|error| own(&error))?;
        let unfinished = Unfinished(folder.join(format!("{UNFINISHED}{}", Uuid::now_v7())));
        let mut file = File::create_new(&unfinished.0).await.map_err(|error| own(&error))?;
        let mut source = source.take(pointer.size().saturating_add(1));
        let (mut digest, mut size, mut chunk) = (Sha256::new(), 0, vec![0; 64 * 1024]);
        loop {
            let read = timeout(patience, source.read(&mut chunk)).await;
            let silent = || ContentError::Broken(format!("nothing came for {} s", patience.as_secs()));
            let length = read.map_err(|_| silent())?;
            let length = length.map_err(|error| ContentError::Broken(error.to_string()))?;
            if length == 0 {
                break;
            }
            digest.update(&chunk[..length]);
            size += length as u64;
            file.write_all(&chunk[..length]).await.map_err(|error| own(&error))?;
        }
        if size != pointer.size() {
            let than = if size < pointer.size() { "fewer" } else { "more" };
            return Err(ContentError::Wrong(format!(
                "it has {than} bytes than its pointer says"
            )));
        }
        if format!("{:x}", digest.finalize()) != pointer.digest() {
            return Err(ContentError::Wrong(
                "it has another digest than its pointer says".to_owned(),
            ));
        }
        file.flush().await.map_err(|error| own(&error))?;
        let place = self.content_place(pointer);
        let moved = async {
            fs::create_dir_all(place.parent().unwrap_or(&folder)).await?;
            fs::rename(&unfinished.0, &place).await
        };
        moved.await.map_err(|error| own(&error))
    }

    /// Keeps contents until the run is forgotten: they may be nowhere else.
    pub async fn pin_contents(&self, run: &str, pointers: &[Pointer]) -> Result<(), RepositoryError> {
        if pointers.is_empty() {
            return Ok(());
        }
        let folder = self.pins_of(run)?;
        let pinned = async {
            fs::create_dir_all(&folder).await?;
            for pointer in pointers {
                fs::write(folder.join(pointer.digest()), b"").await?;
            }
            Ok(())
        };
        pinned.await.map_err(|error| lock::at(&folder, &error))
    }

    /// Lets the contents go that were kept for a run, and removes those that no other run keeps.
    pub(in crate::repository) async fn unpin_contents(&self, run: &str) -> Result<(), RepositoryError> {
        let (folder, pins) = (self.path().join("lfs"), self.pins_of(run)?);
        let unpinned = tokio::task::spawn_blocking(move || unpin(&folder, &pins)).await;
        match unpinned {
            Ok(unpinned) => unpinned.map_err(|error| lock::at(self.path(), &error)),
            Err(error) => Err(lock::at(self.path(), &io::Error::other(error))),
        }
    }

    /// Removes contents that are not pinned until the rest has at most `most` bytes, those that
    /// were not used for longest first.
    pub(in crate::repository) async fn prune_contents(&self, most: u64) {
        let folder = self.path().join("lfs");
        let pruned = tokio::task::spawn_blocking(move || prune(&folder, most)).await;
        if let Ok(Err(error)) = pruned {
            tracing::warn!(mirror = %self.path().display(), %error, "old contents of Git LFS could not be removed");
        }
    }

    /// Notes that a content is used now.
    pub(in crate::repository) async fn use_content(&self, pointer: &Pointer) {
        if let Ok(file) = File::options().append(true).open(self.content_place(pointer)).await {
            let _ = file.into_std().await.set_modified(SystemTime::now());
        }
    }

    fn content_place(&self, pointer: &Pointer) -> PathBuf {
        self.path().join("lfs/objects").join(pointer.place())
    }

    fn pins_of(&self, run: &str) -> Result<PathBuf, RepositoryError> {
        // Validates the id, which becomes the name of a folder.
        accepted_ref(run)?;
        Ok(self.path().join("lfs/pins").join(run))
    }

    /// Returns at most `most` bytes of a content; `None` if it is not here. Blocks.
    pub(in crate::repository) fn read_content(&self, pointer: &Pointer, most: u64) -> Option<Vec<u8>> {
        let file = std::fs::File::open(self.content_place(pointer)).ok()?;
        let mut content = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(file, most), &mut content).ok()?;
        Some(content)
    }
}

/// A content while it is written, removed when dropped unless it was moved.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn prune(folder: &Path, most: u64) -> io::Result<()> {
    let now = SystemTime::now();
    for entry in entries(folder)? {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let modified = entry.metadata()?.modified()?;
        let is_old = now.duration_since(modified).is_ok_and(|age| age > ABANDONED);
        if is_old && (name.starts_with(UNFINISHED) || name.starts_with(INDEX)) {
            std::fs::remove_file(entry.path())?;
        }
    }
    let pinned = pinned(folder)?;
    let mut contents = Vec::new();
    for first in entries(&folder.join("objects"))? {
        for second in entries(&first.path())? {
            for content in entries(&second.path())? {
                let about = content.metadata()?;
                contents.push((about.modified()?, about.len(), content));
            }
        }
    }
    contents.sort_by_key(|(modified, ..)| *modified);
    let mut size: u64 = contents.iter().map(|(_, size, _)| size).sum();
    for (_, bytes, content) in contents {
        if size <= most {
            break;
        }
        if !pinned.contains(&content.file_name()) {
            std::fs::remove_file(content.path())?;
            size = size.saturating_sub(bytes);
        }
    }
    Ok(())
}

fn unpin(folder: &Path, pins: &Path) -> io::Result<()> {
    let own = entries(pins)?;
    unless_missing(std::fs::remove_dir_all(pins))?;
    let pinned = pinned(folder)?;
    for pin in own.iter().filter(|pin| !pinned.contains(&pin.file_name())) {
        let name = pin.file_name();
        if let Some(pointer) = Pointer::new(&name.to_string_lossy(), 0) {
            unless_missing(std::fs::remove_file(folder.join("objects").join(pointer.place())))?;
        }
    }
    Ok(())
}

/// Returns the digests of all contents that some run keeps.
fn pinned(folder: &Path) -> io::Result<HashSet<OsString>> {
    let mut pinned = HashSet::new();
    for run in entries(&folder.join("pins"))? {
        pinned.extend(entries(&run.path())?.into_iter().map(|pin| pin.file_name()));
    }
    Ok(pinned)
}
