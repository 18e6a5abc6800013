//! The first process of a container: starts one program, reaps whatever is left to it, and stays.
//!
//! The kernel delivers no signal to it that comes from inside the container, so nothing in there
//! ends the container, and another program can be started when the first has ended. The engine's
//! own (`--init`) ends with its program, and holds the container's streams open to everything that
//! runs as the same user.

use std::io;
use std::process::Command;
use std::thread;
use std::time::Duration;

use super::reap_any_child;

/// Interval between looks for orphans while there is no child: nothing announces the first.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Reaps children for ever. Returns only if they cannot be waited for.
pub fn stay_alone() -> io::Error {
    loop {
        match reap_any_child() {
            Ok(Some(_)) => {}
            Ok(None) => thread::sleep(LOOK_AGAIN),
            Err(error) => return error,
        }
    }
}

/// Starts `program`, calls `at_its_end` once it has ended, and reaps children for ever. Returns
/// only if the program cannot be started, or children cannot be waited for.
pub fn stay(mut program: Command, at_its_end: impl FnOnce() + Send + 'static) -> io::Error {
    let program = match program.spawn() {
        Ok(started) => started.id(),
        Err(error) => return error,
    };
    let mut at_its_end = Some(at_its_end);
    loop {
        match reap_any_child() {
            Ok(Some((child, _))) if child == program => {
                // In a thread of its own: nobody may read what it says, and orphans still end.
                at_its_end.take().map(thread::spawn);
            }
            Ok(Some(_)) => {}
            Ok(None) => thread::sleep(LOOK_AGAIN),
            Err(error) => return error,
        }
    }
}
