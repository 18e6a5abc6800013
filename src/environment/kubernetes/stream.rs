//! A process in a pod, over a stream through the API server.
//!
//! The stream is cut at any time, loses what was said last, and on older servers cannot be
//! half-closed. So everything on it is a frame ([`framed`]): a process has ended when its ending
//! has come, and nothing is concluded from the end of the stream but that it was cut.

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::api::AttachedProcess;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf, duplex};
use tokio::sync::oneshot;
use tokio::task::coop::cooperative;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::environment::processes::ProcessExit;
use crate::process::framed::{self, ENDING, Ended, HEADER, INPUT, INPUT_END, OUTPUT, SEEN, START, Started};

/// Bytes of one frame of input, and of the buffers on this side.
const PIECE: usize = 32 * 1024;
pub(super) const BUFFER: usize = 256 * 1024;

/// Time limit for opening a stream, and for each part of what is sent over it before it carries
/// frames.
pub(super) const STREAM_LIMIT: Duration = Duration::from_secs(30);

/// Time to say that the ending was read. Nothing depends on it.
const GOODBYE: Duration = Duration::from_secs(2);

/// The part of a connection that ended before the ending of its process came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cut {
    /// The stream: the process may go on, and another stream can be opened.
    Stream,
    /// The program that carries the process in the pod: somebody there has ended it.
    Process,
    /// The way to the pod, in the API server's words. Newer servers open a stream before they know
    /// whether the pod's node answers.
    Way(String),
}

/// The reason with which the API server says that a process has ended by itself.
const EXIT_CODE: &str = "NonZeroExitCode";

/// Returns what was cut, by the API server's last word on a stream; `None` if it had none.
fn cut_by(status: Option<Status>) -> Cut {
    match status {
        None => Cut::Stream,
        Some(status) => refusal(&status).map_or(Cut::Process, Cut::Way),
    }
}

/// Returns why the API server could not carry a stream; `None` if it did, and its process ended.
pub(super) fn refusal(status: &Status) -> Option<String> {
    if status.status.as_deref() != Some("Failure") || status.reason.as_deref() == Some(EXIT_CODE) {
        return None;
    }
    let words = status.message.clone().filter(|message| !message.trim().is_empty());
    Some(
        words
            .or_else(|| status.reason.clone())
            .unwrap_or_else(|| "it gave no reason".to_owned()),
    )
}

/// The streams of a started process. The connection ends with the last of its parts.
pub(super) struct Carried {
    pub(super) stdin: Held<DuplexStream>,
    pub(super) stdout: Held<DuplexStream>,
    /// Resolves when the first word has come from the pod; fails if the connection ended before.
    pub(super) begun: oneshot::Receiver<()>,
    /// Resolves to the ending, or to what was cut before it came.
    pub(super) ending: HeldEnding,
}

/// A part of a connection.
pub(super) struct Held<S> {
    stream: S,
    _connection: Arc<AbortOnDropHandle<()>>,
}

/// The last part of a connection.
pub(super) struct HeldEnding {
    ending: oneshot::Receiver<Result<Ended, Cut>>,
    _connection: Arc<AbortOnDropHandle<()>>,
}

/// Asks for a process over the streams of `attached`, at whose other end is
/// `coding-agent-executor framed`.
pub(super) fn carry(attached: AttachedProcess, started: &Started) -> io::Result<Carried> {
    let (stdin, from_caller) = duplex(BUFFER);
    let (to_caller, stdout) = duplex(BUFFER);
    let (tell, ending) = oneshot::channel();
    let (begins, begun) = oneshot::channel();
    let first = serde_json::to_vec(started)?;
    let connection = tokio::spawn(async move {
        let mut attached = attached;
        let (Some(writer), Some(reader), Some(status)) = (attached.stdin(), attached.stdout(), attached.take_status())
        else {
            return;
        };
        // Where the connection breaks, nothing shows in its streams: the client library lets them
        // hang.
        let is_over = status.map(cut_by);
        // Not ready where only this task's turn is over: reading would wait then although bytes are
        // there.
        let is_over = cooperative(is_over);
        let _ = tell.send(converse((writer, reader), is_over, (first, begins), (from_caller, to_caller)).await);
    });
    let connection = Arc::new(AbortOnDropHandle::new(connection));
    Ok(Carried {
        stdin: Held {
            stream: stdin,
            _connection: Arc::clone(&connection),
        },
        stdout: Held {
            stream: stdout,
            _connection: Arc::clone(&connection),
        },
        begun,
        ending: HeldEnding {
            ending,
            _connection: connection,
        },
    })
}

impl HeldEnding {
    pub(super) async fn come(self) -> Result<ProcessExit, Cut> {
        let ended = self.ending.await.unwrap_or(Err(Cut::Stream))?;
        Ok(ProcessExit {
            exit_code: ended.exit_code,
            stderr: ended.stderr,
        })
    }
}

/// Carries both directions at once until the ending has come, or something was cut. Once `is_over`
/// tells what, nothing comes any more but what has arrived.
async fn converse(
    (mut writer, mut reader): (impl AsyncWrite + Unpin, impl AsyncRead + Unpin),
    is_over: impl Future<Output = Cut>,
    (first, begins): (Vec<u8>, oneshot::Sender<()>),
    (mut from_caller, mut to_caller): (DuplexStream, DuplexStream),
) -> Result<Ended, Cut> {
    let mut is_between = false;
    let ended = tokio::select! {
        // What is asked for is said before its answer is heard.
        biased;
        never = feed(&mut writer, &first, &mut from_caller, &mut is_between) => match never {},
        ended = hear(&mut reader, is_over, begins, &mut to_caller) => ended,
    };
    drop(to_caller);
    // In the middle of a frame nothing else can be said.
    if ended.is_ok() && is_between {
        let _ = timeout(GOODBYE, write_frame(&mut writer, SEEN, &[])).await;
    }
    ended
}

/// Asks for the process with `first`, and sends it its input. `is_between` tells meanwhile whether
/// no frame is half written. Ends never: the other direction says what came of it.
async fn feed(
    writer: &mut (impl AsyncWrite + Unpin),
    first: &[u8],
    from_caller: &mut DuplexStream,
    is_between: &mut bool,
) -> Infallible {
    // Not before the other direction is heard: a stream that is cut at once takes nothing.
    let mut written = write_frame(writer, START, first).await;
    *is_between = true;
    let mut piece = vec![0; PIECE];
    while written.is_ok() {
        let length = from_caller.read(&mut piece).await.unwrap_or(0);
        *is_between = false;
        let letter = if length == 0 { INPUT_END } else { INPUT };
        written = write_frame(writer, letter, &piece[..length]).await;
        *is_between = true;
        if length == 0 {
            break;
        }
    }
    std::future::pending().await
}

/// Hands the output on until the ending has come, or something was cut. `begins` is told of the
/// first frame.
async fn hear(
    reader: &mut (impl AsyncRead + Unpin),
    is_over: impl Future<Output = Cut>,
    begins: oneshot::Sender<()>,
    to_caller: &mut DuplexStream,
) -> Result<Ended, Cut> {
    let mut is_over = pin!(is_over);
    let (mut output_bytes, mut begins) = (0, Some(begins));
    loop {
        // What has arrived comes first. Handing it on may take any time, and cuts nothing off.
        let frame = tokio::select! {
            biased;
            frame = read_frame(reader) => frame,
            cut = &mut is_over => return Err(cut),
        };
        let Ok((letter, bytes)) = frame else {
            return Err(timeout(GOODBYE, is_over).await.unwrap_or(Cut::Stream));
        };
        if let Some(begins) = begins.take() {
            let _ = begins.send(());
        }
        match letter {
            // Whoever reads no more still wants the ending.
            OUTPUT => {
                output_bytes += bytes.len() as u64;
                let _ = to_caller.write_all(&bytes).await;
            }
            ENDING => {
                let ended: Ended = serde_json::from_slice(&bytes).map_err(|_| Cut::Stream)?;
                let is_whole = ended.output_bytes.is_none_or(|carried| carried == output_bytes);
                return if is_whole { Ok(ended) } else { Err(Cut::Stream) };
            }
            _ => {}
        }
    }
}

async fn write_frame(stream: &mut (impl AsyncWrite + Unpin), letter: u8, bytes: &[u8]) -> io::Result<()> {
    let mut frame = Vec::with_capacity(HEADER + bytes.len());
    frame.extend_from_slice(&framed::header(letter, bytes.len()));
    frame.extend_from_slice(bytes);
    stream.write_all(&frame).await?;
    stream.flush().await
}

async fn read_frame(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<(u8, Vec<u8>)> {
    let mut head = [0; HEADER];
    stream.read_exact(&mut head).await?;
    let (letter, length) = framed::parse_header(head)?;
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).await?;
    Ok((letter, bytes))
}

impl<S: AsyncRead + Unpin> AsyncRead for Held<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Held<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Plays the other end: what it says, and what it hears.
    async fn conversation(says: Vec<u8>) -> (Result<Ended, Cut>, Vec<u8>, Vec<u8>) {
        let (mut ours, theirs) = duplex(BUFFER);
        let (their_reader, their_writer) = tokio::io::split(theirs);
        let (mut stdin, from_caller) = duplex(BUFFER);
        let (to_caller, mut stdout) = duplex(BUFFER);
        ours.write_all(&says).await.unwrap();
        ours.shutdown().await.unwrap();
        stdin.write_all(b"asked").await.unwrap();
        let ended = converse(
            (their_writer, their_reader),
            std::future::ready(Cut::Stream),
            (b"{}".to_vec(), oneshot::channel().0),
            (from_caller, to_caller),
        )
        .await;
        let (mut output, mut heard) = (Vec::new(), Vec::new());
        stdout.read_to_end(&mut output).await.unwrap();
        ours.read_to_end(&mut heard).await.unwrap();
        (ended, output, heard)
    }

    fn frame(letter: u8, bytes: &[u8]) -> Vec<u8> {
        [&framed::header(letter, bytes.len())[..], bytes].concat()
    }

    #[tokio::test]
    async fn a_process_has_ended_when_its_ending_came() {
        let ending = Ended {
            exit_code: 7,
            stderr: "why".to_owned(),
            output_bytes: Some(6),
        };
        let says = [
            frame(OUTPUT, b"one"),
            frame(OUTPUT, b"two"),
            frame(ENDING, &serde_json::to_vec(&ending).unwrap()),
        ]
        .concat();
        let (ended, output, heard) = conversation(says).await;
        assert_eq!((ended, &output[..]), (Ok(ending), &b"onetwo"[..]));
        assert!(heard.starts_with(&frame(START, b"{}")));
        assert!(
            heard.ends_with(&frame(SEEN, b"")),
            "it is told that its ending was read"
        );
    }

    #[tokio::test]
    async fn a_stream_that_is_cut_is_no_ending() {
        let whole = [
            frame(OUTPUT, b"all of it"),
            frame(ENDING, br#"{"exit_code":0,"stderr":""}"#),
        ]
        .concat();
        for length in 0..whole.len() {
            let (ended, output, _) = conversation(whole[..length].to_vec()).await;
            assert_eq!(ended, Err(Cut::Stream), "after {length} bytes");
            assert!(b"all of it".starts_with(&output[..]));
        }
    }

    #[tokio::test]
    async fn what_has_arrived_is_heard_although_the_connection_is_over() {
        let says = [
            frame(OUTPUT, b"all of it"),
            frame(ENDING, br#"{"exit_code":0,"stderr":""}"#),
        ]
        .concat();
        for length in [says.len() - 1, says.len()] {
            let (mut ours, theirs) = duplex(BUFFER);
            let (their_reader, their_writer) = tokio::io::split(theirs);
            let (_stdin, from_caller) = duplex(BUFFER);
            let (to_caller, _stdout) = duplex(BUFFER);
            ours.write_all(&says[..length]).await.unwrap();
            // It is not closed: only the second future tells that nothing comes any more.
            let over = std::future::ready(Cut::Process);
            let said = (their_writer, their_reader);
            let ended = converse(
                said,
                over,
                (b"{}".to_vec(), oneshot::channel().0),
                (from_caller, to_caller),
            )
            .await;
            let expected = if length == says.len() { None } else { Some(Cut::Process) };
            assert_eq!(ended.err(), expected, "after {length} bytes");
        }
    }

    #[test]
    fn what_the_server_says_last_tells_what_was_cut() {
        let status = |value: serde_json::Value| Some(serde_json::from_value::<Status>(value).unwrap());
        let exit = json!({ "status": "Failure", "reason": "NonZeroExitCode", "message": "exit code 137" });
        for (last, cut) in [
            (None, Cut::Stream),
            (status(json!({ "status": "Success" })), Cut::Process),
            (status(exit), Cut::Process),
            (
                status(json!({ "status": "Failure", "reason": "InternalError", "message": "error dialing backend" })),
                Cut::Way("error dialing backend".to_owned()),
            ),
            (
                status(json!({ "status": "Failure", "reason": "NotFound" })),
                Cut::Way("NotFound".to_owned()),
            ),
        ] {
            assert_eq!(cut_by(last), cut);
        }
    }

    #[tokio::test]
    async fn output_that_was_lost_on_the_way_is_no_success() {
        let says = [
            frame(OUTPUT, b"a part"),
            frame(ENDING, br#"{"exit_code":0,"stderr":"","output_bytes":12}"#),
        ]
        .concat();
        let (ended, _, heard) = conversation(says).await;
        assert_eq!(ended, Err(Cut::Stream));
        assert!(!heard.ends_with(&frame(SEEN, b"")));
    }
}
