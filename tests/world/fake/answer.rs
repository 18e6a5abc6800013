//! The answers that both forges give alike. In which words each of them refuses is its own.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header;
use axum::response::IntoResponse;
use axum::response::Response;
use serde_json::Value;

use crate::fake::request::Page;
use crate::fake::request::Query;

pub fn ok<P>(value: Value) -> Result<Response, P> {
    Ok(Json(value).into_response())
}

pub fn created<P>(value: Value) -> Result<Response, P> {
    Ok((StatusCode::CREATED, Json(value)).into_response())
}

pub fn no_content<P>() -> Result<Response, P> {
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Answers with one page of a list, links to the others in its header.
pub fn linked(query: &Query, base: &str, page: &Page) -> Response {
    linked_body(query, base, page, Json(&page.items))
}

/// Answers with something that holds one page of a list.
pub fn linked_body(query: &Query, base: &str, page: &Page, body: impl IntoResponse) -> Response {
    let mut answer = body.into_response();
    if let Some(links) = query.links(base, page) {
        answer
            .headers_mut()
            .insert(header::LINK, links.parse().expect("an address is a proper header"));
    }
    answer
}
