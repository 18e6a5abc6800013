//! Decides how the tools are described to the model in each request: the program's own in full,
//! those of others in full as long as that is little.
//!
//! The schemas of a few servers can fill the window of a local model. Beyond a limit each of their
//! tools is listed by its name, and one more tool describes the others. Listing them in full once
//! they were asked for would change the beginning of every request and lose the server's cache; so
//! the list stays as it is, and the answer joins the conversation.

use std::fmt::Write as _;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::compact::compact;
use super::{ToolError, ToolOutput, own_spec, read_args};
use crate::conversation::ToolSpec;
use crate::plain::one_line;

/// The tool that describes others, and the server it is listed under.
pub(super) const DESCRIBE: &str = "agent/describe_tools";
/// Longest first sentence of a description in the list.
const LONGEST_BRIEF: usize = 80;
/// Keywords of an argument's schema besides its type. Requests list the program's own tools without
/// them.
const LIMITS: [&str; 7] = [
    "default",
    "description",
    "format",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
];
/// Most tools that one call describes.
const MOST_DESCRIBED: usize = 10;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DescribeTools {
    tools: Vec<String>,
}

/// All tools of one run.
#[derive(Debug)]
pub(super) struct Catalogue {
    /// The tools as each request lists them, in the order of the servers.
    pub(super) listed: Arc<[ToolSpec]>,
    /// Full descriptions of the tools that are listed by name only.
    described: Vec<ToolSpec>,
}

impl Catalogue {
    /// Lists `own` tools in full, and `others` too if they take at most `most_bytes`.
    pub(super) fn new(own: Vec<ToolSpec>, others: Vec<ToolSpec>, most_bytes: usize) -> Self {
        let (own, others) = (compacted(own.into_iter().map(bare).collect()), compacted(others));
        if others.iter().map(size).sum::<usize>() <= most_bytes {
            return Self {
                listed: own.into_iter().chain(others).collect(),
                described: Vec::new(),
            };
        }
        let (server, tool) = DESCRIBE.split_once('/').unwrap_or_default();
        let purpose = "Tells what tools take that are listed with {...}; ask before you call one of them.";
        let describe = compacted(vec![own_spec::<DescribeTools>(server, tool, purpose)]);
        let brief = others.iter().map(brief);
        Self {
            listed: own.into_iter().chain(describe).chain(brief).collect(),
            described: others,
        }
    }

    /// Tells whether a call of `tool` is to be answered by [`Self::describe`].
    pub(super) fn describes(&self, tool: &str) -> bool {
        tool == DESCRIBE && !self.described.is_empty()
    }

    /// Describes the tools that `args` names.
    pub(super) fn describe(&self, args: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let DescribeTools { tools } = read_args(args)?;
        let mut text = String::new();
        for name in tools.iter().take(MOST_DESCRIBED) {
            match self.described.iter().find(|spec| spec.name == *name) {
                Some(spec) => {
                    let _ = writeln!(
                        text,
                        "{name}: {}\narguments: {}\n",
                        spec.description.trim(),
                        spec.schema
                    );
                }
                None => {
                    let _ = writeln!(text, "{name}: there is no such tool, or it needs no description\n");
                }
            }
        }
        if tools.len() > MOST_DESCRIBED {
            let _ = writeln!(
                text,
                "[only the first {MOST_DESCRIBED} are described; ask for the others apart]"
            );
        }
        Ok(ToolOutput {
            text: text.trim_end().to_owned(),
            is_error: false,
            structured: None,
        })
    }
}

fn compacted(specs: Vec<ToolSpec>) -> Vec<ToolSpec> {
    let compacted = |spec: ToolSpec| ToolSpec {
        schema: compact(spec.schema),
        ..spec
    };
    specs.into_iter().map(compacted).collect()
}

/// Returns a tool of the program's own with the names and types of its arguments alone. It refuses
/// what does not fit by itself, and each request would pay for more.
fn bare(mut spec: ToolSpec) -> ToolSpec {
    let Some(schema) = spec.schema.as_object_mut() else {
        return spec;
    };
    schema.retain(|key, value| key != "additionalProperties" || *value != Value::Bool(false));
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    let properties = properties.into_iter().flat_map(|properties| properties.values_mut());
    for property in properties.filter_map(Value::as_object_mut) {
        property.retain(|key, _| !LIMITS.contains(&key.as_str()));
        if let Some(Value::Array(kinds)) = property.get_mut("type") {
            kinds.retain(|kind| kind != "null");
            if let [only] = kinds.as_slice() {
                let only = only.clone();
                property.insert("type".to_owned(), only);
            }
        }
    }
    spec
}

/// Returns how many bytes a tool takes in a request.
fn size(spec: &ToolSpec) -> usize {
    spec.name.len() + spec.description.len() + spec.schema.to_string().len()
}

/// Returns a tool with its name, the first sentence of its description, and free arguments.
fn brief(spec: &ToolSpec) -> ToolSpec {
    let words = one_line(&spec.description);
    let sentence = words.split_inclusive(". ").next().unwrap_or_default().trim();
    let description = match sentence.char_indices().nth(LONGEST_BRIEF) {
        Some((end, _)) => format!("{}…", sentence[..end].trim_end()),
        None => sentence.to_owned(),
    };
    ToolSpec {
        name: spec.name.clone(),
        description,
        schema: json!({ "type": "object", "additionalProperties": true }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(name: &str, description: &str) -> ToolSpec {
        ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            schema: json!({ "type": "object", "properties": { "id": { "type": "integer" } } }),
        }
    }

    #[test]
    fn the_limit_decides_between_whole_schemas_and_names() {
        let own = vec![spec("workspace/read_file", "Read a file. All of it.")];
        let others = vec![spec("tickets/find", "Finds tickets. By their id, or\n by words.")];
        let exact = size(&others[0]);
        let whole = Catalogue::new(own.clone(), others.clone(), exact);
        assert_eq!(whole.listed.as_ref(), [own.clone(), others.clone()].concat());
        assert!(!whole.describes(DESCRIBE));

        let brief = Catalogue::new(own.clone(), others, exact - 1);
        let listed: Vec<(&str, &str)> = brief
            .listed
            .iter()
            .map(|spec| (spec.name.as_str(), spec.description.as_str()))
            .collect();
        assert_eq!(
            listed,
            [
                ("workspace/read_file", "Read a file. All of it."),
                (
                    DESCRIBE,
                    "Tells what tools take that are listed with {...}; ask before you call one of them."
                ),
                ("tickets/find", "Finds tickets."),
            ]
        );
        assert_eq!(brief.listed[0], own[0]);
        assert!(brief.describes(DESCRIBE));
    }

    #[test]
    fn own_tools_are_listed_with_names_and_types_of_their_arguments_alone() {
        let schema = json!({ "type": "object", "additionalProperties": false, "required": ["path"], "properties": {
            "path": { "type": "string", "description": "The file." },
            "lines": { "type": ["array", "null"], "items": { "type": "integer" }, "minItems": 2, "default": null },
            "mode": { "enum": ["create", "append"] },
        } });
        let own = ToolSpec {
            schema,
            ..spec("workspace/read_file", "Read a file.")
        };
        assert_eq!(
            Catalogue::new(vec![own], Vec::new(), 0).listed[0].schema,
            json!({ "type": "object", "required": ["path"], "properties": {
                "path": { "type": "string" },
                "lines": { "type": "array", "items": { "type": "integer" } },
                "mode": { "enum": ["create", "append"] },
            } })
        );
    }

    #[test]
    fn long_first_sentences_end_at_a_whole_letter() {
        let long = brief(&spec("tickets/find", &"あ".repeat(200)));
        assert_eq!(long.description.chars().count(), LONGEST_BRIEF + 1);
    }
}
