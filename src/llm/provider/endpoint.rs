//! Checks the configured address, model, key and headers of a server.

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use secrecy::{ExposeSecret, SecretString};

use crate::llm::config::model_config::ModelConfig;
use crate::llm::error::LlmError;

/// Returns the address without a final slash.
pub(super) fn parse(config: &ModelConfig) -> Result<(Url, String), LlmError> {
    let text = config.address.trim().trim_end_matches('/');
    match Url::parse(text) {
        Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => {
            if url.username().is_empty() && url.password().is_none() {
                return Ok((url, text.to_owned()));
            }
            Err(LlmError::Refused {
                what: format!("{} holds a user name or password", config.address_key()),
                hint: "leave them out; addresses are shown in messages".to_owned(),
            })
        }
        _ => Err(LlmError::Refused {
            what: format!("{} is '{text}', which is not an address", config.address_key()),
            hint: "write it like http://127.0.0.1:11434".to_owned(),
        }),
    }
}

/// Returns the model's name, if one is given.
pub(super) fn model_name(config: &ModelConfig) -> Result<String, LlmError> {
    let name = config.model.trim();
    if name.is_empty() {
        return Err(LlmError::Refused {
            what: format!("{}.model is empty", config.section),
            hint: "write the name of the model there".to_owned(),
        });
    }
    Ok(name.to_owned())
}

/// Returns the header that carries the key, if there is one.
pub(super) fn key_header(name: HeaderName, prefix: &str, config: &ModelConfig) -> Result<HeaderMap, LlmError> {
    let mut headers = HeaderMap::new();
    let key = config.api_key.as_ref().map(|key| key.expose_secret().trim());
    if let Some(key) = key.filter(|key| !key.is_empty()) {
        let value = SecretString::from(format!("{prefix}{key}"));
        let value = value_of(&value).ok_or_else(|| LlmError::Refused {
            what: format!("{}.api_key holds characters that no key has", config.section),
            hint: "copy the key again, without line breaks".to_owned(),
        })?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Returns the configured headers.
pub(super) fn headers(config: &ModelConfig) -> Result<HeaderMap, LlmError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &config.options.headers {
        let header = HeaderName::from_bytes(name.as_bytes()).ok().zip(value_of(value));
        let (name, value) = header.ok_or_else(|| LlmError::Refused {
            what: format!("{}.headers.{name} is no header that can be sent", config.section),
            hint: "use letters, digits and hyphens for its name, and one line for its value".to_owned(),
        })?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Returns the value of a header, marked so that it is never shown.
fn value_of(secret: &SecretString) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(secret.expose_secret()).ok()?;
    value.set_sensitive(true);
    Some(value)
}
