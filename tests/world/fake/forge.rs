//! The state of a fake forge behind a lock, its front door, and waiting for it to change.
//!
//! Every change rings a bell, so that nobody has to poll. The lock is never held across an await.

use std::hash::DefaultHasher;
use std::hash::Hash;
use std::hash::Hasher;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use axum::body::Body;
use axum::body::to_bytes;
use axum::extract::ConnectInfo;
use axum::extract::Request;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::HeaderValue;
use axum::http::Method;
use axum::http::StatusCode;
use axum::http::header;
use axum::middleware::Next;
use axum::response::IntoResponse;
use axum::response::Response;
use tokio::sync::watch;

use crate::fake::fault;
use crate::fake::fault::Fault;
use crate::fake::fault::Quirk;
use crate::fake::server::Connection;
use crate::fake::traffic;
use crate::fake::traffic::Traffic;

/// How long `until` waits. Long enough for an image to be built on a busy machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// A fake forge: its state, its traffic, and the folder of its git repositories.
pub struct Forge<S> {
    /// `http://127.0.0.1:4711`, without a final slash.
    pub origin: String,
    pub folder: PathBuf,
    pub traffic: Traffic,
    state: Mutex<S>,
    bell: watch::Sender<u64>,
}

/// A forge, as the git protocol needs it.
pub trait Host: Send + 'static {
    /// Says who may fetch from or push to the repository at a path such as `acme/widgets`.
    fn admit(&self, repository: &str, credential: Option<&str>, is_push: bool) -> Result<String, Refusal>;

    /// Notices that somebody pushed.
    fn pushed(&mut self, repository: &str, pusher: &str);

    /// Returns the name to which git is redirected from the one that a repository had.
    fn new_name(&self, _repository: &str) -> Option<String> {
        None
    }
}

/// Why the git protocol is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    Unauthorized,
    Forbidden(String),
    NotFound,
}

impl<S> Forge<S> {
    pub fn new(origin: String, folder: PathBuf, state: S) -> Self {
        let (bell, _) = watch::channel(0);
        Self {
            origin,
            folder,
            traffic: Traffic::default(),
            state: Mutex::new(state),
            bell,
        }
    }

    pub fn read<R>(&self, look: impl FnOnce(&S) -> R) -> R {
        look(&self.state.lock().expect("no change of state panics"))
    }

    pub fn change<R>(&self, alter: impl FnOnce(&mut S) -> R) -> R {
        let outcome = alter(&mut self.state.lock().expect("no change of state panics"));
        self.ring();
        outcome
    }

    /// Waits until something is there, and fails with the story so far if it never comes.
    pub async fn until_some<T>(&self, story: impl Fn() -> String, find: impl Fn() -> Option<T>) -> T {
        let mut bell = self.bell.subscribe();
        let waiting = async {
            loop {
                if let Some(found) = find() {
                    return found;
                }
                bell.changed().await.expect("the forge outlives its watchers");
            }
        };
        let found = tokio::time::timeout(PATIENCE, waiting).await;
        found.unwrap_or_else(|_| panic!("waited {PATIENCE:?} in vain. What happened until now:\n{}", story()))
    }

    /// Waits until hanging requests are cut off, or for ever.
    async fn hang(&self) -> Option<Response> {
        let mut bell = self.bell.subscribe();
        let cuts = self.traffic.cuts();
        self.traffic.record_hanging();
        self.ring();
        while self.traffic.cuts() == cuts {
            bell.changed().await.expect("the forge outlives its requests");
        }
        None
    }

    /// Breaks off the connections of all requests that hang.
    pub fn cut_off(&self) {
        self.traffic.cut_off();
        self.ring();
    }

    fn ring(&self) {
        self.bell.send_modify(|count| *count += 1);
    }
}

/// Lets a request in: notes it down with its answer, and does what goes wrong on purpose.
pub async fn front_door<S: Host>(
    State(forge): State<Arc<Forge<S>>>,
    ConnectInfo(connection): ConnectInfo<Connection>,
    request: Request,
    next: Next,
) -> Response {
    let method = request.method().clone();
    let path = request
        .uri()
        .path_and_query()
        .map_or_else(String::new, ToString::to_string);
    let is_git = is_git(&path);
    let path = without_prefix(&path).to_owned();
    let arrival = forge.traffic.arrive();
    let fault = forge.traffic.fault(&method, &path);
    let answer = match fault {
        None => {
            let answer = next.run(request).await;
            forge.traffic.has_been_worked_on(&method, &path);
            Some(answer)
        }
        Some(Fault::Fails(status)) => Some(fault::failure(status)),
        Some(Fault::FailsAfterWork(status)) => {
            next.run(request).await;
            Some(fault::failure(status))
        }
        Some(Fault::Waits(duration)) => {
            tokio::time::sleep(duration).await;
            Some(next.run(request).await)
        }
        Some(Fault::Drops) => None,
        Some(Fault::DropsAfterWork) => {
            next.run(request).await;
            None
        }
        Some(Fault::Hangs) => forge.hang().await,
        Some(Fault::HangsAfterWork) => {
            next.run(request).await;
            forge.hang().await
        }
        Some(Fault::Refuses(status, json)) => Some(fault::refusal(status, json)),
        Some(Fault::RefusesWith(status, json, (name, value))) => {
            let mut answer = fault::refusal(status, json);
            answer.headers_mut().insert(name, HeaderValue::from_static(value));
            Some(answer)
        }
        Some(Fault::Says(json)) => Some(([(header::CONTENT_TYPE, "application/json")], json).into_response()),
        Some(Fault::Redirects(address)) => Some(fault::redirect(address, &path)),
        Some(Fault::Continues(address)) => {
            let mut answer = next.run(request).await;
            let link = format!("<{address}{path}&page=2>; rel=\"next\"");
            let link = link.parse().expect("an address is a proper header");
            answer.headers_mut().insert(header::LINK, link);
            Some(answer)
        }
        Some(Fault::Adds(name, value)) => {
            let mut answer = next.run(request).await;
            answer.headers_mut().insert(name, HeaderValue::from_static(value));
            Some(answer)
        }
        Some(Fault::Floods) => Some(fault::flood()),
    };
    let status = answer.as_ref().map(|answer| answer.status().as_u16());
    forge.traffic.record(traffic::Request {
        method,
        path,
        status,
        is_git,
        arrival,
    });
    forge.ring();
    let Some(mut answer) = answer else {
        connection.cut();
        return StatusCode::NO_CONTENT.into_response();
    };
    let date = forge.traffic.date().parse().expect("a date is a proper header");
    answer.headers_mut().insert(header::DATE, date);
    answer
}

/// Gives every readable answer a mark, and answers 304 to who has that mark already.
pub async fn conditional<S: Host>(State(forge): State<Arc<Forge<S>>>, request: Request, next: Next) -> Response {
    let is_get = request.method() == Method::GET;
    let known = request.headers().get(header::IF_NONE_MATCH).cloned();
    let credentials = request.headers().get(header::AUTHORIZATION).cloned();
    let answer = next.run(request).await;
    if !is_get || answer.status() != StatusCode::OK || !is_json(answer.headers()) {
        return answer;
    }
    let (mut parts, body) = answer.into_parts();
    let body = to_bytes(body, usize::MAX).await.expect("an answer from memory");
    let mut hasher = DefaultHasher::new();
    body.hash(&mut hasher);
    if !forge.traffic.has(Quirk::TagsIgnoreLinks) {
        parts.headers.get(header::LINK).hash(&mut hasher);
    }
    if forge.traffic.has(Quirk::TagsDependOnTokens) {
        credentials.hash(&mut hasher);
    }
    let mark = HeaderValue::from_str(&format!("W/\"{:016x}\"", hasher.finish())).expect("hexadecimal digits");
    let is_known = known.is_some_and(|known| known == mark);
    parts.headers.insert(header::ETAG, mark);
    if is_known {
        parts.status = StatusCode::NOT_MODIFIED;
        return Response::from_parts(parts, Body::empty());
    }
    Response::from_parts(parts, Body::from(body))
}

/// Says whether a path belongs to the git protocol.
pub fn is_git(path: &str) -> bool {
    path.contains(".git/")
}

fn is_json(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"))
}

fn without_prefix(path: &str) -> &str {
    let rest = path.strip_prefix("/api/v3").or_else(|| path.strip_prefix("/api/v4"));
    rest.filter(|rest| rest.starts_with('/')).unwrap_or(path)
}
