//! The form in which a model changes files: exact edits, or whole files for models that cannot copy
//! a text word for word.

use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::file_text;
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

    /// Returns the text of a file, which is read in parts if it is longer than one answer; `None`
    /// if there is none.
    async fn text_of(&self, path: &str) -> Result<Option<String>, ToolError> {
        let file = file_text::read(self.server.as_ref(), &json!(path)).await?;
        if file.as_ref().is_none_or(|file| file.is_whole) {
            return Ok(file.map(|file| file.text));
        }
        Err(ToolError::TellModel(format!(
            "{path} cannot be read whole, and nothing was written to it; change it with commands (sed, a script)"
        )))
    }

    /// Writes a file of which the arguments may hold a piece only.
    async fn put(&self, args: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let text = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default();
        let before = self.text_of(text("path")).await?;
        let merged = before.and_then(|before| fragment::merge(text("path"), &before, text("content")));
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
        let now = if file.is_error || file_text::shown_lines(&file).is_some() || file.text.len() > LARGEST {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tools::one_file::OneFile;

    #[tokio::test]
    async fn a_piece_keeps_what_stands_behind_the_first_answer_on_its_file() {
        let before = "TAX = 1\n\n\ndef net(a):\n    return a\n\n\ndef gross(a):\n    return a\n";
        let (file, text) = OneFile::of(before);
        let form = EditForm::new(file, Edits::Whole);
        let args = json!({ "path": "a.py", "content": "def net(a):\n    return a * TAX\n", "mode": files::PUT });

        let output = form.call("write_file", args.as_object().unwrap()).await.unwrap();

        assert_eq!(output.text, "a.py: replaced net, and the rest of it stays as it was");
        let expected = before.replacen("return a\n", "return a * TAX\n", 1);
        assert_eq!(*text.lock().unwrap(), expected);
    }
}
