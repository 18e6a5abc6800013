//! Counts of the requests to a forge, and of those that it still takes; and the pauses that it asks
//! for, which hold for all requests of the process that it has one limit for.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::Method;

use crate::forge::http::retry::{Answer, asked_by_limit, is_used_up};
use crate::http::Pauses;

/// Kinds of requests with a limit of their own that are remembered.
const MOST_KINDS: usize = 16;
/// The kind of a limit that the forge does not name.
const ONLY: &str = "all";

/// Counts the requests to a forge that it has one limit for.
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
    /// it (`core`, `search`, `graphql`), as its last answers said; of several installations of an
    /// App, what the one has that has the fewest.
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

/// The meters of a forge that has a limit for each installation of an App, and one for the App
/// itself. With one meter for all, what one installation has used up would hold up the others.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    known: Mutex<BTreeMap<Option<u64>, Arc<Meter>>>,
}

impl Meters {
    /// Returns the meter of an installation; without one, that of the App itself or of an account.
    pub(crate) fn of(&self, installation: Option<u64>) -> Arc<Meter> {
        Arc::clone(self.lock().entry(installation).or_default())
    }

    /// Returns all requests together, and of each kind the fewest that an installation has left.
    pub(crate) fn traffic(&self) -> Traffic {
        let mut all = Traffic::default();
        for meter in self.lock().values() {
            let Traffic { requests, left } = meter.traffic();
            all.requests += requests;
            for (kind, left) in left {
                let fewest = all.left.entry(kind).or_insert(left);
                *fewest = left.min(*fewest);
            }
        }
        all
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Option<u64>, Arc<Meter>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
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
    async fn what_one_installation_has_used_up_holds_up_no_other() {
        let get = Method::GET;
        let meters = Meters::default();
        let told = |status: StatusCode, left: &str| {
            let retry_after = if status.is_success() { "0" } else { "30" };
            answer(status, &[("x-ratelimit-remaining", left), ("retry-after", retry_after)])
        };
        let (one, other) = (meters.of(Some(1)), meters.of(Some(2)));
        one.sent(&get, "/user").await;
        one.answered((&get, "/user"), &told(StatusCode::FORBIDDEN, "0"));
        let patience = Duration::from_secs(15);
        for free in [&other, &meters.of(None)] {
            timeout(patience, free.sent(&get, "/user")).await.unwrap();
            free.answered((&get, "/user"), &told(StatusCode::OK, "4000"));
        }
        let same = meters.of(Some(1));
        let held = timeout(Duration::from_millis(50), same.sent(&get, "/user")).await;
        assert!(held.is_err(), "it has one limit");
        let traffic = meters.traffic();
        assert_eq!((traffic.requests, traffic.left), (3, [("all".to_owned(), 0)].into()));
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
