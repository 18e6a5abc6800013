//! What a git process may use of this machine: time, processor time and memory.
//!
//! The kernel keeps to it, whatever git or the libraries below it do: git's own `GIT_ALLOC_LIMIT`
//! bounds single allocations of git alone. The limits are set from outside right after the process
//! was started, before it is given any input, and its children inherit them. A shell with `ulimit`
//! in front of git would do the same, at the cost of another program in every look-up.

use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use super::Config;

/// How much work a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effort {
    /// Something is looked up in a mirror: a name, a list, one file.
    LookUp,
    /// History is fetched, pushed, packed or gone through as a whole.
    Transfer,
    /// A pack from a container is unpacked.
    Receive,
}

/// What one git process, and each process that it starts, may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    pub(super) time: Duration,
    /// Processor time of all its threads.
    pub(super) processor_seconds: u64,
    /// Heap and stacks. Packs that are only mapped do not count: they take address space and no
    /// memory of their own, which is why the limit is not on the address space.
    pub(super) memory: u64,
}

/// A look-up that takes longer is one in a mirror that is broken.
const LOOK_UP_TIME: Duration = Duration::from_mins(2);
const LOOK_UP_MEMORY: u64 = 1024 * 1024 * 1024;
/// Threads that a transfer keeps busy at most, for its time.
const TRANSFER_THREADS: u64 = 4;
const TRANSFER_MEMORY: u64 = 4 * 1024 * 1024 * 1024;
/// Unpacking the largest pack that is taken (`max_incoming_bytes`) takes the tenth part of it.
const RECEIVE_PROCESSOR_SECONDS: u64 = 300;
const RECEIVE_MEMORY: u64 = 1024 * 1024 * 1024;
/// Between the signal that says that the processor time is used up and the end.
const KILL_AFTER_SECONDS: u64 = 5;
/// What the tables of a large pack take, besides its largest object.
const SMALLEST_ALLOCATION: u64 = 128 * 1024 * 1024;

impl Effort {
    pub(super) fn limits(self, config: &Config) -> Limits {
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

/// Returns the largest piece of memory, in bytes, that git may ask for while it unpacks what a
/// container sent. A few kilobytes can describe an object of gigabytes, and git would build it
/// before anybody could ask for its size.
pub(super) fn largest_allocation(config: &Config) -> u64 {
    config.max_file_bytes.saturating_mul(2).max(SMALLEST_ALLOCATION)
}

impl Limits {
    /// Says what became of a process that the kernel ended because its processor time was used up.
    pub(super) fn used_up(self) -> String {
        format!("git was ended after {} s of processor time", self.processor_seconds)
    }

    /// Puts a process that was just started under the limits. One that has ended already needs
    /// none.
    pub(super) fn put_on(self, pid: Pid) -> std::io::Result<()> {
        let limits = [
            (Resource::Data, self.memory),
            (Resource::Cpu, self.processor_seconds),
            (Resource::Core, 0),
        ];
        for (resource, most) in limits {
            // A child has the worker's own hard limits, and may not be given more than those.
            let own = getrlimit(resource).maximum;
            let bounded = |most: u64| own.map_or(most, |own| own.min(most));
            // Where both limits of processor time are the same, the kernel kills without the signal
            // that says why.
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
