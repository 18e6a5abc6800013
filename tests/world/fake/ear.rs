//! A server that understands nothing: it keeps whatever it is sent, and answers the first bytes of
//! each connection as HTTP does.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The longest wait for more of the same connection.
const PATIENCE: Duration = Duration::from_secs(2);

/// Listens until the program that made it ends.
pub struct Ear {
    port: String,
    heard: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Ear {
    /// Listens on a port of `127.0.0.1`, which is `localhost` to programs that look it up.
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port().to_string();
        let heard: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let notes = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let notes = Arc::clone(&notes);
                std::thread::spawn(move || listen(stream, &notes));
            }
        });
        Self { port, heard }
    }

    pub fn port(&self) -> &str {
        &self.port
    }

    /// Returns the name and port that it is reached by.
    pub fn address(&self) -> String {
        format!("localhost:{}", self.port)
    }

    /// Returns what was sent over each connection on which something was.
    pub fn heard(&self) -> Vec<Vec<u8>> {
        let mut heard = self.heard.lock().unwrap().clone();
        heard.retain(|bytes| !bytes.is_empty());
        heard
    }
}

fn listen(mut stream: TcpStream, notes: &Mutex<Vec<Vec<u8>>>) {
    let place = {
        let mut notes = notes.lock().unwrap();
        notes.push(Vec::new());
        notes.len() - 1
    };
    // A connection that breaks off is the other end's business.
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let mut bytes = [0; 4096];
    let mut has_answered = false;
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        notes.lock().unwrap()[place].extend_from_slice(&bytes[..count]);
        if !has_answered {
            has_answered = true;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\nconnection: close\r\n\r\nheard\n");
        }
    }
}
