//! Webhooks of the forges and of messengers. Whether a forge's delivery is real is decided on its
//! bytes as they came, and all that a real one does is to have the forges looked at.
//!
//! The content of a delivery is not believed, so one that somebody repeats or makes up with a
//! stolen secret causes a look and nothing else. The answer does not wait for the look.

mod body; // what was sent, within bounds
mod github;
mod gitlab;
mod messengers;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::Web;
use super::problem::Problem;
use crate::store::StoreError;
pub(super) use body::Room;

/// Most characters of the id of a delivery.
const LONGEST_ID: usize = 100;

/// A delivery that was shown to be real.
struct Delivery {
    /// The forge's id, by which a repetition is recognized.
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
}

async fn github(State(web): State<Arc<Web>>, headers: HeaderMap, body: Body) -> Response {
    let config = &web.service.config().http.webhooks.github;
    match web.deliveries.read(&headers, body).await {
        Ok(read) => {
            let judged = github::judge(config, &headers, &read.bytes);
            take(&web, "github", judged, &read.bytes).await
        }
        Err(problem) => malformed(&web, "github", problem),
    }
}

async fn gitlab(State(web): State<Arc<Web>>, headers: HeaderMap, body: Body) -> Response {
    let config = &web.service.config().http.webhooks.gitlab;
    match web.deliveries.read(&headers, body).await {
        Ok(read) => {
            let judged = gitlab::judge(config, &headers, &read.bytes, chrono::Utc::now());
            take(&web, "gitlab", judged, &read.bytes).await
        }
        Err(problem) => malformed(&web, "gitlab", problem),
    }
}

fn malformed(web: &Web, forge: &str, problem: Problem) -> Response {
    web.meters.delivered(forge, "malformed");
    let is_full = problem.status == StatusCode::SERVICE_UNAVAILABLE;
    let mut response = problem.into_response();
    if is_full {
        let seconds = HeaderValue::from_static("10");
        response.headers_mut().insert(header::RETRY_AFTER, seconds);
    }
    response
}

async fn take(web: &Web, forge: &str, judged: Result<Delivery, NotTaken>, body: &[u8]) -> Response {
    let refused = |outcome: &str, status, detail: &str| {
        web.meters.delivered(forge, outcome);
        Problem::new(status, detail).into_response()
    };
    let delivery = match judged {
        Err(NotTaken::NotConfigured(detail)) => return refused("refused", StatusCode::NOT_FOUND, detail),
        Err(NotTaken::Unsigned(detail)) => return refused("refused", StatusCode::UNAUTHORIZED, detail),
        Err(NotTaken::Malformed(detail)) => return refused("malformed", StatusCode::BAD_REQUEST, detail),
        Ok(delivery) => delivery,
    };
    let is_first = match is_first(web, forge, &delivery, body).await {
        Ok(is_first) => is_first,
        Err(error) => {
            web.meters.delivered(forge, "failed");
            return Problem::from(error).into_response();
        }
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

/// Tells whether a delivery did not come before: by its id, and by what it says, since neither id
/// nor event is part of GitHub's signature, and whoever repeats a delivery can give it another one.
async fn is_first(web: &Web, forge: &str, delivery: &Delivery, body: &[u8]) -> Result<bool, StoreError> {
    let store = web.service.store();
    let is_first = store
        .first_time(&format!("delivery {forge} {}", delivery.id), "")
        .await?;
    if !is_first || !delivery.is_of_interest {
        return Ok(is_first);
    }
    let digest = URL_SAFE_NO_PAD.encode(Sha256::digest(body));
    store.first_time(&format!("delivered {forge} {digest}"), "").await
}

/// Returns a header that is there once and is short and plain.
fn sole<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    (values.next().is_none() && value.len() <= 1_024).then_some(value)
}

/// Returns the id of a delivery, if it is one.
fn delivery_id(headers: &HeaderMap, name: &str) -> Option<String> {
    let id = sole(headers, name)?.trim();
    let is_sign = |sign: char| sign.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&sign);
    let is_id = !id.is_empty() && id.len() <= LONGEST_ID && id.chars().all(is_sign);
    is_id.then(|| id.to_owned())
}

/// Tells whether the body is a JSON object, as every delivery is.
fn is_object(body: &[u8]) -> bool {
    serde_json::from_slice::<Value>(body).is_ok_and(|value| value.is_object())
}
