//! A small process between the executor and one command: the parent of everything the command
//! starts.
//!
//! Each command gets its own, so that a daemonised grandchild of one command is never taken for
//! another's: orphans are adopted by the nearest subreaper, which is the supervisor. It tells the
//! executor how the command itself ended, stays while background processes live, and ends them all
//! when the executor goes. Marking processes through their environment failed at programs that
//! clear it; walking the tree alone fails once a parent in the middle has died.
//!
//! It starts in a millisecond: no options, and no runtime that stays. Its stdin is a socket to the
//! executor, used in both directions. Over that it is told the command: among its arguments, a
//! `pkill -f` of the command's own would find it.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::process::ending::end_descendants;
use crate::process::{adopt_orphans, reap_any_child};

/// Time between TERM and KILL.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// How a command ended, sent as one line over the socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CommandEnd {
    Exited(i32),
    Signalled(i32),
    NotStarted(String),
    /// The kernel gave no process or thread for it.
    NoProcessLeft,
}

/// Returns what a supervisor is told to do: to run `command` in `folder`.
pub(super) fn order(folder: &OsStr, command: &OsStr) -> Vec<u8> {
    let mut order = Vec::new();
    for part in [folder, command] {
        order.extend((part.len() as u64).to_be_bytes());
        order.extend(part.as_bytes());
    }
    order
}

/// Runs the command that it is told in a shell, and stays until everything it started has ended.
pub fn supervise() -> ExitCode {
    match try_supervise() {
        Ok(()) => ExitCode::SUCCESS,
        // The executor sees a socket that closed without a report.
        Err(_) => ExitCode::FAILURE,
    }
}

fn try_supervise() -> io::Result<()> {
    adopt_orphans()?;
    withstand_signals()?;
    // In a session of its own it has no terminal, and signals to the executor's group do not reach
    // the command.
    rustix::process::setsid()?;
    let executor = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let (folder, command) = (read_part(&executor)?, read_part(&executor)?);
    // Before the shell: what it starts would outlive its time-out if there were no thread left.
    let started = end_with_the_executor(executor.try_clone()?)
        .and_then(|()| std::env::set_current_dir(&folder))
        .and_then(|()| start(&command));
    let shell = match started {
        Ok(shell) => shell,
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return say(&executor, &CommandEnd::NoProcessLeft),
        Err(error) => return say(&executor, &CommandEnd::NotStarted(reason(&error))),
    };
    while let Some((child, status)) = reap_any_child()? {
        if child == shell {
            // If the executor is gone, there is nobody to tell.
            let _ = say(&executor, &CommandEnd::from(status));
        }
    }
    Ok(())
}

/// Keeps signals that mean the command from ending this process. They are caught and not ignored:
/// what it starts would ignore them, too.
fn withstand_signals() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _entered = runtime.enter();
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()] {
        // They stay caught when nobody listens any more.
        drop(signal(kind)?);
    }
    Ok(())
}

/// Reads one part of an [`order`].
fn read_part(mut executor: &UnixStream) -> io::Result<OsString> {
    let mut length = [0; 8];
    executor.read_exact(&mut length)?;
    let length = u64::from_be_bytes(length);
    let mut part = Vec::new();
    executor.take(length).read_to_end(&mut part)?;
    if part.len() as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(OsString::from_vec(part))
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ArgumentListTooLong => "a command as long as this belongs in a file".to_owned(),
        _ => error.to_string(),
    }
}

/// Reports an ending in one write, so that the executor wakes once.
fn say(mut executor: &UnixStream, ending: &CommandEnd) -> io::Result<()> {
    executor.write_all(format!("{ending}\n").as_bytes())
}

fn start(command: &OsStr) -> io::Result<u32> {
    let spawn = |shell: &str| {
        Command::new(shell)
            .arg("-c")
            .arg(command)
            .stdin(Stdio::null())
            .process_group(0)
            .spawn()
            .map(|child| child.id())
    };
    // By absolute paths: PATH may begin with a folder that commands can write to.
    match spawn("/bin/bash") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => spawn("/bin/sh"),
        started => started,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the other threads of the supervisor wait for commands that are ended here"
)]
fn end_with_the_executor(mut executor: UnixStream) -> io::Result<()> {
    let end = move || {
        // The executor writes nothing more: whatever is read means that it is gone.
        let _ = executor.read_exact(&mut [0]);
        let _ = end_descendants(std::process::id(), GRACE);
        std::process::exit(1);
    };
    thread::Builder::new().spawn(end).map(drop)
}

impl From<ExitStatus> for CommandEnd {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited(code),
            (None, Some(signal)) => Self::Signalled(signal),
            (None, None) => Self::NotStarted(format!("ended in a way that is not known ({status})")),
        }
    }
}

impl std::fmt::Display for CommandEnd {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(code) => write!(formatter, "exited {code}"),
            Self::Signalled(signal) => write!(formatter, "signalled {signal}"),
            Self::NotStarted(reason) => write!(formatter, "not-started {}", reason.replace('\n', " ")),
            Self::NoProcessLeft => formatter.write_str("no-process"),
        }
    }
}

impl FromStr for CommandEnd {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> anyhow::Result<Self> {
        let line = line.trim_end();
        if line == "no-process" {
            return Ok(Self::NoProcessLeft);
        }
        match line.split_once(' ') {
            Some(("exited", code)) => Ok(Self::Exited(code.parse()?)),
            Some(("signalled", signal)) => Ok(Self::Signalled(signal.parse()?)),
            Some(("not-started", reason)) => Ok(Self::NotStarted(reason.to_owned())),
            _ => anyhow::bail!("this is no report of a supervisor: {line}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for ending in [
            CommandEnd::Exited(0),
            CommandEnd::Exited(255),
            CommandEnd::Signalled(9),
            CommandEnd::NotStarted("no such file".to_owned()),
            CommandEnd::NoProcessLeft,
        ] {
            assert_eq!(format!("{ending}\n").parse::<CommandEnd>().unwrap(), ending);
        }
        assert!("".parse::<CommandEnd>().is_err());
    }

    #[test]
    fn an_order_is_read_as_it_was_written_and_half_of_one_is_none() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let order = order("/a folder".as_ref(), "echo 'a\nb'".as_ref());
        ours.write_all(&order).unwrap();
        assert_eq!(read_part(&theirs).unwrap(), "/a folder");
        assert_eq!(read_part(&theirs).unwrap(), "echo 'a\nb'");
        ours.write_all(&order[..12]).unwrap();
        drop(ours);
        assert_eq!(read_part(&theirs).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
