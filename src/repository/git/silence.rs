//! Notices that a transfer stands still: none of its processes reads, writes or computes.
//!
//! curl's own limit of the speed cannot tell that. It counts whole bytes in a second, averaged over
//! some five, and what a forge says while it puts a large pack together is five bytes every five
//! seconds: at one moment that is one byte in a second, and at the next none. Here each of them
//! counts, because git's helper hands on what it hears.

use std::time::Duration;

use rustix::process::Pid;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep};

use crate::process::descent::descendants;
use crate::process::stat::Stat;

/// Longest time between two looks.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// How many looks there are in the time of a silence, at least.
const LOOKS: u32 = 4;

/// Beginning of the name of git's helpers that speak HTTP. They compute while they wait.
const HELPER: &str = "git-remote-http";

/// All that a group of processes has done: bytes that were read and written, and clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Work {
    bytes: u64,
    ticks: u64,
}

/// Resolves once the process `leader` and its descendants have done nothing for `limit`. Never
/// resolves where the system does not tell what they do.
pub(super) async fn until_silent(leader: Option<Pid>, limit: Duration) {
    let Some(leader) = leader.and_then(|pid| u32::try_from(pid.as_raw_nonzero().get()).ok()) else {
        return std::future::pending().await;
    };
    let (mut last, mut since) = (None, Instant::now());
    loop {
        // It looks at every process of the machine.
        let work = spawn_blocking(move || work_of(leader)).await.ok().flatten();
        if work != last || work.is_none() {
            (last, since) = (work, Instant::now());
        } else if since.elapsed() >= limit {
            return;
        }
        sleep(LOOK_AGAIN.min(limit / LOOKS)).await;
    }
}

/// Returns what a process and its descendants have done; `None` if that is not known of any. It may
/// be less than before: a process that has ended takes its part with it.
fn work_of(leader: u32) -> Option<Work> {
    let others = descendants(leader).into_iter().map(|process| process.id);
    let known = std::iter::once(leader).chain(others).filter_map(|id| {
        let bytes = bytes_of(&std::fs::read_to_string(format!("/proc/{id}/io")).ok()?)?;
        let stat = Stat::of(id)?;
        let ticks = if stat.name.starts_with(HELPER) { 0 } else { stat.ticks };
        Some(Work { bytes, ticks })
    });
    known.reduce(|one, other| Work {
        bytes: one.bytes.wrapping_add(other.bytes),
        ticks: one.ticks.wrapping_add(other.ticks),
    })
}

/// Returns the bytes that a process has read and written, by its `/proc/ID/io`.
fn bytes_of(io: &str) -> Option<u64> {
    let field = |name: &str| -> Option<u64> {
        let line = io.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    Some(field("rchar:")?.wrapping_add(field("wchar:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_of_a_process_are_read() {
        let io = "rchar: 1200\nwchar: 34\nsyscr: 5\nsyscw: 6\nread_bytes: 7\n";
        assert_eq!(bytes_of(io), Some(1234));
        assert_eq!(bytes_of("rchar: 1200\n"), None);
    }

    #[tokio::test]
    async fn five_bytes_now_and_then_are_no_silence_and_none_are() {
        let limit = Duration::from_secs(2);
        let run = |script: &str| {
            let mut command = tokio::process::Command::new("sh");
            command
                .args(["-c", script])
                .stdout(std::process::Stdio::null())
                .kill_on_drop(true);
            command.spawn().unwrap()
        };
        let leader = |child: &tokio::process::Child| child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        let mut speaks = run("for i in 1 2 3 4 5 6 7 8 9 10; do printf 0005x; sleep 0.3; done");
        tokio::select! {
            () = until_silent(leader(&speaks), limit) => panic!("it speaks"),
            ended = speaks.wait() => assert!(ended.unwrap().success()),
        }
        let mut stands_still = run("exec sleep 600");
        tokio::select! {
            () = until_silent(leader(&stands_still), limit) => {}
            ended = stands_still.wait() => panic!("{ended:?}"),
        }
    }
}
