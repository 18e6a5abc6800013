//! Containers whose processes are used up: the executor in them answers all the same.

use std::time::Duration;

use async_trait::async_trait;
use coding_agent::environment::{Config, Container, EXECUTOR};
use coding_agent::task::id::RunId;
use coding_agent::tool::connect::{Connect, Connection};
use coding_agent::tool::mcp::McpServer;
use coding_agent::tool::{ToolOutput, ToolServer};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

use super::site::on_engine;

/// Takes every process that is left, says so, and then waits with the word `stays`; its children
/// wait in any case.
const FILL: &str = "import os, signal, sys
try:
    while True:
        if os.fork() == 0:
            signal.pause()
except BlockingIOError:
    print('full', flush=True)
    if sys.argv[1] == 'stays':
        signal.pause()
";

/// Starts an executor in a container.
struct Attaches(Container);

#[async_trait]
impl Connect for Attaches {
    async fn connect(&self) -> anyhow::Result<Connection> {
        let process = self.0.attach(&[EXECUTOR], &[]).await?;
        Ok(Connection {
            reader: process.stdout,
            writer: process.stdin,
            end: Box::new(|| Box::pin(async {})),
        })
    }
}

fn scarce() -> Config {
    let mut config = Config::default();
    config.resources.pids_limit = 64;
    config
}

fn tools_in(container: &Container) -> McpServer {
    let connect = Box::new(Attaches(container.clone()));
    McpServer::new("workspace", None, None, Duration::from_secs(30), connect)
}

async fn call(tools: &McpServer, tool: &str, args: Value) -> ToolOutput {
    let args = serde_json::from_value(args).unwrap();
    tools.call(tool, &args).await.unwrap()
}

async fn command(tools: &McpServer, command: &str) -> String {
    call(tools, "execute_command", json!({ "command": command })).await.text
}

#[tokio::test]
async fn files_are_read_and_commands_refused_where_no_process_is_left() {
    on_engine(scarce(), async |site| {
        let container = site.start(RunId::new()).await;
        let tools = tools_in(&container);
        // From here on there is an executor, which has done nothing yet.
        tools.list().await.unwrap();
        let mut filling = container.attach(&["python3", "-c", FILL, "stays"], &[]).await.unwrap();
        let mut said = [0; 5];
        filling.stdout.read_exact(&mut said).await.unwrap();
        assert_eq!(&said, b"full\n");

        let file = json!({ "path": "a.txt", "content": "A line.\n" });
        assert_eq!(call(&tools, "write_file", file).await.text, "wrote a.txt");
        let read = call(&tools, "read_file", json!({ "path": "a.txt" })).await;
        assert_eq!(read.text, "A line.\n");
        let refused = call(&tools, "execute_command", json!({ "command": "true" })).await;
        assert!(
            refused.is_error
                && refused
                    .text
                    .starts_with("[not started: the container's processes are used up"),
            "{}",
            refused.text
        );
    })
    .await;
}

#[tokio::test]
async fn what_uses_up_the_processes_ends_with_its_command_or_before_the_next() {
    on_engine(scarce(), async |site| {
        let container = site.start(RunId::new()).await;
        let tools = tools_in(&container);
        let program = json!({ "path": "fill.py", "content": FILL });
        call(&tools, "write_file", program).await;

        let stays = json!({ "command": "python3 fill.py stays", "timeout_seconds": 5 });
        let ended = call(&tools, "execute_command", stays).await.text;
        assert!(ended.starts_with("full\n[timed out after 5.0 s; "), "{ended}");

        let left = command(&tools, "python3 fill.py leaves").await;
        assert!(
            left.starts_with("full\n[exit code 0") && left.contains("[still running in the background: "),
            "{left}"
        );
        let refused = command(&tools, "true").await;
        assert!(
            refused.starts_with("[not started: the container's processes are used up"),
            "{refused}"
        );
        assert_eq!(command(&tools, "echo again").await, "again\n[exit code 0]");
    })
    .await;
}
