//! The tools as an MCP server: reads arguments, runs the tool, writes the answer.
//!
//! Every failure that a model can react to is an answer marked as an error, never a protocol error:
//! clients show those badly or not at all.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, JsonObject, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::Options;
use super::blocking::Blocking;
use super::command::Commands;
use super::fault::Fault;
use super::files::{Answer, Files};
use super::tools::tools;

/// Maximum number of calls that run at once; more wait.
const CALLS_AT_ONCE: usize = 8;

/// The server of one project folder.
pub(super) struct Workspace {
    options: Options,
    blocking: Blocking,
    files: Arc<Files>,
    commands: Commands,
    calls: Semaphore,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecuteCommand {
    command: String,
    working_directory: Option<String>,
    timeout_seconds: Option<i64>,
}

impl Workspace {
    pub(super) fn open(options: Options, blocking: Blocking) -> io::Result<Self> {
        Ok(Self {
            files: Arc::new(Files::open(&options, blocking.clone())?),
            commands: Commands::new(options.clone(), blocking.clone()),
            blocking,
            options,
            calls: Semaphore::new(CALLS_AT_ONCE),
        })
    }

    async fn run(&self, tool: &str, arguments: JsonObject, cancelled: &CancellationToken) -> CallToolResult {
        match tool {
            "execute_command" => match read(tool, arguments) {
                Ok(wanted) => self.execute(wanted, cancelled).await,
                Err(reason) => refusal(reason),
            },
            "list_files" => {
                self.with_files(tool, arguments, |files, wanted| files.list(&wanted))
                    .await
            }
            "read_file" => {
                self.with_files(tool, arguments, |files, wanted| files.read(&wanted))
                    .await
            }
            "write_file" => {
                self.with_files(tool, arguments, |files, wanted| files.write(&wanted))
                    .await
            }
            "str_replace" => {
                self.with_files(tool, arguments, |files, wanted| files.str_replace(&wanted))
                    .await
            }
            "insert" => {
                self.with_files(tool, arguments, |files, wanted| files.insert(&wanted))
                    .await
            }
            "undo_edit" => {
                self.with_files(tool, arguments, |files, wanted| files.undo(&wanted))
                    .await
            }
            _ => {
                let names: Vec<_> = tools().into_iter().map(|tool| tool.name).collect();
                refusal(format!("there is no tool {tool}; there are {}", names.join(", ")))
            }
        }
    }

    async fn execute(&self, wanted: ExecuteCommand, cancelled: &CancellationToken) -> CallToolResult {
        let folder = match self
            .files
            .root
            .folder_path(wanted.working_directory.as_deref().unwrap_or("."))
        {
            Ok(folder) => folder,
            Err(fault) => return refusal(fault.to_string()),
        };
        // Models write 0 or -1 where they want no limit.
        let timeout = wanted.timeout_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let timeout = timeout
            .filter(|seconds| *seconds > 0)
            .map_or(self.options.default_timeout, Duration::from_secs);
        let timeout = timeout.clamp(Duration::from_secs(1), self.options.max_timeout);
        let before = self.files.look().await;
        match self.commands.run(&wanted.command, &folder, timeout, cancelled).await {
            Ok(outcome) => {
                let mut text = outcome.text();
                // The argument is described to no model: few commands need it.
                if outcome.timed_out() && timeout < self.options.max_timeout {
                    let most = self.options.max_timeout.as_secs();
                    let _ = write!(text, "\n[the argument timeout_seconds allows up to {most} s]");
                }
                let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
                let mut fields = outcome.fields();
                if let Some(before) = before {
                    fields["changed"] = self.files.changes_since(before).await;
                }
                result.structured_content = Some(fields);
                result.is_error = Some(outcome.is_error());
                result
            }
            Err(error) => refusal(format!("{error:#}")),
        }
    }

    async fn with_files<A: DeserializeOwned + Send + 'static>(
        &self,
        tool: &str,
        arguments: JsonObject,
        work: impl FnOnce(&Files, A) -> Result<Answer, Fault> + Send + 'static,
    ) -> CallToolResult {
        let wanted = match read(tool, arguments) {
            Ok(wanted) => wanted,
            Err(reason) => return refusal(reason),
        };
        let files = Arc::clone(&self.files);
        match self.blocking.run(move || work(&files, wanted)).await {
            Ok(Ok(answer)) => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(answer.text)]);
                result.structured_content = answer.size.map(|size| match answer.lines {
                    Some(lines) => json!({ "size": size, "lines": lines }),
                    None => json!({ "size": size }),
                });
                result
            }
            Ok(Err(fault)) => refusal(fault.to_string()),
            Err(error) => refusal(format!("the tool failed: {error:#}")),
        }
    }
}

fn read<A: DeserializeOwned>(tool: &str, arguments: JsonObject) -> Result<A, String> {
    serde_path_to_error::deserialize(Value::Object(arguments))
        .map_err(|error| format!("the arguments of {tool} cannot be used: {error}"))
}

fn refusal(reason: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(reason)])
}

impl ServerHandler for Workspace {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("coding-agent-executor", env!("CARGO_PKG_VERSION")))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        // A call that is cancelled while it waits gets an answer that nobody reads.
        let permit = tokio::select! {
            permit = self.calls.acquire() => permit,
            () = context.ct.cancelled() => return Ok(refusal("cancelled".to_owned()).into()),
        };
        let Ok(_permit) = permit else {
            return Ok(refusal("the executor is ending".to_owned()).into());
        };
        Ok(self.run(&request.name, arguments, &context.ct).await.into())
    }
}
