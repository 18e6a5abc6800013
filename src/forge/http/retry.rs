//! Decides which requests are repeated, and when.
//!
//! Three repeats after the first attempt, with growing pauses and some chance in them. A forge that
//! names a time is believed; a wait of more than a minute is not slept through but handed to the
//! caller, who can park the run. A write that must not happen twice is only repeated where the
//! forge said that it did nothing; in doubt, [`once`] looks whether it happened.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use http::{HeaderMap, StatusCode};
use url::Url;

use crate::certificates;
use crate::forge::http::failure::{Failure, one_line};
use crate::http::maintenance::takes_no_writes;
use crate::http::page::{PAGE, is_page};
use crate::http::proxy::Proxy;
use crate::http::remedy::Reason;
use crate::http::{AttemptError, Backoff, BodyError, LONGEST_WAIT, read_body, reason, retry, retry_after};

/// Time for one attempt, from the first byte sent to the last one received.
pub(crate) const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest answer that is read. The biggest real ones, a page of a hundred long comments, stay
/// below.
pub(crate) const LONGEST_ANSWER: usize = 32 * 1024 * 1024;

const REQUEST: Backoff = Backoff::thrice(Duration::from_millis(200), 3.0);
/// Retries for a forge that does not see yet what was just pushed, over at least 90 seconds. GitLab
/// 19 was seen to take 38 seconds; for all of its requests it needed a minute.
const PUSH: Backoff = Backoff {
    first: Duration::from_millis(500),
    factor: 2.0,
    longest: Duration::from_secs(15),
    repeats: 10,
};

/// An answer of the forge, whatever its status.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Returns an answer of which everything was read.
    pub(crate) fn whole(head: http::response::Parts, body: Bytes) -> Self {
        Self {
            status: head.status,
            headers: head.headers,
            body,
        }
    }

    /// Reads an answer to its end, and fails if it is too long.
    pub(crate) async fn read(mut response: reqwest::Response) -> Result<Self, Failure> {
        let body = read_body(&mut response, LONGEST_ANSWER).await;
        let body = body.map_err(|error| match error {
            BodyError::TooLong => Failure::unreadable("it is too long"),
            BodyError::Broken(error) => no_answer(&error),
        })?;
        let answer = Self {
            status: response.status(),
            headers: response.headers().clone(),
            body,
        };
        Ok(answer.naming_proxy(response.url()))
    }

    /// Returns an answer from `address`. A refusal whose text is a page, and which came through a
    /// proxy, has the name of that proxy in the place of the page: it may be the proxy's own.
    pub(crate) fn naming_proxy(mut self, address: &Url) -> Self {
        let is_refusal = self.status.is_client_error() || self.status.is_server_error();
        if is_refusal
            && is_page(&self.body)
            && !is_limit(&self)
            && let Some(proxy) = Proxy::on_the_way(address)
        {
            self.body = Bytes::from(proxy.told(PAGE));
        }
        self
    }
}

/// Returns the failure for a missing or incomplete answer. It names only the host: the rest of the
/// address may be confidential.
pub(crate) fn no_answer(error: &reqwest::Error) -> Failure {
    let host = error.url().and_then(Url::host_str).unwrap_or("the server");
    let why = reason(error);
    let reason = if let Some(complaint) = certificates::complaint(error) {
        complaint
    } else if error.is_timeout() {
        format!("no complete answer within {} seconds", ATTEMPT_TIMEOUT.as_secs())
    } else if error.is_connect() {
        format!("{host} cannot be reached: {why}")
    } else {
        format!("the connection to {host} broke off: {why}")
    };
    match error.url() {
        Some(address) => down(address, &reason),
        None => Failure::Down {
            reason: Reason::of_own_words(&reason),
        },
    }
}

/// Returns the failure of a request to `address` that was not answered, with the proxy in the
/// reason that it went through.
pub(crate) fn down(address: &Url, reason: &str) -> Failure {
    let reason = Reason::of_own_words(reason);
    Failure::Down {
        reason: match Proxy::on_the_way(address) {
            Some(proxy) => proxy.in_reason(reason),
            None => reason,
        },
    }
}

/// Whether a request may be sent again if nobody knows whether it was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It may, because repeating it changes nothing.
    Always,
    /// It may not, unless the forge refused it for now.
    IfNotDone,
}

/// Sends a request until there is an answer that repeating would not change, a 4xx included.
pub(crate) async fn send<F, A>(repeat: Repeat, mut attempt: F) -> Result<Answer, Failure>
where
    F: FnMut() -> A,
    A: Future<Output = Result<Answer, Failure>>,
{
    retry(REQUEST, "a request to a forge", || {
        let answer = attempt();
        async move {
            let judged = answer
                .await
                .map_err(|failure| (failure, Duration::ZERO))
                .and_then(judge);
            judged.map_err(|(error, wait)| match &error {
                Failure::Limited { .. } => AttemptError::Transient { error, wait },
                Failure::Down { .. } if repeat == Repeat::Always => AttemptError::Transient { error, wait },
                _ => AttemptError::Final(error),
            })
        }
    })
    .await
}

/// Does a write that must happen once: if its outcome is unknown, `find` looks for its result
/// before the write is repeated.
///
/// With `search_first` it looks before the first write as well, because an earlier process may have
/// done it.
pub(crate) async fn once<T, F, FindFuture, M, MakeFuture>(search_first: bool, find: F, make: M) -> Result<T, Failure>
where
    F: Fn() -> FindFuture,
    FindFuture: Future<Output = Result<Option<T>, Failure>>,
    M: Fn() -> MakeFuture,
    MakeFuture: Future<Output = Result<T, Failure>>,
{
    let may_exist = AtomicBool::new(search_first);
    retry(REQUEST, "a write to a forge", || async {
        if may_exist.load(Ordering::Relaxed)
            && let Some(found) = find().await.map_err(AttemptError::Final)?
        {
            return Ok(found);
        }
        make().await.map_err(|error| match error {
            Failure::Down { .. } => {
                may_exist.store(true, Ordering::Relaxed);
                AttemptError::Transient {
                    error,
                    wait: Duration::ZERO,
                }
            }
            error => AttemptError::Final(error),
        })
    })
    .await
}

/// Repeats a write while the forge answers that it does not know what was just pushed: its API and
/// its git do not share a store, and the API may lag. `is_early` recognises that answer. If it
/// never changes, that counts as an outage, so that the run is postponed; a failure would throw
/// away work whose branch is pushed already.
pub(crate) async fn until_seen<T, M, MakeFuture>(is_early: impl Fn(&Failure) -> bool, mut make: M) -> Result<T, Failure>
where
    M: FnMut() -> MakeFuture,
    MakeFuture: Future<Output = Result<T, Failure>>,
{
    let outcome = retry(PUSH, "a request that needs what was just pushed", || {
        let attempt = make();
        async {
            attempt.await.map_err(|error| {
                if is_early(&error) {
                    let wait = Duration::ZERO;
                    AttemptError::Transient { error, wait }
                } else {
                    AttemptError::Final(error)
                }
            })
        }
    })
    .await;
    outcome.map_err(|failure| match failure {
        early if is_early(&early) => Failure::Down {
            reason: format!("the branch was pushed, and the forge does not see it yet ({early})").into(),
        },
        failure => failure,
    })
}

/// Returns the answer if repeating would not change it, else its failure and how long the forge
/// asks to wait.
fn judge(answer: Answer) -> Result<Answer, (Failure, Duration)> {
    let now = Utc::now();
    let wait = asked_wait(&answer, now);
    if is_limit(&answer) {
        return Err((limited(&answer), wait.unwrap_or_default()));
    }
    let is_down = answer.status.is_server_error() || answer.status == StatusCode::REQUEST_TIMEOUT;
    if is_down || is_read_only(&answer) {
        let said = one_line(&String::from_utf8_lossy(&answer.body));
        let text = format!("the answer was {} {said}", answer.status).trim_end().to_owned();
        // In the place of a page stand words of this program.
        let reason = if said.starts_with(PAGE) {
            Reason::of_own_words(&text)
        } else {
            text.into()
        };
        return Err((Failure::Down { reason }, wait.unwrap_or_default()));
    }
    Ok(answer)
}

/// Returns the failure of a request that was refused because of a limit.
pub(crate) fn limited(answer: &Answer) -> Failure {
    let now = Utc::now();
    // No real limit lasts longer than a day; a wild number would not even fit into a date.
    let rest = TimeDelta::from_std(asked_wait(answer, now).unwrap_or(LONGEST_WAIT)).unwrap_or(TimeDelta::days(1));
    Failure::Limited {
        until: now + rest.min(TimeDelta::days(1)),
    }
}

/// Returns how long a forge that refused a request because of a limit asks to wait, if it does.
pub(crate) fn asked_by_limit(answer: &Answer) -> Option<Duration> {
    is_limit(answer).then(|| asked_wait(answer, Utc::now())).flatten()
}

/// Tells whether an answer is a rate limit. GitHub limits with 429 and with 403; a 403 is a limit
/// only by its headers or its text.
fn is_limit(answer: &Answer) -> bool {
    match answer.status {
        StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::FORBIDDEN => {
            answer.headers.contains_key("retry-after")
                || is_used_up(&answer.headers)
                || is_secondary_limit(&answer.body)
        }
        _ => false,
    }
}

fn is_secondary_limit(body: &[u8]) -> bool {
    let body = beginning(body).to_lowercase();
    body.contains("secondary rate limit") || body.contains("abuse detection")
}

/// Tells whether the forge refused a write because it takes none for now. GitLab answers 403 then,
/// while GitHub Enterprise Server in maintenance has a page with status 503.
fn is_read_only(answer: &Answer) -> bool {
    answer.status == StatusCode::FORBIDDEN && takes_no_writes(&beginning(&answer.body))
}

fn beginning(body: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(&body[..body.len().min(2000)])
}

/// Tells whether the forge takes no more requests until a limit is set anew.
pub(crate) fn is_used_up(headers: &HeaderMap) -> bool {
    ["x-ratelimit-remaining", "ratelimit-remaining"]
        .iter()
        .any(|name| number(headers, name) == Some(0))
}

/// Returns how long the forge asks to wait. For a secondary limit without a time GitHub's rule is
/// one minute.
fn asked_wait(answer: &Answer, now: DateTime<Utc>) -> Option<Duration> {
    let seconds = |moment: DateTime<Utc>| (moment - now).to_std().unwrap_or_default();
    let headers = &answer.headers;
    if headers.contains_key("retry-after") {
        return retry_after(headers, now);
    }
    if is_used_up(headers)
        && let Some(reset) = number(headers, "x-ratelimit-reset").or_else(|| number(headers, "ratelimit-reset"))
        && let Some(reset) = DateTime::from_timestamp(reset, 0)
    {
        // The forge's clock and ours differ a little: one second more saves one refused request.
        return Some(seconds(reset) + Duration::from_secs(1));
    }
    is_secondary_limit(&answer.body).then_some(LONGEST_WAIT)
}

fn number(headers: &HeaderMap, name: &str) -> Option<i64> {
    headers.get(name)?.to_str().ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use backon::BackoffBuilder;

    use super::*;

    fn answer(status: u16, headers: &[(&'static str, &str)], body: &'static str) -> Answer {
        Answer {
            status: StatusCode::from_u16(status).unwrap(),
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).parse::<http::HeaderName>().unwrap(), value.parse().unwrap()))
                .collect(),
            body: Bytes::from_static(body.as_bytes()),
        }
    }

    /// Sends against a list of answers and returns the outcome, the attempts and the time it took.
    async fn play(repeat: Repeat, answers: Vec<Answer>) -> (Result<StatusCode, Failure>, usize, Duration) {
        let answers = RefCell::new(answers.into_iter());
        let attempts = Cell::new(0);
        let start = tokio::time::Instant::now();
        let outcome = send(repeat, || {
            attempts.set(attempts.get() + 1);
            let next = answers.borrow_mut().next();
            async move { next.ok_or(Failure::unreadable("the script is exhausted")) }
        })
        .await;
        (outcome.map(|answer| answer.status), attempts.get(), start.elapsed())
    }

    #[tokio::test]
    async fn a_server_error_is_tried_three_times_again() {
        let (outcome, attempts, _) = play(Repeat::Always, vec![answer(502, &[], "x; y"); 9]).await;
        let said = Reason::from("the answer was 502 Bad Gateway x; y".to_owned());
        assert!(matches!(outcome, Err(Failure::Down { reason }) if reason == said));
        assert_eq!(attempts, 4);
    }

    #[tokio::test]
    async fn a_write_of_unknown_outcome_is_not_repeated_blindly() {
        let (outcome, attempts, _) = play(Repeat::IfNotDone, vec![answer(500, &[], "")]).await;
        assert!(matches!(outcome, Err(Failure::Down { .. })));
        assert_eq!(attempts, 1);
    }

    #[tokio::test]
    async fn the_wait_that_the_forge_asks_for_is_kept() {
        let limited = answer(429, &[("retry-after", "1")], "");
        let (outcome, attempts, took) = play(Repeat::IfNotDone, vec![limited, answer(201, &[], "")]).await;
        assert_eq!(outcome.unwrap(), StatusCode::CREATED);
        assert_eq!(attempts, 2);
        let asked = Duration::from_secs(1);
        assert!(took >= asked && took < asked * 30, "{took:?}");
    }

    #[tokio::test]
    async fn a_long_wait_is_handed_to_the_caller() {
        let reset = (Utc::now() + TimeDelta::seconds(600)).timestamp();
        let limited = answer(
            403,
            &[
                ("x-ratelimit-remaining", "0"),
                ("x-ratelimit-reset", &reset.to_string()),
            ],
            "",
        );
        let (outcome, attempts, _) = play(Repeat::Always, vec![limited]).await;
        let Err(Failure::Limited { until }) = outcome else {
            panic!("{outcome:?}")
        };
        let beyond = until.timestamp() - reset;
        assert!((0..=2).contains(&beyond), "{beyond}");
        assert_eq!(attempts, 1);
    }

    #[test]
    fn a_secondary_limit_without_a_time_means_a_minute() {
        let limited = answer(403, &[], "{\"message\":\"You have exceeded a secondary rate limit.\"}");
        let (_, wait) = judge(limited).err().unwrap();
        assert_eq!(wait, LONGEST_WAIT);
    }

    #[tokio::test]
    async fn a_forge_in_maintenance_is_down() {
        for (status, body) in [
            (
                403,
                "{\"message\":\"You cannot perform write operations on a read-only instance\"}",
            ),
            (503, "<!DOCTYPE html><title>Undergoing maintenance</title>"),
        ] {
            let (outcome, attempts, _) = play(Repeat::IfNotDone, vec![answer(status, &[], body)]).await;
            assert!(matches!(outcome, Err(Failure::Down { .. })), "{outcome:?}");
            assert_eq!(attempts, 1);
        }
    }

    #[tokio::test]
    async fn a_plain_refusal_is_an_answer() {
        let (outcome, attempts, _) = play(Repeat::Always, vec![answer(403, &[], "no")]).await;
        assert_eq!((outcome.unwrap(), attempts), (StatusCode::FORBIDDEN, 1));
    }

    #[tokio::test]
    async fn what_an_unclear_write_left_behind_is_found_instead_of_made_again() {
        let made = Cell::new(0);
        let outcome = once(
            false,
            || async { Ok((made.get() > 0).then_some("found")) },
            || async {
                made.set(made.get() + 1);
                Err(Failure::Down {
                    reason: "cut".to_owned().into(),
                })
            },
        )
        .await;
        assert_eq!((outcome.unwrap(), made.get()), ("found", 1));
    }

    #[test]
    fn a_forge_that_does_not_see_a_branch_is_given_a_minute_and_a_half() {
        // Chance only makes the pauses longer.
        let least: Duration = PUSH.pauses().build().sum();
        assert!(least >= Duration::from_secs(90), "{least:?}");
        assert!(least <= Duration::from_secs(2 * 91), "{least:?}");
    }

    #[tokio::test]
    async fn only_the_answer_that_it_is_not_seen_yet_is_waited_for() {
        let refused = || Failure::Answered {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            message: "no".to_owned(),
        };
        let is_early = |failure: &Failure| matches!(failure, Failure::Down { .. });
        let attempts = Cell::new(0);
        let outcome: Result<(), _> = until_seen(is_early, || {
            attempts.set(attempts.get() + 1);
            async { Err(refused()) }
        })
        .await;
        assert!(matches!(outcome, Err(Failure::Answered { .. })), "{outcome:?}");
        assert_eq!(attempts.get(), 1);
    }

    #[tokio::test]
    async fn a_write_that_left_nothing_is_made_again() {
        let made = Cell::new(0);
        let outcome = once(
            true,
            || async { Ok(None) },
            || async {
                made.set(made.get() + 1);
                if made.get() < 3 {
                    return Err(Failure::Down {
                        reason: "cut".to_owned().into(),
                    });
                }
                Ok("made")
            },
        )
        .await;
        assert_eq!((outcome.unwrap(), made.get()), ("made", 3));
    }
}
