//! A small process between the worker and an MCP server: when the worker dies, however it dies, the
//! server and all its descendants die with it.
//!
//! The worker holds the other end of the guard's stdin. A pipe is closed by the kernel even when
//! its holder is killed, so the end of stdin is the one signal that cannot fail to come. A process
//! group, or killing the server when its handle is dropped, failed at this: neither happens when
//! the worker is killed, and neither reaches a grandchild that has left the group.
//!
//! No data passes through it: the server inherits all three streams, and the guard only asks the
//! kernel to be woken when stdin has no writer left. (Copying stdin failed: a server that stops
//! reading blocks the copier, and then nobody notices that the worker is gone.) It cannot help when
//! it is killed itself; so it is in a group of its own, where a terminal's Ctrl-C does not reach
//! it.

use rustix::event::{PollFd, PollFlags, poll};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::thread;
use std::time::Duration;

use crate::process::ending::{Ended, end_descendants};
use crate::process::{adopt_orphans, reap_any_child};

/// Time for a server to end by itself after its stdin was closed.
pub const LEAVING_TIME: Duration = Duration::from_secs(3);

/// Time between TERM and KILL.
pub const GRACE: Duration = Duration::from_secs(2);

/// Runs `command` until it ends or stdin does, and leaves no process of it behind. Exits with the
/// command's code. `mask` becomes the mode mask of the server: the program's own keeps files to its
/// user, but a server may write files that others need. The command reads `input` as its stdin, if
/// it waits for the end of that: the end of the guard's own means something else.
///
/// Blocks; call it before any runtime is started.
pub fn run(command: &[OsString], mask: Option<u32>, input: Option<&Path>) -> ExitCode {
    if let Some(mask) = mask {
        rustix::process::umask(rustix::fs::Mode::from_bits_truncate(mask));
    }
    let ending = start(command, input).and_then(wait_for);
    let everything_ended = end_descendants(std::process::id(), GRACE);
    match (ending, everything_ended) {
        (Ok(status), Ended::Completely) => exit_code(status),
        (Ok(_), Ended::NotCompletely) => fail("some of the server's processes could not be ended; see `ps`"),
        (Err(reason), _) => fail(&reason.to_string()),
    }
}

fn start(command: &[OsString], input: Option<&Path>) -> io::Result<u32> {
    let Some((program, arguments)) = command.split_first() else {
        return Err(io::Error::other(
            "no command was given; usage: mcp-guard -- PROGRAM ARGUMENTS...",
        ));
    };
    adopt_orphans()?;
    let mut server = Command::new(program);
    server.args(arguments).process_group(0);
    if let Some(input) = input {
        server.stdin(File::open(input)?);
    }
    let server = server.spawn();
    let server = server.map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("{} cannot be started: {error}", program.display()),
        )
    })?;
    thread::spawn(end_when_stdin_ends);
    Ok(server.id())
}

/// Ends the server when stdin has ended and the server did not leave by itself.
fn end_when_stdin_ends() {
    let stdin = io::stdin();
    // No flag is asked for: a hang-up wakes all the same, and nothing else does.
    let mut watched = [PollFd::new(&stdin, PollFlags::empty())];
    while poll(&mut watched, None) == Err(rustix::io::Errno::INTR) {}
    thread::sleep(LEAVING_TIME);
    // The main thread looks again, and reports processes that could not be ended here.
    let _ = end_descendants(std::process::id(), GRACE);
}

/// Reaps children, adopted ones too, until the server itself has ended.
fn wait_for(server: u32) -> io::Result<ExitStatus> {
    while let Some((child, status)) = reap_any_child()? {
        if child == server {
            return Ok(status);
        }
    }
    Err(io::Error::other("the server's exit status was lost"))
}

fn exit_code(status: ExitStatus) -> ExitCode {
    // As shells do: 128 plus the signal's number.
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from)
}

fn fail(reason: &str) -> ExitCode {
    // The guard's stderr is the server's, which the worker writes to its log and tells people.
    let _ = writeln!(io::stderr(), "{reason}");
    ExitCode::from(127)
}
