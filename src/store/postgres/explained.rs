//! Errors of the server, in sentences that an operator can act on.

use std::borrow::Cow;

use sqlx::error::DatabaseError;
use sqlx::migrate::MigrateError;

use crate::store::StoreError;

/// Tells whether an error says nothing about what was asked, only that the way to the server was
/// lost, or the server put everybody off: asked again it may well be answered.
pub(super) fn is_loss(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::WorkerCrashed | sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(said) => said.code().is_some_and(|code| {
            // Too many connections; and what was rolled back for the sake of another transaction or
            // waited for too long.
            let passes = ["53300", "40001", "40P01", "55P03"];
            code.starts_with("08") || leads_nowhere(&code) || passes.contains(&&*code)
        }),
        _ => false,
    }
}

/// Tells whether an error says that the connections that there are lead to no server that can be
/// worked with any more, so that new ones have to be made.
pub(super) fn is_of_old_connections(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::WorkerCrashed => true,
        sqlx::Error::Database(said) => said.code().is_some_and(|code| leads_nowhere(&code)),
        _ => false,
    }
}

/// Tells of a code of the server whether its connection has ended, or leads to a server that has
/// become a standby since, whose successor is found by a new one.
fn leads_nowhere(code: &str) -> bool {
    // Shut down, crashed, not up yet, ended for idling; ended for idling within a transaction.
    code.starts_with("57P0") || ["25P03", "25006"].contains(&code)
}

/// Returns the error for a failure of the database.
pub(super) fn failed(store: &str, error: sqlx::Error) -> StoreError {
    let store = store.to_owned();
    if let Some(reason) = explained(&error) {
        return StoreError::Unusable { store, reason };
    }
    if is_loss(&error) {
        return StoreError::Away {
            store,
            reason: error.to_string(),
        };
    }
    StoreError::Database {
        store,
        source: error.into(),
    }
}

/// Returns the error for tables that could not be brought up to date.
pub(super) fn at_migrating(store: &str, error: MigrateError) -> StoreError {
    let reason = match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
            let code = error.as_database_error().and_then(DatabaseError::code);
            match code.map(Cow::into_owned).as_deref() {
                Some("57014") => format!(
                    "the server has cancelled a step that brings its tables up to date ({error}); see there what holds \
                     it up (pg_stat_activity), then start again"
                ),
                Some("55P03") => {
                    return StoreError::Away {
                        store: store.to_owned(),
                        reason: "its tables are locked, as they are while another process brings them up to date, \
                                 which may take minutes"
                            .to_owned(),
                    };
                }
                _ => return failed(store, error),
            }
        }
        MigrateError::VersionMissing(version) => format!(
            "it was written by a newer version of the program (step {version} is unknown here): update the program on \
             this machine too"
        ),
        other => format!(
            "its tables are not those of this program ({other}): let `store.url` name a database or a schema of its own"
        ),
    };
    StoreError::Unusable {
        store: store.to_owned(),
        reason,
    }
}

/// Returns what to do about an error that the operator must fix; `None` for any other.
fn explained(error: &sqlx::Error) -> Option<String> {
    if let sqlx::Error::Tls(_) | sqlx::Error::Configuration(_) = error {
        return Some(format!(
            "{error}; look at `sslmode` and `sslrootcert` in `store.url`, and at the server's certificate"
        ));
    }
    let said = error.as_database_error()?;
    let mend = mend(&said.code()?)?;
    Some(format!("{}; {mend}", said.message()))
}

fn mend(code: &str) -> Option<&'static str> {
    match code {
        "28P01" | "28000" => Some("see that `store.password_file` is the user's password, and what pg_hba.conf says"),
        "3D000" => Some("make the database (`createdb`), or fix the name at the end of `store.url`"),
        "3F000" => Some("make the schema, or fix `search_path` in `store.url`"),
        "42501" => Some("give the user the right to use and create in the database's schema"),
        "53100" => Some("the server's disk is full: free some space"),
        "25006" => Some("the server takes no writes, as a standby does: let `store.url` name the primary one"),
        "42P05" | "26000" => Some(
            "a connection pooler between gives statements to other sessions; connect to the server itself, or \
             have the pooler keep a session for each client",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use sqlx::error::ErrorKind;

    use super::*;

    #[test]
    fn a_wrong_password_and_a_missing_database_are_said_with_their_mend() {
        for (code, word) in [("28P01", "password_file"), ("3D000", "createdb"), ("42P05", "pooler")] {
            assert!(mend(code).is_some_and(|mend| mend.contains(word)), "{code}");
        }
        assert_eq!(mend("23505"), None, "a broken constraint is not the operator's to mend");
    }

    /// What a server says, by its code alone.
    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Said(&'static str);

    impl DatabaseError for Said {
        fn message(&self) -> &str {
            self.0
        }

        fn code(&self) -> Option<Cow<'_, str>> {
            Some(self.0.into())
        }

        fn as_error(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
            self
        }

        fn as_error_mut(&mut self) -> &mut (dyn std::error::Error + Send + Sync + 'static) {
            self
        }

        fn into_error(self: Box<Self>) -> Box<dyn std::error::Error + Send + Sync + 'static> {
            self
        }

        fn kind(&self) -> ErrorKind {
            ErrorKind::Other
        }
    }

    fn said(code: &'static str) -> sqlx::Error {
        sqlx::Error::Database(Box::new(Said(code)))
    }

    #[test]
    fn what_the_server_has_ended_is_made_anew_and_asked_again() {
        for code in ["57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25006"] {
            assert!(is_loss(&said(code)) && is_of_old_connections(&said(code)), "{code}");
        }
        for code in ["53300", "40001", "08006"] {
            assert!(is_loss(&said(code)) && !is_of_old_connections(&said(code)), "{code}");
        }
        assert!(!is_loss(&said("23505")) && !is_loss(&said("57014")));
        // Asked again for long enough, a standby is said to be one.
        assert!(matches!(
            failed("the store", said("25006")),
            StoreError::Unusable { .. }
        ));
        assert!(matches!(failed("the store", said("57P05")), StoreError::Away { .. }));
    }

    #[test]
    fn a_connection_that_is_gone_is_a_loss_and_a_wrong_statement_is_none() {
        let gone = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        assert!(is_loss(&sqlx::Error::Io(gone)));
        assert!(is_loss(&sqlx::Error::PoolTimedOut));
        assert!(!is_loss(&sqlx::Error::RowNotFound));
    }
}
