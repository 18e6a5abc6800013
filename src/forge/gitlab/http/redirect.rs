//! Redirects by GitLab: which are followed, and what is told of the others.

use http::header::LOCATION;
use http::{HeaderMap, StatusCode};
use reqwest::redirect::Policy;
use url::Url;

/// What is told of an address below which there are pages for people.
const SIGN_IN: &str = "it sends to the page where people sign in, so gitlab.api_url is the address of a page and not \
     of an API: write https://HOST/api/v4 of your GitLab";

/// Returns a policy that follows redirects on the same host only: reqwest would send
/// `PRIVATE-TOKEN`, unlike `Authorization`, to any other.
pub(super) fn at_home() -> Policy {
    Policy::custom(|attempt| {
        let from = attempt.previous().last().map(Url::origin);
        if attempt.previous().len() > 5 || from != Some(attempt.url().origin()) {
            return attempt.stop();
        }
        attempt.follow()
    })
}

/// Returns why what answered at `at` is no API: it sends on and was not followed, or is the page to
/// sign in.
pub(super) fn astray(at: &Url, status: StatusCode, headers: &HeaderMap) -> Option<&'static str> {
    let is_sign_in = |url: &Url| url.path().ends_with("/users/sign_in");
    let Some(location) = headers.get(LOCATION).filter(|_| status.is_redirection()) else {
        return is_sign_in(at).then_some(SIGN_IN);
    };
    let next = location.to_str().ok().and_then(|location| at.join(location).ok());
    Some(match next {
        Some(next) if is_sign_in(&next) => SIGN_IN,
        Some(next) if next.origin() == at.origin() => "it sends from one place to the next without end",
        Some(_) | None => "it sends to another host, where the token is not sent",
    })
}
