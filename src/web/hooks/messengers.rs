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
use crate::chat::{Heard, NotKept};
use crate::messenger::line;
use crate::messenger::slack;
use crate::messenger::slack::request::RequestContent;
use crate::web::Web;
use crate::web::problem::Problem;

/// `POST /hooks/slack`: the Events API and interactive components.
pub(super) async fn slack(State(web): State<Arc<Web>>, headers: HeaderMap, body: Body) -> Response {
    const SENDER: &str = "slack";
    let secret = &web.service.config().chat.slack.signing_secret;
    let (Some(chat), Some(secret)) = (&web.chat, secret) else {
        return not_configured(&web, SENDER, "chat.slack has no signing_secret_file");
    };
    let read = match web.deliveries.read(&headers, body).await {
        Ok(read) => read,
        Err(problem) => return malformed(&web, SENDER, problem),
    };
    match slack::request::judge(secret, &headers, &read.bytes, Utc::now()) {
        Err(slack::request::NotTaken::Unsigned) => unsigned(
            &web,
            SENDER,
            "X-Slack-Signature is missing or wrong, or too old; see that chat.slack has the app's signing secret",
        ),
        Err(slack::request::NotTaken::Malformed) => {
            let problem = Problem::bad_request("the body is not what Slack sends");
            malformed(&web, SENDER, problem)
        }
        Ok(RequestContent::Challenge(challenge)) => axum::Json(json!({ "challenge": challenge })).into_response(),
        Ok(RequestContent::Payload(payload)) => answer(&web, SENDER, chat.take_from_slack(&payload).await),
    }
}

/// `POST /hooks/line`.
pub(super) async fn line(State(web): State<Arc<Web>>, headers: HeaderMap, body: Body) -> Response {
    const SENDER: &str = "line";
    let secret = &web.service.config().chat.line.channel_secret;
    let (Some(chat), Some(secret)) = (&web.chat, secret) else {
        return not_configured(&web, SENDER, "chat.line has no channel_secret_file");
    };
    let read = match web.deliveries.read(&headers, body).await {
        Ok(read) => read,
        Err(problem) => return malformed(&web, SENDER, problem),
    };
    match line::request::judge(secret, &headers, &read.bytes, Utc::now()) {
        Err(line::request::NotTaken::Unsigned) => unsigned(
            &web,
            SENDER,
            "X-Line-Signature is missing or wrong; see that chat.line has the channel's secret",
        ),
        Err(line::request::NotTaken::Malformed) => {
            malformed(&web, SENDER, Problem::bad_request("the body is not what LINE sends"))
        }
        Ok(incoming) => answer(&web, SENDER, chat.take_from_line(incoming).await),
    }
}

/// Counts what became of a delivery, and answers it. What is not kept is sent again because of the
/// answer.
fn answer(web: &Web, sender: &str, taken: Result<Vec<Heard>, NotKept>) -> Response {
    let heard = match taken {
        Ok(heard) => heard,
        Err(reason) => {
            web.meters.delivered(sender, "failed");
            return problem(reason).into_response();
        }
    };
    if heard.is_empty() {
        web.meters.delivered(sender, "not of interest");
    }
    for one in heard {
        let outcome = match one {
            Heard::Taken => "taken",
            Heard::Repeated => "repeated",
            Heard::Ignored => "not of interest",
        };
        web.meters.delivered(sender, outcome);
    }
    StatusCode::OK.into_response()
}

fn problem(reason: NotKept) -> Problem {
    match reason {
        NotKept::Store(error) => Problem::from(error),
        NotKept::NoOwnName(_) => {
            tracing::warn!("a delivery could not be taken: {reason}");
            let detail = "Slack does not tell who the bot is; the log of the program says why";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        }
    }
}

fn not_configured(web: &Web, sender: &str, what: &str) -> Response {
    web.meters.delivered(sender, "refused");
    let detail = format!("messages of {sender} are not taken: {what}");
    Problem::new(StatusCode::NOT_FOUND, detail).into_response()
}

fn unsigned(web: &Web, sender: &str, detail: &str) -> Response {
    web.meters.delivered(sender, "refused");
    Problem::new(StatusCode::UNAUTHORIZED, detail).into_response()
}
