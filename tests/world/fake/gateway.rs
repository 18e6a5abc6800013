//! A gateway before a model, such as clouds and companies have: it answers 504 when nothing comes
//! from behind it for too long, and cuts off a reply that has begun.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::fake::proxy::read_head;

const GAVE_UP: &[u8] = b"HTTP/1.1 504 Gateway Time-out\r\ncontent-type: text/html\r\ncontent-length: 13\r\n\
    connection: close\r\n\r\n<html></html>";

/// Ends when dropped.
pub struct Gateway {
    address: String,
    gave_up: Arc<AtomicUsize>,
    serving: JoinHandle<()>,
}

impl Gateway {
    /// Starts one that waits so long for each next byte of what stands behind it.
    pub async fn before(origin: SocketAddr, patience: Duration) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let gave_up: Arc<AtomicUsize> = Arc::default();
        let counted = Arc::clone(&gave_up);
        let serving = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // A client that breaks off is its own business.
                tokio::spawn(serve(client, origin, patience, Arc::clone(&counted)));
            }
        });
        Self {
            address,
            gave_up,
            serving,
        }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns how many requests it gave up waiting for.
    pub fn gave_up(&self) -> usize {
        self.gave_up.load(Ordering::SeqCst)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Passes one request on; the end of this function ends both connections.
async fn serve(
    mut client: TcpStream,
    origin: SocketAddr,
    patience: Duration,
    gave_up: Arc<AtomicUsize>,
) -> io::Result<()> {
    let (head, begun) = read_head(&mut client).await?;
    let is_kept = |line: &&str| !line.is_empty() && !line.to_ascii_lowercase().starts_with("connection:");
    let kept: Vec<_> = head.lines().filter(is_kept).collect();
    let mut origin = TcpStream::connect(origin).await?;
    let passed_on = format!("{}\r\nconnection: close\r\n\r\n", kept.join("\r\n"));
    origin.write_all(passed_on.as_bytes()).await?;
    origin.write_all(&begun).await?;

    let (mut from_client, mut to_client) = client.split();
    let (mut from_origin, mut to_origin) = origin.split();
    // Ends when the client goes away.
    let up = tokio::io::copy(&mut from_client, &mut to_origin);
    let down = async {
        let mut part = [0; 4096];
        let mut has_begun = false;
        loop {
            let Ok(length) = tokio::time::timeout(patience, from_origin.read(&mut part)).await else {
                gave_up.fetch_add(1, Ordering::SeqCst);
                let answer: &[u8] = if has_begun { b"" } else { GAVE_UP };
                return to_client.write_all(answer).await;
            };
            let length = length?;
            if length == 0 {
                return Ok(());
            }
            to_client.write_all(&part[..length]).await?;
            has_begun = true;
        }
    };
    tokio::select! {
        sent = up => sent.map(|_| ()),
        answered = down => answered,
    }
}
