//! Tools. Those of the container and of configured servers are MCP tools; those that read the bare
//! repository or steer the run are the program's own. The agent sees one toolbox.

mod answer;
mod bounded;
mod catalogue;
mod compact;
mod pages;
pub mod connect;
pub mod guard;
pub mod mcp;
mod slips;
mod stdio;
pub mod program;
pub mod toolbox;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

use crate::conversation::ToolSpec;

/// An MCP server that runs on the worker and is spoken to over stdio.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpServerConfig {
    /// The part before the slash in `server/tool`; not `workspace`, `repository` or `agent`.
    pub mcp_server_name: String,
    /// Program and arguments.
    pub command: Vec<String>,
    /// The server's environment variables; besides these it gets PATH, HOME, LANG and TMPDIR.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>", extend("default" = {}))]
    pub env: BTreeMap<String, secrecy::SecretString>,
    /// Text that is added to the system prompt.
    #[serde(default)]
    pub system_prompt: Option<String>,
    /// Only these tools are offered; all when left out.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// How long one call may take.
    #[serde(default = "default_timeout_seconds")]
    pub timeout_seconds: u64,
}

/// Most bytes of the descriptions and schemas of configured servers in each request, unless another
/// number is configured.
pub const SCHEMA_BYTES: usize = 8_192;

fn default_timeout_seconds() -> u64 {
    120
}

/// A group of tools under one name.
#[async_trait]
pub trait ToolServer: Send + Sync {
    /// Returns the part before the slash.
    fn name(&self) -> &str;
    /// Returns the text that is added to the system prompt, if any.
    fn system_prompt(&self) -> Option<&str>;
    /// Lists the tools, with names in the form `server/tool`. Called once, when first needed.
    async fn list(&self) -> Result<Vec<ToolSpec>, ToolError>;
    /// Runs `tool` (without the server's name).
    async fn call(&self, tool: &str, args: &Map<String, Value>) -> Result<ToolOutput, ToolError>;
    /// Tells whether `tool` changes nothing, whatever its arguments. A server's own statement does
    /// not count: the program knows its own tools, and the servers of others may be wrong about
    /// theirs.
    fn only_reads(&self, _tool: &str) -> bool {
        false
    }
    /// Ends the server and everything it started. Nothing is left running.
    async fn close(&self);
}

/// Describes a tool of the program's own, whose arguments are `Args`.
pub fn own_spec<Args: JsonSchema>(server: &str, tool: &str, description: &str) -> ToolSpec {
    ToolSpec {
        name: format!("{server}/{tool}"),
        description: description.to_owned(),
        schema: schemars::schema_for!(Args).to_value(),
    }
}

/// Reads the arguments of a tool of the program's own; the error tells the model what does not fit.
pub fn read_args<Args: DeserializeOwned>(args: &Map<String, Value>) -> Result<Args, ToolError> {
    serde_json::from_value(Value::Object(args.clone()))
        .map_err(|error| ToolError::TellModel(format!("the arguments do not fit: {error}")))
}

/// The result of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    pub text: String,
    pub is_error: bool,
    /// The result's structured content, for the program.
    pub structured: Option<Value>,
}

/// The reason why a tool did not run. The variant says who must react.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The model: it reads this text and does something else.
    #[error("{0}")]
    TellModel(String),
    /// The model, too: a rule forbids the call. It is counted, and the rule is recorded.
    #[error("{rule} {status}: {reason}")]
    Forbidden {
        /// Name of the rule in one word, such as `left_out`.
        rule: &'static str,
        status: u16,
        /// The text for the model: what was refused, by which rule, and what to do instead.
        reason: String,
    },
    /// The run: what the server runs on cannot be reached now, but may be later.
    #[error("the tool server '{server}' cannot be reached: {reason}")]
    Away { server: String, reason: String },
    /// The run: the server is gone and could not be started again.
    #[error("the tool server '{server}' is lost: {reason}")]
    Lost { server: String, reason: String },
}
