//! The tools as a prompt lists them, one line each.

use serde::Serialize;
use serde_json::Value;

use crate::conversation::{ToolSpec, tool_name};
use crate::plain::one_line;

#[derive(Serialize)]
pub(crate) struct ToolLine {
    pub(crate) name: String,
    pub(crate) arguments: String,
    pub(crate) description: String,
}

pub(crate) fn tool_lines(specs: &[ToolSpec]) -> Vec<ToolLine> {
    specs
        .iter()
        .map(|spec| ToolLine {
            name: tool_name::short(&spec.name).to_owned(),
            arguments: signature(&spec.schema),
            description: one_line(&spec.description),
        })
        .collect()
}

/// Returns the arguments of a JSON Schema in one short line, the required ones first: `{path,
/// limit?: integer, mode?: create|overwrite}`. What has no type is a string.
fn signature(schema: &Value) -> String {
    let required: Vec<&str> = schema["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let Some(properties) = schema["properties"].as_object() else {
        let is_open = schema["additionalProperties"] == true;
        return if is_open { "{...}" } else { "{}" }.to_owned();
    };
    let place = |name: &str| required.iter().position(|required| *required == name);
    let mut properties: Vec<(&String, &Value)> = properties.iter().collect();
    properties.sort_by_key(|(name, _)| place(name).unwrap_or(required.len()));
    let arguments: Vec<String> = properties
        .into_iter()
        .map(|(name, property)| {
            let mark = if place(name).is_some() { "" } else { "?" };
            match type_of(property).as_str() {
                "string" => format!("{name}{mark}"),
                other => format!("{name}{mark}: {other}"),
            }
        })
        .collect();
    format!("{{{}}}", arguments.join(", "))
}

fn type_of(property: &Value) -> String {
    if let Some(values) = property["enum"].as_array() {
        return values
            .iter()
            .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            .collect::<Vec<_>>()
            .join("|");
    }
    match &property["type"] {
        Value::String(kind) if kind == "array" => format!("[{}]", type_of(&property["items"])),
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => {
            let kinds = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
            let named = kinds.map(|kind| match kind {
                "array" => format!("[{}]", type_of(&property["items"])),
                kind => kind.to_owned(),
            });
            named.collect::<Vec<_>>().join("|")
        }
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_becomes_one_short_line() {
        let schema = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "mode": {"enum": ["create", "overwrite", "append"]},
                "range": {"type": ["array", "null"], "items": {"type": "integer"}},
            },
            "required": ["path", "mode"],
        });
        assert_eq!(
            signature(&schema),
            "{path, mode: create|overwrite|append, range?: [integer]}"
        );
        assert_eq!(signature(&json!({"type": "object"})), "{}");
        let anything = json!({"type": "object", "additionalProperties": true});
        assert_eq!(signature(&anything), "{...}");
    }
}
