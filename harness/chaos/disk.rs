//! A small disk of its own for state and logs, which can be filled to the last byte. Making one
//! needs root or sudo.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

/// Store, mirror and logs of one task need about a tenth.
const SIZE: &str = "size=32m,mode=1777";

pub struct Disk {
    path: PathBuf,
}

impl Disk {
    pub fn mount(path: PathBuf) -> anyhow::Result<Self> {
        std::fs::create_dir_all(&path)?;
        let mounted = as_root("mount")
            .args(["-t", "tmpfs", "-o", SIZE, "tmpfs"])
            .arg(&path)
            .status()
            .context("mount cannot be started")?;
        anyhow::ensure!(
            mounted.success(),
            "the small disk could not be mounted; that needs root or sudo"
        );
        Ok(Self { path })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Fills the disk until nothing can be written any more.
    pub fn fill(&self) -> anyhow::Result<()> {
        let mut filler = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.filler())?;
        for size in [1024 * 1024, 4096, 1] {
            let block = vec![0; size];
            while filler.write_all(&block).is_ok() {}
        }
        Ok(())
    }

    pub fn free(&self) {
        let _ = std::fs::remove_file(self.filler());
    }

    fn filler(&self) -> PathBuf {
        self.path.join("filler")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = as_root("umount").arg("--lazy").arg(&self.path).status();
    }
}

fn as_root(program: &str) -> Command {
    if rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("sudo");
    command.arg("--non-interactive").arg(program);
    command
}
