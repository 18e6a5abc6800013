//! All that a container needs at its start, over the one link with its own process: the tools, the
//! way out, and the script that receives the project.
//!
//! Each is a channel that the worker opens, and begins with one line that says what it is. An
//! attached process for each would cost the engine some forty milliseconds, and what it was asked
//! for would be lost with its stream: here commands go on while there is no connection, and what
//! they answered is told over the next one ([`super::session`]).

use std::future::poll_fn;
use std::os::unix::process::ExitStatusExt;
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use rmcp::transport::stdio_pipes;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, copy};
use tokio::process::Command;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::compat::{FuturesAsyncReadCompatExt, TokioAsyncReadCompatExt};

use super::blocking::Blocking;
use super::session::{self, Ended, ReconnectListener};
use super::{NO_THREAD, Options, serve_over, supervisor, tunnel};
use crate::link::session::SessionKey;
use crate::process::adopt_orphans;
use crate::process::ending::end_descendants;

/// The line with which this end begins.
pub const GREETING: &str = "multiplexing";

/// Most channels at a time; the worker opens three.
const MOST_CHANNELS: usize = 8;

/// Most bytes that all channels together may have received and not read.
const MOST_UNREAD: usize = 8 * 1024 * 1024;

/// Bytes that the channels hand to the link before it takes them, and the other way round.
const CARRIED_AT_ONCE: usize = 64 * 1024;

/// Longest first line of a channel.
const MAX_LINE: u64 = 256 * 1024;

/// Most bytes of a script's stderr that are kept: the last.
const STDERR_KEPT: usize = 64 * 1024;

/// Time for the channels to end after the link has: a call in progress gets five seconds.
const ENDING: Duration = Duration::from_secs(10);

/// The first line of a channel: what it is for.
#[derive(Debug, Serialize, Deserialize)]
pub enum Channel {
    /// The workspace tools, with the arguments that the program takes for them.
    Tools(Vec<String>),
    /// The inner end of the way out.
    Tunnel,
    /// A script, which gets the rest of the channel on its stdin. Its end is answered with a
    /// [`ScriptEnding`]; its stdout is thrown away.
    Script {
        command: Vec<String>,
        /// Environment variables, each as `NAME=value`.
        environment: Vec<String>,
    },
}

/// How a script ended.
#[derive(Debug, Serialize, Deserialize)]
pub struct ScriptEnding {
    pub exit_code: i64,
    /// The last 64 KiB of the script's stderr.
    pub stderr: String,
}

/// Serves channels until the worker has ended the link, or does not come back, then ends all
/// processes that are left. `options` reads the arguments of [`Channel::Tools`].
pub async fn multiplex(options: fn(Vec<String>) -> anyhow::Result<Options>) -> anyhow::Result<()> {
    adopt_orphans().context("orphaned processes cannot be adopted")?;
    let blocking = Blocking::start().context(NO_THREAD)?;
    let (mut reader, mut writer) = stdio_pipes();
    // Before the greeting: until then the worker starts nothing that could take the address.
    let listener = ReconnectListener::open().await;
    writer.write_all(format!("{GREETING}\n").as_bytes()).await?;
    writer.flush().await?;
    let key = SessionKey::receive((&mut reader, &mut writer)).await?;
    let (near, far) = tokio::io::duplex(CARRIED_AT_ONCE);
    let keeping = session::keep(far, (Box::new(reader), Box::new(writer)), key, listener);
    // In one task: what one has to say the other does not wait long for.
    let (ended, mut served) = tokio::join!(keeping, serve_channels(near, options, &blocking));
    match ended {
        Ended::ByWorker => {
            let _ = timeout(ENDING, async { while served.join_next().await.is_some() {} }).await;
        }
        // Nobody hears what they answer.
        Ended::WithoutWorker { .. } => served.shutdown().await,
    }
    let _ = blocking
        .run(|| end_descendants(std::process::id(), supervisor::GRACE))
        .await?;
    drop(ended);
    Ok(())
}

/// Serves channels until the link has ended; returns those that have not.
async fn serve_channels(
    link: DuplexStream,
    options: fn(Vec<String>) -> anyhow::Result<Options>,
    blocking: &Blocking,
) -> JoinSet<()> {
    let mut config = yamux::Config::default();
    config.set_max_num_streams(MOST_CHANNELS);
    config.set_max_connection_receive_window(Some(MOST_UNREAD));
    let mut connection = yamux::Connection::new(link.compat(), config, yamux::Mode::Server);
    let mut served = JoinSet::new();
    loop {
        tokio::select! {
            next = poll_fn(|context| connection.poll_next_inbound(context)) => match next {
                Some(Ok(stream)) => {
                    served.spawn(serve(stream, options, blocking.clone()));
                }
                Some(Err(_)) | None => return served,
            },
            // Ended tasks are removed, so that they do not pile up.
            Some(_) = served.join_next() => {}
        }
    }
}

/// Serves one channel. The worker sees that it ended; why is said on stderr, for people who look.
async fn serve(stream: yamux::Stream, options: fn(Vec<String>) -> anyhow::Result<Options>, blocking: Blocking) {
    if let Err(error) = try_serve(stream, options, blocking).await {
        #[expect(
            clippy::print_stderr,
            reason = "stdout belongs to the protocol, and there is no log in a container"
        )]
        {
            eprintln!("coding-agent-executor: {error:#}");
        }
    }
}

async fn try_serve(
    stream: yamux::Stream,
    options: fn(Vec<String>) -> anyhow::Result<Options>,
    blocking: Blocking,
) -> anyhow::Result<()> {
    let (reader, writer) = tokio::io::split(stream.compat());
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line).await?;
    match serde_json::from_slice(&line).context("the channel does not say what it is")? {
        Channel::Tools(arguments) => serve_over(options(arguments)?, blocking, reader, writer).await,
        Channel::Tunnel => tunnel::serve(reader, writer).await,
        Channel::Script { command, environment } => run(&command, &environment, reader, writer).await,
    }
}

async fn run(
    command: &[String],
    environment: &[String],
    mut input: impl AsyncRead + Send + Unpin,
    mut answer: impl AsyncWrite + Send + Unpin,
) -> anyhow::Result<()> {
    let (program, arguments) = command.split_first().context("there is no command")?;
    let mut child = Command::new(program)
        .args(arguments)
        .envs(environment.iter().filter_map(|variable| variable.split_once('=')))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("{program} cannot be started"))?;
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let feeding = async {
        if let Some(mut stdin) = stdin {
            // Fails only if the script ended before it had read all, or the worker is gone.
            let _ = copy(&mut input, &mut stdin).await;
        }
    };
    let mut ended = pin!(async { tokio::join!(child.wait(), tail(stderr)) });
    let (status, stderr) = tokio::select! {
        ended = &mut ended => ended,
        () = feeding => ended.await,
    };
    let status = status?;
    let signalled = || status.signal().map(|signal| 128 + signal);
    let exit_code = status.code().or_else(signalled).unwrap_or(-1);
    let ending = ScriptEnding {
        exit_code: exit_code.into(),
        stderr,
    };
    answer.write_all(&serde_json::to_vec(&ending)?).await?;
    answer.shutdown().await?;
    Ok(())
}

/// Reads to the end and returns the last part.
async fn tail(stream: Option<impl AsyncRead + Unpin>) -> String {
    let (mut kept, mut chunk) = (Vec::new(), vec![0; 16 * 1024]);
    if let Some(mut stream) = stream {
        while let Ok(count @ 1..) = stream.read(&mut chunk).await {
            kept.extend_from_slice(&chunk[..count]);
            let excess = kept.len().saturating_sub(STDERR_KEPT);
            kept.drain(..excess);
        }
    }
    String::from_utf8_lossy(&kept).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_script_gets_its_input_and_its_end_is_told() {
        let script = "test \"$(cat)\" = given && echo thrown away && echo said >&2; exit 3";
        let command = ["/bin/sh", "-c", script].map(str::to_owned);
        let mut answer = std::io::Cursor::new(Vec::new());

        run(&command, &["A=B".to_owned()], &b"given"[..], &mut answer)
            .await
            .unwrap();

        let ending: ScriptEnding = serde_json::from_slice(answer.get_ref()).unwrap();
        assert_eq!((ending.exit_code, ending.stderr.as_str()), (3, "said\n"));
    }

    #[tokio::test]
    async fn a_script_that_reads_nothing_ends_all_the_same() {
        let command = ["/bin/sh", "-c", "kill -9 $$"].map(str::to_owned);
        let mut answer = std::io::Cursor::new(Vec::new());

        run(&command, &[], tokio::io::repeat(1), &mut answer).await.unwrap();

        let ending: ScriptEnding = serde_json::from_slice(answer.get_ref()).unwrap();
        assert_eq!(ending.exit_code, 137);
    }
}
