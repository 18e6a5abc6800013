//! A small MCP server over stdio, such as a team brings for its own rules: the second tool server
//! of the demo, besides the workspace in the container. It runs on the worker, behind the program's
//! guard.

use std::process::ExitCode;

use anyhow::Context;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, serve_server};
use serde_json::{Value, json};

/// The paragraph of the system prompt about this server.
pub(crate) const PROMPT: &str = "The team's rules are in its handbook: before you edit, look up the topic `changes`.";

const TOPICS: [(&str, &str); 2] = [
    (
        "changes",
        "Each change that a user notices gets one line at the end of `## Unreleased` in CHANGELOG.md:\n\
         `- Added|Changed|Fixed: what is different for the user (#ISSUE).`\n\
         What README.md says must stay true.",
    ),
    (
        "tests",
        "Tests are run with `python3 -m unittest` in the project's root. Each fault gets a test before it is mended.",
    ),
];

/// Serves until stdin ends.
pub(crate) async fn serve() -> anyhow::Result<ExitCode> {
    let service = serve_server(Handbook, rmcp::transport::stdio())
        .await
        .context("the client did not shake hands")?;
    service.waiting().await?;
    Ok(ExitCode::SUCCESS)
}

struct Handbook;

impl ServerHandler for Handbook {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("handbook", "1.0.0"))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let topics: Vec<&str> = TOPICS.iter().map(|(topic, _)| *topic).collect();
        let schema = JsonObject::from_iter([
            ("type".to_owned(), json!("object")),
            (
                "properties".to_owned(),
                json!({ "topic": { "type": "string", "enum": topics } }),
            ),
            ("required".to_owned(), json!(["topic"])),
        ]);
        let tool = Tool::new("look_up", "Look up a topic in the team's handbook.", schema);
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let topic = arguments.get("topic").and_then(Value::as_str).unwrap_or_default();
        let found = TOPICS.iter().find(|(name, _)| *name == topic);
        let result = match found {
            Some((_, text)) => CallToolResult::success(vec![ContentBlock::text(*text)]),
            None => CallToolResult::error(vec![ContentBlock::text(format!(
                "the handbook has no topic '{topic}'; it has changes and tests"
            ))]),
        };
        Ok(result.into())
    }
}
