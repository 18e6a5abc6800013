//! A small process between the worker and an MCP server: when the worker dies, however it dies, the
//! server and all its descendants die with it.
//!
//! The worker holds the other end of the guard's stdin. A pipe is closed by the kernel even when
//! its holder is killed, so the end of stdin is the one signal that cannot fail to come. A process
//! group, or killing the server when its handle is dropped, failed at this: neither happens when
//! the worker is killed, and neither reaches a grandchild that has left the group.
//!
//! Nothing passes through it: the server inherits all three streams, and the guard only asks the
//! kernel to be woken when stdin has no writer any more. (Copying stdin failed: a server that stops
//! reading blocks the copier, and then nobody sees the worker go.) It cannot help when it is killed
//! itself; it therefore stands in a group of its own, where a terminal's Ctrl-C does not reach it.

use rustix::event::{PollFd, PollFlags, poll};
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, ExitStatus};
use std::thread;
use std::time::Duration;

use crate::process::ending::{Ended, end_descendants};
use crate::process::{adopt_orphans, bury_any_child};

/// What a server gets to end by itself after its stdin was closed.
pub const LEAVING_TIME: Duration = Duration::from_secs(3);

/// Between TERM and KILL.
pub const GRACE: Duration = Duration::from_secs(2);

/// Runs `command` until it ends or stdin does, and leaves nothing of it behind. Exits with the
/// command's code. With `mask` its files get the modes that this mask leaves them: the program's
/// own is for itself alone, and a server writes what others may need.
///
/// Blocks; call it before any runtime is started.
pub fn run(command: &[OsString], mask: Option<u32>) -> ExitCode {
    if let Some(mask) = mask {
        rustix::process::umask(rustix::fs::Mode::from_bits_truncate(mask));
    }
    let ending = start(command).and_then(wait_for);
    let everything_ended = end_descendants(std::process::id(), GRACE);
    match (ending, everything_ended) {
        (Ok(status), Ended::Completely) => exit_code(status),
        (Ok(_), Ended::NotCompletely) => fail("some of the server's processes could not be ended; see `ps`"),
        (Err(reason), _) => fail(&reason.to_string()),
    }
}

fn start(command: &[OsString]) -> io::Result<u32> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(io::Error::other(
            "no command was given; usage: mcp-guard -- PROGRAM ARGUMENTS...",
        ));
    };
    adopt_orphans()?;
    let server = Command::new(program).args(arguments).process_group(0).spawn();
    let server = server.map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("{} cannot be started: {error}", program.display()),
        )
    })?;
    thread::spawn(end_when_stdin_ends);
    Ok(server.id())
}

/// The server sees the same end of stdin and may leave by itself.
fn end_when_stdin_ends() {
    let stdin = io::stdin();
    // No flag is asked for: a hang-up wakes all the same, and nothing else does.
    let mut watched = [PollFd::new(&stdin, PollFlags::empty())];
    while poll(&mut watched, None) == Err(rustix::io::Errno::INTR) {}
    thread::sleep(LEAVING_TIME);
    // What is not ended here is reported by the main thread, which looks again.
    let _ = end_descendants(std::process::id(), GRACE);
}

/// Buries children, adopted ones too, until the server itself has ended.
fn wait_for(server: u32) -> io::Result<ExitStatus> {
    while let Some((child, status)) = bury_any_child()? {
        if child == server {
            return Ok(status);
        }
    }
    Err(io::Error::other("the server's exit status was lost"))
}

fn exit_code(status: ExitStatus) -> ExitCode {
    // As a shell has it: 128 and the signal's number.
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from)
}

fn fail(reason: &str) -> ExitCode {
    // Its stderr is the server's stderr, which the worker writes to its log.
    let _ = writeln!(io::stderr(), "mcp-guard: {reason}");
    ExitCode::from(127)
}
