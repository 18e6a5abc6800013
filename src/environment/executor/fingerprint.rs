//! Fingerprints of file contents, computed again only if the file was changed.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;
use tokio::sync::Mutex;

/// Size of one read in bytes.
const PIECE: usize = 256 * 1024;

/// A cache of the last fingerprint.
#[derive(Debug, Default)]
pub(crate) struct Fingerprints {
    last: Mutex<Option<(Stamp, u64)>>,
}

/// Identifies one state of a file: writing to it or replacing it always changes the time of change.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    file: PathBuf,
    device: u64,
    inode: u64,
    size: u64,
    /// Seconds and nanoseconds.
    changed: (i64, i64),
}

impl Fingerprints {
    /// Returns the first 64 bits of the SHA-256 of the file's content. So few are not
    /// collision-resistant; the operator's own files need not be.
    pub(crate) async fn of(&self, file: &Path) -> io::Result<u64> {
        let stamp = Stamp::of(file).await?;
        let mut last = self.last.lock().await;
        if let Some((_, known)) = last.as_ref().filter(|(of, _)| *of == stamp) {
            return Ok(*known);
        }
        let worked_out = work_out(file).await?;
        *last = Some((stamp, worked_out));
        Ok(worked_out)
    }
}

impl Stamp {
    async fn of(file: &Path) -> io::Result<Self> {
        let found = tokio::fs::metadata(file).await?;
        Ok(Self {
            file: file.to_owned(),
            device: found.dev(),
            inode: found.ino(),
            size: found.size(),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }
}

async fn work_out(file: &Path) -> io::Result<u64> {
    let mut file = tokio::fs::File::open(file).await?;
    let mut digest = Sha256::new();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece).await? {
            0 => break,
            length => digest.update(&piece[..length]),
        }
    }
    let digest = digest.finalize();
    let first = digest.first_chunk().copied().unwrap_or_default();
    Ok(u64::from_be_bytes(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_was_changed_or_replaced_is_another_one() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("executor");
        let fingerprints = Fingerprints::default();
        std::fs::write(&file, "one").unwrap();
        let one = fingerprints.of(&file).await.unwrap();
        assert_eq!(fingerprints.of(&file).await.unwrap(), one);

        // Same size and same modification time, as a copy preserves it.
        let written = std::fs::metadata(&file).unwrap().modified().unwrap();
        let other = folder.path().join("other");
        std::fs::write(&other, "two").unwrap();
        std::fs::File::options()
            .write(true)
            .open(&other)
            .unwrap()
            .set_modified(written)
            .unwrap();
        std::fs::rename(&other, &file).unwrap();
        let two = fingerprints.of(&file).await.unwrap();
        assert_ne!(two, one);

        std::fs::write(&file, "three").unwrap();
        assert_ne!(fingerprints.of(&file).await.unwrap(), two);
        std::fs::remove_file(&file).unwrap();
        assert!(fingerprints.of(&file).await.is_err());
    }
}
