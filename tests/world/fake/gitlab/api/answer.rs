//! How GitLab answers: pages with headers, and refusals in its own words.

use axum::Json;
use axum::http::HeaderValue;
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

/// A refusal, in GitLab's words.
#[derive(Clone, Debug)]
pub struct Problem {
    status: StatusCode,
    body: Value,
}

impl Problem {
    pub fn new(status: StatusCode, message: Value) -> Self {
        let body = [("message".to_owned(), message)].into_iter().collect();
        Self {
            status,
            body: Value::Object(body),
        }
    }

    pub fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, json!("401 Unauthorized"))
    }

    pub fn forbidden() -> Self {
        Self::new(StatusCode::FORBIDDEN, json!("403 Forbidden"))
    }

    /// A thing that is not there, or that the viewer may not see: a `Project`, or nothing in
    /// particular.
    pub fn not_found(what: &str) -> Self {
        let message = if what.is_empty() {
            "404 Not found".to_owned()
        } else {
            format!("404 {what} Not Found")
        };
        Self::new(StatusCode::NOT_FOUND, json!(message))
    }

    /// A write during maintenance.
    pub fn read_only() -> Self {
        let message = json!("You cannot perform write operations on a read-only instance");
        Self::new(StatusCode::FORBIDDEN, message)
    }

    pub fn missing(field: &str) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            body: json!({"error": format!("{field} is missing")}),
        }
    }

    /// A token that was not made for this.
    pub fn narrow(needed: &str) -> Self {
        let description = "The request requires higher privileges than provided by the access token.";
        let body = json!({"error": "insufficient_scope", "error_description": description, "scope": needed});
        Self {
            status: StatusCode::FORBIDDEN,
            body,
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        (self.status, Json(self.body)).into_response()
    }
}

/// Answers with one page of a list; the headers lead to the others.
pub fn page(query: &Query, base: &str, items: Vec<Value>) -> Answer {
    let page = query.page(items, 20);
    let next = if page.number < page.last {
        (page.number + 1).to_string()
    } else {
        String::new()
    };
    let previous = if page.number > 1 {
        (page.number - 1).to_string()
    } else {
        String::new()
    };
    let mut answer = linked(query, base, &page);
    let headers = answer.headers_mut();
    headers.insert("x-page", HeaderValue::from(page.number));
    headers.insert("x-per-page", HeaderValue::from(page.size));
    headers.insert("x-total", HeaderValue::from(page.total));
    headers.insert("x-total-pages", HeaderValue::from(page.last));
    headers.insert("x-next-page", next.parse().expect("digits"));
    headers.insert("x-prev-page", previous.parse().expect("digits"));
    Ok(answer)
}
