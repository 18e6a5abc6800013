//! A server for the tests of the clients: real HTTP, answers from a closure, and a list of what was
//! asked.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::Value;

use crate::forge::item::account::Account;

/// Returns an account of which only the login is known.
pub(crate) fn named(login: &str) -> Account<'_> {
    Account { login, id: None }
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Received {
    /// Returns method and path, e.g. `GET /repos/o/r`.
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.uri.path())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// Returns the value of a form or query field.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let text = if self.body.is_empty() {
            self.uri.query().unwrap_or_default()
        } else {
            &self.body
        };
        let mut fields = url::form_urlencoded::parse(text.as_bytes());
        fields.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }
}

/// An answer of the server.
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Reply {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.to_string(),
        }
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: String::new(),
        }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

type Answers = Arc<dyn Fn(&Received) -> Reply + Send + Sync>;

pub(crate) struct Server {
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<Received>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(answers: impl Fn(&Received) -> Reply + Send + Sync + 'static) -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let answers: Answers = Arc::new(answers);
        let router = Router::new().fallback(answer).with_state((Arc::clone(&asked), answers));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, asked, task }
    }

    pub(crate) fn asked(&self) -> Vec<Received> {
        self.asked.lock().unwrap().clone()
    }

    /// Returns how often a request with this method and path arrived.
    pub(crate) fn count(&self, line: &str) -> usize {
        self.asked().iter().filter(|asked| asked.line() == line).count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    State((log, answers)): State<(Arc<Mutex<Vec<Received>>>, Answers)>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let asked = Received {
        method,
        uri,
        headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    };
    let told = answers(&asked);
    log.lock().unwrap().push(asked);
    let mut response = Response::builder().status(StatusCode::from_u16(told.status).unwrap());
    for (name, value) in told.headers {
        response = response.header(name, value);
    }
    response.body(Body::from(told.body)).unwrap()
}
