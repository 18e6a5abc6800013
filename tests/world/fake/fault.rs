//! Faults of a fake forge on purpose, as data: the requests that they meet, and the treatment of
//! these. Nothing else decides it, so that a test can hold a table of such disturbances.
//!
//! A route such as `POST /repos/*/*/issues/*/comments` names requests: `*` stands for one segment,
//! a final `**` for any rest, and the method may be left out. Those of the git protocol are named
//! as well, as in `POST /acme/widgets.git/git-receive-pack`.

use std::time::Duration;

use axum::body::Body;
use axum::body::Bytes;
use axum::http::Method;
use axum::http::StatusCode;
use axum::http::header;
use axum::response::IntoResponse;
use axum::response::Response;

/// The treatment of a request instead of a plain answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Refuses, and does nothing.
    Fails(u16),
    /// Does the work, and answers as if it had failed.
    FailsAfterWork(u16),
    /// Waits before it does the work.
    Waits(Duration),
    /// Breaks the connection off, and does nothing.
    Drops,
    /// Does the work, and breaks the connection off.
    DropsAfterWork,
    /// Never answers, and does nothing.
    Hangs,
    /// Does the work, and never answers.
    HangsAfterWork,
    /// Answers with something else, in JSON.
    Says(&'static str),
    /// Refuses with this status and these words of the forge's own, in JSON, and does nothing.
    Refuses(u16, &'static str),
    /// Refuses in the same way, with a header.
    RefusesWith(u16, &'static str, (&'static str, &'static str)),
    /// Sends to this address, the path behind it, and says that the request is to be sent there as
    /// it is.
    Redirects(&'static str),
    /// Does the work, and says that the next page is at this address, the path behind it.
    Continues(&'static str),
    /// Does the work, and adds this header to the answer.
    Adds(&'static str, &'static str),
    /// Answers with as much as the other side takes.
    Floods,
}

/// A fault, and the requests that it meets. `Disturbance::of` meets the next one; what is to differ
/// is said behind it:
///
/// ```ignore
/// // The third comment is answered after ten seconds.
/// Disturbance::of("POST /**/comments", Fault::Waits(Duration::from_secs(10))).nth(3)
/// // A branch is not seen by the next three requests after it was pushed.
/// Disturbance::of("POST /repos/*/*/pulls", Fault::Refuses(422, SAYS)).times(3).once_answered(PUSH)
/// ```
#[derive(Clone, Debug)]
pub struct Disturbance {
    route: Route,
    fault: Fault,
    /// The number of matching requests that are let by first.
    spared: usize,
    /// The number of requests that are met after these.
    left: usize,
    /// The route that has to be answered before any of this begins.
    sleeps_until: Option<Route>,
}

impl Disturbance {
    /// Meets the next request to a route.
    pub fn of(route: &str, fault: Fault) -> Self {
        Self {
            route: Route::new(route),
            fault,
            spared: 0,
            left: 1,
            sleeps_until: None,
        }
    }

    /// Lets so many requests by first.
    pub fn sparing(self, spared: usize) -> Self {
        Self { spared, ..self }
    }

    /// Meets the n-th request from now on, counted from one, instead of the next.
    pub fn nth(self, n: usize) -> Self {
        self.sparing(n.saturating_sub(1))
    }

    /// Meets so many requests in a row instead of one.
    pub fn times(self, times: usize) -> Self {
        Self { left: times, ..self }
    }

    /// Meets every request from its first one on.
    pub fn always(self) -> Self {
        self.times(usize::MAX)
    }

    /// Counts only what comes in after a request to another route was worked on, such as a push
    /// that the API learns of late.
    pub fn once_answered(self, route: &str) -> Self {
        let sleeps_until = Some(Route::new(route));
        Self { sleeps_until, ..self }
    }

    /// Wakes up, if this request is what it waited for.
    pub fn notices(&mut self, method: &Method, path: &str) {
        if self
            .sleeps_until
            .as_ref()
            .is_some_and(|route| route.matches(method, path))
        {
            self.sleeps_until = None;
        }
    }

    /// Says whether this request is one of those that it counts.
    pub fn concerns(&self, method: &Method, path: &str) -> bool {
        self.left > 0 && self.sleeps_until.is_none() && self.route.matches(method, path)
    }

    /// Counts a request that it concerns, and returns what happens to it, if anything.
    pub fn strikes(&mut self) -> Option<Fault> {
        if self.spared > 0 {
            self.spared -= 1;
            return None;
        }
        self.left -= 1;
        Some(self.fault)
    }
}

/// A lasting behaviour of a fake beside what is documented, as real servers have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quirk {
    /// The tag of a page is that of its body alone: when only the links to other pages change, the
    /// page that is known already is confirmed, without a way to the new ones.
    TagsIgnoreLinks,
    /// The tag of a page is good for the token alone that it was given to.
    TagsDependOnTokens,
    /// The Git LFS server lacks what the repository's pointers name.
    LacksContents,
    /// The Git LFS server sends to where the contents really are, which takes no credentials.
    RedirectsContents,
    /// The Git LFS server sends something else than what a pointer names.
    SendsOtherContents,
}

/// Refuses in the forge's own words, as JSON.
pub fn refusal(status: u16, json: &'static str) -> Response {
    let status = StatusCode::from_u16(status).expect("a fault names a real status");
    (status, [(header::CONTENT_TYPE, "application/json")], json).into_response()
}

/// Answers as a proxy in front of a forge does: with a page, not with JSON.
pub fn failure(status: u16) -> Response {
    let status = StatusCode::from_u16(status).expect("a fault names a real status");
    let page = format!("<html><head><title>{status}</title></head><body><h1>{status}</h1></body></html>\n");
    (status, [(header::CONTENT_TYPE, "text/html")], Body::from(page)).into_response()
}

/// Answers with gigabytes of a list.
pub fn flood() -> Response {
    const PART: &[u8] = &[b'\n'; 64 * 1024];
    let parts = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(PART)));
    let body = Body::from_stream(futures_util::StreamExt::take(parts, 64 * 1024));
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

/// Sends to another address, by a status that keeps method and body.
pub fn redirect(address: &str, path: &str) -> Response {
    let location = [(header::LOCATION, format!("{address}{path}"))];
    (StatusCode::TEMPORARY_REDIRECT, location).into_response()
}

/// A method, where one is named, and a path with `*` for one segment and `**` for any rest.
#[derive(Clone, Debug)]
pub struct Route {
    method: Option<Method>,
    segments: Vec<String>,
}

impl Route {
    pub fn new(text: &str) -> Self {
        let (method, path) = match text.split_once(' ') {
            Some((method, path)) => (Some(method.parse().expect("a route begins with a method")), path),
            None => (None, text),
        };
        Self {
            method,
            segments: segments(path),
        }
    }

    pub fn matches(&self, method: &Method, path: &str) -> bool {
        if self.method.as_ref().is_some_and(|wanted| wanted != method) {
            return false;
        }
        let path = path.split('?').next().unwrap_or(path);
        let actual = segments(path);
        for (index, wanted) in self.segments.iter().enumerate() {
            match (wanted.as_str(), actual.get(index)) {
                ("**", _) => return true,
                ("*", Some(_)) => {}
                (wanted, Some(segment)) if wanted == segment => {}
                _ => return false,
            }
        }
        actual.len() == self.segments.len()
    }
}

fn segments(path: &str) -> Vec<String> {
    path.split('/')
        .filter(|segment| !segment.is_empty())
        .map(str::to_owned)
        .collect()
}
