//! Prevents the workspace's file tools from writing redaction marks in place of the redacted text.
//!
//! The model reads files through the redactor and sees a mark in place of each secret; written
//! back, the mark would replace the secret. In a whole file that is written anew, lines that are as
//! the model was shown them stay as they are in the file. Else a mark may be written only where the
//! file itself has it. Commands are not covered.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::file_text::{self, FileText};
use super::hidden_lines;
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
    async fn file(&self, path: Option<&Value>) -> Result<FileText, ToolError> {
        let path = path.cloned().unwrap_or_default();
        let nothing = FileText {
            text: String::new(),
            is_whole: true,
        };
        match file_text::read(self.server.as_ref(), &path).await {
            Ok(file) => Ok(file.unwrap_or(nothing)),
            Err(ToolError::TellModel(_) | ToolError::Forbidden { .. }) => Ok(nothing),
            Err(lost) => Err(lost),
        }
    }

    /// Returns the arguments of an edit, with the file's own lines for those that have marks.
    ///
    /// # Errors
    /// If it would write a mark where the file does not have it.
    async fn without_marks<'args>(
        &self,
        tool: &str,
        args: &'args Map<String, Value>,
    ) -> Result<Cow<'args, Map<String, Value>>, ToolError> {
        let text = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default();
        let (old, new) = match tool {
            "write_file" => ("", text("content")),
            "insert" => ("", text("text")),
            "str_replace" => (text("old"), text("new")),
            _ => return Ok(Cow::Borrowed(args)),
        };
        let Some(first) = [new, old]
            .iter()
            .find_map(|text| self.redactor.marks(text).first().copied())
        else {
            return Ok(Cow::Borrowed(args));
        };
        let path = args.get("path");
        if tool == "write_file" && text("mode") == "overwrite" {
            let file = self.file(path).await?;
            if let Some(content) = hidden_lines::put_back(&self.redactor, &file, new) {
                let mut args = args.clone();
                args.insert("content".to_owned(), json!(content));
                return Ok(Cow::Owned(args));
            }
        }
        if tool == "str_replace"
            && self.brings_none(old, new)
            && (self.redactor.marks(old).is_empty() || self.file(path).await?.text.contains(old))
        {
            return Ok(Cow::Borrowed(args));
        }
        Err(refusal(path, first))
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

fn refusal(path: Option<&Value>, mark: &str) -> ToolError {
    let path = path.unwrap_or(&json!("")).to_string();
    let reason = format!(
        "nothing was written to {path}: `{mark}` stands in what you were shown for a value that is hidden from you, the \
         file holds the value itself. Leave that line as it is and change the lines around it with str_replace or a \
         command (sed), without the mark; where a value is to be set, read it from the environment"
    );
    ToolError::Forbidden {
        rule: "redaction_mark",
        status: 403,
        reason,
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
        let args = self.without_marks(tool, args).await?;
        self.server.call(tool, &args).await
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
    use crate::conversation::decode::files;
    use crate::llm::config::Edits;
    use crate::workspace::tools::edit_form::EditForm;
    use crate::workspace::tools::one_file::OneFile;

    #[tokio::test]
    async fn a_whole_file_as_the_model_was_shown_it_keeps_its_secrets() {
        // Built from parts, so that no scanner takes this file for a leak.
        let token = format!("ghp_{}", "Ab3dEf6hIj9lMn2p".repeat(3));
        let shown = "PORT = 1\nSECRET_KEY = '[redacted:github-token]'\nDEBUG = False\n";
        let before = shown.replace("[redacted:github-token]", &token);
        let (file, text) = OneFile::of(&before);
        let form = EditForm::new(Box::new(RedactionGuard::new(file, Arc::default())), Edits::Whole);
        let put = async |content: &str| {
            let args = json!({ "path": "settings.py", "content": content, "mode": files::PUT });
            form.call("write_file", args.as_object().unwrap()).await
        };

        put(&shown.replace("PORT = 1", "PORT = 2")).await.unwrap();
        let changed = before.replace("PORT = 1", "PORT = 2");
        assert_eq!(*text.lock().unwrap(), changed);

        let refused = put("PORT = 2\nOTHER_KEY = '[redacted:github-token]'\nDEBUG = False\n").await;
        let told = refused.unwrap_err().to_string();
        assert!(told.contains("or a command (sed)"), "{told}");
        assert_eq!(*text.lock().unwrap(), changed);
    }

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
