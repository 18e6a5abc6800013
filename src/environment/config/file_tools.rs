//! Limits of the file tools in a container.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A smaller limit would be reported as 0 KiB.
const LEAST_BYTES: u64 = 1024;
/// A file is sent to the container in one JSON message, in which each byte may take six.
const MOST_BYTES: u64 = 2 * 1024 * 1024;

/// Limits of the tools that read and write single files. They do not apply to commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FileTools {
    /// Files that may be written: an extension such as `.py`, or a whole name such as `Makefile`.
    /// If empty, all.
    pub allowed_extensions: Vec<String>,
    /// Maximum size of a file that is read or written.
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
    pub(crate) fn faults(&self) -> Vec<String> {
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
                "files.max_bytes: {} is out of range; write {LEAST_BYTES} to {MOST_BYTES} (commands read and write files of any size)",
                self.max_bytes
            ));
        }
        faults
    }
}
