//! Parses and writes an environment of the configuration: the image's name alone, or a section.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Build, Environment, shipped};

/// An environment written as a section.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Section {
    /// The image's name, with its tag.
    image: String,
    /// The kinds of work that the environment is good for, as the model is told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    recommended_for: String,
    /// How to install libraries in it, for the system prompt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    libraries: String,
    /// How to build the image if it is missing and cannot be pulled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    build: Option<Build>,
    /// Hosts that its containers may reach. If left out, a shipped environment reaches its package
    /// registries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allow: Option<Vec<String>>,
    /// Files at the top of a repository that show that it wants this environment, so that its
    /// container is started while the model still plans. If left out, a shipped environment has its
    /// own; an empty list starts none early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    project_files: Option<Vec<String>>,
}

/// Both forms, for the schema. Not used to parse: an untagged enum would lose the place and the
/// name of a wrong key.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum Written {
    Image(String),
    Section(Section),
}

impl<'de> Deserialize<'de> for Environment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EitherForm;

        impl<'de> Visitor<'de> for EitherForm {
            type Value = Environment;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("the name of an image, or a section with the key image")
            }

            fn visit_str<E: serde::de::Error>(self, image: &str) -> Result<Environment, E> {
                Ok(Environment::of_image(image))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Environment, A::Error> {
                let section = Section::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Environment {
                    image: section.image,
                    recommended_for: section.recommended_for,
                    libraries: section.libraries,
                    build: section.build,
                    allow: section.allow,
                    project_files: section.project_files,
                })
            }
        }

        deserializer.deserialize_any(EitherForm)
    }
}

impl Serialize for Environment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if *self == Self::of_image(&self.image) {
            return serializer.serialize_str(&self.image);
        }
        Section {
            image: self.image.clone(),
            recommended_for: self.recommended_for.clone(),
            libraries: self.libraries.clone(),
            build: self.build.clone(),
            allow: self.allow.clone(),
            project_files: self.project_files.clone(),
        }
        .serialize(serializer)
    }
}

impl JsonSchema for Environment {
    fn schema_name() -> Cow<'static, str> {
        "Environment".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Written::json_schema(generator)
    }
}

/// Parses the environments and completes those with the name of a shipped one.
pub(crate) fn environments<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<BTreeMap<String, Environment>, D::Error> {
    let mut environments = BTreeMap::<String, Environment>::deserialize(deserializer)?;
    for (name, environment) in &mut environments {
        shipped::complete(name, environment);
    }
    Ok(environments)
}

#[cfg(test)]
mod tests {
    use crate::environment::Config;

    #[test]
    fn an_image_alone_keeps_what_ships_under_its_name() {
        let config: Config = serde_yaml::from_str("environments: {python: 'mirror/python:3', rust: 'rust:1'}").unwrap();
        let python = &config.environments["python"];
        assert_eq!(python.image, "mirror/python:3");
        assert_eq!(python.libraries, Config::default().environments["python"].libraries);
        assert_eq!(python.allow, Config::default().environments["python"].allow);
        assert_eq!(config.environments["rust"].recommended_for, "");
        assert_eq!(config.environments["rust"].allow, None);
    }

    #[test]
    fn a_section_says_it_all() {
        let text = "environments:\n  rust:\n    image: rust:1\n    recommended_for: Rust\n    build: {dockerfile: d/Dockerfile}\n  python: {image: x, allow: []}\n";
        let config: Config = serde_yaml::from_str(text).unwrap();
        assert_eq!(config.environments["python"].allow, Some(Vec::new()));
        let rust = &config.environments["rust"];
        assert_eq!(rust.recommended_for, "Rust");
        assert_eq!(rust.build.as_ref().unwrap().dockerfile.to_str(), Some("d/Dockerfile"));
    }

    #[test]
    fn what_is_written_is_read_back() {
        let config = Config::default();
        let text = serde_yaml::to_string(&config).unwrap();
        assert_eq!(serde_yaml::from_str::<Config>(&text).unwrap(), config);
    }

    #[test]
    fn a_wrong_key_is_named_with_its_place() {
        let error =
            serde_yaml::from_str::<Config>("environments:\n  rust:\n    image: rust:1\n    imag: x\n").unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("unknown field `imag`") && error.contains("line 4"),
            "{error}"
        );
    }

    #[test]
    fn the_schema_allows_both_forms() {
        let schema = serde_json::to_string(&schemars::schema_for!(Config)).unwrap();
        assert!(
            schema.contains("anyOf") && schema.contains("recommended_for"),
            "{schema}"
        );
    }
}
