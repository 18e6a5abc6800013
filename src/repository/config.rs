//! The section `git` of the configuration.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::repository::protected_paths;

/// Author and signing key of commits, limits of git, and protected files.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Author and committer of delivered commits.
    pub author_name: String,
    /// E-mail address of author and committer.
    pub author_email: String,
    /// File with the SSH private key that signs delivered commits; if left out, they are not
    /// signed.
    pub signing_key_file: Option<PathBuf>,
    /// Time limit of one git command.
    pub timeout_seconds: u64,
    /// Seconds of silence after which a connection to a forge is given up. A forge that is still
    /// preparing a pack is not silent: it sends a few bytes every few seconds.
    pub stall_seconds: u64,
    /// Maximum bytes of new objects that are received from a container.
    pub max_incoming_bytes: u64,
    /// Maximum size of a single file in a delivered commit.
    pub max_file_bytes: u64,
    pub lfs: Lfs,
    /// The submodules whose contents the container gets.
    pub submodules: Submodules,
    /// Number of commits of each branch that a new mirror holds; 0 for the whole history.
    pub depth: u32,
    /// Files that are changed only with a person's approval: those that forges, editors and agents
    /// run or obey, and those that rule this program.
    pub protected_paths: Vec<String>,
    /// Files that may be changed although `protected_paths` matches them.
    pub unprotected_paths: Vec<String>,
}

/// The submodules whose contents the container gets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Submodules {
    /// None: their folders are empty.
    #[default]
    None,
    /// Those on the same forge that the same token reads, but for forks.
    SameForge,
}

/// Contents of files that repositories keep in Git LFS.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Lfs {
    /// Whether the worker fetches them; otherwise the model sees pointers.
    pub enabled: bool,
    /// Maximum number of contents that are fetched for a run.
    pub max_files: usize,
    /// Maximum bytes of contents that are fetched for a run, and of those that it may add.
    pub max_bytes: u64,
    /// Hosts beside the forge's that may be asked for contents although they are not public or have
    /// no TLS, as `host` or `host:port`.
    pub hosts: Vec<String>,
}

impl Default for Lfs {
    fn default() -> Self {
        Self {
            enabled: true,
            max_files: 1000,
            max_bytes: 1024 * 1024 * 1024,
            hosts: Vec::new(),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            author_name: "coding-agent".to_owned(),
            author_email: "coding-agent@localhost".to_owned(),
            signing_key_file: None,
            timeout_seconds: 900,
            stall_seconds: 300,
            max_incoming_bytes: 512 * 1024 * 1024,
            max_file_bytes: 20 * 1024 * 1024,
            lfs: Lfs::default(),
            submodules: Submodules::default(),
            depth: 0,
            protected_paths: protected_paths::paths(),
            unprotected_paths: protected_paths::exceptions(),
        }
    }
}
