//! Field readers that accept harmless slips: a number for a text, one value for a list, null for
//! nothing.

use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::Check;

pub(super) fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + DeserializeOwned,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

pub(super) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    text_of(Value::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Reads whatever stands there as words for people; nothing is decided by them.
pub(super) fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let value = Value::deserialize(deserializer)?;
    let words = match &value {
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(list) => {
            let items = list
                .iter()
                .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
            items.collect::<Vec<_>>().join("; ")
        }
        Value::Object(_) => value.to_string(),
        Value::Null | Value::String(_) | Value::Number(_) => return text_of(value).map_err(D::Error::custom),
    };
    Ok(words)
}

pub(super) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    list_of(Value::deserialize(deserializer)?)
        .into_iter()
        .map(|value| text_of(value).map_err(D::Error::custom))
        .collect()
}

/// Reads commands that are written as objects or as plain texts.
pub(super) fn checks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Check>, D::Error> {
    list_of(Value::deserialize(deserializer)?)
        .into_iter()
        .map(|value| match value {
            Value::String(command) => Ok(Check {
                command,
                expect_exit: 0,
            }),
            other => serde_json::from_value(other).map_err(D::Error::custom),
        })
        .collect()
}

fn list_of(value: Value) -> Vec<Value> {
    match value {
        Value::Null => Vec::new(),
        Value::Array(list) => list,
        one => vec![one],
    }
}

fn text_of(value: Value) -> Result<String, String> {
    match value {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.trim().to_owned()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => Err(format!("expected a text, found {value}")),
    }
}
