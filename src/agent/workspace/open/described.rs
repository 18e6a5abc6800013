//! Which tools are described to the model, of those that work.

use std::sync::Arc;

use crate::conversation::ToolSpec;

/// Tools that do what others do as well, each with the one that does. They work for a model that
/// calls them and are not described while the other is: a description is paid for in every request.
const UNDESCRIBED: [(&str, &str); 3] = [
    ("workspace/list_files", "workspace/execute_command"),
    ("workspace/insert", "workspace/str_replace"),
    ("workspace/undo_edit", "workspace/execute_command"),
];

/// Returns the tools that are described to the model. Where rules or the form of edits took the one
/// away that would do as well, the other is all that the model has.
pub(super) fn described(specs: &[ToolSpec]) -> Arc<[ToolSpec]> {
    let is_offered = |name: &str| specs.iter().any(|spec| spec.name == name);
    let is_described = |spec: &&ToolSpec| {
        let mut undescribed = UNDESCRIBED.iter();
        !undescribed.any(|(name, other)| spec.name == *name && is_offered(other))
    };
    specs.iter().filter(is_described).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_tool_does_as_well_is_described_where_that_one_is_forbidden() {
        let names = |offered: &[&str]| -> Vec<String> {
            let specs: Vec<ToolSpec> = offered
                .iter()
                .map(|name| ToolSpec {
                    name: format!("workspace/{name}"),
                    description: String::new(),
                    schema: serde_json::json!({}),
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
}
