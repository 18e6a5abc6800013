//! A server for the tests of the clients: real HTTP, answers from a closure, and a list of what was
//! asked.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::Value;

use super::who::Who;

/// Somebody of whom only the login is known.
pub(super) fn named(login: &str) -> Who<'_> {
    Who { login, id: None }
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

impl Asked {
    /// Returns method and path, e.g. `GET /repos/o/r`.
    pub(super) fn line(&self) -> String {
        format!("{} {}", self.method, self.uri.path())
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// Returns the value of a form or query field.
    pub(super) fn field(&self, name: &str) -> Option<String> {
        let text = if self.body.is_empty() {
            self.uri.query().unwrap_or_default()
        } else {
            &self.body
        };
        let mut fields = url::form_urlencoded::parse(text.as_bytes());
        fields.find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }
}

/// What the server answers.
pub(super) struct Told {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
}

impl Told {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.to_string(),
        }
    }

    pub(super) fn empty(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: String::new(),
        }
    }

    pub(super) fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

type Answers = Arc<dyn Fn(&Asked) -> Told + Send + Sync>;

pub(super) struct Server {
    pub(super) address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Server {
    pub(super) async fn start(answers: impl Fn(&Asked) -> Told + Send + Sync + 'static) -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let answers: Answers = Arc::new(answers);
        let router = Router::new().fallback(answer).with_state((Arc::clone(&asked), answers));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, asked, task }
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// Returns how often a request with this method and path arrived.
    pub(super) fn count(&self, line: &str) -> usize {
        self.asked().iter().filter(|asked| asked.line() == line).count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    State((log, answers)): State<(Arc<Mutex<Vec<Asked>>>, Answers)>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let asked = Asked {
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
