//! SIGTERM and SIGINT: the first asks for the safe point, the second ends the program at once.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::agent::record::stop::Stop;

/// Listens for the signals that end the program.
pub struct Shutdown {
    terminate: Signal,
    interrupt: Signal,
}

/// How long the program may take to end once it was asked to.
#[derive(Debug, Clone, Copy)]
pub struct Grace {
    /// For a running tool call to finish.
    tools: Duration,
    /// For saving and clearing up after that.
    saving: Duration,
}

/// Part of the grace period that a running tool call may take; the rest is for saving.
const TOOL_SHARE: f64 = 0.4;

impl Grace {
    /// Lets a running tool call finish: somebody's work goes on after the restart.
    pub fn for_work(whole: Duration) -> Self {
        Self {
            tools: whole.mul_f64(TOOL_SHARE),
            saving: whole.mul_f64(1.0 - TOOL_SHARE),
        }
    }

    /// Gives everything up at once and only clears up: somebody waits for the prompt.
    pub fn for_clearing_up(whole: Duration) -> Self {
        Self {
            tools: Duration::ZERO,
            saving: whole,
        }
    }
}

impl Shutdown {
    /// Begins to listen.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Passes the first signal on to `stop`. Returns when the program must end whatever it does:
    /// after the grace period, or at the second signal.
    pub async fn watch(mut self, stop: Stop, grace: Grace) {
        self.next().await;
        tracing::info!("asked to stop: reaching the safe point");
        stop.asked.cancel();
        let patience = async {
            tokio::time::sleep(grace.tools).await;
            stop.deadline.cancel();
            tokio::time::sleep(grace.saving).await;
        };
        tokio::select! {
            () = patience => tracing::error!("the grace period is over"),
            () = self.next() => tracing::error!("asked to stop a second time: ending at once"),
        }
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
