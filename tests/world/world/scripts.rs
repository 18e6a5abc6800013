//! Scripts of the model that many stories share, and what comes of them.

use serde_json::{Value, json};

use crate::fake::model::{Plan, Script};
use crate::world::World;

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

/// Returns what the model was told of its command with this number, counted from 0 behind the plan,
/// without the lines about it.
pub fn output(world: &World, at: usize) -> String {
    let said = world.model.requests()[at + 2].last_user_message();
    let said: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    let output = said["output"].as_str().unwrap();
    let lines: Vec<&str> = output.lines().take_while(|line| !line.starts_with('[')).collect();
    lines.join("\n")
}

/// Returns the lines that `seq` prints up to a number.
pub fn counted(to: usize) -> String {
    let lines: Vec<String> = (1..=to).map(|number| number.to_string()).collect();
    lines.join("\n")
}
