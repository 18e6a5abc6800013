//! The seven tools as they are described to a model. Every word is paid for on every run, and small
//! models have small windows: a test keeps all seven below 600 tokens.

use rmcp::model::{JsonObject, Tool};
use serde_json::{Value, json};

/// Returns the tools, in the order in which a model should consider them.
pub(super) fn tools() -> Vec<Tool> {
    let path = || json!({"type": "string"});
    let text = || json!({"type": "string"});
    let number = || json!({"type": "integer"});
    vec![
        tool(
            "execute_command",
            "Run a bash command in the project.",
            json!({"command": text(), "working_directory": path(), "timeout_seconds": number()}),
            &["command"],
        ),
        tool(
            "list_files",
            "List a folder; \".\" is the project.",
            json!({
                "path": path(), "recursive": {"type": "boolean"}, "extensions": {"type": "array", "items": text()},
                "max_items": number()
            }),
            &["path"],
        ),
        tool(
            "read_file",
            "Read a text file, or its lines view_range [first, last].",
            json!({"path": path(), "view_range": {"type": "array", "items": number(), "minItems": 2, "maxItems": 2}}),
            &["path"],
        ),
        tool(
            "write_file",
            "Write a text file. Mode create (the default) fails if it exists.",
            json!({"path": path(), "content": text(), "mode": {"enum": ["create", "overwrite", "append"]}}),
            &["path", "content"],
        ),
        tool(
            "str_replace",
            "Replace old, which must occur exactly once in the file.",
            json!({"path": path(), "old": text(), "new": text()}),
            &["path", "old", "new"],
        ),
        tool(
            "insert",
            "Insert text after a line; 0 is the top.",
            json!({"path": path(), "line": number(), "text": text()}),
            &["path", "line", "text"],
        ),
        tool(
            "undo_edit",
            "Take back the last edit of a file.",
            json!({"path": path()}),
            &["path"],
        ),
    ]
}

fn tool(name: &'static str, description: &'static str, properties: Value, required: &[&str]) -> Tool {
    let schema = JsonObject::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), properties),
        ("required".to_owned(), json!(required)),
    ]);
    Tool::new(name, description, schema)
}

#[cfg(test)]
mod tests {
    use super::tools;

    #[test]
    fn all_tools_fit_into_six_hundred_tokens() {
        let text = serde_json::to_string(&tools()).unwrap();
        // JSON has short tokens; three bytes each is a cautious count.
        assert!(text.len() / 3 < 600, "{} bytes", text.len());
    }
}
