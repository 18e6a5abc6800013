//! The short names of the program's own tools, by which models are told of them and call them.
//!
//! A name is in each call, and each call is repeated in every later request. The full name,
//! `server/tool`, is understood as well.

use super::decode::DONE;
use super::{ToolCall, ToolSpec};

/// The program's own servers. No conversation has two of their tools under the same short name.
const OWN: [&str; 3] = ["workspace/", "agent/", "repository/"];
/// The tool that most calls are for, and the short name that models know it by.
const SHELL: (&str, &str) = ("workspace/execute_command", "bash");

/// Returns the short name of a tool of the program's own; another tool has its full name only.
pub fn short(name: &str) -> &str {
    if name == SHELL.0 {
        return SHELL.1;
    }
    OWN.iter()
        .find_map(|server| name.strip_prefix(server))
        .filter(|tool| !tool.is_empty() && !tool.contains('/') && ![DONE, SHELL.1].contains(tool))
        .unwrap_or(name)
}

/// Returns the tool of `tools` that is called `name`, in full or in short.
pub fn find<'tools>(name: &str, tools: &'tools [ToolSpec]) -> Option<&'tools ToolSpec> {
    let in_full = tools.iter().find(|tool| tool.name == name);
    in_full.or_else(|| tools.iter().find(|tool| short(&tool.name) == name))
}

/// Returns `calls` with the full names of those of `tools` that they call in short.
#[must_use]
pub fn in_full(mut calls: Vec<ToolCall>, tools: &[ToolSpec]) -> Vec<ToolCall> {
    for call in &mut calls {
        if let Some(tool) = find(&call.tool, tools) {
            call.tool.clone_from(&tool.name);
        }
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_own_tools_have_short_names_and_others_do_not() {
        for (name, expected) in [
            ("workspace/execute_command", "bash"),
            ("workspace/write_file", "write_file"),
            ("agent/revise_plan", "revise_plan"),
            ("repository/search_code", "search_code"),
            ("time/now", "time/now"),
            ("agent/done", "agent/done"),
            ("workspace/bash", "workspace/bash"),
            ("workspace/a/b", "workspace/a/b"),
            ("workspace/", "workspace/"),
        ] {
            assert_eq!(short(name), expected);
        }
    }

    #[test]
    fn calls_in_short_get_the_full_names_of_tools_that_are_there() {
        let tools = ["workspace/execute_command", "fs/read_file", "workspace/read_file"].map(|name| ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            schema: serde_json::json!({}),
        });
        for (called, expected) in [
            ("bash", "workspace/execute_command"),
            ("read_file", "workspace/read_file"),
            ("fs/read_file", "fs/read_file"),
            ("write_file", "write_file"),
        ] {
            let call = ToolCall {
                id: String::new(),
                tool: called.to_owned(),
                args: serde_json::Map::new(),
            };
            assert_eq!(in_full(vec![call], &tools)[0].tool, expected);
        }
    }
}
