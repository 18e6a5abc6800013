//! Streams from the other side of a pipe: an MCP server, the inner end of a container's way out, and
//! the link with a container's first process.

use std::io::{self, Cursor};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::BytesMut;
use coding_agent::egress::Policy;
use coding_agent::gateway::Gateway;
use coding_agent::gateway::gate::Gate;
use coding_agent::gateway::ledger::Ledger;
use coding_agent::gateway::upstream::Upstream;
use coding_agent::link::LinkEnd;
use coding_agent::link::end::WINDOW;
use coding_agent::link::frame::Decoder;
use coding_agent::tool::ToolServer;
use coding_agent::tool::connect::{Connect, Connection};
use coding_agent::tool::mcp::McpServer;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

const PATIENCE: Duration = Duration::from_mins(1);

/// Frames that an MCP server writes, the executor in a container among them: the client comes to an
/// end with an answer or an error.
pub fn mcp(bytes: &[u8]) {
    wait(async {
        let server = McpServer::new("fuzzed", None, None, PATIENCE, Box::new(Said(bytes.to_vec())));
        if let Ok(tools) = server.list().await {
            assert!(tools.iter().all(|tool| tool.name.starts_with("fuzzed/")));
        }
        match server.call("tool", &serde_json::Map::new()).await {
            Ok(output) => assert!(output.text.len() <= 16 * bytes.len() + 1024),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
        server.close().await;
    });
}

struct Said(Vec<u8>);

#[async_trait]
impl Connect for Said {
    async fn connect(&self) -> anyhow::Result<Connection> {
        Ok(Connection {
            reader: Box::new(Cursor::new(self.0.clone())),
            writer: Box::new(tokio::io::sink()),
            end: Box::new(|| Box::pin(async {})),
        })
    }
}

/// The frames of the tunnel out of a container.
pub fn tunnel(bytes: &[u8]) {
    served(bytes.to_vec());
}

/// The frames of a link, which the executor's process writes, in parts of a few bytes: what is taken
/// out of them is counted, and never more than was written.
pub fn link(bytes: &[u8]) {
    const GIVEN: &[u8] = b"twelve bytes";
    let (mut link, mut decoder) = (LinkEnd::default(), Decoder::default());
    link.give(GIVEN);
    link.write_frame(&mut BytesMut::new());
    'reading: for part in bytes.chunks(7) {
        decoder.buffer().extend_from_slice(part);
        loop {
            match decoder
                .next_frame()
                .and_then(|frame| frame.map(|frame| link.read_frame(&frame)).transpose())
            {
                Ok(Some(true)) => {}
                Ok(None) => break,
                Ok(Some(false)) | Err(_) => break 'reading,
            }
        }
    }
    assert_eq!(link.received(), link.to_take().len() as u64);
    assert!(link.to_take().len() <= bytes.len().min(WINDOW));
    assert!((WINDOW - GIVEN.len()..=WINDOW).contains(&link.room()));
    // Another connection begins only where this one can have ended.
    for received_there in 0..16 {
        let may = received_there <= GIVEN.len() as u64 && received_there >= (link.room() + GIVEN.len() - WINDOW) as u64;
        assert_eq!(link.resume(received_there).is_ok(), may);
    }
}

/// A request to the proxy, in the first stream of a tunnel. Nothing is allowed, so nothing is
/// connected.
pub fn proxy_request(bytes: &[u8]) {
    const OPENS: u16 = 1;
    const CLOSES: u16 = 4;
    let mut stream = frame(OPENS, bytes.len());
    stream.extend_from_slice(bytes);
    stream.extend_from_slice(&frame(CLOSES, 0));
    let answer = served(stream);
    let answer = String::from_utf8_lossy(&answer);
    assert!(
        !answer.contains("HTTP/1.1 2") && !answer.contains("HTTP/1.0 2"),
        "{answer}"
    );
}

/// Returns the head of a frame of data in yamux' stream 1.
fn frame(flags: u16, length: usize) -> Vec<u8> {
    let mut head = vec![0, 0];
    head.extend_from_slice(&flags.to_be_bytes());
    head.extend_from_slice(&1_u32.to_be_bytes());
    head.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    head
}

/// Returns what the outer end of a tunnel writes when its inner end says this and, after the
/// answer, no more.
fn served(said: Vec<u8>) -> Vec<u8> {
    let nobody = [];
    let ledger = Arc::new(Ledger::new([], |_| {}));
    let upstream = Arc::new(Upstream::from_variables(&|_| None));
    let gateway = Arc::new(Gateway::new(
        Policy::of_readable(&nobody, &nobody),
        upstream,
        Gate::always_open(),
        ledger,
    ));
    let mut written = Cursor::new(Vec::new());
    wait(async {
        let reader = Cursor::new(said).chain(Patient(TURNS));
        // How it ends is not judged here, only that it does.
        let _ = gateway.serve(reader, &mut written).await;
    });
    written.into_inner()
}

/// How often others get their turn before the stream ends. Nothing outside is waited for, so they
/// need few.
const TURNS: usize = 64;

/// The end of a stream that comes after some turns.
struct Patient(usize);

impl AsyncRead for Patient {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.0 == 0 {
            return Poll::Ready(Ok(()));
        }
        self.0 -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

fn wait(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let runtime = runtime.expect("a thread can wait");
    let ended = runtime.block_on(async { tokio::time::timeout(PATIENCE, work).await });
    assert!(ended.is_ok(), "it waits for more than there is");
}
