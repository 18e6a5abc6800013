//! Counts of the requests to a forge, and of those that it still takes; and the pauses that it asks
//! for, which hold for all requests of the process.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use http::Method;

use crate::forge::http::retry::{Answer, asked_by_limit, is_used_up};
use crate::http::Pauses;

/// Kinds of requests with a limit of their own that are remembered.
const MOST_KINDS: usize = 16;
/// The kind of a limit that the forge does not name.
const ONLY: &str = "all";

/// Counts the requests to a forge.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    sent: AtomicU64,
    left: Mutex<BTreeMap<String, u64>>,
    pauses: Pauses,
}

/// The requests to a forge so far, and how many it still takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traffic {
    /// HTTP requests that were sent, repeats included.
    pub requests: u64,
    /// Requests that the forge still takes until its limit is set anew, by their kind as it names
    /// it (`core`, `search`, `graphql`), as its last answers said.
    pub left: BTreeMap<String, u64>,
}

impl Meter {
    /// Waits for the end of a pause that the forge asked for, then counts a request, which may be
    /// sent now.
    pub(crate) async fn sent(&self, method: &Method, path: &str) {
        self.pauses.over(&[&alike(method, path), counted_together(path)]).await;
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    /// Records the limits that the answer to a request tells.
    pub(crate) fn answered(&self, (method, path): (&Method, &str), answer: &Answer) {
        let headers = &answer.headers;
        match asked_by_limit(answer) {
            Some(wait) if is_used_up(headers) => self.pauses.note(counted_together(path), wait),
            // Too many of one kind in a short time: comments, for example, while reads go on.
            Some(wait) => self.pauses.note(&alike(method, path), wait),
            None => {}
        }
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
        let left = text("x-ratelimit-remaining").or_else(|| text("ratelimit-remaining"));
        let Some(left) = left.and_then(|left| left.parse().ok()) else {
            return;
        };
        let kind = text("x-ratelimit-resource").unwrap_or(ONLY);
        let is_word = kind.len() <= 40 && kind.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '_');
        let mut known = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if is_word && (known.len() < MOST_KINDS || known.contains_key(kind)) {
            known.insert(kind.to_owned(), left);
        }
    }

    pub(crate) fn traffic(&self) -> Traffic {
        Traffic {
            requests: self.sent.load(Ordering::Relaxed),
            left: self.left.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

/// Returns the kind of request, whatever item of whatever repository it is about.
fn alike(method: &Method, path: &str) -> String {
    let mut kind = method.to_string();
    let mut segments = path.split(['?', '#']).next().unwrap_or_default().split('/');
    while let Some(segment) = segments.next() {
        let names = match segment {
            "" => continue,
            "repos" => 2,
            "projects" => 1,
            _ => 0,
        };
        let is_number = segment.bytes().all(|byte| byte.is_ascii_digit());
        kind.push('/');
        kind.push_str(if is_number { "*" } else { segment });
        for _ in 0..names {
            segments.next();
        }
    }
    kind
}

/// Returns the kind of the requests that a forge counts together until they are used up. GitHub
/// counts searches, and those of its GraphQL API, apart from all others.
fn counted_together(path: &str) -> &'static str {
    match path.trim_start_matches('/').split(['/', '?']).next() {
        Some("search") => "search",
        Some("graphql") => "graphql",
        Some(_) | None => "core",
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use bytes::Bytes;
    use http::{HeaderMap, StatusCode};
    use tokio::time::timeout;

    use super::*;
    use crate::http::LONGEST_WAIT;

    fn answer(status: StatusCode, pairs: &[(&'static str, &str)]) -> Answer {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().unwrap());
        }
        Answer {
            status,
            headers,
            body: Bytes::new(),
        }
    }

    #[test]
    fn requests_are_alike_whatever_they_are_about() {
        let comments = alike(&Method::POST, "/repos/o/r/issues/12/comments");
        assert_eq!(comments, "POST/repos/issues/*/comments");
        assert_eq!(alike(&Method::POST, "/repos/a/b/issues/7/comments?x=1"), comments);
        assert_ne!(alike(&Method::GET, "/repos/o/r/issues/12/comments"), comments);
        assert_eq!(
            alike(&Method::PUT, "/api/v4/projects/g%2Fp/issues/3/notes/4"),
            "PUT/api/v4/projects/issues/*/notes/*"
        );
        assert_eq!(counted_together("/search/issues?q=x"), "search");
        assert_eq!(counted_together("/graphql"), "graphql");
        assert_eq!(counted_together("/repos/o/search"), "core");
    }

    #[tokio::test]
    async fn where_all_is_used_up_all_wait_and_otherwise_what_is_alike() {
        const PATH: &str = "/repos/o/r/issues/1/comments";
        let (get, post) = (Method::GET, Method::POST);
        let refused = |pairs: &[(&'static str, &str)]| answer(StatusCode::FORBIDDEN, pairs);
        let meter = Meter::default();
        let begun = Instant::now();
        meter.answered((&post, PATH), &refused(&[("retry-after", "1")]));
        timeout(LONGEST_WAIT / 2, meter.sent(&get, PATH)).await.unwrap();
        meter.sent(&post, "/repos/o/other/issues/2/comments").await;
        assert!(begun.elapsed() >= Duration::from_secs(1));

        let begun = Instant::now();
        let used_up = refused(&[("retry-after", "1"), ("x-ratelimit-remaining", "0")]);
        meter.answered((&post, PATH), &used_up);
        meter.sent(&get, "/user").await;
        assert!(begun.elapsed() >= Duration::from_secs(1));
    }

    #[tokio::test]
    async fn limits_are_those_of_the_last_answers_and_few_kinds() {
        let meter = Meter::default();
        let answered = async |pairs: &[(&'static str, &str)]| {
            let get = Method::GET;
            meter.sent(&get, "/user").await;
            meter.answered((&get, "/user"), &answer(StatusCode::OK, pairs));
        };
        answered(&[("x-ratelimit-remaining", "4999"), ("x-ratelimit-resource", "core")]).await;
        answered(&[("x-ratelimit-remaining", "4998"), ("x-ratelimit-resource", "core")]).await;
        answered(&[("ratelimit-remaining", "7")]).await;
        answered(&[("x-ratelimit-remaining", "many")]).await;
        answered(&[("x-ratelimit-remaining", "1"), ("x-ratelimit-resource", "a\"b")]).await;
        answered(&[]).await;
        let traffic = meter.traffic();
        assert_eq!(traffic.requests, 6);
        assert_eq!(traffic.left, [("all".to_owned(), 7), ("core".to_owned(), 4998)].into());
        for number in 0..100 {
            let kind = format!("kind{number}");
            answered(&[("x-ratelimit-remaining", "1"), ("x-ratelimit-resource", &kind)]).await;
        }
        assert_eq!(meter.traffic().left.len(), MOST_KINDS);
    }
}
