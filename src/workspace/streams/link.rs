//! The worker's end of the link with a container's executor. A connection that is lost is
//! replaced by an attached process that leads to the same one ([`crate::executor::attach`]).
//!
//! Work that was asked for goes on in the container meanwhile, and is answered over the next
//! connection.

use std::time::Duration;

use tokio::io::DuplexStream;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::environment::{Container, EXECUTOR, EnvironmentError, Streams};
use crate::link::carrying::{Parted, Patience, carry};
use crate::link::session::{Failed, SessionKey};
use crate::link::{Broken, LinkEnd};

/// Longest time in which no connection lasts. What is lost then is opened by its users in another
/// way, or they learn that the engine is away. The executor waits for longer.
const AWAY: Duration = Duration::from_mins(1);

/// Longest time until a connection has begun.
const BEGINNING: Duration = Duration::from_secs(15);

/// Time after which a connection is one that lasts: something in the container may end each.
const LASTING: Duration = Duration::from_secs(1);

/// Delay before the next connection, doubled each time up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Longest time for which an answer may be late because there is no connection.
pub(crate) const LATE: Duration = Patience::USUAL.waits.saturating_add(AWAY);

/// Longest time for the executor of an earlier process to end all that it started.
const EARLIER_ENDING: Duration = Duration::from_secs(30);

/// Most bytes that are read of what it says.
const LONGEST_REASON: usize = 64 * 1024;

/// The worker's end of the link with the executor of a container.
pub(super) struct Link {
    pub(super) container: Container,
    pub(super) key: SessionKey,
    pub(super) end: LinkEnd,
    /// Cancelled when nobody uses the link any more.
    pub(super) unused: CancellationToken,
}

/// Why there is no connection.
enum Missing {
    /// There may be one later.
    Now(String),
    /// There will be none.
    ForEver(String),
    /// The container has ended, which others notice as well.
    Container,
}

impl Link {
    /// Carries what is written and read at the other end of `user`, over `first` and all later
    /// connections, until the link has ended or is not used any more.
    pub(super) async fn keep(mut self, user: DuplexStream, first: Streams) {
        let (mut near_reader, mut near_writer) = tokio::io::split(user);
        let (mut writer, mut reader) = first;
        // Since when no connection has lasted, and how many have not.
        let (mut unsteady, mut tries) = (None, 0);
        loop {
            let begun = Instant::now();
            let near = (&mut near_reader, &mut near_writer);
            let parted = carry(&mut self.end, near, (&mut reader, &mut writer), Patience::USUAL).await;
            let container = self.container.id();
            let reason = match parted {
                Parted::Lost(reason) => reason,
                Parted::Closed | Parted::Dropped => return,
                Parted::Broken(broken) => {
                    tracing::info!(container, "the link with the executor has ended: {broken}");
                    return;
                }
            };
            if begun.elapsed() >= LASTING {
                (unsteady, tries) = (None, 0);
            }
            tracing::debug!(container, "a connection to the executor was lost: {reason}");
            let unused = self.unused.clone();
            let coming_back = self.come_back(*unsteady.get_or_insert_with(Instant::now), &mut tries);
            let next = tokio::select! {
                () = unused.cancelled() => return,
                next = coming_back => next,
            };
            match next {
                Ok(next) => (writer, reader) = next,
                Err(Missing::Now(reason) | Missing::ForEver(reason)) => {
                    let container = self.container.id();
                    tracing::info!(container, "the executor is not reached any more: {reason}");
                    return;
                }
                Err(Missing::Container) => return,
            }
        }
    }

    /// Opens the next connection, unless there is none for too long.
    async fn come_back(&mut self, unsteady: Instant, tries: &mut u32) -> Result<Streams, Missing> {
        let mut reason = "no connection lasts".to_owned();
        while unsteady.elapsed() < AWAY {
            if *tries > 0 {
                sleep(LONGEST_PAUSE.min(FIRST_PAUSE * 2_u32.pow((*tries).min(10)))).await;
            }
            *tries += 1;
            let beginning = timeout(BEGINNING, self.begin()).await;
            let late = || Missing::Now(format!("no answer within {} s", BEGINNING.as_secs()));
            match beginning.unwrap_or_else(|_| Err(late())) {
                Err(Missing::Now(now)) => reason = now,
                settled => return settled,
            }
        }
        Err(Missing::Now(reason))
    }

    async fn begin(&mut self) -> Result<Streams, Missing> {
        let attached = self.container.attach(&[EXECUTOR, "attach"], &[]).await;
        let (mut writer, mut reader) = match attached {
            Ok(attached) => (attached.stdin, attached.stdout),
            // The engine refuses it as well while a container is paused.
            Err(error @ EnvironmentError::ContainerLost { .. }) => return Err(self.missing(&error.to_string()).await),
            Err(error) => return Err(Missing::Now(error.to_string())),
        };
        let received_there = self.key.resume((&mut reader, &mut writer), self.end.received()).await?;
        self.end.resume(received_there)?;
        Ok((writer, reader))
    }

    async fn missing(&self, reason: &str) -> Missing {
        match self.container.broken("the executor's stream", reason).await {
            EnvironmentError::ContainerLost { .. } => Missing::Container,
            error => Missing::Now(error.to_string()),
        }
    }
}

impl From<Failed> for Missing {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Lost(error) => Self::Now(error.to_string()),
            Failed::Broken(broken) => broken.into(),
        }
    }
}

impl From<Broken> for Missing {
    fn from(broken: Broken) -> Self {
        Self::ForEver(broken.to_string())
    }
}

/// Ends what a worker whose link is lost for good, an earlier process or this one, left running in
/// a container: commands go on without their worker for a while, and would change the project
/// beside new ones.
pub(crate) async fn end_earlier(container: &Container) -> Result<(), EnvironmentError> {
    let command = [EXECUTOR, "end"];
    let ended = timeout(
        EARLIER_ENDING,
        container.run(&command, tokio::io::empty(), LONGEST_REASON),
    )
    .await;
    let reason = match ended {
        Ok(Ok((_, ending))) if ending.exit_code == 0 => return Ok(()),
        Ok(Ok((_, ending))) => ending.stderr,
        Ok(Err(EnvironmentError::Unexpected { reason, .. })) => reason,
        Ok(Err(error)) => return Err(error),
        Err(_) => format!("no answer within {} s", EARLIER_ENDING.as_secs()),
    };
    // It ends by itself, some minutes later.
    tracing::info!(
        container = container.id(),
        "what was started before was not ended: {}",
        reason.trim()
    );
    Ok(())
}
