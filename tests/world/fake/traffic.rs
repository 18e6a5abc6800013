//! What was asked of a fake, and what goes wrong on purpose.
//!
//! Every request is kept with its answer. A fault names a route such as `POST
//! /repos/*/*/issues/*/comments`: `*` stands for one segment, a final `**` for any rest, and the
//! method may be left out.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::body::Bytes;
use axum::http::Method;
use axum::http::StatusCode;
use axum::http::header;
use axum::response::IntoResponse;
use axum::response::Response;

/// One request, and how it was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub method: Method,
    /// Path and query, without the prefix of the API.
    pub path: String,
    /// Nothing, if the connection was dropped instead.
    pub status: Option<u16>,
    /// A part of the git protocol and no API request.
    pub is_git: bool,
    /// Its place among all requests, in the order they came in; they are kept in the order they
    /// were answered.
    pub arrival: usize,
}

/// What happens to a request instead of a plain answer.
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
    /// Sends to this address, the path behind it, and says that the request is to be sent there as
    /// it is.
    Redirects(&'static str),
    /// Does the work, and says that the next page is at this address, the path behind it.
    Continues(&'static str),
    /// Answers with as much as the other side takes.
    Floods,
}

#[derive(Debug, Default)]
pub struct Traffic {
    requests: Mutex<Vec<Request>>,
    unknown: Mutex<Vec<String>>,
    rules: Mutex<Vec<Rule>>,
    deeds: Mutex<Vec<Deed>>,
    arrived: AtomicUsize,
    hanging: AtomicUsize,
    are_cut_off: AtomicBool,
}

#[derive(Debug)]
struct Rule {
    route: Route,
    fault: Fault,
    /// How many requests are let by first.
    spared: usize,
    left: usize,
}

/// What somebody does right after a request to a route was worked on, before it is answered.
struct Deed {
    route: Route,
    act: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for Deed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "after {:?}", self.route)
    }
}

impl Traffic {
    /// Has something happen once, after the next request to a route.
    pub fn after(&self, route: &str, act: impl FnOnce() + Send + 'static) {
        let deed = Deed {
            route: Route::new(route),
            act: Box::new(act),
        };
        self.deeds.lock().expect("no panic holds it").push(deed);
    }

    /// Does what waited for a request.
    pub fn has_been_worked_on(&self, method: &Method, path: &str) {
        let mut deeds = self.deeds.lock().expect("no panic holds it");
        let (due, waiting): (Vec<_>, Vec<_>) = deeds.drain(..).partition(|deed| deed.route.matches(method, path));
        *deeds = waiting;
        drop(deeds);
        for deed in due {
            (deed.act)();
        }
    }

    /// Counts a request that comes in, and returns its place in the order.
    pub fn arrive(&self) -> usize {
        self.arrived.fetch_add(1, Ordering::SeqCst)
    }

    /// Returns how many requests came in until now.
    pub fn arrived(&self) -> usize {
        self.arrived.load(Ordering::SeqCst)
    }

    pub fn record(&self, request: Request) {
        self.requests.lock().expect("no panic holds it").push(request);
    }

    pub fn record_unknown(&self, request: String) {
        self.unknown.lock().expect("no panic holds it").push(request);
    }

    /// Returns how many requests came in, and how many of them were answered or dropped.
    pub fn counts(&self) -> (usize, usize) {
        (self.arrived(), self.requests.lock().expect("no panic holds it").len())
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("no panic holds it").clone()
    }

    pub fn unknown(&self) -> Vec<String> {
        self.unknown.lock().expect("no panic holds it").clone()
    }

    /// Lets the next `times` requests to a route go wrong.
    pub fn misbehave(&self, route: &str, fault: Fault, times: usize) {
        self.misbehave_later(route, 0, fault, times);
    }

    /// Lets `spared` requests to a route by, and the next `times` go wrong.
    pub fn misbehave_later(&self, route: &str, spared: usize, fault: Fault, times: usize) {
        let rule = Rule {
            route: Route::new(route),
            fault,
            spared,
            left: times,
        };
        self.rules.lock().expect("no panic holds it").push(rule);
    }

    /// Returns the requests that are left hanging.
    pub fn hanging(&self) -> usize {
        self.hanging.load(Ordering::SeqCst)
    }

    pub fn are_cut_off(&self) -> bool {
        self.are_cut_off.load(Ordering::SeqCst)
    }

    pub fn cut_off(&self) {
        self.are_cut_off.store(true, Ordering::SeqCst);
    }

    pub fn record_hanging(&self) {
        self.hanging.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns the fault that is next for this request, and uses it up.
    pub fn fault(&self, method: &Method, path: &str) -> Option<Fault> {
        let mut rules = self.rules.lock().expect("no panic holds it");
        let rule = rules
            .iter_mut()
            .find(|rule| rule.left > 0 && rule.route.matches(method, path))?;
        if rule.spared > 0 {
            rule.spared -= 1;
            return None;
        }
        rule.left -= 1;
        Some(rule.fault)
    }
}

impl Request {
    /// Says whether the request went to a route.
    pub fn is(&self, route: &str) -> bool {
        Route::new(route).matches(&self.method, &self.path)
    }

    /// Says whether a request to a route came in at that place of the order or later, and was
    /// answered well.
    pub fn was_answered(&self, route: &str, since: usize) -> bool {
        self.arrival >= since && matches!(self.status, Some(200 | 304)) && self.is(route)
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "{} {} {status}", self.method, self.path),
            None => write!(f, "{} {} dropped", self.method, self.path),
        }
    }
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

#[derive(Debug)]
struct Route {
    method: Option<Method>,
    segments: Vec<String>,
}

impl Route {
    fn new(text: &str) -> Self {
        let (method, path) = match text.split_once(' ') {
            Some((method, path)) => (Some(method.parse().expect("a route begins with a method")), path),
            None => (None, text),
        };
        Self {
            method,
            segments: segments(path),
        }
    }

    fn matches(&self, method: &Method, path: &str) -> bool {
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
