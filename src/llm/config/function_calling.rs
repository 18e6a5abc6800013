//! The setting for native tool calls.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `auto`, `true` or `false`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionCalling {
    Auto,
    On,
    Off,
}

impl<'de> Deserialize<'de> for FunctionCalling {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;

        impl serde::de::Visitor<'_> for Words {
            type Value = FunctionCalling;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("auto, true or false")
            }

            fn visit_bool<E>(self, is_on: bool) -> Result<FunctionCalling, E> {
                Ok(if is_on {
                    FunctionCalling::On
                } else {
                    FunctionCalling::Off
                })
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<FunctionCalling, E> {
                // Values from the environment arrive as text.
                match word.trim() {
                    "auto" => Ok(FunctionCalling::Auto),
                    "true" => Ok(FunctionCalling::On),
                    "false" => Ok(FunctionCalling::Off),
                    other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
                }
            }
        }

        deserializer.deserialize_any(Words)
    }
}

impl Serialize for FunctionCalling {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::On => serializer.serialize_bool(true),
            Self::Off => serializer.serialize_bool(false),
        }
    }
}

impl JsonSchema for FunctionCalling {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "FunctionCalling".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "enum": ["auto", true, false] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_calling_is_written_as_a_word_or_as_true_and_false() {
        for (text, expected, written) in [
            ("auto", FunctionCalling::Auto, "auto"),
            ("true", FunctionCalling::On, "true"),
            ("false", FunctionCalling::Off, "false"),
            ("\"true\"", FunctionCalling::On, "true"),
        ] {
            let read: FunctionCalling = serde_yaml::from_str(text).unwrap();
            assert_eq!(read, expected);
            assert_eq!(serde_yaml::to_string(&read).unwrap().trim(), written);
        }
        let error = serde_yaml::from_str::<FunctionCalling>("perhaps")
            .unwrap_err()
            .to_string();
        assert!(error.contains("expected auto, true or false"), "{error}");
    }
}
