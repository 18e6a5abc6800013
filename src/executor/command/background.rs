//! What ended commands have left running, such as a server for the commands to come.

use std::mem;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Running;
use crate::executor::supervisor::GRACE;

/// Time for a supervisor to end what it watches over, beyond that between TERM and KILL.
const ENDING: Duration = Duration::from_secs(8);

/// The processes that ended commands have left running.
#[derive(Default)]
pub(super) struct Background(Mutex<Group>);

/// Those that were left since [`Background::end`] was called the last time.
#[derive(Default)]
struct Group {
    holding: TaskTracker,
    ending: CancellationToken,
}

impl Background {
    /// Drains the output of what a command has left, and reaps it, until all of it has ended.
    pub(super) fn take(&self, left: Running) {
        let Running {
            mut supervisor,
            line,
            mut output,
            ..
        } = left;
        let group = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ending = group.ending.clone();
        group.holding.spawn(async move {
            let mut ended = pin!(async {
                // A server would block, or die of a closed pipe, if nobody read its output.
                let _ = tokio::io::copy(&mut output, &mut tokio::io::sink()).await;
                let _ = supervisor.wait().await;
            });
            // The socket stays open until here: the supervisor ends everything when it closes.
            tokio::select! {
                () = &mut ended => drop(line),
                () = ending.cancelled() => {
                    drop(line);
                    ended.await;
                }
            }
        });
    }

    /// Ends all of it.
    pub(super) async fn end(&self) {
        let Group { holding, ending } = mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        ending.cancel();
        holding.close();
        // A process that hangs in the kernel is not waited for.
        let _ = timeout(GRACE + ENDING, holding.wait()).await;
    }
}
