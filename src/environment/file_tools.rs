//! What the file tools in a container take.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Below it a limit would be told as 0 KiB.
const LEAST_BYTES: u64 = 1024;
/// A file goes into the container in one message, in which each of its bytes may take six.
const MOST_BYTES: u64 = 2 * 1024 * 1024;

/// Limits of the tools that read and write single files. What a command writes is not theirs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FileTools {
    /// Files that may be written: an extension such as `.py`, or a whole name such as `Makefile`.
    /// All where there is none.
    pub allowed_extensions: Vec<String>,
    /// Largest file that is read or written.
    pub max_bytes: u64,
}

impl Default for FileTools {
    fn default() -> Self {
        Self {
            allowed_extensions: Vec::new(),
            max_bytes: 512 * 1024,
        }
    }
}

impl FileTools {
    pub(super) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for (index, entry) in self.allowed_extensions.iter().enumerate() {
            let is_strange = |letter: char| letter.is_whitespace() || letter.is_control() || "/*?\\".contains(letter);
            if entry.trim_matches('.').is_empty() || entry.starts_with('-') || entry.contains(is_strange) {
                faults.push(format!(
                    "files.allowed_extensions.{index}: '{}' is neither an extension nor the name of a file; write one such as .py or \
                     Makefile, without * and /",
                    entry.escape_debug()
                ));
            }
        }
        if !(LEAST_BYTES..=MOST_BYTES).contains(&self.max_bytes) {
            faults.push(format!(
                "files.max_bytes: {} cannot be; write {LEAST_BYTES} to {MOST_BYTES} (commands read and write files of any size)",
                self.max_bytes
            ));
        }
        faults
    }
}
