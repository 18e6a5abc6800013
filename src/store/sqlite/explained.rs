//! Errors of `SQLite`, in sentences that an operator can act on.

use std::path::Path;

use sqlx::migrate::MigrateError;

use crate::store::StoreError;

/// Returns the error for a failure of the database.
pub(super) fn failed(path: &Path, error: sqlx::Error) -> StoreError {
    let store = path.display().to_string();
    match explained(&error) {
        Some(reason) => StoreError::Unusable { store, reason },
        None => StoreError::Database {
            store,
            source: error.into(),
        },
    }
}

/// Returns the error for tables that could not be brought up to date.
pub(super) fn at_migrating(path: &Path, error: MigrateError) -> StoreError {
    let reason = match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => return failed(path, error),
        MigrateError::VersionMissing(version) => format!(
            "it was written by a newer version of the program (step {version} is unknown here): update the program, or \
             choose another `state_dir`"
        ),
        other => format!("its tables are not those of this program ({other}): move the file away and start again"),
    };
    StoreError::Unusable {
        store: path.display().to_string(),
        reason,
    }
}

/// Returns what to do about an error that the operator must fix; `None` for any other.
fn explained(error: &sqlx::Error) -> Option<String> {
    // The only connection was not free all that time. Waiting for other processes ends sooner, so
    // statements took that long.
    if matches!(error, sqlx::Error::PoolTimedOut) {
        return Some("it was busy for a whole minute: see whether the disk is overloaded, and start again".to_owned());
    }
    let code: u32 = error.as_database_error()?.code()?.parse().ok()?;
    let mend = mend(code)?;
    Some(format!("{error}; {mend}"))
}

/// Returns the remedy by the kind of the error, which is the low byte of `SQLite`'s extended result
/// code.
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
    use super::{explained, mend};

    #[test]
    fn a_disk_that_does_not_answer_is_named_instead_of_the_pool() {
        let reason = explained(&sqlx::Error::PoolTimedOut).unwrap();
        assert!(reason.contains("whole minute") && !reason.contains("pool"), "{reason}");
    }

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
