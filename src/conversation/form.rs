//! The form of a working reply as a JSON Schema, for servers that can enforce one.
//!
//! The schema says what [`decode`](super::decode) reads, and no more: the arguments of a tool may
//! be any object, because a server that turns schemas into grammars refuses what it does not know,
//! and the tools' own schemas are written by others. The tool itself tells the model what does not
//! fit.

use serde_json::{Value, json};

use super::{ToolSpec, tool_name};

/// Longest text in a reply with an enforced form. A small model that has lost its thread would fill
/// the window with one.
const LONGEST_TEXT: u32 = 1_500;
const LONGEST_SHORT_TEXT: u32 = 300;

/// Returns the form of a reply that calls tools or says that all is done.
pub fn turn(tools: &[ToolSpec]) -> Value {
    json!({ "anyOf": [call(tools), calls(tools), done()] })
}

/// Returns the form of a reply that calls one tool.
pub fn call(tools: &[ToolSpec]) -> Value {
    object(&[("comment", text()), ("tool", name(tools)), ("args", arguments())])
}

/// Returns the form of a text.
pub fn text() -> Value {
    json!({ "type": "string", "maxLength": LONGEST_TEXT })
}

/// Returns the form of a text that is no more than a sentence or two.
pub fn short_text() -> Value {
    json!({ "type": "string", "maxLength": LONGEST_SHORT_TEXT })
}

/// Returns the form of an object with exactly these fields, in this order.
pub fn object(fields: &[(&str, Value)]) -> Value {
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let properties: serde_json::Map<String, Value> = fields
        .iter()
        .map(|(name, form)| ((*name).to_owned(), form.clone()))
        .collect();
    json!({ "type": "object", "properties": properties, "required": names, "additionalProperties": false })
}

fn calls(tools: &[ToolSpec]) -> Value {
    let commands = json!({ "type": "array", "items": command(tools), "minItems": 1, "maxItems": 8 });
    object(&[("comment", text()), ("commands", commands)])
}

fn done() -> Value {
    object(&[("comment", text()), ("done", json!({ "const": true }))])
}

fn command(tools: &[ToolSpec]) -> Value {
    object(&[("tool", name(tools)), ("args", arguments())])
}

fn name(tools: &[ToolSpec]) -> Value {
    let names: Vec<&str> = tools.iter().map(|tool| tool_name::short(&tool.name)).collect();
    json!({ "enum": names })
}

fn arguments() -> Value {
    json!({ "type": "object" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{Reply, decode};

    #[test]
    fn what_fits_the_form_of_a_turn_is_read_as_one() {
        let tool = ToolSpec {
            name: "workspace/read_file".to_owned(),
            description: String::new(),
            schema: json!({}),
        };
        let form = turn(std::slice::from_ref(&tool));
        let fields: Vec<&Value> = form["anyOf"]
            .as_array()
            .unwrap()
            .iter()
            .map(|form| &form["required"])
            .collect();
        assert_eq!(
            json!(fields),
            json!([
                ["comment", "tool", "args"],
                ["comment", "commands"],
                ["comment", "done"]
            ])
        );
        assert_eq!(form["anyOf"][0]["properties"]["tool"], json!({ "enum": ["read_file"] }));
        let args = json!({ "path": "a" });
        let command = json!({ "tool": "read_file", "args": args });
        for (text, calls, done) in [
            (
                json!({ "comment": "Look.", "tool": "read_file", "args": args }),
                1,
                false,
            ),
            (json!({ "comment": "Look.", "commands": [command, command] }), 2, false),
            (json!({ "comment": "Looked.", "done": true }), 0, true),
        ] {
            let reply = Reply {
                text: text.to_string(),
                ..Reply::default()
            };
            let turn = decode::turn(&reply).unwrap();
            assert_eq!((turn.calls.len(), turn.done), (calls, done));
        }
    }
}
