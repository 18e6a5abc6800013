//! Reads the text of a file with the workspace's tools, in as many answers as it takes.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::executor::ShownLines;
use crate::tool::{ToolError, ToolOutput, ToolServer};

/// Most answers in which one file is read.
const MOST_PARTS: u32 = 1_000;

/// The text of a file, as far as it could be read.
pub(super) struct FileText {
    pub(super) text: String,
    pub(super) is_whole: bool,
}

/// Returns the text of a file, which is read in parts if it is longer than one answer; `None` if
/// there is none.
pub(super) async fn read(server: &dyn ToolServer, path: &Value) -> Result<Option<FileText>, ToolError> {
    let mut args = Map::from_iter([("path".to_owned(), path.clone())]);
    let mut text = String::new();
    for _ in 0..MOST_PARTS {
        let part = server.call("read_file", &args).await?;
        if part.is_error && text.is_empty() {
            return Ok(None);
        }
        if part.is_error {
            break;
        }
        let Some(lines) = shown_lines(&part) else {
            text.push_str(&part.text);
            return Ok(Some(FileText { text, is_whole: true }));
        };
        let Some(shown) = part.text.strip_suffix(lines.to_string().as_str()) else {
            break;
        };
        text.push_str(shown);
        if lines.last >= lines.of {
            return Ok(Some(FileText { text, is_whole: true }));
        }
        args.insert("view_range".to_owned(), json!([lines.last + 1, -1]));
    }
    Ok(Some(FileText { text, is_whole: false }))
}

/// Returns the lines that an answer shows of a file, if these are not all.
pub(super) fn shown_lines(output: &ToolOutput) -> Option<ShownLines> {
    let lines = output.structured.as_ref()?.get("lines")?;
    ShownLines::deserialize(lines).ok()
}
