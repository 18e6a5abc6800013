//! Cookies of a request.

use axum::http::{HeaderMap, header};

/// Returns a cookie by its name, if it is there.
pub(super) fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let cookies = headers.get_all(header::COOKIE).iter();
    let mut pairs = cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(found, _)| *found == name)?;
    Some(value.to_owned())
}
