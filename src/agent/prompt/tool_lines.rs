//! The tools as a prompt lists them, one line each.

use serde::Serialize;
use serde_json::Value;

use crate::conversation::ToolSpec;

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
            name: spec.name.clone(),
            arguments: signature(&spec.schema),
            description: spec.description.split_whitespace().collect::<Vec<_>>().join(" "),
        })
        .collect()
}

/// Returns the arguments of a JSON Schema in one short line: `{path: string, mode?:
/// create|overwrite}`.
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
    let arguments: Vec<String> = properties
        .iter()
        .map(|(name, property)| {
            let mark = if required.contains(&name.as_str()) { "" } else { "?" };
            format!("{name}{mark}: {}", type_of(property))
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
        Value::Array(kinds) => kinds
            .iter()
            .filter_map(Value::as_str)
            .filter(|kind| *kind != "null")
            .collect::<Vec<_>>()
            .join("|"),
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
            "{mode: create|overwrite|append, path: string, range?: array}"
        );
        assert_eq!(signature(&json!({"type": "object"})), "{}");
        let anything = json!({"type": "object", "additionalProperties": true});
        assert_eq!(signature(&anything), "{...}");
    }
}
