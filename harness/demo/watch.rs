//! The program's run, from its start to its end, shown as it goes.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::program::Program;
use crate::progress::Progress;

/// How often the journal is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How the run ended.
pub(crate) enum Ended {
    ByItself,
    Interrupted,
    TooLong,
}

/// Shows what the program does until it ends, a person has seen enough, or the time is over.
pub(crate) async fn watch(program: &mut Program, limit: Duration) -> Ended {
    let mut progress = Progress::begin();
    let end = tokio::time::sleep(limit);
    let interrupted = interrupted();
    tokio::pin!(end, interrupted);
    let ended = loop {
        let look = tokio::time::sleep(LOOK_EVERY);
        tokio::select! {
            // An error is an end, too: there is nothing to wait for.
            _ = program.ended() => break Ended::ByItself,
            () = &mut interrupted => break Ended::Interrupted,
            () = &mut end => break Ended::TooLong,
            () = look => progress.show(&program.journal()),
        }
    };
    progress.show(&program.journal());
    if matches!(ended, Ended::Interrupted) {
        progress.say("stopping: the program saves its work and removes the container");
    }
    progress.end();
    ended
}

/// Waits for Ctrl-C, for a request to end, or for the terminal to go away.
async fn interrupted() {
    let signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let [Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)] = signals.map(signal) else {
        // Without them the demo can still be watched to its end.
        return std::future::pending().await;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
}
