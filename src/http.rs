//! The common part of the clients of forges and models: the HTTP client, the limit on answers,
//! `Retry-After`, and repeated requests.

pub mod remedy; // why something failed, and what helps
pub mod page; // answers that are pages of HTML
pub mod maintenance; // servers that take no writes for a while
pub mod proxy; // the proxy on the way to a server

use std::collections::HashMap;
use std::convert::identity;
use std::error::Error;
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use bytes::{Bytes, BytesMut};
use chrono::{DateTime, Utc};
use http::HeaderMap;
use reqwest::ClientBuilder;
use reqwest::redirect::Policy;
use tokio::time::{Instant, sleep_until};

use crate::certificates::{self, Trust};

/// Time to open a connection.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// A server that asks for a longer pause is not waited for: the error goes to the caller, who can
/// park the run.
pub const LONGEST_WAIT: Duration = Duration::from_mins(1);
/// The longest wait that is read out of a header. A larger number may not fit into a date, and a
/// server with a wrong clock or unit would keep a run waiting for ever; after a day it is asked
/// again, and may say so again.
const LONGEST_ASKED: Duration = Duration::from_hours(24);
/// Kinds of requests whose pauses are known at once.
const MOST_PAUSES: usize = 64;

/// Returns a client builder with the program's name and without redirects, because a redirect would
/// carry the key to wherever it points.
pub fn client(trust: &Trust) -> ClientBuilder {
    usual(trust.client())
}

/// Returns the same for connections that are taken over for another protocol.
pub fn client_to_take_over(trust: &Trust) -> ClientBuilder {
    usual(trust.client_to_take_over())
}

fn usual(builder: ClientBuilder) -> ClientBuilder {
    builder
        .user_agent(concat!("coding-agent/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(Policy::none())
}

/// The reason why the body of an answer could not be read.
#[derive(Debug)]
pub enum BodyError {
    /// It has more bytes than the caller takes.
    TooLong,
    /// The connection ended before the body did.
    Broken(reqwest::Error),
}

/// Returns why a connection failed or broke off, in the words of the innermost cause. The outer
/// ones say only that something went wrong, and reqwest's may contain the address.
pub fn reason(error: &(dyn Error + 'static)) -> String {
    certificates::complaint(error).unwrap_or_else(|| {
        let mut innermost = error;
        while let Some(cause) = innermost.source() {
            innermost = cause;
        }
        let said = innermost.to_string();
        proxy::refusal(&said).map_or(said, str::to_owned)
    })
}

/// Reads the body of an answer; fails if it has more than `most` bytes.
pub async fn read_body(response: &mut reqwest::Response, most: usize) -> Result<Bytes, BodyError> {
    let mut body = BytesMut::new();
    while let Some(part) = response.chunk().await.map_err(BodyError::Broken)? {
        if body.len() + part.len() > most {
            return Err(BodyError::TooLong);
        }
        body.extend_from_slice(&part);
    }
    Ok(body.freeze())
}

/// Returns how long the server asks to be left alone: `retry-after-ms`, or `Retry-After` as seconds
/// (also fractions) or as a date; a day at most. `None` if it asks for nothing, or cannot be
/// understood.
pub fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    asked(headers, now).map(|wait| wait.min(LONGEST_ASKED))
}

fn asked(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    if let Some(milliseconds) = text("retry-after-ms").and_then(|text| text.parse().ok()) {
        return Some(Duration::from_millis(milliseconds));
    }
    let after = text("retry-after")?;
    if let Ok(seconds) = after.parse::<f64>() {
        // What is no number at all counts as not understood, and not as the longest wait.
        let bounded = if seconds.is_nan() {
            seconds
        } else {
            seconds.min(LONGEST_ASKED.as_secs_f64())
        };
        return Duration::try_from_secs_f64(bounded).ok();
    }
    let until = DateTime::parse_from_rfc2822(after).ok()?;
    Some((until.to_utc() - now).to_std().unwrap_or_default())
}

/// The times until which a server wants to be left alone, by the kind of request. All requests of
/// the process share them: otherwise each of several workers is refused for itself, and some
/// servers lengthen the pause for everyone who asks meanwhile.
///
/// Only pauses that a request waits for are known. After a longer one than [`LONGEST_WAIT`] the
/// caller does something else, and the server itself tells the next one that it still lasts.
#[derive(Debug, Default)]
pub struct Pauses {
    until: Mutex<HashMap<String, Instant>>,
}

impl Pauses {
    /// Notes that the server wants to be left alone with a kind of request for so long.
    pub fn note(&self, kind: &str, wait: Duration) {
        if wait.is_zero() || wait > LONGEST_WAIT {
            return;
        }
        let now = Instant::now();
        let mut until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
        until.retain(|_, end| *end > now);
        if until.len() < MOST_PAUSES || until.contains_key(kind) {
            let end = until.entry(kind.to_owned()).or_insert(now);
            *end = (*end).max(now + wait);
        }
    }

    /// Waits until the pauses of these kinds that are known now are over, at most [`LONGEST_WAIT`].
    pub async fn over(&self, kinds: &[&str]) {
        let end = {
            let until = self.until.lock().unwrap_or_else(PoisonError::into_inner);
            kinds.iter().filter_map(|kind| until.get(*kind)).max().copied()
        };
        if let Some(end) = end.filter(|end| *end > Instant::now()) {
            tracing::debug!("a request waits for the end of a pause that the server asked for");
            sleep_until(end).await;
        }
    }
}

/// The number of repeats of a request, and the pauses before them. Each pause is partly random, so
/// that clients that failed together do not come back together.
#[derive(Debug, Clone, Copy)]
pub struct Backoff {
    pub first: Duration,
    /// Each pause is this many times the one before.
    pub factor: f32,
    pub longest: Duration,
    pub repeats: usize,
}

impl Backoff {
    /// Returns a policy of three repeats, the usual number.
    pub const fn thrice(first: Duration, factor: f32) -> Self {
        Self {
            first,
            factor,
            longest: LONGEST_WAIT,
            repeats: 3,
        }
    }

    /// Returns the pauses, each longer by chance than it is planned.
    pub(crate) fn pauses(self) -> ExponentialBuilder {
        ExponentialBuilder::new()
            .with_min_delay(self.first)
            .with_factor(self.factor)
            .with_max_delay(self.longest)
            .with_max_times(self.repeats)
            .with_jitter()
    }
}

/// The failure of one attempt.
#[derive(Debug)]
pub enum AttemptError<E> {
    /// Another attempt would fail in the same way, or do harm.
    Final(E),
    /// Another attempt may go well, not before `wait` is over.
    Transient { error: E, wait: Duration },
}

impl<E> AttemptError<E> {
    /// Returns the pause before the next attempt, at least as long as the server asked for; `None`
    /// to give up.
    fn pause(&self, planned: Option<Duration>) -> Option<Duration> {
        match self {
            Self::Final(_) => None,
            Self::Transient { wait, .. } => planned
                .filter(|_| *wait <= LONGEST_WAIT)
                .map(|planned| planned.max(*wait)),
        }
    }
}

/// Attempts something until it succeeds, fails for good, or was repeated as often as `backoff`
/// allows. Returns the last error. `what` is for the log.
pub async fn retry<T, E, F>(backoff: Backoff, what: &str, attempt: impl FnMut() -> F) -> Result<T, E>
where
    E: Display,
    F: Future<Output = Result<T, AttemptError<E>>>,
{
    // Boxed: one within another, their types are deeper than the compiler looks.
    Box::pin(retry_or(backoff, what, attempt, identity)).await
}

/// Like [`retry`]; returns what `given_up` makes of the error of an attempt that another one might
/// follow, and none does.
pub async fn retry_or<T, E, F>(
    backoff: Backoff,
    what: &str,
    attempt: impl FnMut() -> F,
    given_up: impl FnOnce(E) -> E,
) -> Result<T, E>
where
    E: Display,
    F: Future<Output = Result<T, AttemptError<E>>>,
{
    attempt
        .retry(backoff.pauses())
        .when(|failed| matches!(failed, AttemptError::Transient { .. }))
        .adjust(AttemptError::pause)
        .notify(|failed, pause| {
            if let AttemptError::Transient { error, .. } = failed {
                tracing::info!(%error, ?pause, "{what} failed and is tried again");
            }
        })
        .await
        .map_err(|failed| match failed {
            AttemptError::Final(error) => error,
            AttemptError::Transient { error, .. } => given_up(error),
        })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_time_to_wait_is_read_in_every_form_and_bounded_in_each() {
        const A_DAY: u64 = 24 * 60 * 60 * 1_000;
        let now = DateTime::parse_from_rfc2822("Wed, 21 Oct 2015 07:28:00 GMT")
            .unwrap()
            .to_utc();
        for (name, value, expected) in [
            ("retry-after", "7", Some(7_000)),
            ("retry-after", "0.5", Some(500)),
            ("retry-after-ms", "250", Some(250)),
            ("retry-after", "18446744073709551615", Some(A_DAY)),
            ("retry-after-ms", "9999999999999999", Some(A_DAY)),
            ("retry-after", "Wed, 21 Oct 2015 07:28:09 GMT", Some(9_000)),
            ("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT", Some(A_DAY)),
            ("retry-after", "Wed, 21 Oct 2015 07:00:00 GMT", Some(0)),
            ("retry-after", "soon", None),
            ("retry-after", "nan", None),
            ("retry-after", "-1", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            assert_eq!(
                retry_after(&headers, now),
                expected.map(Duration::from_millis),
                "{value}"
            );
        }
    }

    #[test]
    fn a_pause_is_never_shorter_than_planned_nor_longer_than_a_minute() {
        let planned = Duration::from_millis(200);
        let pause = |seconds| {
            let failed = AttemptError::Transient {
                error: (),
                wait: Duration::from_secs(seconds),
            };
            failed.pause(Some(planned))
        };
        assert_eq!(pause(0), Some(planned));
        assert_eq!(pause(60), Some(LONGEST_WAIT));
        assert_eq!(pause(61), None);
    }

    #[tokio::test]
    async fn a_pause_holds_for_its_kind_alone_and_a_long_one_is_not_waited_for() {
        let pauses = Pauses::default();
        let noted = Instant::now();
        pauses.note("comments", Duration::from_millis(300));
        pauses.note("comments", Duration::from_millis(10));
        pauses.note("searches", LONGEST_WAIT + Duration::from_secs(1));
        let others = tokio::time::timeout(LONGEST_WAIT / 2, pauses.over(&["reads", "searches"]));
        others.await.unwrap();
        pauses.over(&["reads", "comments"]).await;
        assert!(noted.elapsed() >= Duration::from_millis(300));
        for number in 0..2 * MOST_PAUSES {
            pauses.note(&number.to_string(), LONGEST_WAIT);
        }
        assert_eq!(pauses.until.lock().unwrap().len(), MOST_PAUSES);
    }

    #[tokio::test]
    async fn a_transient_failure_is_repeated_and_a_final_one_is_not() {
        let backoff = Backoff::thrice(Duration::from_millis(1), 1.0);
        for (is_final, attempts) in [(false, 4), (true, 1)] {
            let made = Cell::new(0);
            let outcome: Result<(), String> = retry(backoff, "it", || async {
                made.set(made.get() + 1);
                let error = made.get().to_string();
                Err(if is_final {
                    AttemptError::Final(error)
                } else {
                    AttemptError::Transient {
                        error,
                        wait: Duration::ZERO,
                    }
                })
            })
            .await;
            assert_eq!((outcome, made.get()), (Err(attempts.to_string()), attempts));
        }
    }
}
