//! The parameters and the body of a request, read and checked. Everything unexpected is refused by
//! name, so that a misspelt filter does not answer with everything.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use serde::de::DeserializeOwned;

use crate::task::id::RunId;
use crate::web::problem::Problem;

/// Most parameters of a query.
const MOST: usize = 16;
/// Most characters of a value.
const LONGEST: usize = 300;

/// The query of a request.
#[derive(Debug, Default)]
pub(in crate::web) struct QueryParameters(BTreeMap<String, String>);

impl<S: Sync> FromRequestParts<S> for QueryParameters {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Self::read(parts.uri.query().unwrap_or_default())
    }
}

impl QueryParameters {
    fn read(query: &str) -> Result<Self, Problem> {
        let mut parameters = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            if parameters.len() >= MOST || value.chars().count() > LONGEST {
                return Err(Problem::bad_request("the query is too long"));
            }
            if parameters.insert(name.into_owned(), value.into_owned()).is_some() {
                return Err(Problem::bad_request("a parameter of the query is there twice"));
            }
        }
        Ok(Self(parameters))
    }

    /// Refuses parameters that the endpoint does not have.
    pub(in crate::web) fn only(&self, known: &[&str]) -> Result<(), Problem> {
        if self.0.keys().all(|name| known.contains(&name.as_str())) {
            return Ok(());
        }
        let detail = if known.is_empty() {
            "this has no parameters".to_owned()
        } else {
            format!(
                "a parameter of the query is not known here; there are {}",
                known.join(", ")
            )
        };
        Err(Problem::bad_request(detail))
    }

    /// Returns a parameter that is not empty.
    pub(in crate::web) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|text| !text.is_empty())
    }

    /// Returns a whole number within bounds.
    pub(in crate::web) fn number(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, Problem> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        let refused = || Problem::bad_request(format!("`{name}` must be a whole number from {least} to {most}"));
        number.map(Some).ok_or_else(refused)
    }

    /// Returns `limit`, or what is usual.
    pub(in crate::web) fn limit(&self, usual: u32, most: u32) -> Result<u32, Problem> {
        let limit = self.number("limit", 1, most.into())?;
        Ok(limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(usual))
    }

    /// Parses a parameter.
    pub(in crate::web) fn parsed<T: std::str::FromStr>(&self, name: &str, form: &str) -> Result<Option<T>, Problem> {
        let refused = |_| Problem::bad_request(format!("`{name}` must be {form}"));
        self.text(name).map(str::parse).transpose().map_err(refused)
    }
}

/// Reads the id of a run in a path.
pub(in crate::web) fn run_id(text: &str) -> Result<RunId, Problem> {
    text.parse().map_err(|_| Problem::not_found("there is no such run"))
}

/// Reads a body of JSON; an empty one is `{}` where that will do.
pub(super) fn body<T: DeserializeOwned>(headers: &HeaderMap, body: &Bytes) -> Result<T, Problem> {
    if !body.is_empty() {
        let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            let detail = "the body must be JSON, with the header `Content-Type: application/json`";
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
        }
    }
    let text: &[u8] = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(text).map_err(|error| Problem::bad_request(format!("the body does not fit: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_checked_by_name_and_bounds() {
        let query = QueryParameters::read("limit=20&state=&task=github%3Ao%2Fr%231").unwrap();
        assert_eq!(query.limit(50, 100).unwrap(), 20);
        assert_eq!((query.text("state"), query.text("task")), (None, Some("github:o/r#1")));
        assert!(query.only(&["limit", "state", "task"]).is_ok());
        assert!(
            query
                .only(&["limit", "task"])
                .unwrap_err()
                .detail
                .contains("limit, task")
        );
        for query in ["limit=0", "limit=101", "limit=-1", "limit=1e3", "limit=x"] {
            assert!(QueryParameters::read(query).unwrap().limit(50, 100).is_err(), "{query}");
        }
        assert!(QueryParameters::read("a=1&a=2").is_err());
        assert!(QueryParameters::read(&format!("a={}", "x".repeat(301))).is_err());
        assert!(run_id("../x").is_err());
    }
}
