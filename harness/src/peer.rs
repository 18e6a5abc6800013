//! The peer that the program is measured beside: mini-swe-agent, as `scripts/setup peer` installs
//! it, in the versions of `scripts/peer.txt`. Where it cannot be installed there is no peer, and
//! nothing is made up in its place.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::build;
use crate::installation::with_little_environment;

/// An installed peer.
#[derive(Debug, Clone)]
pub struct Peer {
    python: PathBuf,
    pub version: String,
}

impl Peer {
    /// Returns the peer where it is installed.
    pub fn installed() -> anyhow::Result<Option<Self>> {
        let folder = build::beside("peer")?;
        // Written last: half an installation is none.
        let Ok(version) = std::fs::read_to_string(folder.join("version")) else {
            return Ok(None);
        };
        let version = version.split(',').next().unwrap_or_default();
        Ok(Some(Self {
            python: folder.join("bin/python"),
            version: version.trim().to_owned(),
        }))
    }

    /// Returns a command that runs a Python script with the peer's packages. `folder` is its home
    /// and its working folder. A request that fails is made up to `attempts` times in all, if the
    /// script gives its model `max_retries` 0: else the client beneath makes each three times.
    pub fn command(&self, script: &str, folder: &Path, attempts: u32) -> Command {
        let mut command = with_little_environment(&self.python);
        command
            .env("HOME", folder)
            .env("MSWEA_GLOBAL_CONFIG_DIR", folder)
            .env("MSWEA_SILENT_STARTUP", "1")
            // The models that it is given have no price.
            .env("MSWEA_COST_TRACKING", "ignore_errors")
            .env("MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT", attempts.to_string())
            // Nothing is downloaded.
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .arg(script)
            .current_dir(folder);
        command
    }
}
