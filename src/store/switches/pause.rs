//! The pause of all runs.

use std::path::Path;

use crate::store::sql::Statement;
use crate::store::{Store, StoreError};

/// All runs are set aside, and none is begun.
const PAUSED: &str = "paused";
/// The file that said so in version 0.1.0, below the state folder.
const PAUSE_FILE: &str = "pause";

impl Store {
    /// Tells whether all runs are to pause.
    pub async fn is_paused(&self) -> Result<bool, StoreError> {
        let query = Statement::new("SELECT name FROM switches WHERE name = $1").with(PAUSED);
        Ok(self.fetch_first(query).await?.is_some())
    }

    /// Makes all runs pause, until [`Self::resume_all`]; returns whether they were not paused
    /// before.
    pub async fn pause_all(&self) -> Result<bool, StoreError> {
        let set = Statement::new("INSERT INTO switches (name) VALUES ($1) ON CONFLICT (name) DO NOTHING");
        Ok(self.execute(set.with(PAUSED)).await? > 0)
    }

    /// Lets all runs resume; returns whether they were paused.
    pub async fn resume_all(&self) -> Result<bool, StoreError> {
        let delete = Statement::new("DELETE FROM switches WHERE name = $1").with(PAUSED);
        Ok(self.execute(delete).await? > 0)
    }

    /// Takes over what a pause file says, and removes the file: one on this machine would be
    /// unknown to the others, and its removal would not end the pause.
    pub(in crate::store) async fn take_over_pause_file(&self, state_dir: &Path) -> Result<(), StoreError> {
        let file = state_dir.join(PAUSE_FILE);
        if !file.exists() {
            return Ok(());
        }
        self.pause_all().await?;
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(StoreError::unwritable(&file, &error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}
