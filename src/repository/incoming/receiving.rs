//! Receives new objects from a container into a quarantine, bounded and checked by git.

use std::io::Cursor;
use std::ops::ControlFlow;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

use crate::repository::RepositoryError;
use crate::repository::git::command::{Git, InputEnd};
use crate::repository::git::limits::{Effort, largest_allocation};
use crate::repository::git::lock;
use crate::repository::incoming::quarantine::Quarantine;
use crate::repository::mirror::Mirror;

/// New objects in quarantine. Dropping it deletes them.
#[derive(Debug)]
pub struct Incoming {
    pub(super) mirror: Mirror,
    quarantine: Quarantine,
}

impl Mirror {
    /// Receives a pack of new objects from a container into a quarantine beside the mirror's
    /// objects, with a size limit and `fsck`. An empty stream means that there is nothing new.
    pub async fn receive(&self, mut pack: impl AsyncRead + Send + Unpin) -> Result<Incoming, RepositoryError> {
        let quarantine = Quarantine::make(self.path()).map_err(|error| lock::at(self.path(), &error))?;
        let incoming = Incoming {
            mirror: self.clone(),
            quarantine,
        };
        let what = "taking the commits back from the container";
        let broken = |error: &std::io::Error| RepositoryError::Unavailable {
            what: what.to_owned(),
            reason: format!("the stream broke off: {error}"),
        };
        let mut first = vec![0; 4096];
        // A container that sends nothing must not hold the run for ever; git's time limit begins
        // with the first byte.
        let patience = Duration::from_secs(self.config().timeout_seconds);
        let length = timeout(patience, pack.read(&mut first))
            .await
            .map_err(|_| {
                RepositoryError::TooSlow(format!("the container sent nothing for {} seconds", patience.as_secs()))
            })?
            .map_err(|error| broken(&error))?;
        if length == 0 {
            return Ok(incoming);
        }
        first.truncate(length);
        let limit = self.config().max_incoming_bytes;
        let mut whole = Cursor::new(first).chain(pack);
        let ended = incoming
            .git(what)
            .with(Effort::Receive, self.config())
            // Each thread would build its own objects in memory concurrently.
            .args(["-c", "pack.threads=1"])
            .env("GIT_ALLOC_LIMIT", largest_allocation(self.config()).to_string())
            .args(["index-pack", "--stdin", "--fix-thin", "--strict"])
            .arg(format!("--max-input-size={limit}"))
            .stream(&mut whole, limit)
            .each(|_| ControlFlow::Continue(()))
            .await
            .map_err(|error| match error {
                // A retry, as with a forge, would let a slow container hold its run for a day.
                RepositoryError::Unavailable { reason, .. } => {
                    RepositoryError::TooSlow(format!("the container was too slow in sending them: {reason}"))
                }
                other => other,
            })?;
        let too_much = ended.complaint.contains("exceeds maximum allowed size");
        match ended.fed {
            InputEnd::Broken(error) => Err(broken(&error)),
            InputEnd::TooMuch => Err(over(limit)),
            InputEnd::Whole if too_much => Err(over(limit)),
            InputEnd::Whole if ended.code == Some(0) => Ok(incoming),
            InputEnd::Whole if is_too_large(&ended.complaint) => Err(RepositoryError::Unacceptable(format!(
                "one of their objects takes more memory than a file of {} bytes needs (`max_file_bytes`)",
                self.config().max_file_bytes
            ))),
            InputEnd::Whole if ended.complaint.contains("No space left") => Err(RepositoryError::Unexpected {
                what: what.to_owned(),
                reason: "the disk is full".to_owned(),
            }),
            InputEnd::Whole => Err(RepositoryError::Unacceptable(format!(
                "git found faults: {}",
                ended.complaint.trim()
            ))),
        }
    }
}

/// Returns true if git refused, or was refused, the memory for an object.
fn is_too_large(complaint: &str) -> bool {
    ["over limit", "out of memory", "Out of memory", "too large for"]
        .iter()
        .any(|words| complaint.contains(words))
}

fn over(limit: u64) -> RepositoryError {
    RepositoryError::Unacceptable(format!("they have more than {limit} bytes (`max_incoming_bytes`)"))
}

impl Incoming {
    pub(super) fn git<'a>(&self, what: &str) -> Git<'a> {
        self.quarantine.within(self.mirror.git(what))
    }
}
