//! Limits of a git process: time, processor time and memory.
//!
//! The kernel enforces them, whatever git or its libraries do: git's own `GIT_ALLOC_LIMIT` bounds
//! single allocations of git alone. They are set from outside right after the process was started,
//! before it gets any input, and its children inherit them. A shell with `ulimit` in front of git
//! would do the same, at the cost of another program in every look-up.

use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use crate::repository::Config;

/// The kind of work of a command, which decides its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::repository) enum Effort {
    /// Looks something up in a mirror: a name, a list, one file.
    LookUp,
    /// Fetches, pushes, packs or traverses the history.
    Transfer,
    /// Unpacks a pack from a container.
    Receive,
}

/// Limits of one git process and of each process that it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::repository) struct Limits {
    pub(in crate::repository) time: Duration,
    /// Processor time of all its threads.
    pub(in crate::repository) processor_seconds: u64,
    /// Heap and stacks, not the address space: mapped packs take address space, but no memory of
    /// their own.
    pub(in crate::repository) memory: u64,
}

/// A look-up that takes longer means a broken mirror.
const LOOK_UP_TIME: Duration = Duration::from_mins(2);
const LOOK_UP_MEMORY: u64 = 1024 * 1024 * 1024;
/// Maximum number of threads that a transfer keeps busy for its whole time.
const TRANSFER_THREADS: u64 = 4;
const TRANSFER_MEMORY: u64 = 4 * 1024 * 1024 * 1024;
/// Ten times what unpacking a pack of the default `max_incoming_bytes` takes.
const RECEIVE_PROCESSOR_SECONDS: u64 = 300;
const RECEIVE_MEMORY: u64 = 1024 * 1024 * 1024;
/// Processor time between the signal at the limit and the kill.
const KILL_AFTER_SECONDS: u64 = 5;
/// Memory for the tables of a large pack, besides its largest object.
const SMALLEST_ALLOCATION: u64 = 128 * 1024 * 1024;

impl Effort {
    pub(in crate::repository) fn limits(self, config: &Config) -> Limits {
        let whole = Duration::from_secs(config.timeout_seconds);
        match self {
            Self::LookUp => Limits {
                time: whole.min(LOOK_UP_TIME),
                processor_seconds: LOOK_UP_TIME.as_secs(),
                memory: LOOK_UP_MEMORY,
            },
            Self::Transfer => Limits {
                time: whole,
                processor_seconds: config.timeout_seconds.saturating_mul(TRANSFER_THREADS).max(1),
                memory: TRANSFER_MEMORY,
            },
            Self::Receive => Limits {
                time: whole,
                processor_seconds: RECEIVE_PROCESSOR_SECONDS,
                memory: RECEIVE_MEMORY.max(largest_allocation(config).saturating_mul(4)),
            },
        }
    }
}

/// Returns the largest allocation, in bytes, that git may make while it unpacks a container's pack.
/// A few kilobytes can describe an object of gigabytes, which git would build before its size could
/// be checked.
pub(in crate::repository) fn largest_allocation(config: &Config) -> u64 {
    config.max_file_bytes.saturating_mul(2).max(SMALLEST_ALLOCATION)
}

impl Limits {
    /// Returns the message for a process that was ended at the limit of its time, with the setting
    /// that allows more.
    pub(in crate::repository) fn too_late(self) -> String {
        let seconds = self.time.as_secs();
        format!("git did not finish within {seconds} seconds{}", self.setting())
    }

    /// Names the setting behind the limits; a look-up has limits of its own.
    fn setting(self) -> &'static str {
        if self.time == LOOK_UP_TIME {
            ""
        } else {
            " (`git.timeout_seconds` sets how long a git command may take)"
        }
    }

    /// Returns the message for a process that was killed at the limit of its processor time.
    pub(in crate::repository) fn used_up(self) -> String {
        format!(
            "git was ended after {} s of processor time{}",
            self.processor_seconds,
            self.setting()
        )
    }

    /// Applies the limits to a process that was just started. It is no error if that has ended
    /// already.
    pub(in crate::repository) fn put_on(self, pid: Pid) -> std::io::Result<()> {
        let limits = [
            (Resource::Data, self.memory),
            (Resource::Cpu, self.processor_seconds),
            (Resource::Core, 0),
        ];
        for (resource, most) in limits {
            // The limits may not exceed the worker's own hard limits.
            let own = getrlimit(resource).maximum;
            let bounded = |most: u64| own.map_or(most, |own| own.min(most));
            // With equal soft and hard limits the kernel kills without the signal that names the
            // cause.
            let rest = if resource == Resource::Cpu {
                KILL_AFTER_SECONDS
            } else {
                0
            };
            let limit = Rlimit {
                current: Some(bounded(most)),
                maximum: Some(bounded(most.saturating_add(rest))),
            };
            match prlimit(Some(pid), resource, limit) {
                Ok(_) | Err(rustix::io::Errno::SRCH) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_up_gets_no_quarter_of_an_hour() {
        let config = Config::default();
        assert_eq!(Effort::LookUp.limits(&config).time, Duration::from_mins(2));
        assert_eq!(Effort::Transfer.limits(&config).time, Duration::from_mins(15));
        let hasty = Config {
            timeout_seconds: 5,
            ..Config::default()
        };
        assert_eq!(Effort::LookUp.limits(&hasty).time, Duration::from_secs(5));
    }

    #[test]
    fn what_a_file_may_hold_can_be_unpacked() {
        let config = Config {
            max_file_bytes: 1024 * 1024 * 1024,
            ..Config::default()
        };
        assert!(largest_allocation(&config) > config.max_file_bytes);
        assert!(Effort::Receive.limits(&config).memory > largest_allocation(&config));
    }
}
