//! The setting for how long a model stays loaded.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A time such as `30m`, or a number of seconds; below zero it is for ever.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum KeepAlive {
    Seconds(i64),
    Text(String),
}

impl KeepAlive {
    /// Returns the setting as Ollama takes it: it reads text as a duration with a unit and only a
    /// number as seconds, and `-1` must be a number.
    pub fn for_server(&self) -> Value {
        match self {
            Self::Seconds(seconds) => json!(seconds),
            Self::Text(text) => {
                let text = text.trim();
                text.parse::<i64>()
                    .map_or_else(|_| json!(text), |seconds| json!(seconds))
            }
        }
    }
}

impl JsonSchema for KeepAlive {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "KeepAlive".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": ["string", "integer"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_in_text_is_a_number_for_the_server() {
        for (written, expected) in [
            (json!(-1), json!(-1)),
            (json!(300), json!(300)),
            (json!("-1"), json!(-1)),
            (json!(" 30m "), json!("30m")),
        ] {
            let read: KeepAlive = serde_json::from_value(written.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), written);
            assert_eq!(read.for_server(), expected);
        }
    }
}
