//! Full text of tool outputs that are too long for the model, on disk for people.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Maximum bytes that one run saves in one process, so that a command in a loop cannot fill the
/// disk.
const MOST_BYTES: u64 = 256 * 1024 * 1024;

/// The saved outputs of one run. Their folder is removed together with the logs of its day.
pub(crate) struct ToolOutputs {
    folder: PathBuf,
    count: AtomicU32,
    bytes: AtomicU64,
}

impl ToolOutputs {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            count: AtomicU32::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// Returns the path for a file name, and creates the folder.
    pub(crate) async fn place(&self, name: &str) -> std::io::Result<PathBuf> {
        tokio::fs::create_dir_all(&self.folder).await?;
        Ok(self.folder.join(name))
    }

    /// Saves `text`, which must be redacted. A failure is only logged, since the run does not need
    /// it.
    pub(crate) async fn keep(&self, turn: u32, text: &str) {
        let length = text.len() as u64;
        if self.bytes.fetch_add(length, Ordering::Relaxed) + length > MOST_BYTES {
            tracing::warn!("an output was not kept: those of the run take {MOST_BYTES} bytes already");
            return;
        }
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let file = self.folder.join(format!("turn-{turn:04}-{count:04}.txt"));
        let kept = async {
            tokio::fs::create_dir_all(&self.folder).await?;
            tokio::fs::write(&file, text).await
        };
        if let Err(error) = kept.await {
            tracing::warn!("the whole output could not be kept in {}: {error}", file.display());
        }
    }
}
