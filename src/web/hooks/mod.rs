//! Webhooks of the forges and of messengers. Whether a forge's delivery is real is decided on its
//! bytes as they came, and all that a real one does is to have the forges looked at.
//!
//! What it says is not believed, so a delivery that somebody repeats or makes up with a stolen
//! secret causes a look and nothing else. The answer does not wait for the look.

mod github;
mod gitlab;
mod messengers;
mod signature;

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::Value;

use super::Web;
use super::problem::Problem;

/// Largest delivery. Larger ones are pushes of thousands of commits, which nobody waits for.
const LARGEST: usize = 4 * 1024 * 1024;
/// Most characters of the id of a delivery.
const LONGEST_ID: usize = 100;

/// A delivery that was shown to be real.
struct Delivery {
    /// By which a repetition is told.
    id: String,
    /// Whether it is of a kind that can mean work.
    is_of_interest: bool,
}

/// Why a delivery is not taken.
enum NotTaken {
    /// The configuration has no secret for this forge.
    NotConfigured(&'static str),
    /// It was not signed, or not by the forge.
    Unsigned(&'static str),
    /// It is not what the forge sends.
    Malformed(&'static str),
}

pub(super) fn routes() -> Router<Arc<Web>> {
    Router::new()
        .route("/hooks/github", post(github))
        .route("/hooks/gitlab", post(gitlab))
        .route("/hooks/slack", post(messengers::slack))
        .route("/hooks/line", post(messengers::line))
        .layer(DefaultBodyLimit::max(LARGEST))
}

async fn github(State(web): State<Arc<Web>>, headers: HeaderMap, body: Result<Bytes, BytesRejection>) -> Response {
    let config = &web.service.config().http.webhooks.github;
    let judged = whole(body).map(|body| github::judge(config, &headers, &body));
    take(&web, "github", judged).await
}

async fn gitlab(State(web): State<Arc<Web>>, headers: HeaderMap, body: Result<Bytes, BytesRejection>) -> Response {
    let config = &web.service.config().http.webhooks.gitlab;
    let now = chrono::Utc::now();
    let judged = whole(body).map(|body| gitlab::judge(config, &headers, &body, now));
    take(&web, "gitlab", judged).await
}

fn whole(body: Result<Bytes, BytesRejection>) -> Result<Bytes, Problem> {
    body.map_err(|rejection| {
        let detail = format!(
            "the body is larger than {} MiB, or did not come whole",
            LARGEST / 1024 / 1024
        );
        Problem::new(rejection.status(), detail)
    })
}

async fn take(web: &Web, forge: &str, judged: Result<Result<Delivery, NotTaken>, Problem>) -> Response {
    let refused = |outcome: &str, status, detail: &str| {
        web.meters.delivered(forge, outcome);
        Problem::new(status, detail).into_response()
    };
    let delivery = match judged {
        Err(problem) => return refused("malformed", problem.status, &problem.detail),
        Ok(Err(NotTaken::NotConfigured(detail))) => return refused("refused", StatusCode::NOT_FOUND, detail),
        Ok(Err(NotTaken::Unsigned(detail))) => return refused("refused", StatusCode::UNAUTHORIZED, detail),
        Ok(Err(NotTaken::Malformed(detail))) => return refused("malformed", StatusCode::BAD_REQUEST, detail),
        Ok(Ok(delivery)) => delivery,
    };
    let name = format!("delivery {forge} {}", delivery.id);
    let is_first = match web.service.store().first_time(&name, "").await {
        Ok(is_first) => is_first,
        Err(error) => return Problem::from(error).into_response(),
    };
    let outcome = match (is_first, delivery.is_of_interest) {
        (false, _) => "repeated",
        (true, false) => "not of interest",
        (true, true) => {
            web.service.look_now();
            "taken"
        }
    };
    web.meters.delivered(forge, outcome);
    (
        StatusCode::ACCEPTED,
        axum::Json(serde_json::json!({ "outcome": outcome })),
    )
        .into_response()
}

/// Returns a header that is there once and is short and plain.
fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    (values.next().is_none() && value.len() <= 1_024).then_some(value)
}

/// Returns the id of a delivery, if it is one.
fn delivery_id(headers: &HeaderMap, name: &str) -> Option<String> {
    let id = header(headers, name)?.trim();
    let is_sign = |sign: char| sign.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&sign);
    let is_id = !id.is_empty() && id.len() <= LONGEST_ID && id.chars().all(is_sign);
    is_id.then(|| id.to_owned())
}

/// Tells whether the body is a JSON object, as every delivery is.
fn is_object(body: &[u8]) -> bool {
    serde_json::from_slice::<Value>(body).is_ok_and(|value| value.is_object())
}
