//! Runs one command with everything it starts, bounded in time and output.
//!
//! A time-out or a cancellation ends the whole tree before the answer goes out. Background
//! processes of a finished command go on (a server started with `&` is legitimate between two
//! calls), are named in the answer, and end with the executor at the latest; earlier where they
//! leave no process for the next command.

mod background; // what ended commands have left running
mod capture; // output, its middle left out where it is long
mod memory; // how often the kernel ended a process for want of memory
mod outcome; // how a command ended, as text and as fields

use anyhow::Context;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::Path;
use std::pin::pin;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

use crate::executor::Options;
use crate::executor::blocking::Blocking;
use crate::executor::supervisor::{CommandEnd, GRACE, order};
use crate::process::descent::descendants;
use crate::process::ending::{end_descendants, end_session};
use background::Background;
use capture::Capture;
use outcome::{How, Outcome};

/// Time to wait for output after the command itself has ended: background processes report their
/// start then.
const LAST_OUTPUT: Duration = Duration::from_millis(500);

/// Variables that make programs ask fewer questions, and page, colour and phone home less.
const ENVIRONMENT: [(&str, &str); 5] = [
    ("CI", "true"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("PAGER", "cat"),
    ("TERM", "dumb"),
    ("DEBIAN_FRONTEND", "noninteractive"),
];

/// Runs the commands of one project.
pub(super) struct Commands {
    options: Options,
    blocking: Blocking,
    background: Background,
}

impl Commands {
    pub(super) fn new(options: Options, blocking: Blocking) -> Self {
        Self {
            options,
            blocking,
            background: Background::default(),
        }
    }

    /// Runs `command` in `folder` for at most `timeout`. Where no process is left for it, ends what
    /// earlier commands have left in the background: nothing else could, as that takes a process.
    pub(super) async fn run(
        &self,
        command: &str,
        folder: &Path,
        timeout: Duration,
        cancelled: &CancellationToken,
    ) -> anyhow::Result<Outcome> {
        let kills_before = memory::kills();
        let start = Instant::now();
        let mut capture = Capture::new(self.options.max_output_bytes);
        let order = order(folder.as_os_str(), command.as_ref());
        let (how, running) = match Running::start(&self.options) {
            Ok(mut running) => {
                let how = tokio::select! {
                    how = running.ending(&order, &mut capture) => how,
                    () = tokio::time::sleep(timeout) => How::TimedOut(timeout),
                    () = cancelled.cancelled() => How::Cancelled,
                };
                (how, Some(running))
            }
            Err(error) if is_for_want_of_a_process(&error) => (How::NoProcessLeft, None),
            Err(error) => return Err(error),
        };
        let mut in_background = Vec::new();
        if let Some(mut running) = running {
            let supervisor = running.supervisor_id;
            match how {
                How::TimedOut(_) | How::Cancelled => {
                    let end = move || {
                        let _ = end_descendants(supervisor, GRACE);
                    };
                    running.end_by(self.blocking.run(end), &mut capture).await?;
                }
                // What it watched over is no descendant of its any more.
                How::SupervisorKilled => {
                    let end = move || end_session(supervisor);
                    running.end_by(self.blocking.run(end), &mut capture).await?;
                }
                How::Exited(_) | How::Signalled(_) | How::NotStarted(_) | How::NoProcessLeft => {
                    running.last_output(&mut capture).await;
                }
            }
            in_background = running.into_background(&self.background);
        }
        if how == How::NoProcessLeft {
            self.background.end().await;
        }
        let duration = start.elapsed();
        let (output, cut_bytes) = capture.into_text();
        Ok(Outcome {
            how,
            duration,
            output,
            cut_bytes,
            memory_ran_out: memory::kills() > kills_before,
            in_background,
        })
    }
}

/// Returns true if the kernel has no process, or thread, left for this container.
fn is_for_want_of_a_process(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::WouldBlock)
}

struct Running {
    supervisor: Child,
    supervisor_id: u32,
    line: BufReader<UnixStream>,
    output: pipe::Receiver,
}

impl Running {
    fn start(options: &Options) -> anyhow::Result<Self> {
        let (ours, theirs) = BlockingStream::pair().context("no socket for the command could be made")?;
        ours.set_nonblocking(true)?;
        // One pipe for both streams, so that their order is kept.
        let (output, stdout) = io::pipe().context("no pipe for the command's output could be made")?;
        let stderr = stdout.try_clone()?;
        let supervisor = Command::new(&options.supervisor)
            // The supervisor changes to the folder itself: if it were set here, this process would
            // be copied for every command, its memory tables and all, only to be replaced at once.
            .arg("supervise")
            .envs(ENVIRONMENT)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .context("the command cannot be started")?;
        Ok(Self {
            supervisor_id: supervisor.id().context("the command's supervisor has no process id")?,
            supervisor,
            line: BufReader::new(UnixStream::from_std(ours)?),
            output: pipe::Receiver::from_owned_fd(output.into())?,
        })
    }

    /// Has the supervisor run the command, and reads output until it reports how that ended.
    async fn ending(&mut self, order: &[u8], capture: &mut Capture) -> How {
        // One that was killed takes nothing, and reports nothing below.
        let _ = self.line.get_mut().write_all(order).await;
        let mut line = String::new();
        // Pinned and not started again: a read that is dropped half-way loses what it has read.
        let mut reading = pin!(self.line.read_line(&mut line));
        let said = tokio::select! {
            said = &mut reading => said,
            // If the command has closed its streams, all output arrives before the line.
            () = read_into(capture, &mut self.output) => reading.await,
        };
        match said.ok().and_then(|_| line.parse::<CommandEnd>().ok()) {
            Some(CommandEnd::Exited(code)) => How::Exited(code),
            Some(CommandEnd::Signalled(signal)) => How::Signalled(signal),
            Some(CommandEnd::NotStarted(reason)) => How::NotStarted(reason),
            Some(CommandEnd::NoProcessLeft) => How::NoProcessLeft,
            None => How::SupervisorKilled,
        }
    }

    /// Returns when all output was read, or when background processes hold the pipe open for too
    /// long.
    async fn last_output(&mut self, capture: &mut Capture) {
        let _ = tokio::time::timeout(LAST_OUTPUT, read_into(capture, &mut self.output)).await;
    }

    /// Goes on reading while `ending` ends all processes of the command: one that blocks on a full
    /// pipe cannot end on TERM.
    async fn end_by(
        &mut self,
        ending: impl Future<Output = anyhow::Result<()>>,
        capture: &mut Capture,
    ) -> anyhow::Result<()> {
        let mut ending = pin!(ending);
        tokio::select! {
            ended = &mut ending => ended?,
            () = read_into(capture, &mut self.output) => ending.await?,
        }
        self.last_output(capture).await;
        Ok(())
    }

    /// Names the processes that still run, and hands them over to `background`.
    fn into_background(mut self, background: &Background) -> Vec<String> {
        if matches!(self.supervisor.try_wait(), Ok(Some(_))) {
            return Vec::new();
        }
        let living = descendants(self.supervisor_id);
        background.take(self);
        living
            .into_iter()
            .map(|process| format!("{} {}", process.id, process.name))
            .collect()
    }
}

async fn read_into(capture: &mut Capture, output: &mut (impl AsyncRead + Unpin)) {
    let mut chunk = vec![0; 64 * 1024];
    while let Ok(count @ 1..) = output.read(&mut chunk).await {
        capture.push(&chunk[..count]);
    }
}
