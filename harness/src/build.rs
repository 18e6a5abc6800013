//! The folder that this program was built into, and what lies in it.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::Value;

/// Returns the folder that holds the programs of this one's profile, such as `target/debug`.
pub fn folder() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("this program does not know where it lies")?;
    let folder = own.parent().context("this program lies in no build folder")?;
    Ok(folder.to_owned())
}

/// Returns `coding-agent`, built in this one's profile.
pub fn program() -> anyhow::Result<PathBuf> {
    built("coding-agent")
}

/// Returns the static executor that `scripts/setup` puts beside the program.
pub fn executor() -> anyhow::Result<PathBuf> {
    built("coding-agent-executor-static")
}

fn built(name: &str) -> anyhow::Result<PathBuf> {
    let path = folder()?.join(name);
    anyhow::ensure!(
        path.is_file(),
        "{} is missing; `make` with the name of this program builds it",
        path.display()
    );
    Ok(path)
}

/// Returns the path of this name beside the builds of all profiles, such as `target/peer`.
pub fn beside(name: &str) -> anyhow::Result<PathBuf> {
    Ok(folder()?.with_file_name(name))
}

/// Makes the folder of this name beside the builds of all profiles, where it is not there yet.
pub fn results(name: &str) -> anyhow::Result<PathBuf> {
    let folder = beside(name)?;
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Writes a report for scripts.
pub fn write_report(path: &Path, report: &Value) -> anyhow::Result<()> {
    Ok(std::fs::write(path, serde_json::to_string_pretty(report)? + "\n")?)
}
