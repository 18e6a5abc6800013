//! How GitHub answers: pages with links, and refusals in its own words.

use axum::Json;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::response::Response;
use serde_json::Value;
use serde_json::json;

use crate::fake::answer::linked;
use crate::fake::request::Query;

pub use crate::fake::answer::created;
pub use crate::fake::answer::no_content;
pub use crate::fake::answer::ok;

/// The result of every handler.
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

/// Answers with one page of a list, and links to the others.
pub fn page(query: &Query, base: &str, items: Vec<Value>) -> Answer {
    Ok(linked(query, base, &query.page(items, 30)))
}
