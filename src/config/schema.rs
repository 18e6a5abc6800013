//! The JSON Schema of the file, made from the types and completed by the `<key>_file` keys.

use serde_json::Value;
use serde_json::json;

use super::Config;
use super::secret_file::{ANY, SECRETS};

pub(super) fn of_config() -> Value {
    let mut schema = schemars::schema_for!(Config).to_value();
    schema["title"] = json!("Configuration of coding-agent");
    for (section, key) in SECRETS {
        let pointer = pointer_to(&schema, section);
        let Some(properties) = schema
            .pointer_mut(&pointer)
            .and_then(|section| section.get_mut("properties"))
        else {
            continue;
        };
        let description = format!("File that holds `{key}`; blanks around it are cut off.");
        properties[format!("{key}_file")] = json!({ "type": ["string", "null"], "description": description });
    }
    schema
}

/// Returns the pointer to a section's schema, following properties and references from the top.
fn pointer_to(schema: &Value, section: &[&str]) -> String {
    let mut pointer = String::new();
    for key in section {
        pointer = if *key == ANY {
            format!("{pointer}/additionalProperties")
        } else {
            format!("{pointer}/properties/{key}")
        };
        let reference = schema.pointer(&pointer).and_then(|property| {
            // A section that may be a list names its type in each alternative.
            property["$ref"]
                .as_str()
                .or_else(|| property["anyOf"][0]["$ref"].as_str())
        });
        if let Some(target) = reference.and_then(|reference| reference.strip_prefix('#')) {
            target.clone_into(&mut pointer);
        }
    }
    pointer
}
