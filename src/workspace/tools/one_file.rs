//! A tool server for tests.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use crate::conversation::ToolSpec;
use crate::executor::ShownLines;
use crate::tool::{ToolError, ToolOutput, ToolServer};

/// A server with one file, of which an answer has two lines.
pub(super) struct OneFile {
    text: Arc<Mutex<String>>,
}

impl OneFile {
    /// Returns a server whose file has this text, and the file.
    pub(super) fn of(text: &str) -> (Box<Self>, Arc<Mutex<String>>) {
        let text = Arc::new(Mutex::new(text.to_owned()));
        let server = Self {
            text: Arc::clone(&text),
        };
        (Box::new(server), text)
    }
}

#[async_trait]
impl ToolServer for OneFile {
    fn name(&self) -> &'static str {
        "workspace"
    }

    fn system_prompt(&self) -> Option<&str> {
        None
    }

    async fn list(&self) -> Result<Vec<ToolSpec>, ToolError> {
        Ok(Vec::new())
    }

    async fn call(&self, tool: &str, args: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let mut file = self.text.lock().unwrap();
        if tool == "write_file" {
            args["content"].as_str().unwrap_or_default().clone_into(&mut file);
        }
        let all: Vec<&str> = file.lines().collect();
        let first = args.get("view_range").and_then(|range| range[0].as_u64()).unwrap_or(1);
        let first = usize::try_from(first).unwrap();
        let lines = ShownLines {
            first,
            last: (first + 1).min(all.len()),
            of: all.len(),
        };
        Ok(ToolOutput {
            text: format!("{}\n{lines}", all[first - 1..lines.last].join("\n")),
            is_error: false,
            structured: Some(json!({ "size": file.len(), "lines": lines })),
        })
    }

    async fn close(&self) {}
}
