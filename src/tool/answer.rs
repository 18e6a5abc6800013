//! Converts the answers of an MCP server to the types of the conversation.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents, Tool};
use serde_json::Value;

use crate::conversation::ToolSpec;

/// Returns a tool as it is described to the model.
pub(super) fn spec(server: &str, tool: Tool) -> ToolSpec {
    ToolSpec {
        name: format!("{server}/{}", tool.name),
        description: tool.description.unwrap_or_default().into_owned(),
        schema: Value::Object(tool.input_schema.as_ref().clone()),
    }
}

/// Returns a result as text. Content that is no text is named with its size; structured content
/// replaces missing text.
pub(super) fn text(result: &CallToolResult) -> String {
    let mut parts: Vec<String> = result.content.iter().map(shown).collect();
    let has_text = result
        .content
        .iter()
        .any(|block| matches!(block, ContentBlock::Text(_)));
    if let (false, Some(structured)) = (has_text, &result.structured_content) {
        parts.push(structured.to_string());
    }
    parts.join("\n")
}

fn shown(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => format!("[image {}, {}]", image.mime_type, size(&image.data)),
        ContentBlock::Audio(audio) => format!("[audio {}, {}]", audio.mime_type, size(&audio.data)),
        ContentBlock::Resource(resource) => match &resource.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("[{uri}]\n{text}"),
            ResourceContents::BlobResourceContents { uri, blob, .. } => format!("[{uri}, {}]", size(blob)),
            _ => "[a resource of an unknown kind]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => format!("[{} at {}]", link.name, link.uri),
        // The protocol may grow.
        _ => "[content of an unknown kind]".to_owned(),
    }
}

/// Returns the size of the data that a base64 text encodes.
fn size(base64: &str) -> String {
    let bytes = base64.len() / 4 * 3;
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    format!("{} kB", bytes / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_no_text_is_described() {
        let result = CallToolResult::success(vec![
            ContentBlock::text("seen:"),
            ContentBlock::image("A".repeat(16_000), "image/png"),
            ContentBlock::embedded_text("file:///a", "b"),
        ]);
        assert_eq!(text(&result), "seen:\n[image image/png, 12 kB]\n[file:///a]\nb");
    }

    #[test]
    fn structured_content_stands_in_for_missing_text() {
        let mut result = CallToolResult::success(Vec::new());
        result.structured_content = Some(json!({"a": 1}));
        assert_eq!(text(&result), r#"{"a":1}"#);
        result.content = vec![ContentBlock::text("one")];
        assert_eq!(text(&result), "one");
    }
}
