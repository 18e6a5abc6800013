//! How GitHub answers: pages with links, and refusals in its own words.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header;
use axum::response::IntoResponse;
use axum::response::Response;
use serde_json::Value;
use serde_json::json;

use crate::fake::request::Query;

/// What every handler returns.
pub type Answer = Result<Response, Problem>;

const DOCUMENTATION: &str = "https://docs.github.com/rest";

/// A refusal, in GitHub's words.
#[derive(Clone, Debug)]
pub struct Problem {
    status: StatusCode,
    message: String,
    errors: Vec<Value>,
}

impl Problem {
    pub fn new(status: StatusCode, message: &str) -> Self {
        Self {
            status,
            message: message.to_owned(),
            errors: Vec::new(),
        }
    }

    pub fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "Not Found")
    }

    pub fn gone() -> Self {
        Self::new(StatusCode::GONE, "This issue was deleted")
    }

    pub fn forbidden(message: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, message)
    }

    /// A field that GitHub does not accept: `missing_field`, `invalid`, `already_exists`.
    pub fn invalid(resource: &str, field: &str, code: &str) -> Self {
        Self::failed(json!({"resource": resource, "field": field, "code": code}))
    }

    /// A rule that only a sentence can explain.
    pub fn custom(resource: &str, message: &str) -> Self {
        Self::failed(json!({"resource": resource, "code": "custom", "message": message}))
    }

    fn failed(error: Value) -> Self {
        let message = "Validation Failed".to_owned();
        Self {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            message,
            errors: vec![error],
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status.as_u16().to_string();
        let mut body = json!({"message": self.message, "documentation_url": DOCUMENTATION, "status": status});
        if !self.errors.is_empty() {
            body["errors"] = Value::Array(self.errors);
        }
        (self.status, Json(body)).into_response()
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "handlers end with it, and may end with a refusal"
)]
pub fn ok(value: Value) -> Answer {
    Ok(Json(value).into_response())
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "handlers end with it, and may end with a refusal"
)]
pub fn created(value: Value) -> Answer {
    Ok((StatusCode::CREATED, Json(value)).into_response())
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "handlers end with it, and may end with a refusal"
)]
pub fn no_content() -> Answer {
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Answers with one page of a list, and links to the others.
#[expect(
    clippy::unnecessary_wraps,
    reason = "handlers end with it, and may end with a refusal"
)]
pub fn page(query: &Query, base: &str, items: Vec<Value>) -> Answer {
    let page = query.page(items, 30);
    let links = query.links(base, &page);
    let mut answer = Json(page.items).into_response();
    if let Some(links) = links {
        answer
            .headers_mut()
            .insert(header::LINK, links.parse().expect("an address is a proper header"));
    }
    Ok(answer)
}
