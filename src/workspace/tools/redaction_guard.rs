//! Prevents the workspace's file tools from writing redaction marks in place of the redacted text.
//!
//! The model reads files through the redactor and sees a mark in place of each secret; written
//! back, the mark would replace the secret. A mark may be written only where the file itself has
//! it. Commands are not covered.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::file_text;
use crate::conversation::ToolSpec;
use crate::secret::Redactor;
use crate::tool::{ToolError, ToolOutput, ToolServer};

/// Tools of the workspace that change nothing. A command is not among them, since its effect cannot
/// be told from its text.
const READING: [&str; 2] = ["list_files", "read_file"];

/// The workspace's tool server with a check of all edits.
pub(crate) struct RedactionGuard {
    server: Box<dyn ToolServer>,
    redactor: Arc<Redactor>,
}

impl RedactionGuard {
    pub(crate) fn new(server: Box<dyn ToolServer>, redactor: Arc<Redactor>) -> Self {
        Self { server, redactor }
    }

    /// Returns the file as it is, or nothing if it cannot be read. Of a file that cannot be read
    /// whole it returns the beginning: a mark after it counts as the redactor's.
    async fn file(&self, path: Option<&Value>) -> Result<String, ToolError> {
        let path = path.cloned().unwrap_or_default();
        match file_text::read(self.server.as_ref(), &path).await {
            Ok(file) => Ok(file.map_or_else(String::new, |file| file.text)),
            Err(ToolError::TellModel(_) | ToolError::Forbidden { .. }) => Ok(String::new()),
            Err(lost) => Err(lost),
        }
    }

    /// Returns a mark that an edit would write where the file does not have it.
    async fn misplaced(&self, tool: &str, args: &Map<String, Value>) -> Result<Option<String>, ToolError> {
        let text = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default();
        let (old, new) = match tool {
            "write_file" => ("", text("content")),
            "insert" => ("", text("text")),
            "str_replace" => (text("old"), text("new")),
            _ => return Ok(None),
        };
        let Some(first) = [new, old]
            .iter()
            .find_map(|text| self.redactor.marks(text).first().copied())
        else {
            return Ok(None);
        };
        let is_held = match tool {
            "write_file" if text("mode") == "overwrite" => {
                let file = self.file(args.get("path")).await?;
                let held: Vec<&str> = file.lines().collect();
                let mut marked = new.lines().filter(|line| !self.redactor.marks(line).is_empty());
                marked.all(|line| held.contains(&line))
            }
            "str_replace" => {
                self.brings_none(old, new)
                    && (self.redactor.marks(old).is_empty() || self.file(args.get("path")).await?.contains(old))
            }
            _ => false,
        };
        Ok((!is_held).then(|| first.to_owned()))
    }

    /// Returns true if `new` contains no mark more often than `old`.
    fn brings_none(&self, old: &str, new: &str) -> bool {
        let mut left = self.redactor.marks(old);
        self.redactor.marks(new).iter().all(|mark| {
            let place = left.iter().position(|held| held == mark);
            place.map(|place| left.swap_remove(place)).is_some()
        })
    }
}

#[async_trait]
impl ToolServer for RedactionGuard {
    fn name(&self) -> &str {
        self.server.name()
    }

    fn system_prompt(&self) -> Option<&str> {
        self.server.system_prompt()
    }

    async fn list(&self) -> Result<Vec<ToolSpec>, ToolError> {
        self.server.list().await
    }

    async fn call(&self, tool: &str, args: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        if let Some(mark) = self.misplaced(tool, args).await? {
            let path = args.get("path").unwrap_or(&json!("")).to_string();
            let reason = format!(
                "nothing was written to {path}: `{mark}` stands in what you were shown for a value that is \
                 hidden from you, the file holds the value itself. Leave that line as it is and change the lines around it \
                 with str_replace, without the mark in old or new; where a value is to be set, read it from the environment"
            );
            return Err(ToolError::Forbidden {
                rule: "redaction_mark",
                status: 403,
                reason,
            });
        }
        self.server.call(tool, args).await
    }

    fn only_reads(&self, tool: &str) -> bool {
        READING.contains(&tool)
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
    async fn a_mark_behind_the_first_answer_on_a_file_is_the_files_own() {
        let before = "port = 1\nname = 2\n\n# A secret is shown as\n# [redacted]\n";
        let (file, text) = OneFile::of(before);
        let guard = RedactionGuard::new(file, Arc::default());
        let overwrite = async |content: &str| {
            let args = json!({ "path": "a.toml", "content": content, "mode": "overwrite" });
            guard.call("write_file", args.as_object().unwrap()).await
        };

        let changed = before.replace("port = 1", "port = 2");
        overwrite(&changed).await.unwrap();
        assert_eq!(*text.lock().unwrap(), changed);

        let refused = overwrite(&changed.replace("name = 2", "name = [redacted]")).await;
        assert!(
            matches!(
                refused,
                Err(ToolError::Forbidden {
                    rule: "redaction_mark",
                    ..
                })
            ),
            "{refused:?}"
        );
        assert_eq!(*text.lock().unwrap(), changed);
    }
}
