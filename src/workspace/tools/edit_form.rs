//! The form in which a model changes files: exact edits, or whole files for models that cannot copy
//! a text word for word.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use crate::conversation::ToolSpec;
use crate::conversation::decode::files;
use crate::executor::UNCHANGED;
use crate::llm::config::Edits;
use crate::syntax::fragment;
use crate::tool::{ToolError, ToolOutput, ToolServer};

/// Tools that need a text or a line of the file as it is.
const EXACT: [&str; 3] = ["str_replace", "insert", "undo_edit"];
/// Number of misses in a row after which whole files are proposed.
const MOST_MISSES: u32 = 2;
/// Largest file that is shown with the proposal, in bytes.
const LARGEST: usize = 6 * 1024;

/// The workspace's tool server, with edits in the form that suits the model.
pub(crate) struct EditForm {
    server: Box<dyn ToolServer>,
    edits: Edits,
    /// Exact edits in a row that found nothing to edit.
    misses: AtomicU32,
}

impl EditForm {
    pub(crate) fn new(server: Box<dyn ToolServer>, edits: Edits) -> Self {
        Self {
            server,
            edits,
            misses: AtomicU32::default(),
        }
    }

    /// Writes a file of which the arguments may hold a piece only.
    async fn put(&self, args: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let text = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default();
        let path = Map::from_iter([("path".to_owned(), json!(text("path")))]);
        let before = self.server.call("read_file", &path).await?;
        let merged = if before.is_error {
            None
        } else {
            fragment::merge(text("path"), &before.text, text("content"))
        };
        let mut args = args.clone();
        args.insert("mode".to_owned(), json!("overwrite"));
        let Some(merged) = merged else {
            return self.server.call("write_file", &args).await;
        };
        args.insert("content".to_owned(), json!(merged.text));
        let output = self.server.call("write_file", &args).await?;
        if output.is_error || output.text.contains(UNCHANGED) {
            return Ok(output);
        }
        Ok(ToolOutput {
            text: format!(
                "{}: replaced {}, and the rest of it stays as it was",
                text("path"),
                merged.names.join(", ")
            ),
            ..output
        })
    }

    /// Counts the misses, and proposes to write the whole file when there are too many.
    async fn proposed(&self, output: ToolOutput, args: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        if !output.is_error {
            self.misses.store(0, Ordering::Relaxed);
            return Ok(output);
        }
        if !output.text.contains(": old does not occur") && !output.text.contains(": old occurs ") {
            return Ok(output);
        }
        if self.misses.fetch_add(1, Ordering::Relaxed) + 1 < MOST_MISSES {
            return Ok(output);
        }
        let path = Map::from_iter([("path".to_owned(), args.get("path").cloned().unwrap_or_default())]);
        let file = self.server.call("read_file", &path).await?;
        let now = if file.is_error || file.text.len() > LARGEST {
            " Read it first.".to_owned()
        } else {
            format!(" It is now:\n{}", file.text)
        };
        let reason = output.text.lines().next().unwrap_or_default();
        let reason = reason.split("; copy it").next().unwrap_or_default();
        Ok(ToolOutput {
            text: format!("{reason}. Write the whole file with write_file, mode overwrite, instead.{now}"),
            ..output
        })
    }
}

#[async_trait]
impl ToolServer for EditForm {
    fn name(&self) -> &str {
        self.server.name()
    }

    fn system_prompt(&self) -> Option<&str> {
        self.server.system_prompt()
    }

    async fn list(&self) -> Result<Vec<ToolSpec>, ToolError> {
        let mut specs = self.server.list().await?;
        if self.edits == Edits::Whole {
            specs.retain(|spec| !EXACT.iter().any(|exact| spec.name.ends_with(exact)));
            for spec in specs.iter_mut().filter(|spec| spec.name.ends_with("/write_file")) {
                "Write a whole text file, in place of what it held.".clone_into(&mut spec.description);
                if let Some(properties) = spec.schema["properties"].as_object_mut() {
                    properties.remove("mode");
                }
            }
        }
        Ok(specs)
    }

    async fn call(&self, tool: &str, args: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        if tool == "write_file" && args.get("mode").is_some_and(|mode| mode == files::PUT) {
            return self.put(args).await;
        }
        match self.edits {
            Edits::Whole if tool == "write_file" && !args.contains_key("mode") => {
                let mut args = args.clone();
                args.insert("mode".to_owned(), json!("overwrite"));
                self.server.call(tool, &args).await
            }
            Edits::Auto if EXACT.contains(&tool) => {
                let output = self.server.call(tool, args).await?;
                self.proposed(output, args).await
            }
            Edits::Auto | Edits::Exact | Edits::Whole => self.server.call(tool, args).await,
        }
    }

    fn only_reads(&self, tool: &str) -> bool {
        self.server.only_reads(tool)
    }

    async fn close(&self) {
        self.server.close().await;
    }
}
