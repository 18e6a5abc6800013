//! Checks the configured address, model and key of a server.

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use crate::llm::error::LlmError;

/// Returns `text` as an address without a final slash; `setting` is its configuration key.
pub(crate) fn parse(text: &str, setting: &str) -> Result<(Url, String), LlmError> {
    let text = text.trim().trim_end_matches('/');
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {
            if url.username().is_empty() && url.password().is_none() {
                return Ok((url, text.to_owned()));
            }
            Err(LlmError::Refused {
                what: format!("{setting} holds a user name or password"),
                hint: "leave them out; addresses are shown in messages".to_owned(),
            })
        }
        _ => Err(LlmError::Refused {
            what: format!("{setting} is '{text}', which is not an address"),
            hint: "write it like http://127.0.0.1:11434".to_owned(),
        }),
    }
}

/// Checks that a model is named.
pub(crate) fn model_name(name: &str, setting: &str) -> Result<String, LlmError> {
    let name = name.trim();
    if name.is_empty() {
        return Err(LlmError::Refused {
            what: format!("{setting} is empty"),
            hint: "write the name of the model there".to_owned(),
        });
    }
    Ok(name.to_owned())
}

/// Returns the header that carries `key`, marked so that it is never shown.
pub(crate) fn key_header(
    name: HeaderName,
    prefix: &str,
    key: Option<&SecretString>,
    setting: &str,
) -> Result<HeaderMap, LlmError> {
    let mut headers = HeaderMap::new();
    let Some(key) = key.map(|key| key.expose_secret().trim()).filter(|key| !key.is_empty()) else {
        return Ok(headers);
    };
    let mut value = HeaderValue::from_str(&format!("{prefix}{key}")).map_err(|_| LlmError::Refused {
        what: format!("{setting} holds characters that no key has"),
        hint: "copy the key again, without line breaks".to_owned(),
    })?;
    value.set_sensitive(true);
    headers.insert(name, value);
    Ok(headers)
}
