//! From the database's columns to a [`Run`], and from its errors to sentences.

use std::fmt::Display;

use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::{Run, Store, StoreError};
use crate::task::id::RunId;

/// Returns a time as the database keeps it.
pub(super) fn micros(time: DateTime<Utc>) -> i64 {
    time.timestamp_micros()
}

impl Store {
    /// Reads a row of `runs`.
    pub(super) fn read(&self, row: &SqliteRow) -> Result<Run, StoreError> {
        let text = |column: &str| row.try_get::<String, _>(column).map_err(|error| self.failed(error));
        let time = |column: &str| {
            let micros: Option<i64> = row.try_get(column).map_err(|error| self.failed(error))?;
            Ok::<_, StoreError>(micros.and_then(DateTime::from_timestamp_micros))
        };
        let id = text("id")?;
        Ok(Run {
            task: text("task")?.parse().map_err(|error| self.unreadable(&id, &error))?,
            title: text("title")?,
            state: text("state")?
                .parse()
                .map_err(|error: String| self.unreadable(&id, &error))?,
            record: serde_json::from_str(&text("record")?).map_err(|error| self.unreadable(&id, &error))?,
            created_at: time("created_at")?.unwrap_or_default(),
            updated_at: time("updated_at")?.unwrap_or_default(),
            not_before: time("not_before")?,
            id: self.run_id(&id)?,
        })
    }

    pub(super) fn run_id(&self, text: &str) -> Result<RunId, StoreError> {
        text.parse().map_err(|error| self.unreadable(text, &error))
    }

    /// Returns the error for a row that this program did not write so.
    pub(super) fn unreadable(&self, row: &str, error: &impl Display) -> StoreError {
        StoreError::Unusable {
            path: self.path.display().to_string(),
            reason: format!(
                "the entry '{row}' cannot be read ({error}); was it written by a newer version of the program? \
                 Update the program, or restore the file from a backup"
            ),
        }
    }

    /// Returns the error for what the database said.
    pub(super) fn failed(&self, error: sqlx::Error) -> StoreError {
        let path = self.path.display().to_string();
        match explained(&error) {
            Some(reason) => StoreError::Unusable { path, reason },
            None => StoreError::Database { path, source: error },
        }
    }
}

/// Returns what to do about an error that the operator must mend, or `None` where it is not one.
pub(super) fn explained(error: &sqlx::Error) -> Option<String> {
    let code: u32 = error.as_database_error()?.code()?.parse().ok()?;
    let mend = mend(code)?;
    Some(format!("{error}; {mend}"))
}

/// The low byte of `SQLite`'s extended result code is the kind of the error.
fn mend(code: u32) -> Option<&'static str> {
    match code & 0xff {
        3 | 8 => Some("the file or its folder cannot be written: give this user the right to write there"),
        5 => Some("another process kept the file locked for too long: end whatever has it open besides this program"),
        10 => Some("the disk gave an input/output error: look at the system's log and the disk"),
        11 | 26 => Some(
            "the file is damaged or is not a database of this program: move it away together with its -wal and -shm \
             files, restore a backup if there is one, and start again",
        ),
        13 => Some("the disk is full: free some space and start again"),
        14 => Some("the file cannot be opened: see that the folder exists and that this user may write there"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::mend;

    #[test]
    fn a_full_disk_and_a_read_only_folder_are_said_with_their_mend() {
        // 1544 is SQLITE_READONLY_DIRECTORY, an extended code.
        for (code, word) in [
            (13, "full"),
            (8, "right to write"),
            (1544, "right to write"),
            (26, "damaged"),
        ] {
            assert!(mend(code).is_some_and(|mend| mend.contains(word)), "{code}");
        }
    }

    #[test]
    fn a_broken_constraint_is_not_the_operators_to_mend() {
        assert_eq!(mend(19), None);
    }
}
