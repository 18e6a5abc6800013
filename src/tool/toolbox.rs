//! All tools of one run behind one `call`.

use futures_util::future::{join_all, try_join_all};
use std::sync::Arc;
use tokio::sync::OnceCell;

use super::{ToolError, ToolOutput, ToolServer};
use crate::conversation::{ToolCall, ToolSpec};

/// The tool servers of one run.
pub struct Toolbox {
    servers: Vec<Arc<dyn ToolServer>>,
    specs: OnceCell<Arc<[ToolSpec]>>,
}

impl Toolbox {
    pub fn new(servers: Vec<Arc<dyn ToolServer>>) -> Self {
        Self {
            servers,
            specs: OnceCell::new(),
        }
    }

    /// Lists all tools of all servers, started side by side. Fails when a server cannot be listed, and names it; the
    /// next call asks again.
    pub async fn specs(&self) -> Result<Arc<[ToolSpec]>, ToolError> {
        let listed = self.specs.get_or_try_init(|| async {
            let lists = try_join_all(self.servers.iter().map(|server| server.list())).await?;
            Ok(lists.into_iter().flatten().collect())
        });
        listed.await.cloned()
    }

    /// Returns the servers' own prompts, in order.
    pub fn system_prompts(&self) -> Vec<&str> {
        self.servers
            .iter()
            .filter_map(|server| server.system_prompt())
            .collect()
    }

    /// Runs a call; an unknown name is an error for the model that lists what there is.
    pub async fn call(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        let specs = self.specs().await?;
        let is_known = specs.iter().any(|spec| spec.name == call.tool);
        let found = call.tool.split_once('/').and_then(|(name, tool)| {
            let server = self.servers.iter().find(|server| server.name() == name)?;
            Some((server, tool))
        });
        match found {
            Some((server, tool)) if is_known => server.call(tool, &call.args).await,
            _ => {
                let known: Vec<&str> = specs.iter().map(|spec| spec.name.as_str()).collect();
                let (wanted, known) = (&call.tool, known.join(", "));
                Err(ToolError::TellModel(format!(
                    "there is no tool {wanted}; there are {known}"
                )))
            }
        }
    }

    /// Closes all servers, side by side.
    pub async fn close(&self) {
        join_all(self.servers.iter().map(|server| server.close())).await;
    }
}
