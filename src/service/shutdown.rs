//! Shutdown by SIGTERM, SIGINT or the end of the terminal: at a safe point, or at once by a second
//! signal.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::agent::record::stop::Stop;

/// A listener for the signals that end the program.
pub struct Shutdown {
    terminate: Signal,
    interrupt: Signal,
    /// `None` where whoever started the program has it ignored, as `nohup` does.
    hang_up: Option<Signal>,
}

/// Time limits of a shutdown.
#[derive(Debug, Clone, Copy)]
pub struct Grace {
    /// Time for a running tool call to finish.
    tools: Duration,
    /// Time after that for saving and cleaning up.
    saving: Duration,
}

/// Share of the grace period for a running tool call; the rest is for saving.
const TOOL_SHARE: f64 = 0.4;

impl Grace {
    /// Lets a running tool call finish, for work that continues after the restart.
    pub fn for_work(whole: Duration) -> Self {
        Self {
            tools: whole.mul_f64(TOOL_SHARE),
            saving: whole.mul_f64(1.0 - TOOL_SHARE),
        }
    }

    /// Cancels work at once and only cleans up, for a command whose user waits.
    pub fn for_clearing_up(whole: Duration) -> Self {
        Self {
            tools: Duration::ZERO,
            saving: whole,
        }
    }
}

impl Shutdown {
    /// Starts to listen for the signals.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: if ignores_hang_up() {
                None
            } else {
                Some(signal(SignalKind::hangup())?)
            },
        })
    }

    /// Passes the first signal on to `stop`. Returns when the program must end in any case: after
    /// the grace period, or at the second signal.
    pub async fn watch(mut self, stop: Stop, grace: Grace) {
        self.first().await;
        tracing::info!("asked to stop: reaching the safe point");
        stop.asked.cancel();
        let patience = async {
            tokio::time::sleep(grace.tools).await;
            stop.deadline.cancel();
            tokio::time::sleep(grace.saving).await;
        };
        tokio::select! {
            () = patience => tracing::error!("the grace period is over"),
            () = self.order() => tracing::error!("asked to stop a second time: ending at once"),
        }
    }

    /// Waits for the first signal. The end of a terminal is told by the kernel and by the shell, so
    /// it counts as no second one.
    async fn first(&mut self) {
        let Some(mut hang_up) = self.hang_up.take() else {
            return self.order().await;
        };
        tokio::select! {
            _ = hang_up.recv() => {}
            () = self.order() => {}
        }
    }

    /// Waits for the order to stop.
    async fn order(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Tells whether the signal of a terminal's end is ignored. Listening to it would end that.
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    // Signals are counted from 1, and this one is the first.
    ignored.is_some_and(|mask| mask & 1 == 1)
}
