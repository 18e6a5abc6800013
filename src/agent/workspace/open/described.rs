//! The tools that are described to the model, of those that work.

use std::sync::Arc;

use serde_json::Value;

use crate::conversation::ToolSpec;

/// Tools that do what others do as well, each with the one that does. They work for a model that
/// calls them and are not described while the other is: a description is paid for in every request.
const UNDESCRIBED: [(&str, &str); 7] = [
    ("workspace/list_files", "workspace/execute_command"),
    ("workspace/insert", "workspace/str_replace"),
    ("workspace/undo_edit", "workspace/execute_command"),
    ("agent/finish_subtask", "agent/tell_program"),
    ("agent/revise_plan", "agent/tell_program"),
    ("agent/add_set_up", "agent/tell_program"),
    ("agent/ask_people", "agent/tell_program"),
];

/// Arguments that work and are not described, for the same reason: a command changes the folder
/// itself, and the result of one that takes too long names the argument that allows more time.
const UNDESCRIBED_ARGUMENTS: [(&str, &str); 3] = [
    ("workspace/execute_command", "working_directory"),
    ("workspace/execute_command", "timeout_seconds"),
    ("repository/search_code", "top_k"),
];

/// Returns the tools that are described to the model. Where rules or the form of edits took the one
/// away that would do as well, the other is all that the model has.
pub(super) fn described(specs: &[ToolSpec]) -> Arc<[ToolSpec]> {
    let is_offered = |name: &str| specs.iter().any(|spec| spec.name == name);
    let is_described = |spec: &&ToolSpec| {
        let mut undescribed = UNDESCRIBED.iter();
        !undescribed.any(|(name, other)| spec.name == *name && is_offered(other))
    };
    specs.iter().filter(is_described).cloned().map(shortened).collect()
}

fn shortened(mut spec: ToolSpec) -> ToolSpec {
    let name = spec.name.as_str();
    let arguments = spec.schema.get_mut("properties").and_then(Value::as_object_mut);
    if let Some(arguments) = arguments {
        arguments.retain(|argument, _| !UNDESCRIBED_ARGUMENTS.contains(&(name, argument.as_str())));
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_another_tool_does_as_well_is_described_where_that_one_is_forbidden() {
        let names = |offered: &[&str]| -> Vec<String> {
            let specs: Vec<ToolSpec> = offered
                .iter()
                .map(|name| ToolSpec {
                    name: format!("workspace/{name}"),
                    description: String::new(),
                    schema: json!({ "type": "object" }),
                })
                .collect();
            let described = described(&specs);
            described
                .iter()
                .map(|spec| spec.name.trim_start_matches("workspace/").to_owned())
                .collect()
        };
        let files = ["list_files", "read_file", "str_replace", "insert", "undo_edit"];
        let all: Vec<&str> = ["execute_command"].into_iter().chain(files).collect();
        assert_eq!(names(&all), ["execute_command", "read_file", "str_replace"]);
        assert_eq!(names(&files), ["list_files", "read_file", "str_replace", "undo_edit"]);
        assert_eq!(names(&["execute_command", "insert"]), ["execute_command", "insert"]);
    }

    #[test]
    fn arguments_that_few_calls_need_are_not_described() {
        let schema = |arguments: &[&str]| {
            let arguments = arguments.iter().map(|name| ((*name).to_owned(), json!({})));
            json!({ "properties": arguments.collect::<serde_json::Map<_, _>>() })
        };
        let spec = ToolSpec {
            name: "workspace/execute_command".to_owned(),
            description: String::new(),
            schema: schema(&["command", "timeout_seconds", "working_directory"]),
        };
        assert_eq!(described(&[spec])[0].schema, schema(&["command"]));
    }
}
