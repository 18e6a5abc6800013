//! Repeats commands that reach the network.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::repository::RepositoryError;
use crate::repository::git::address::Login;
use crate::repository::git::command::Git;
use crate::repository::mirror::Mirror;

/// Pauses before the second, third and fourth attempt.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(6),
];

impl Mirror {
    /// Runs the command and retries it while the remote is unavailable or does not know a new login
    /// yet, up to four times within the time limit of one command.
    pub(super) async fn retried<'git>(
        &self,
        login: Option<&Login>,
        command: impl Fn() -> Result<Git<'git>, RepositoryError>,
    ) -> Result<Vec<u8>, RepositoryError> {
        let end = Instant::now() + Duration::from_secs(self.config().timeout_seconds);
        let is_new = login.is_some_and(|login| login.is_new);
        for pause in PAUSES {
            match command()?.bytes().await {
                Err(RepositoryError::Unavailable { what, reason }) if Instant::now() + pause < end => {
                    tracing::warn!(what, reason, "git will be tried again");
                }
                Err(RepositoryError::Refused { what, reason }) if is_new && Instant::now() + pause < end => {
                    tracing::debug!(what, reason, "a new login was refused, and is tried again");
                }
                ended => return ended,
            }
            sleep(pause).await;
        }
        command()?.bytes().await
    }
}
