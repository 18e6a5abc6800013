//! The forms of the pages: read here, and answered with the page that shows the outcome. Their
//! effects are in `acting`, as for scripts.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Form, Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::{Extension, RequestExt};

use super::language::{COOKIE, Language};
use super::views::Visit;
use crate::web::Web;
use crate::web::access::{Refusal, Visitor, gate};
use crate::web::acting::{Details, Tokens};
use crate::web::api::{NewTask, QueryParameters, run_id};
use crate::web::problem::Problem;

type Fields = Form<HashMap<String, String>>;

/// A year, in seconds.
const LONG: u32 = 31_536_000;

pub(super) async fn log_in(State(web): State<Arc<Web>>, request: Request) -> Response {
    let peer = gate::peer(&request);
    if let Err(problem) = gate::judge_login(&web, request.headers()) {
        return problem.into_response();
    }
    let Ok(Form(fields)) = request.extract::<Fields, _>().await else {
        return Problem::bad_request("the form did not come whole, or is larger than a token needs").into_response();
    };
    let token = fields.get("token").map(|token| token.trim()).unwrap_or_default();
    match web.access.log_in(token, peer) {
        Ok(cookie) => with_cookie(Redirect::to("/").into_response(), &cookie),
        Err(Refusal::TooOften) => {
            let mut response = Redirect::to("/login?failed=often").into_response();
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from_static("60"));
            response
        }
        Err(_) => Redirect::to("/login?failed=wrong").into_response(),
    }
}

pub(super) async fn log_out(State(web): State<Arc<Web>>, Extension(visitor): Extension<Visitor>) -> Response {
    match web.access.log_out(web.service.store(), &visitor).await {
        Ok(cookie) => with_cookie(Redirect::to("/login").into_response(), &cookie),
        Err(error) => Problem::from(error).into_response(),
    }
}

fn with_cookie(mut response: Response, cookie: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
    response
}

/// Keeps the language that somebody chose. The way back is an address of this server alone.
pub(super) async fn choose_language(query: QueryParameters) -> Response {
    let Some(language) = query.text("to").and_then(Language::of_code) else {
        return Problem::bad_request("`to` must be en or ja").into_response();
    };
    let back = query.text("back").filter(|back| is_own_path(back)).unwrap_or("/");
    let cookie = format!("{COOKIE}={}; Path=/; Max-Age={LONG}; SameSite=Lax", language.code());
    with_cookie(Redirect::to(back).into_response(), &cookie)
}

fn is_own_path(path: &str) -> bool {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "/-_.?=&%:".contains(sign);
    path.starts_with('/') && !path.starts_with("//") && path.chars().all(is_plain)
}

pub(super) async fn act(
    State(web): State<Arc<Web>>,
    Extension(visitor): Extension<Visitor>,
    Path((id, action)): Path<(String, String)>,
    headers: HeaderMap,
    Form(fields): Fields,
) -> Response {
    let details = Details {
        digest: fields.get("digest").cloned(),
        reason: fields.get("reason").cloned(),
        tokens: fields.get("tokens").cloned().map(Tokens::Text),
    };
    let acted = match run_id(&id) {
        Ok(run) => web
            .act(&visitor, run, &action, details)
            .await
            .map(|outcome| (run, outcome.unusual())),
        Err(problem) => Err(problem),
    };
    match acted {
        Ok((run, None)) => Redirect::to(&format!("/runs/{run}?did={action}")).into_response(),
        Ok((run, Some(came))) => Redirect::to(&format!("/runs/{run}?did={action}&came={came}")).into_response(),
        Err(problem) => Visit::new(web, &headers, Some(visitor), "/").problem(&problem),
    }
}

pub(super) async fn open_task(
    State(web): State<Arc<Web>>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    Form(mut fields): Fields,
) -> Response {
    let mut take = |name: &str| fields.remove(name).unwrap_or_default();
    let task = NewTask {
        repository: take("repository"),
        title: take("title"),
        text: take("text"),
    };
    let key = take("key");
    let key = (!key.is_empty()).then_some(key);
    match web.open_task(&visitor, task, key.as_deref()).await {
        Ok(_) => Redirect::to("/").into_response(),
        Err(problem) => Visit::new(web, &headers, Some(visitor), "/new").problem(&problem),
    }
}

pub(super) async fn switch_approval(
    State(web): State<Arc<Web>>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    Form(fields): Fields,
) -> Response {
    let is_on = fields.get("on").is_some_and(|on| on == "true");
    let minutes = fields.get("minutes").filter(|minutes| !minutes.is_empty());
    let switched = match minutes.map(|minutes| minutes.parse()).transpose() {
        Ok(minutes) => web.switch_approval(&visitor, is_on, minutes).await,
        Err(_) => Err(Problem::bad_request("`minutes` must be a whole number")),
    };
    match switched {
        Ok(()) => Redirect::to("/").into_response(),
        Err(problem) => Visit::new(web, &headers, Some(visitor), "/").problem(&problem),
    }
}

pub(super) async fn clear_history(
    State(web): State<Arc<Web>>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
) -> Response {
    match web.clear_history(&visitor).await {
        Ok(()) => Redirect::to("/").into_response(),
        Err(problem) => Visit::new(web, &headers, Some(visitor), "/").problem(&problem),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_back_leads_to_this_server() {
        for (path, expected) in [
            ("/runs/1?state=done", true),
            ("/", true),
            ("//evil.example", false),
            ("/\\evil.example", false),
            ("https://evil.example", false),
            ("/a\r\nSet-Cookie: x", false),
        ] {
            assert_eq!(is_own_path(path), expected, "{path}");
        }
    }
}
