//! A proxy, such as companies have between their machines and the world.
//!
//! It knows hosts that no name server knows: every name that ends in `.test` is this machine. What
//! reaches such a name came through here. Plain HTTP is passed on; a tunnel (`CONNECT`) is noted,
//! and refused to port 443, since no fake speaks TLS. What is asked of a name that begins with
//! `private.` is answered with a page of its own, as for a host that only a private network knows.

use std::io;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use url::Url;

/// Ends when dropped.
pub struct Proxy {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
    serving: JoinHandle<()>,
}

impl Proxy {
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let noted = Arc::clone(&asked);
        let serving = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // A client that breaks off is its own business.
                tokio::spawn(serve(client, Arc::clone(&noted)));
            }
        });
        Self {
            address,
            asked,
            serving,
        }
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns what was asked for, in order: `GET host` or `CONNECT host:port`.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(mut client: TcpStream, asked: Arc<Mutex<Vec<String>>>) -> io::Result<()> {
    let (head, begun) = read_head(&mut client).await?;
    let (first, headers) = head.split_once("\r\n").unwrap_or((&head, ""));
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if method == "CONNECT" {
        asked.lock().unwrap().push(format!("CONNECT {target}"));
        let (host, port) = target.rsplit_once(':').unwrap_or((target, ""));
        if host.rsplit('.').next() == Some("test") && port != "443" {
            let port: u16 = port.parse().map_err(io::Error::other)?;
            let mut origin = TcpStream::connect(("127.0.0.1", port)).await?;
            client.write_all(b"HTTP/1.1 200 Go\r\n\r\n").await?;
            tokio::io::copy_bidirectional(&mut client, &mut origin).await?;
            return Ok(());
        }
        let refusal = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        return client.write_all(refusal).await;
    }
    let address = Url::parse(target).map_err(io::Error::other)?;
    let host = address.host_str().unwrap_or_default();
    asked.lock().unwrap().push(format!("{method} {host}"));
    let is_here = host == "127.0.0.1" || host.rsplit('.').next() == Some("test");
    assert!(is_here, "{host} is not on this machine");
    if host.starts_with("private.") {
        let page = "<html><h1>Access denied</h1></html>";
        let answer = format!(
            "HTTP/1.1 403 Forbidden\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{page}",
            page.len()
        );
        return client.write_all(answer.as_bytes()).await;
    }
    let mut origin = TcpStream::connect(("127.0.0.1", address.port().unwrap_or(80))).await?;
    let path = address.query().map_or_else(
        || address.path().to_owned(),
        |query| format!("{}?{query}", address.path()),
    );
    let is_kept = |line: &&str| !line.is_empty() && !line.to_ascii_lowercase().starts_with("connection:");
    let kept: Vec<_> = headers.lines().filter(is_kept).collect();
    let kept = kept.join("\r\n");
    // One request for each connection: the next one may be for another host.
    let passed_on = format!("{method} {path} HTTP/1.1\r\n{kept}\r\nconnection: close\r\n\r\n");
    origin.write_all(passed_on.as_bytes()).await?;
    origin.write_all(&begun).await?;
    tokio::io::copy_bidirectional(&mut client, &mut origin).await?;
    Ok(())
}

/// Reads to the empty line; returns what stands before it, and what came along of the body.
pub(super) async fn read_head(client: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut read = Vec::new();
    loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            let body = read.split_off(end + 4);
            return Ok((String::from_utf8_lossy(&read).into_owned(), body));
        }
        let mut part = [0; 4096];
        let length = client.read(&mut part).await?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        read.extend_from_slice(&part[..length]);
    }
}
