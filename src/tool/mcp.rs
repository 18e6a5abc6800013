//! An MCP client (rmcp) over any byte stream that can be opened again: a child process, or an exec
//! in a container.
//!
//! The stream is opened at the first use. One that is lost is opened once more in the server's life
//! and not again: a server that dies twice will die again. A call is never sent twice, since nobody
//! knows how far the first got. Every wait is limited, and a call that is given up, by its time-out
//! or by its caller, is cancelled at the server. What a server sends without being asked is bounded
//! ([`super::bounded`]); one that sends more loses its stream.
//!
//! Resources, prompts, sampling and tasks are not supported: the agent uses only tools.

use anyhow::Context;
use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, ClientConfig, Implementation,
    PaginatedRequestParams, Tool,
};
use rmcp::service::{ClientInitializeError, RunningService, ServiceError};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{Peer, RoleClient, serve_client};
use serde_json::{Map, Value};
use std::path::Path;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::answer;
use super::bounded::{Allowance, Bounded};
use super::connect::{Away, Connect};
use super::pages::Pages;
use super::stdio::StdioServer;
use super::{McpServerConfig, ToolError, ToolOutput, ToolServer};
use crate::conversation::ToolSpec;

/// Limit for connecting and for the handshake; interpreted servers may need several seconds.
const OPENING_TIME: Duration = Duration::from_mins(1);

/// Limit for the messages of a closing session to go out.
const CLOSING_TIME: Duration = Duration::from_secs(5);

/// Most openings of the stream: the first, and one more.
const OPENINGS: u32 = 2;

/// Most pages of tools; a server that has more is broken.
const MOST_PAGES: usize = 100;

/// Longest message that is read; a longer one is dropped, and its call runs into its time-out.
const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// Implements [`super::ToolServer`] over a [`Connect`].
pub struct McpServer {
    name: String,
    system_prompt: Option<String>,
    only: Option<Vec<String>>,
    timeout: Duration,
    connect: Box<dyn Connect>,
    /// Held while the session is opened or ended, never during a call.
    link: Mutex<Link>,
}

struct Link {
    session: Option<Session>,
    openings_left: u32,
}

struct Session {
    /// The opening it belongs to, which tells a session that died from its successor.
    opening: u32,
    service: RunningService<RoleClient, ClientConfig>,
    /// The allowance of the server.
    allowance: Allowance,
    end: Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>,
}

#[derive(Clone)]
struct Client {
    opening: u32,
    peer: Peer<RoleClient>,
    allowance: Allowance,
}

impl McpServer {
    pub fn new(
        name: &str,
        system_prompt: Option<String>,
        only: Option<Vec<String>>,
        timeout: Duration,
        connect: Box<dyn Connect>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            system_prompt,
            only,
            timeout,
            connect,
            link: Mutex::new(Link {
                session: None,
                openings_left: OPENINGS,
            }),
        }
    }

    /// Returns a configured stdio server; nothing is started before the first use. `guard` is the
    /// program with the subcommand `mcp-guard`, normally this one.
    pub fn configured(config: &McpServerConfig, guard: &Path) -> Self {
        Self::new(
            &config.mcp_server_name,
            config.system_prompt.clone(),
            config.tools.clone(),
            Duration::from_secs(config.timeout_seconds),
            Box::new(StdioServer::new(config, guard)),
        )
    }

    /// Opens the stream unless it is open, so that the next call need not wait for it.
    pub async fn connect(&self) -> Result<(), ToolError> {
        self.client().await.map(|_| ())
    }

    /// Tells whether the stream is open.
    pub async fn is_connected(&self) -> bool {
        let link = self.link.lock().await;
        link.session
            .as_ref()
            .is_some_and(|session| !session.service.is_transport_closed())
    }

    async fn send(&self, tool: &str, args: &Map<String, Value>) -> Result<CallToolResult, ToolError> {
        let client = self.client().await?;
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(args.clone());
        client.allowance.renew();
        // rmcp tells the server when the future of a call is dropped, here or by the caller.
        let Ok(answer) = timeout(self.timeout, client.peer.call_tool_once(request)).await else {
            let seconds = self.timeout.as_secs();
            return Err(ToolError::TellModel(format!(
                "{}/{tool} did not answer within {seconds} s and was cancelled; it may have done a part of its work",
                self.name
            )));
        };
        match answer {
            Ok(CallToolResponse::Complete(result)) => Ok(result),
            Ok(_) => Err(ToolError::TellModel(format!(
                "{}/{tool} asked for something instead of answering; it cannot be used here",
                self.name
            ))),
            Err(error) if is_loss(&error) => {
                self.end_session(client.opening).await;
                self.client().await?;
                Err(ToolError::TellModel(format!(
                    "the tool server {} died during {tool} and was started again; see what the call has done before \
                     you repeat it",
                    self.name
                )))
            }
            Err(ServiceError::McpError(error)) => Err(ToolError::TellModel(format!(
                "{}/{tool} refused: {}",
                self.name, error.message
            ))),
            Err(error) => Err(ToolError::TellModel(format!("{}/{tool} failed: {error}", self.name))),
        }
    }

    async fn every_tool(&self, client: &Client) -> Result<Vec<Tool>, ServiceError> {
        let mut pages = Pages::default();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            client.allowance.renew();
            let listing = timeout(OPENING_TIME, client.peer.list_tools(Some(page))).await;
            let page = listing.map_err(|_| ServiceError::Timeout { timeout: OPENING_TIME })??;
            cursor = pages.add(page.tools, page.next_cursor);
            if cursor.is_none() {
                break;
            }
        }
        Ok(pages.tools)
    }

    fn offers(&self, tool: &str) -> bool {
        self.only
            .as_ref()
            .is_none_or(|only| only.iter().any(|name| name == tool))
    }

    /// Returns the client of a living session; opens one if there is none and an opening is left.
    async fn client(&self) -> Result<Client, ToolError> {
        let mut link = self.link.lock().await;
        if let Some(session) = &link.session {
            if !session.service.peer().is_transport_closed() {
                return Ok(session.client());
            }
            tracing::warn!(target: "mcp", server = self.name, "the server's stream was lost");
        }
        if let Some(dead) = link.session.take() {
            dead.end().await;
        }
        if link.openings_left == 0 {
            return Err(self.lost(format!(
                "{} has ended and is not started again",
                self.connect.description()
            )));
        }
        link.openings_left -= 1;
        let opening = link.openings_left;
        match self.open(opening).await {
            Ok(session) => Ok(link.session.insert(session).client()),
            Err(error) if error.is::<Away>() => {
                // Nothing is known of the server itself yet.
                link.openings_left += 1;
                Err(ToolError::Away {
                    server: self.name.clone(),
                    reason: format!("{error:#}"),
                })
            }
            Err(error) => Err(self.lost(format!("{error:#}"))),
        }
    }

    async fn open(&self, opening: u32) -> anyhow::Result<Session> {
        let connecting = timeout(OPENING_TIME, self.connect.connect());
        let connection = connecting.await.context("connecting took too long")??;
        let allowance = Allowance::full();
        let reader = Bounded::new(connection.reader, allowance.clone(), &self.name);
        let transport = AsyncRwTransport::<RoleClient, _, _>::new_client(reader, connection.writer)
            .with_max_line_length(MAX_MESSAGE_BYTES);
        let me = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        let config = ClientConfig::new(ClientCapabilities::default(), me);
        // Boxed: the compiler cannot prove the bare future Send, generic as it is.
        let reason = match timeout(OPENING_TIME, serve_client(config, transport).boxed()).await {
            Ok(Ok(service)) => {
                return Ok(Session {
                    opening,
                    service,
                    allowance,
                    end: connection.end,
                });
            }
            // A server that ends at once is gone before or after the first message is written,
            // which is the same to people.
            Ok(Err(ClientInitializeError::TransportError { .. })) => {
                "connection closed: initialize response".to_owned()
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} s", OPENING_TIME.as_secs()),
        };
        (connection.end)().await;
        if let Some(reason) = self.connect.not_started() {
            anyhow::bail!(reason);
        }
        anyhow::bail!("{} failed the handshake: {reason}", self.connect.description())
    }

    async fn end_session(&self, opening: u32) {
        let mut link = self.link.lock().await;
        if let Some(session) = link.session.take_if(|session| session.opening == opening) {
            tracing::warn!(target: "mcp", server = self.name, "the server died during a request");
            session.end().await;
        }
    }

    fn lost(&self, reason: String) -> ToolError {
        ToolError::Lost {
            server: self.name.clone(),
            reason,
        }
    }
}

#[async_trait]
impl ToolServer for McpServer {
    fn name(&self) -> &str {
        &self.name
    }

    fn system_prompt(&self) -> Option<&str> {
        self.system_prompt.as_deref()
    }

    async fn list(&self) -> Result<Vec<ToolSpec>, ToolError> {
        let tools = loop {
            let client = self.client().await?;
            match self.every_tool(&client).await {
                Ok(tools) => break tools,
                // Listing changes nothing, so it may be repeated; the openings limit how often.
                Err(error) if is_loss(&error) => self.end_session(client.opening).await,
                Err(error) => return Err(self.lost(format!("its tools cannot be listed: {error}"))),
            }
        };
        for wanted in self.only.iter().flatten() {
            if !tools.iter().any(|tool| tool.name == *wanted) {
                tracing::warn!(target: "mcp", server = self.name, tool = wanted, "a configured tool is not there");
            }
        }
        let offered = tools.into_iter().filter(|tool| self.offers(&tool.name));
        Ok(offered.map(|tool| answer::spec(&self.name, tool)).collect())
    }

    async fn call(&self, tool: &str, args: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        if !self.offers(tool) {
            return Err(ToolError::TellModel(format!(
                "the server {} does not offer {tool} here",
                self.name
            )));
        }
        let result = self.send(tool, args).await?;
        Ok(ToolOutput {
            text: answer::text(&result),
            is_error: result.is_error == Some(true),
            structured: result.structured_content,
        })
    }

    async fn close(&self) {
        let mut link = self.link.lock().await;
        link.openings_left = 0;
        if let Some(session) = link.session.take() {
            session.end().await;
        }
    }
}

impl Session {
    fn client(&self) -> Client {
        Client {
            opening: self.opening,
            peer: self.service.peer().clone(),
            allowance: self.allowance.clone(),
        }
    }

    /// Closes the stream, so that the server can leave by itself, and ends its process.
    async fn end(mut self) {
        // The result does not matter: the server is ended now in any case.
        let _ = self.service.close_with_timeout(CLOSING_TIME).await;
        drop(self.service);
        (self.end)().await;
    }
}

/// Tells whether the stream is gone. The request may have been answered, begun or lost.
fn is_loss(error: &ServiceError) -> bool {
    matches!(error, ServiceError::TransportClosed | ServiceError::TransportSend(_))
}
