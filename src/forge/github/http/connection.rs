//! The connection of the client: octocrab over a connection of our own, authorised for one address,
//! and what its errors mean.

use std::error::Error;

use http::StatusCode;
use octocrab::Octocrab;
use octocrab::service::middleware::retry::RetryConfig;
use secrecy::SecretString;
use url::Url;

use crate::certificates::Trust;
use crate::forge::ForgeError;
use crate::forge::github::Config;
use crate::forge::github::http::app_tokens;
use crate::forge::http::failure::{Failure, causes};
use crate::forge::http::retry;
use crate::http::client;

/// Returns octocrab for the API at `base`, authorised by the token or as the App.
pub(crate) async fn octocrab(
    config: &Config,
    token: Option<&SecretString>,
    base: &str,
    http: reqwest::Client,
) -> Result<Octocrab, ForgeError> {
    let builder = Octocrab::builder().add_retry_config(RetryConfig::None);
    let builder = builder.base_uri(base).map_err(|error| unusable(causes(&error)))?;
    let builder = match (&config.app, token) {
        (Some(app), None) => builder.app(app.id.into(), app_tokens::key(app).await?),
        (Some(_) | None, _) => builder,
    };
    let octocrab = builder
        .build_with_reqwest(http)
        .map_err(|error| unusable(format!("the HTTP client cannot be set up: {}", causes(&error))))?;
    match token {
        // Not the builder's `personal_token`: it panics on a token with a line break.
        Some(token) => octocrab
            .user_access_token(token.clone())
            .map_err(|_| unusable("github.token cannot be used".to_owned())),
        None => Ok(octocrab),
    }
}

/// Returns the HTTP client for octocrab to use: its own ignores `HTTPS_PROXY` and `NO_PROXY`.
pub(crate) fn http_client(trust: &Trust) -> Result<reqwest::Client, ForgeError> {
    // Redirects are followed by `exchange`.
    client(trust)
        .build()
        .map_err(|error| unusable(format!("the HTTP client cannot be set up: {}", causes(&error))))
}

/// Checks the API's address: octocrab panics at the first request if it has no scheme.
pub(crate) fn base(api_url: &str) -> Result<String, ForgeError> {
    let address = api_url.trim().trim_end_matches('/');
    let url = Url::parse(address).ok();
    if url.is_some_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host() && url.query().is_none()) {
        return Ok(address.to_owned());
    }
    Err(unusable(format!(
        "github.api_url '{address}' is not an address; write https://host or https://host/path"
    )))
}

pub(crate) fn unusable(reason: String) -> ForgeError {
    ForgeError::Unexpected {
        what: "connecting to GitHub".to_owned(),
        reason,
    }
}

/// Returns the failure for a request without an answer, from the causes of `error`: octocrab's own
/// text is often just a word, and its `Debug` a page with headers.
pub(crate) fn no_answer(error: &octocrab::Error) -> Failure {
    if let Some(cause) = connection_error(error) {
        return retry::no_answer(cause);
    }
    match error {
        octocrab::Error::Service { .. } | octocrab::Error::Hyper { .. } => Failure::Down {
            reason: causes(error).into(),
        },
        octocrab::Error::JWT { .. } => Failure::Unprepared {
            status: StatusCode::UNAUTHORIZED,
            remedy: "the key in github.app.private_key_file cannot sign; download a new private key of the App"
                .to_owned(),
        },
        octocrab::Error::Http { .. } => Failure::Unprepared {
            status: StatusCode::UNAUTHORIZED,
            remedy: "github.token has characters that no token has; copy it anew".to_owned(),
        },
        _ => Failure::unreadable(causes(error)),
    }
}

/// Returns the error of the HTTP client, which one or two of octocrab's errors enclose.
fn connection_error(error: &octocrab::Error) -> Option<&reqwest::Error> {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if error.is::<reqwest::Error>() {
            return error.downcast_ref();
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_is_refused_before_anything_is_sent() {
        assert_eq!(
            base(" http://127.0.0.1:1/api/v3/ ").unwrap(),
            "http://127.0.0.1:1/api/v3"
        );
        for wrong in ["", "api.github.com", "github.com:443", "ftp://x", "https://x?y"] {
            assert!(
                base(wrong).unwrap_err().to_string().contains("github.api_url"),
                "{wrong}"
            );
        }
    }
}
