//! The floor of a turn: one HTTP exchange and one call of the executor over an attached stream, in
//! a bare loop.
//!
//! It is asked for between two turns of the program, from the thread that plays the model: so both
//! are measured in the same moments, and neither runs while the other is measured.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Context;
use async_trait::async_trait;
use axum::Router;
use axum::routing::post;
use coding_agent::environment::{Config, Container, Engine, EngineAccess, Environment, Purpose, StartRequest};
use coding_agent::task::id::RunId;
use coding_agent::tool::ToolServer;
use coding_agent::tool::connect::{Connect, Connection};
use coding_agent::tool::mcp::McpServer;
use coding_agent_harness::build;
use coding_agent_harness::containers::IMAGE;
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// The command of every turn: it does nothing, so what is left is the way there and back. The
/// program gets it with a number behind it, because it stops a model that makes the same call again
/// and again.
pub const COMMAND: &str = "true";

/// The bare loop, waiting to be asked.
pub struct Floor {
    docker: Engine,
    server: McpServer,
    client: reqwest::Client,
    address: String,
}

/// A turn of the floor.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    pub exchange: Duration,
    pub call: Duration,
}

/// How the thread of the model asks for one turn of the floor.
pub struct Asking {
    turns: Mutex<mpsc::Receiver<Turn>>,
    bodies: tokio::sync::mpsc::Sender<Value>,
}

impl Floor {
    /// Starts a container such as the program's, and a server that answers at once.
    pub async fn start() -> anyhow::Result<Self> {
        let config = config();
        let access = EngineAccess::from_variables(&|name| std::env::var(name).ok());
        let run = RunId::new();
        let docker = Engine::connect(&config, &access, &run.to_string()).await?;
        let task = "github:acme/floor#1".parse().map_err(anyhow::Error::msg)?;
        let executor = build::executor()?;
        let start = StartRequest {
            task: &task,
            run,
            purpose: Purpose::Work,
            environment: "python",
            image: IMAGE,
            executor: &executor,
            set_up: None,
        };
        let container = docker.start(&start).await?;
        let server = McpServer::new("floor", None, None, Duration::from_mins(1), Box::new(Stream(container)));
        server.list().await?;
        Ok(Self {
            docker,
            server,
            client: reqwest::Client::builder().no_proxy().build()?,
            address: answering().await?,
        })
    }

    /// Makes a turn whenever it is asked to, until the one who asks is gone; then leaves nothing
    /// behind.
    pub async fn serve(
        self,
        mut asked: tokio::sync::mpsc::Receiver<Value>,
        turns: mpsc::Sender<Turn>,
    ) -> anyhow::Result<()> {
        let mut outcome = Ok(());
        while let Some(body) = asked.recv().await {
            match self.turn(&body).await {
                Ok(turn) => _ = turns.send(turn),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        drop(turns);
        self.server.close().await;
        self.docker.sweep(self.docker.all().await?, &HashSet::new()).await?;
        outcome
    }

    /// The same conversation is sent as the program has sent, and the same command run.
    async fn turn(&self, body: &Value) -> anyhow::Result<Turn> {
        let begun = Instant::now();
        let answer = self.client.post(&self.address).json(body).send().await?;
        let _: Value = answer.json().await?;
        let answered = Instant::now();
        let output = self.server.call("execute_command", &arguments()).await?;
        let call = answered.elapsed();
        anyhow::ensure!(!output.is_error, "the floor's command failed: {}", output.text);
        Ok(Turn {
            exchange: answered - begun,
            call,
        })
    }
}

impl Asking {
    /// Returns how the model asks, and the two ends for [`Floor::serve`].
    pub fn channel() -> (Self, tokio::sync::mpsc::Receiver<Value>, mpsc::Sender<Turn>) {
        let (bodies, asked) = tokio::sync::mpsc::channel(1);
        let (sender, turns) = mpsc::channel();
        let turns = Mutex::new(turns);
        (Self { turns, bodies }, asked, sender)
    }

    /// Has one turn made and waits for it; `None` when the floor has broken off.
    pub fn turn(&self, body: Value) -> Option<Turn> {
        self.bodies.try_send(body).ok()?;
        self.turns.lock().ok()?.recv_timeout(Duration::from_mins(2)).ok()
    }
}

/// Returns the arguments of the command of every turn.
pub fn arguments() -> Map<String, Value> {
    Map::from_iter([("command".to_owned(), json!(COMMAND))])
}

fn config() -> Config {
    let environment = Environment {
        image: IMAGE.to_owned(),
        recommended_for: String::new(),
        libraries: String::new(),
        build: None,
        allow: None,
        project_files: None,
    };
    Config {
        environments: [("python".to_owned(), environment)].into(),
        ..Config::default()
    }
}

/// Starts a server that answers every request with a short document, as a model does, and returns
/// its address.
async fn answering() -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}/", listener.local_addr()?);
    let (ready, is_ready) = oneshot::channel();
    tokio::spawn(async move {
        let answer = || async { axum::Json(json!({ "choices": [{ "message": { "content": COMMAND } }] })) };
        let _ = ready.send(());
        let _ = axum::serve(listener, Router::new().route("/", post(answer))).await;
    });
    is_ready.await.context("the floor's server did not start")?;
    Ok(address)
}

/// The executor in the floor's container.
struct Stream(Container);

#[async_trait]
impl Connect for Stream {
    async fn connect(&self) -> anyhow::Result<Connection> {
        let attached = self
            .0
            .attach(&["coding-agent-executor", "--root", "/workspace/project"], &[])
            .await?;
        let ending = attached.ending;
        Ok(Connection {
            reader: attached.stdout,
            writer: attached.stdin,
            end: Box::new(|| Box::pin(async { _ = ending.await })),
        })
    }
}
