//! Reading GitHub's answers: what was asked for, GitHub's words of refusal, and the link to the
//! next page.

use std::sync::atomic::{AtomicBool, Ordering};

use http::StatusCode;
use http::header::{LINK, LOCATION};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::forge::github::schema;
use crate::forge::http::failure::{Failure, one_line};
use crate::forge::http::retry::{Answer, limited};

/// The header in which GitHub tells that an organisation demands single sign-on: `required` with an
/// address, or `partial-results` with the numbers of the organisations that were left out.
const SSO: &str = "x-github-sso";
/// The remedy for a token that an organisation hides something from.
pub(crate) const AUTHORISE: &str =
    "authorise the token for the organisation's single sign-on (in the token's settings, 'Configure SSO')";

/// Turns a refusal into a failure with GitHub's own words.
pub(crate) fn succeeded(answer: Answer) -> Result<Answer, Failure> {
    if answer.status.is_success() {
        return Ok(answer);
    }
    if sso(&answer).is_some_and(|told| told.starts_with("required")) {
        return Err(Failure::Unprepared {
            status: answer.status,
            remedy: format!("it says \"{}\": {AUTHORISE}", message(&answer)),
        });
    }
    if answer.status.is_redirection() && answer.headers.contains_key(LOCATION) {
        return Err(Failure::unreadable(
            "it sends to another host, where the token is not sent",
        ));
    }
    Err(Failure::Answered {
        status: answer.status,
        message: message(&answer),
    })
}

/// Returns GitHub's own words: the message, and its details, where a 422 says what is wrong.
fn message(answer: &Answer) -> String {
    let Ok(refusal) = serde_json::from_slice::<schema::Refusal>(&answer.body) else {
        return one_line(&String::from_utf8_lossy(&answer.body));
    };
    let mut words = vec![refusal.message];
    for error in refusal.errors {
        match error {
            Value::String(text) => words.push(text),
            Value::Object(fields) => {
                let text = |name: &str| fields.get(name)?.as_str();
                // A part has words of its own, or the field and a code, as in `head invalid`.
                let said = text("message").map(str::to_owned).or_else(|| {
                    let code = text("code")?;
                    Some(text("field").map_or_else(|| code.to_owned(), |field| format!("{field} {code}")))
                });
                words.extend(said);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {}
        }
    }
    one_line(&words.join("; "))
}

/// Tells whether a list is incomplete because an organisation with single sign-on hides entries
/// from the token.
pub(crate) fn is_partial(answer: &Answer) -> bool {
    sso(answer).is_some_and(|told| told.starts_with("partial-results"))
}

/// Remembers that single sign-on hid something from the token.
#[derive(Default)]
pub(crate) struct Hidden(AtomicBool);

impl Hidden {
    /// Returns true if an answer is incomplete, and remembers it.
    pub(crate) fn notices(&self, answer: &Answer) -> bool {
        let is_hidden = is_partial(answer);
        self.0.fetch_or(is_hidden, Ordering::Relaxed);
        is_hidden
    }

    /// Returns true if anything was hidden since this was last asked.
    pub(crate) fn take(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

/// Returns the failure for a list from which single sign-on hides entries.
pub(crate) fn partial() -> Failure {
    Failure::Unprepared {
        status: StatusCode::FORBIDDEN,
        remedy: format!("it leaves out what an organisation hides from the token: {AUTHORISE}"),
    }
}

fn sso(answer: &Answer) -> Option<&str> {
    answer.headers.get(SSO)?.to_str().ok()
}

/// Returns the rate limit that an answer of the GraphQL API reports although its status is 200.
pub(crate) fn graph_limit(answer: &Answer) -> Option<Failure> {
    let told: schema::GraphErrors = serde_json::from_slice(&answer.body).ok()?;
    // GitHub has written it in both ways.
    let is_limit = |error: &schema::GraphError| matches!(error.kind.as_deref(), Some("RATE_LIMITED" | "RATE_LIMIT"));
    told.errors.iter().any(is_limit).then(|| limited(answer))
}

/// Tells whether a query failed because the server has no GraphQL API.
pub(crate) fn is_without_graph(failure: &Failure) -> bool {
    let says_so = |status: StatusCode| matches!(status, StatusCode::METHOD_NOT_ALLOWED | StatusCode::NOT_IMPLEMENTED);
    failure.is_missing() || failure.status().is_some_and(says_so)
}

/// Returns an answer unless the GraphQL API says in it that something went wrong on its side, which
/// it does with status 200 and no type. Read as an answer it would fail a run for a fault that is
/// over a moment later. A server that does not implement this API is not asked again.
pub(crate) fn whole(path: &str, answer: Answer) -> Result<Answer, Failure> {
    if path != "/graphql" {
        return Ok(answer);
    }
    if answer.status == StatusCode::NOT_IMPLEMENTED {
        return Err(Failure::Answered {
            status: answer.status,
            message: message(&answer),
        });
    }
    if answer.status != StatusCode::OK {
        return Ok(answer);
    }
    let told = serde_json::from_slice::<schema::GraphErrors>(&answer.body);
    let errors = told.map(|told| told.errors).unwrap_or_default();
    match errors.iter().find(|error| passes(error)) {
        Some(error) => Err(Failure::Down {
            reason: format!("GraphQL says: {}", one_line(&error.message)).into(),
        }),
        None => Ok(answer),
    }
}

/// Tells whether an error comes of the server's state. One of the question, such as a field that an
/// older server does not know, has a code.
fn passes(error: &schema::GraphError) -> bool {
    match error.kind.as_deref() {
        Some(kind) => kind == "SERVICE_UNAVAILABLE",
        None => error.extensions["code"].is_null(),
    }
}

/// Parses JSON; an error names the field.
pub(crate) fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T, Failure> {
    let mut json = serde_json::Deserializer::from_slice(&answer.body);
    serde_path_to_error::deserialize(&mut json).map_err(Failure::unreadable)
}

/// Returns path and query of the next page. The host of the link is not followed: behind a proxy it
/// may be another one, and the token is for the configured one only.
pub(crate) fn next_page(answer: &Answer) -> Option<String> {
    let links = answer
        .headers
        .get_all(LINK)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let next = links.flat_map(|value| value.split(',')).find_map(|link| {
        let (address, relation) = link.split_once('>')?;
        relation
            .contains("rel=\"next\"")
            .then(|| address.trim().trim_start_matches('<'))
    })?;
    let next = next.parse::<http::Uri>().ok()?;
    next.path_and_query().map(ToString::to_string)
}

/// Returns the path of the page after the one at `path`.
pub(crate) fn page_after(path: &str) -> String {
    let (place, query) = path.split_once('?').unwrap_or((path, ""));
    let number = |part: &str| part.strip_prefix("page=")?.parse::<u32>().ok();
    let present = query.split('&').find_map(number).unwrap_or(1);
    let next = format!("page={}", present.saturating_add(1));
    let others = query
        .split('&')
        .filter(|part| !part.is_empty() && !part.starts_with("page="));
    let parts: Vec<&str> = others.chain([next.as_str()]).collect();
    format!("{place}?{}", parts.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue};

    fn answer(link: &'static str, body: &'static str) -> Answer {
        Answer {
            status: StatusCode::UNPROCESSABLE_ENTITY,
            headers: HeaderMap::from_iter([(LINK, HeaderValue::from_static(link))]),
            body: Bytes::from_static(body.as_bytes()),
        }
    }

    #[test]
    fn the_next_page_is_asked_of_the_configured_host() {
        let links = "<https://other/api/v3/x?page=1>; rel=\"prev\", <https://other/api/v3/x?page=3&a=b>; rel=\"next\"";
        assert_eq!(next_page(&answer(links, "")).as_deref(), Some("/api/v3/x?page=3&a=b"));
        assert_eq!(next_page(&answer("<https://other/x?page=1>; rel=\"last\"", "")), None);
    }

    #[test]
    fn the_page_after_a_page_has_the_same_terms() {
        assert_eq!(page_after("/x?a=b&per_page=100"), "/x?a=b&per_page=100&page=2");
        assert_eq!(page_after("/x?page=2&per_page=100"), "/x?per_page=100&page=3");
    }

    #[test]
    fn a_refusal_for_single_sign_on_says_where_the_token_is_authorised() {
        let mut refused = answer(
            "",
            r#"{"message":"Resource protected by organization SAML enforcement."}"#,
        );
        refused.status = StatusCode::FORBIDDEN;
        let required = HeaderValue::from_static("required; url=https://github.com/orgs/acme/sso");
        refused.headers.insert(SSO, required);
        let Err(Failure::Unprepared { remedy, .. }) = succeeded(refused) else {
            panic!("it is something that the operator has to do");
        };
        assert!(
            remedy.contains("SAML enforcement") && remedy.contains("Configure SSO"),
            "{remedy}"
        );
    }

    #[test]
    fn the_parts_of_a_refusal_are_told() {
        let body = r#"{"message":"Validation Failed","errors":[{"code":"custom","message":"No commits"},"x",{"code":"already_exists"}]}"#;
        assert_eq!(
            message(&answer("", body)),
            "Validation Failed; No commits; x; already_exists"
        );
        assert_eq!(message(&answer("", "oops,\nsorry")), "oops, sorry");
    }
}
