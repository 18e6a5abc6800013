//! For how long a lost connection is waited for.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Longest time for which something is asked again. Shorter than a lease: a worker that has not
/// reached the server for that long may have lost its runs, and has to learn of it.
pub(super) const LONGEST: Duration = Duration::from_secs(40);
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The attempts at one thing.
#[derive(Debug)]
pub(super) struct Attempts {
    until: Instant,
    pause: Duration,
}

impl Attempts {
    pub(super) fn within(time: Duration) -> Self {
        Self {
            until: Instant::now() + time,
            pause: FIRST_PAUSE,
        }
    }

    /// Waits before the next attempt; returns false where there is to be none.
    pub(super) async fn wait(&mut self) -> bool {
        if Instant::now() + self.pause > self.until {
            return false;
        }
        sleep(self.pause.mul_f64(0.5 + fastrand::f64())).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn attempts_are_made_at_once_and_then_ever_more_rarely_until_the_time_is_over() {
        let begun = Instant::now();
        let mut attempts = Attempts::within(Duration::from_secs(5));
        let mut made = 0;
        while attempts.wait().await {
            made += 1;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        assert!((3..20).contains(&made), "{made}");
    }
}
