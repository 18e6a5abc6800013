//! All tools of one run behind one `call`, restricted by the project's rules.

use futures_util::future::{join_all, try_join_all};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

use super::catalogue::Catalogue;
use super::slips;
use super::{ToolError, ToolOutput, ToolServer};
use crate::conversation::{ToolCall, ToolSpec, tool_name};
use crate::rules::Tools;

/// The tool servers of one run.
pub struct Toolbox {
    /// The program's own servers, then the others.
    servers: Vec<Arc<dyn ToolServer>>,
    own: usize,
    /// Most bytes that the schemas of the others may take in each request.
    most_bytes: usize,
    rules: Tools,
    catalogue: OnceCell<Catalogue>,
    /// The names that the model is told of, if those are not all.
    offered: Mutex<Option<Vec<String>>>,
}

impl Toolbox {
    /// Returns a toolbox of the program's own servers.
    pub fn new(servers: Vec<Arc<dyn ToolServer>>, rules: Tools) -> Self {
        Self {
            own: servers.len(),
            servers,
            most_bytes: usize::MAX,
            rules,
            catalogue: OnceCell::new(),
            offered: Mutex::default(),
        }
    }

    /// Adds the servers of others, whose tools are listed by name only if their schemas take more
    /// than `most_bytes`.
    #[must_use]
    pub fn with_others(mut self, servers: Vec<Arc<dyn ToolServer>>, most_bytes: usize) -> Self {
        self.servers.extend(servers);
        self.most_bytes = most_bytes;
        self
    }

    /// Lists the tools of all servers, except those that the rules forbid; servers start side by
    /// side. Fails if a server cannot be listed, and names it; the next call tries again.
    pub async fn specs(&self) -> Result<Arc<[ToolSpec]>, ToolError> {
        Ok(Arc::clone(&self.catalogue().await?.listed))
    }

    /// Sets the names of the tools that the model is told of: these are shown to it where it calls
    /// one that does not exist.
    pub fn offer(&self, names: Vec<String>) {
        *self.offered.lock().unwrap_or_else(PoisonError::into_inner) = Some(names);
    }

    async fn catalogue(&self) -> Result<&Catalogue, ToolError> {
        let listed = self.catalogue.get_or_try_init(|| async {
            let lists = try_join_all(self.servers.iter().map(|server| server.list())).await?;
            let is_left = |spec: &ToolSpec| self.rules.refusal(&spec.name).is_none();
            let (own, others) = lists.split_at(self.own);
            let left = |lists: &[Vec<ToolSpec>]| lists.iter().flatten().filter(|spec| is_left(spec)).cloned().collect();
            Ok(Catalogue::new(left(own), left(others), self.most_bytes))
        });
        listed.await
    }

    /// Returns a call as it is meant, with the tool's full name and the names of its arguments.
    pub async fn meant(&self, call: &ToolCall) -> Result<ToolCall, ToolError> {
        let listed = &self.catalogue().await?.listed;
        Ok(slips::meant(call, listed, |name| self.is_own(name)))
    }

    fn is_own(&self, tool: &str) -> bool {
        let server = tool.split('/').next();
        self.servers[..self.own].iter().any(|own| Some(own.name()) == server)
    }

    /// Tells whether a call changes nothing, so that others like it may run beside it.
    pub fn only_reads(&self, call: &ToolCall) -> bool {
        let server = self.server_of(call);
        server.is_some_and(|(server, tool)| server.only_reads(tool))
    }

    /// Returns the servers' additions to the system prompt, in order.
    pub fn system_prompts(&self) -> Vec<&str> {
        self.servers
            .iter()
            .filter_map(|server| server.system_prompt())
            .collect()
    }

    /// Runs a call of the model's. A call that the rules forbid is an error that names the rule; an
    /// unknown name is one that lists the tools that the model is told of.
    pub async fn call(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        let catalogue = self.catalogue().await?;
        if let Some(refusal) = self.rules.refusal(&call.tool) {
            return Err(ToolError::Forbidden {
                rule: "denied_tool",
                status: 403,
                reason: refusal,
            });
        }
        if catalogue.describes(&call.tool) {
            return catalogue.describe(&call.args);
        }
        let specs = &catalogue.listed;
        match self.server_of(call) {
            Some((server, tool)) if specs.iter().any(|spec| spec.name == call.tool) => {
                server.call(tool, &call.args).await
            }
            _ => {
                let known: Vec<&str> = specs.iter().map(|spec| tool_name::short(&spec.name)).collect();
                let offered = self.offered.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let offered = offered.map_or_else(|| known.join(", "), |offered| offered.join(", "));
                Err(no_such_tool(&call.tool, &known, &offered))
            }
        }
    }

    /// Runs a call of the program's own, which the rules for the model do not bind.
    pub async fn call_unbound(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        match self.server_of(call) {
            Some((server, tool)) => server.call(tool, &call.args).await,
            None => Err(no_such_tool(&call.tool, &[], "none")),
        }
    }

    /// Closes all servers, side by side.
    pub async fn close(&self) {
        join_all(self.servers.iter().map(|server| server.close())).await;
    }

    fn server_of<'call>(&self, call: &'call ToolCall) -> Option<(&Arc<dyn ToolServer>, &'call str)> {
        let (name, tool) = call.tool.split_once('/')?;
        let server = self.servers.iter().find(|server| server.name() == name)?;
        Some((server, tool))
    }
}

fn no_such_tool(wanted: &str, known: &[&str], offered: &str) -> ToolError {
    let nearest =
        slips::nearest(wanted, known).map_or_else(String::new, |nearest| format!("; did you mean {nearest}?"));
    ToolError::TellModel(format!("there is no tool {wanted}{nearest}; there are {offered}"))
}
