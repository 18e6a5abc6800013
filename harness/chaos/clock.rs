//! The program's clock, set by libfaketime: what other processes and the kernel see is not touched.
//! Monotonic time goes on as it does when somebody sets a machine's clock.

use std::path::{Path, PathBuf};

use anyhow::Context;

const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

pub struct Clock {
    file: PathBuf,
    library: PathBuf,
}

impl Clock {
    pub fn start(folder: &Path) -> anyhow::Result<Self> {
        let folders =
            ["x86_64-linux-gnu", "aarch64-linux-gnu"].map(|name| Path::new("/usr/lib").join(name).join(LIBRARY));
        let library = folders.into_iter().find(|path| path.is_file());
        let clock = Self {
            file: folder.join("clock"),
            library: library.context("libfaketime is missing: install the package libfaketime")?,
        };
        clock.set(0)?;
        Ok(clock)
    }

    /// Sets the clock to so many seconds after the true time.
    pub fn set(&self, seconds: i64) -> anyhow::Result<()> {
        let draft = self.file.with_extension("draft");
        std::fs::write(&draft, format!("{seconds:+}\n"))?;
        // Whoever reads it meanwhile reads a whole one.
        Ok(std::fs::rename(draft, &self.file)?)
    }

    /// Returns the environment of a program that goes by this clock.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("LD_PRELOAD", self.library.display().to_string()),
            ("FAKETIME_TIMESTAMP_FILE", self.file.display().to_string()),
            ("FAKETIME_NO_CACHE", "1".to_owned()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
            ("FAKETIME_DISABLE_SHM", "1".to_owned()),
        ]
    }
}
