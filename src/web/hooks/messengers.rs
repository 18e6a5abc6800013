//! Webhooks of messengers: judged by the signature on the bytes as they came, and stored before
//! they are answered. A repetition is told by the messenger's name for the message.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use chrono::Utc;
use serde_json::json;

use super::malformed;
use crate::chat::Heard;
use crate::messenger::line;
use crate::messenger::slack;
use crate::messenger::slack::request::RequestContent;
use crate::web::Web;
use crate::web::problem::Problem;

/// `POST /hooks/slack`: the Events API and interactive components.
pub(super) async fn slack(State(web): State<Arc<Web>>, headers: HeaderMap, body: Body) -> Response {
    let secret = &web.service.config().chat.slack.signing_secret;
    let (Some(chat), Some(secret)) = (&web.chat, secret) else {
        return not_configured("slack", "chat.slack has no signing_secret_file");
    };
    let read = match web.deliveries.read(&headers, body).await {
        Ok(read) => read,
        Err(problem) => return malformed(&web, "slack", problem),
    };
    match slack::request::judge(secret, &headers, &read.bytes, Utc::now()) {
        Err(slack::request::NotTaken::Unsigned) => {
            web.meters.delivered("slack", "refused");
            unsigned(
                "X-Slack-Signature is missing or wrong, or too old; see that chat.slack has the app's signing secret",
            )
        }
        Err(slack::request::NotTaken::Malformed) => {
            web.meters.delivered("slack", "malformed");
            Problem::bad_request("the body is not what Slack sends").into_response()
        }
        Ok(RequestContent::Challenge(challenge)) => axum::Json(json!({ "challenge": challenge })).into_response(),
        Ok(RequestContent::Payload(payload)) => {
            if chat.hear_slack(&payload).await {
                web.meters.delivered("slack", "taken");
                return StatusCode::OK.into_response();
            }
            // Slack sends it again.
            StatusCode::SERVICE_UNAVAILABLE.into_response()
        }
    }
}

/// `POST /hooks/line`.
pub(super) async fn line(State(web): State<Arc<Web>>, headers: HeaderMap, body: Body) -> Response {
    let secret = &web.service.config().chat.line.channel_secret;
    let (Some(chat), Some(secret)) = (&web.chat, secret) else {
        return not_configured("line", "chat.line has no channel_secret_file");
    };
    let read = match web.deliveries.read(&headers, body).await {
        Ok(read) => read,
        Err(problem) => return malformed(&web, "line", problem),
    };
    let incoming = match line::request::judge(secret, &headers, &read.bytes, Utc::now()) {
        Err(line::request::NotTaken::Unsigned) => {
            web.meters.delivered("line", "refused");
            return unsigned("X-Line-Signature is missing or wrong; see that chat.line has the channel's secret");
        }
        Err(line::request::NotTaken::Malformed) => {
            web.meters.delivered("line", "malformed");
            return Problem::bad_request("the body is not what LINE sends").into_response();
        }
        Ok(incoming) => incoming,
    };
    match chat.take(incoming).await {
        Ok(heard) => {
            for one in heard {
                let outcome = match one {
                    Heard::Taken => "taken",
                    Heard::Repeated => "repeated",
                    Heard::Ignored => "not of interest",
                };
                web.meters.delivered("line", outcome);
            }
            StatusCode::OK.into_response()
        }
        Err(error) => Problem::from(error).into_response(),
    }
}

fn not_configured(messenger: &str, what: &str) -> Response {
    let detail = format!("messages of {messenger} are not taken: {what}");
    Problem::new(StatusCode::NOT_FOUND, detail).into_response()
}

fn unsigned(detail: &str) -> Response {
    Problem::new(StatusCode::UNAUTHORIZED, detail).into_response()
}
