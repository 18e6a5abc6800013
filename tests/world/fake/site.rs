//! A site of the world: answers every request, over connections that nobody else has.
//!
//! It lies on `127.0.0.2`, which no program takes for its own machine as it does `127.0.0.1` and
//! `localhost`.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::response::IntoResponse;
use http_body_util::BodyExt;
use tokio::sync::Semaphore;

use super::server::Server;

/// Ends when dropped.
pub struct Site {
    address: String,
    seen: Arc<Seen>,
    _server: Server,
}

struct Seen {
    /// Method, path, host and body of each request.
    asked: Mutex<Vec<String>>,
    /// At this moment, and at most.
    at_once: Mutex<(usize, usize)>,
    gate: Semaphore,
}

impl Site {
    pub fn start() -> Self {
        Self::start_on("127.0.0.2")
    }

    pub fn start_on(address: &str) -> Self {
        let listener = TcpListener::bind((address, 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let seen = Arc::new(Seen {
            asked: Mutex::default(),
            at_once: Mutex::default(),
            gate: Semaphore::new(0),
        });
        let router = Router::new().fallback(answer).with_state(Arc::clone(&seen));
        Self {
            address,
            seen,
            _server: Server::start(listener, router),
        }
    }

    /// Returns address and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub fn port(&self) -> &str {
        self.address.rsplit(':').next().unwrap()
    }

    /// Returns the requests in order: method, path, host, body, and whether a credential came
    /// along.
    pub fn asked(&self) -> Vec<String> {
        self.seen.asked.lock().unwrap().clone()
    }

    /// Answers what is held, now and later.
    pub fn release(&self) {
        self.seen.gate.close();
    }

    /// Returns how many requests were held at once at most.
    pub fn most_at_once(&self) -> usize {
        self.seen.at_once.lock().unwrap().1
    }
}

/// Says hello; what is asked for below `/held` is held.
async fn answer(State(seen): State<Arc<Seen>>, request: Request) -> impl IntoResponse {
    let (head, body) = request.into_parts();
    let body: Bytes = body.collect().await.unwrap().to_bytes();
    let (method, path) = (head.method, head.uri.path().to_owned());
    // Whoever attacks may send none.
    let host = head.headers.get("host").map_or("", |host| host.to_str().unwrap());
    let mut line = format!("{method} {path} {host} {}", String::from_utf8_lossy(&body));
    let credentials = ["authorization", "private-token", "cookie"];
    for name in credentials.iter().filter(|name| head.headers.contains_key(**name)) {
        line = format!("{} with {name}", line.trim_end());
    }
    seen.asked.lock().unwrap().push(line.trim_end().to_owned());
    if path.starts_with("/held") {
        {
            let mut at_once = seen.at_once.lock().unwrap();
            at_once.0 += 1;
            at_once.1 = at_once.1.max(at_once.0);
        }
        // Ends when it is closed, and nobody gives it anything.
        let _ = seen.gate.acquire().await;
        seen.at_once.lock().unwrap().0 -= 1;
    }
    format!("hello from {path}\n")
}
