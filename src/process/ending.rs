//! Ends a whole tree of processes: with TERM first, then with KILL.

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use super::descent::{Process, descendants, session};

/// Interval between looks at `/proc`: no process is notified when a grandchild ends.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Time for killed processes to disappear. Only one that hangs in the kernel takes longer.
const KILLED_WITHIN: Duration = Duration::from_secs(5);

/// Whether a process tree is gone.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Completely,
    /// A process hangs in the kernel, or belongs to another user.
    NotCompletely,
}

/// Ends all descendants of the process `root`, but not `root` itself: TERM to each, KILL to those
/// that are alive after `grace`.
///
/// Complete only if `root`, or an ancestor of it below the caller, adopts its orphans. Blocks for
/// at most `grace` and five seconds.
pub fn end_descendants(root: u32, grace: Duration) -> Ended {
    let deadline = Instant::now() + grace;
    let mut told = HashSet::new();
    loop {
        let living = descendants(root);
        if living.is_empty() {
            return Ended::Completely;
        }
        if Instant::now() >= deadline {
            return kill_descendants(root);
        }
        for process in living {
            if !told.contains(&process) {
                signal(&process, Signal::TERM);
                told.insert(process);
            }
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// Kills the process `root` with all of its descendants. `root` is stopped first, so that it cannot
/// take the end of another for a reason to go on.
pub fn kill_tree(root: u32) {
    let Some(root_pid) = i32::try_from(root).ok().and_then(Pid::from_raw) else {
        return;
    };
    // One that has ended by itself is no error.
    let _ = kill_process(root_pid, Signal::STOP);
    let _ = kill_descendants(root);
    let _ = kill_process(root_pid, Signal::KILL);
}

/// Kills what a process that has ended left in its session, with the descendants of that, and reaps
/// what has become a child of this process. Blocks for some five seconds at most.
///
/// A process that is in another session, and whose parents have ended, is not found any more.
pub fn end_session(leader: u32) {
    let deadline = Instant::now() + KILLED_WITHIN;
    loop {
        let left = session(leader);
        for (id, stat) in &left {
            if stat.is_alive {
                kill_tree(*id);
            } else if let Some(id) = i32::try_from(*id).ok().and_then(Pid::from_raw) {
                // Another's child is that one's to reap.
                let _ = waitpid(Some(id), WaitOptions::NOHANG);
            }
        }
        if !left.iter().any(|(_, stat)| stat.is_alive) || Instant::now() >= deadline {
            return;
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// Kills the descendants of a process. Every process is stopped before the first one is killed,
/// because a tree that keeps forking outruns KILL alone.
fn kill_descendants(root: u32) -> Ended {
    let deadline = Instant::now() + KILLED_WITHIN;
    loop {
        let mut stopped = HashSet::new();
        loop {
            let living = descendants(root);
            let fresh: Vec<_> = living
                .into_iter()
                .filter(|process| !stopped.contains(process))
                .collect();
            if fresh.is_empty() || Instant::now() >= deadline {
                break;
            }
            for process in fresh {
                signal(&process, Signal::STOP);
                stopped.insert(process);
            }
        }
        for process in &stopped {
            signal(process, Signal::KILL);
        }
        if descendants(root).is_empty() {
            return Ended::Completely;
        }
        if Instant::now() >= deadline {
            return Ended::NotCompletely;
        }
        thread::sleep(LOOK_AGAIN);
    }
}

fn signal(process: &Process, signal: Signal) {
    let id = i32::try_from(process.id).ok().and_then(Pid::from_raw);
    // A process that has just ended cannot be signalled and need not be; the next look finds those
    // that are still alive.
    let _ = id.map(|id| kill_process(id, signal));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    /// Starts a script, and returns when it has printed its first line: then the tree is complete.
    fn tree(script: &str) -> Child {
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        child
    }

    fn ended(mut root: Child, grace: Duration) -> Duration {
        let start = Instant::now();
        assert_eq!(end_descendants(root.id(), grace), Ended::Completely);
        let took = start.elapsed();
        assert_eq!(descendants(root.id()), []);
        root.kill().unwrap();
        root.wait().unwrap();
        took
    }

    #[test]
    fn a_polite_tree_ends_at_once() {
        let took = ended(tree("sleep 99 & sleep 99 & echo; wait"), Duration::from_secs(20));
        assert!(took < Duration::from_secs(10), "{took:?}");
    }

    #[test]
    fn a_deaf_tree_is_killed_after_the_grace() {
        let root = tree("sh -c 'trap \"\" TERM; echo; while :; do sleep 0.1; done' & wait");
        assert!(ended(root, Duration::from_millis(200)) >= Duration::from_millis(200));
    }

    #[test]
    fn a_tree_that_keeps_forking_is_outrun() {
        ended(
            tree("(trap '' TERM; while :; do sleep 9 & sleep 0.01; done) & echo; wait"),
            Duration::from_millis(100),
        );
    }

    #[test]
    fn what_an_ended_leader_has_left_is_killed() {
        let mut leader = tree("exec setsid sh -c 'sleep 99 & (trap \"\" TERM; sleep 99) & echo; wait'");
        leader.kill().unwrap();
        leader.wait().unwrap();
        let living = || session(leader.id()).iter().filter(|(_, stat)| stat.is_alive).count();
        assert!(living() >= 2);
        end_session(leader.id());
        assert_eq!(living(), 0);
    }

    #[test]
    fn another_tree_is_left_alone() {
        let other = tree("sleep 99 & echo; wait");
        ended(tree("sleep 99 & echo; wait"), Duration::ZERO);
        assert_eq!(descendants(other.id()).len(), 1);
        ended(other, Duration::ZERO);
    }
}
