//! Scripts of the model that many stories share.

use serde_json::json;

use crate::fake::model::{Plan, Script};

/// The tool that runs a command in the container.
pub const COMMAND: &str = "workspace/execute_command";

/// Returns a plan to greet the reader that needs nothing special and names no check.
pub fn plan() -> Plan {
    Plan::of(&["greet the reader"]).in_environment("python")
}

/// Ends a script as most do: with one change, and done.
pub fn greets(script: Script<'_>) -> Script<'_> {
    writes(script, "README.md", "Hello\n").done("The README greets its reader now.")
}

pub fn writes<'model>(script: Script<'model>, path: &str, content: &str) -> Script<'model> {
    let arguments = json!({"path": path, "content": content, "mode": "overwrite"});
    script.calls("workspace/write_file", arguments)
}

pub fn executes<'model>(script: Script<'model>, command: &str) -> Script<'model> {
    script.calls(COMMAND, json!({ "command": command }))
}
