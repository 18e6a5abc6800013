//! All tools of one run behind one `call`.

use std::sync::Arc;

use super::{ToolError, ToolOutput, ToolServer};
use crate::conversation::{ToolCall, ToolSpec};

/// The tool servers of one run.
pub struct Toolbox {}

impl Toolbox {
    pub fn new(_servers: Vec<Arc<dyn ToolServer>>) -> Self {
        todo!()
    }

    /// Lists all tools of all servers. Fails when a server cannot be listed, and names it.
    pub async fn specs(&self) -> Result<Arc<[ToolSpec]>, ToolError> {
        todo!()
    }

    /// Returns the servers' own prompts, in order.
    pub fn system_prompts(&self) -> Vec<&str> {
        todo!()
    }

    /// Runs a call; an unknown name is an error for the model that lists what there is.
    pub async fn call(&self, _call: &ToolCall) -> Result<ToolOutput, ToolError> {
        todo!()
    }

    /// Closes all servers.
    pub async fn close(&self) {
        todo!()
    }
}
