//! Slips in a call that leave no doubt about what is meant: a tool without its server, an argument
//! under the name that other programs' tools have for it.
//!
//! The names are a fixed list. An argument that is not on it is an error that the model is told,
//! since a guess may do what nobody wanted.

use serde_json::{Map, Value};

use crate::conversation::{ToolCall, ToolSpec, tool_name};
use crate::spelling::nearest_by;

/// Names of arguments in other programs' tools, with ours.
const OTHER_NAMES: [(&str, &str); 17] = [
    ("cmd", "command"),
    ("contents", "content"),
    ("cwd", "working_directory"),
    ("file", "path"),
    ("file_path", "path"),
    ("file_text", "content"),
    ("filename", "path"),
    ("filepath", "path"),
    ("insert_line", "line"),
    ("new_str", "new"),
    ("new_string", "new"),
    ("old_str", "old"),
    ("old_string", "old"),
    ("new_text", "new"),
    ("old_text", "old"),
    ("timeout", "timeout_seconds"),
    ("workdir", "working_directory"),
];

/// Least likeness of the name of a tool that may have been meant.
const LIKENESS: f64 = 0.4;

/// Returns `call` with the tool that it means among `tools`, and, for the program's own tools, with
/// the arguments that it means.
pub(super) fn meant(call: &ToolCall, tools: &[ToolSpec], is_own: impl Fn(&str) -> bool) -> ToolCall {
    let Some(spec) = tool_of(&call.tool, tools) else {
        return call.clone();
    };
    let args = if is_own(&spec.name) {
        arguments(&call.args, &spec.schema["properties"])
    } else {
        call.args.clone()
    };
    ToolCall {
        id: call.id.clone(),
        tool: spec.name.clone(),
        args,
    }
}

/// Finds a tool by its name, in full or in short; without its server, or with another separator
/// behind it, if only one tool is called so.
fn tool_of<'tools>(name: &str, tools: &'tools [ToolSpec]) -> Option<&'tools ToolSpec> {
    if let Some(named) = tool_name::find(name, tools) {
        return Some(named);
    }
    let letters = |name: &str| -> String { name.chars().filter(char::is_ascii_alphanumeric).collect() };
    let wanted = letters(name);
    let fits = |tool: &&ToolSpec| {
        let tail = tool.name.rsplit('/').next().unwrap_or_default();
        tail == name || letters(&tool.name) == wanted
    };
    let mut fitting = tools.iter().filter(fits);
    match (fitting.next(), fitting.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

fn arguments(args: &Map<String, Value>, properties: &Value) -> Map<String, Value> {
    let Some(known) = properties.as_object() else {
        return args.clone();
    };
    let ours = |name: &String| {
        let (_, ours) = OTHER_NAMES.iter().find(|(other, _)| other == name)?;
        let is_meant = !known.contains_key(name) && known.contains_key(*ours) && !args.contains_key(*ours);
        is_meant.then(|| (*ours).to_owned())
    };
    args.iter()
        .map(|(name, value)| (ours(name).unwrap_or_else(|| name.clone()), value.clone()))
        .collect()
}

/// Returns the name in `known` that is most like `wanted`, if one is similar enough.
pub(super) fn nearest<'known>(wanted: &str, known: &[&'known str]) -> Option<&'known str> {
    let last = |name: &str| name.rsplit('/').next().unwrap_or_default().to_owned();
    nearest_by(&last(wanted), known.iter().copied(), LIKENESS, |name| last(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tools() -> Vec<ToolSpec> {
        [
            ("workspace/read_file", json!({ "path": {} })),
            ("workspace/str_replace", json!({ "path": {}, "old": {}, "new": {} })),
            ("time/now", json!({ "zone": {} })),
            ("clock/now", json!({ "zone": {} })),
        ]
        .map(|(name, properties)| ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            schema: json!({ "type": "object", "properties": properties }),
        })
        .into()
    }

    fn check(tool: &str, args: &Value, (name, expected): (&str, &Value)) {
        let call = ToolCall {
            id: "1".to_owned(),
            tool: tool.to_owned(),
            args: args.as_object().cloned().unwrap(),
        };
        let meant = meant(&call, &tools(), |name| name.starts_with("workspace/"));
        assert_eq!((meant.tool.as_str(), &Value::Object(meant.args)), (name, expected));
    }

    #[test]
    fn a_name_that_only_one_tool_can_mean_is_taken_as_it() {
        for tool in [
            "read_file",
            "workspace.read_file",
            "workspace_read_file",
            "workspace/read_file",
        ] {
            check(
                tool,
                &json!({ "path": "a" }),
                ("workspace/read_file", &json!({ "path": "a" })),
            );
        }
        check("now", &json!({}), ("now", &json!({})));
        check("open", &json!({}), ("open", &json!({})));
    }

    #[test]
    fn arguments_have_the_names_of_other_tools_too() {
        let meant = json!({ "path": "a", "old": "x", "new": "y" });
        let other = json!({ "file_path": "a", "old_str": "x", "new_string": "y" });
        check("str_replace", &other, ("workspace/str_replace", &meant));
        // Neither is dropped, and nobody else's tool is touched.
        let both = json!({ "path": "a", "file_path": "b" });
        check("read_file", &both, ("workspace/read_file", &both));
        check(
            "time/now",
            &json!({ "file": "a" }),
            ("time/now", &json!({ "file": "a" })),
        );
    }

    #[test]
    fn the_nearest_name_is_named() {
        let known = ["workspace/read_file", "workspace/str_replace"];
        assert_eq!(nearest("workspace/open_file", &known), Some("workspace/read_file"));
        assert_eq!(nearest("replace", &known), Some("workspace/str_replace"));
        assert_eq!(nearest("browse", &known), None);
    }
}
