//! The gate that every request passes, which checks the host that it names, who sends it, and
//! whether they may do what it asks for.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};

use super::{Refusal, Visitor};
use crate::web::Web;
use crate::web::problem::Problem;
use crate::web::server::Peer;

/// Largest body of a request, but for webhooks.
const LARGEST: usize = 256 * 1024;
/// Time for a request and its answer; the stream of events begins within it.
const LONGEST: Duration = Duration::from_mins(1);
/// The field of a form, and the header of a script on a page, that has the session's form token.
const FORM_FIELD: &str = "form_token";
const FORM_HEADER: HeaderName = HeaderName::from_static("x-form-token");

/// The content policy of every page: it loads nothing but what this server itself serves, and runs
/// no script that stands in it.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Bounds the time of every request, and adds the headers that restrict browsers to every answer.
pub(in crate::web) async fn frame(request: Request, next: Next) -> Response {
    let mut response = match tokio::time::timeout(LONGEST, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            Problem::new(StatusCode::GATEWAY_TIMEOUT, "the answer took too long; try again later").into_response()
        }
    };
    if let Some(problem) = plain(&response) {
        response = problem.into_response();
    }
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        // Under `no-referrer` browsers send `Origin: null` with a form of this server's own.
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Returns a problem in the place of a refusal that the HTTP library wrote as plain text.
fn plain(response: &Response) -> Option<Problem> {
    let kind = response
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    let is_plain = kind.is_none_or(|kind| kind.starts_with("text/plain"));
    let detail = match response.status() {
        _ if !is_plain => return None,
        StatusCode::PAYLOAD_TOO_LARGE => return Some(too_large()),
        StatusCode::METHOD_NOT_ALLOWED => "this address does not take this method",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "the body must have the type of a form, or of JSON",
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
            "the request does not fit what is at this address"
        }
        _ => return None,
    };
    Some(Problem::new(response.status(), detail))
}

/// Lets a request pass whose sender is known and may do what it asks for; the handler gets the
/// [`Visitor`]. Whoever is not let in gets a page to log in, or a problem.
pub(in crate::web) async fn admit(State(web): State<Arc<Web>>, request: Request, next: Next) -> Response {
    let peer = peer(&request);
    let is_page = is_page(&request);
    let has_bearer = request.headers().contains_key(header::AUTHORIZATION);
    // No browser adds a token by itself, so a script may use any name of this machine.
    if !has_bearer && !web.access.addresses.is_own_host(request.headers()) {
        return misdirected().into_response();
    }
    let identified = web.access.identify(web.service.store(), request.headers(), peer).await;
    let visitor = match identified {
        Ok(Ok(visitor)) => visitor,
        Ok(Err(Refusal::TooOften)) => return too_often().into_response(),
        Ok(Err(_)) if is_page && !has_bearer && request.method() == Method::GET => {
            return Redirect::to("/login").into_response();
        }
        Ok(Err(refusal)) => return unknown(refusal).into_response(),
        Err(error) => return Problem::from(error).into_response(),
    };
    let request = match judge(&web, &visitor, request).await {
        Ok(request) => request,
        Err(problem) => return problem.into_response(),
    };
    next.run(with(request, visitor)).await
}

fn with(mut request: Request, visitor: Visitor) -> Request {
    request.extensions_mut().insert(visitor);
    request
}

/// Judges a request that changes something: the visitor must be allowed to, and a browser must have
/// been sent by a page of this server.
async fn judge(web: &Web, visitor: &Visitor, request: Request) -> Result<Request, Problem> {
    if matches!(*request.method(), Method::GET | Method::HEAD) {
        return Ok(request);
    }
    let refused = |detail: &str| Problem::new(StatusCode::FORBIDDEN, detail);
    let is_own_session = request.uri().path() == "/logout";
    if !visitor.may_act() && !is_own_session {
        return Err(refused(
            "this user only looks; to act, a user needs `can: approve` in http.users of the configuration",
        ));
    }
    let Some(expected) = &visitor.form_token else {
        return Ok(request);
    };
    if !web.access.addresses.is_own_origin(request.headers()) {
        return Err(refused("the request was not sent by a page of this server"));
    }
    let (head, body) = request.into_parts();
    let body = to_bytes(body, LARGEST).await.map_err(|_| too_large())?;
    if given(&head.headers, &body).as_deref() != Some(expected) {
        return Err(refused("the page is too old; load it again, and repeat what you did"));
    }
    Ok(Request::from_parts(head, Body::from(body)))
}

/// Returns the form token that a request carries.
fn given(headers: &HeaderMap, body: &[u8]) -> Option<String> {
    if let Some(value) = headers.get(FORM_HEADER) {
        return value.to_str().ok().map(str::to_owned);
    }
    let fields = url::form_urlencoded::parse(body);
    fields
        .into_iter()
        .find(|(name, _)| name == FORM_FIELD)
        .map(|(_, value)| value.into_owned())
}

/// Judges a login: it must name this server, and come from a page of it.
pub(in crate::web) fn judge_login(web: &Web, headers: &HeaderMap) -> Result<(), Problem> {
    if !web.access.addresses.is_own_host(headers) {
        return Err(misdirected());
    }
    if !web.access.addresses.is_own_origin(headers) {
        let detail = "the request was not sent by a page of this server";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    Ok(())
}

pub(in crate::web) fn peer(request: &Request) -> IpAddr {
    let peer = request.extensions().get::<Peer>();
    peer.map_or(IpAddr::from([0, 0, 0, 0]), |Peer(address)| address.ip())
}

/// Tells whether a person's browser is to see a page.
fn is_page(request: &Request) -> bool {
    let path = request.uri().path();
    !path.starts_with("/api/") && path != "/metrics"
}

fn too_often() -> Problem {
    let detail = "too many wrong tokens came from this address; wait a minute";
    Problem::new(StatusCode::TOO_MANY_REQUESTS, detail)
}

fn too_large() -> Problem {
    let detail = format!("the body is larger than {} KiB", LARGEST / 1024);
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail)
}

fn misdirected() -> Problem {
    let detail = "the host in the address is not one of this server; open the address of http.listen, \
                  or name this one as http.public_url";
    Problem::new(StatusCode::MISDIRECTED_REQUEST, detail)
}

fn unknown(refusal: Refusal) -> Problem {
    let detail = match refusal {
        Refusal::Nothing => "a token is needed: send it as `Authorization: Bearer ...`, or log in at /login",
        Refusal::Wrong | Refusal::TooOften => "the token or the session is not good, any more; log in again",
    };
    Problem::new(StatusCode::UNAUTHORIZED, detail)
}
