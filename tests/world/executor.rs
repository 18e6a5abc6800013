//! The executor as the worker uses it: the real program, spoken to over MCP. (In a container it is
//! the same program.)

mod commands;
mod files;

use async_trait::async_trait;
use coding_agent::tool::connect::{Connect, Connection};
use coding_agent::tool::mcp::McpServer;
use coding_agent::tool::{ToolError, ToolOutput, ToolServer};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tempfile::TempDir;
use tokio::process::Command;

use crate::world::processes::{kill, mark, until};

/// An executor on a folder of its own.
struct Workspace {
    server: McpServer,
    folder: TempDir,
    executor: Arc<AtomicU32>,
}

/// Starts the executor on this machine.
struct Local {
    root: PathBuf,
    executor: Arc<AtomicU32>,
}

#[async_trait]
impl Connect for Local {
    async fn connect(&self) -> anyhow::Result<Connection> {
        let mut child = Command::new(env!("CARGO_BIN_EXE_coding-agent-executor"))
            .arg("--root")
            .arg(&self.root)
            .args(["--max-output-bytes", "20000"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        self.executor.store(child.id().unwrap(), Ordering::SeqCst);
        Ok(Connection {
            reader: Box::new(child.stdout.take().unwrap()),
            writer: Box::new(child.stdin.take().unwrap()),
            end: Box::new(move || {
                Box::pin(async move {
                    child.wait().await.unwrap();
                })
            }),
        })
    }
}

impl Workspace {
    fn open() -> Self {
        Self::with_patience(Duration::from_mins(1))
    }

    fn with_patience(patience: Duration) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let executor = Arc::default();
        let local = Local {
            root: folder.path().to_owned(),
            executor: Arc::clone(&executor),
        };
        Self {
            server: McpServer::new("workspace", None, None, patience, Box::new(local)),
            folder,
            executor,
        }
    }

    async fn call(&self, tool: &str, args: Value) -> ToolOutput {
        self.try_call(tool, args).await.unwrap().0
    }

    async fn try_call(&self, tool: &str, args: Value) -> Result<(ToolOutput, Value), ToolError> {
        let args = serde_json::from_value(args).unwrap();
        let output = self.server.call(tool, &args).await?;
        let fields = output.structured.clone();
        Ok((output, fields.unwrap_or_default()))
    }

    /// Runs a command; returns its output without the line about how it ended, and the fields.
    async fn run(&self, command: &str) -> (String, Value) {
        let (output, fields) = self
            .try_call("execute_command", json!({"command": command}))
            .await
            .unwrap();
        let (said, _) = output.text.rsplit_once('[').unwrap();
        (said.to_owned(), fields)
    }

    async fn succeeds(&self, tool: &str, args: Value) -> String {
        let output = self.call(tool, args).await;
        assert!(!output.is_error, "{}", output.text);
        output.text
    }

    async fn fails(&self, tool: &str, args: Value) -> String {
        let output = self.call(tool, args).await;
        assert!(output.is_error, "{}", output.text);
        output.text
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn executor(&self) -> u32 {
        self.executor.load(Ordering::SeqCst)
    }

    async fn finish(self) {
        self.server.close().await;
    }
}

#[tokio::test]
async fn seven_tools_are_offered() {
    let workspace = Workspace::open();
    let names: Vec<_> = workspace
        .server
        .list()
        .await
        .unwrap()
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(
        names,
        [
            "workspace/execute_command",
            "workspace/list_files",
            "workspace/read_file",
            "workspace/write_file",
            "workspace/str_replace",
            "workspace/insert",
            "workspace/undo_edit"
        ]
    );
    workspace.finish().await;
}

#[tokio::test]
async fn a_killed_executor_takes_its_commands_along_and_comes_back_once() {
    let workspace = Workspace::open();
    let mark = mark();
    for attempt in ["first", "second"] {
        let wanted = json!({"command": format!("setsid sleep {mark} & sleep {mark}")});
        let (answer, ()) = tokio::join!(workspace.try_call("execute_command", wanted), async {
            until(&mark, 2).await;
            kill(workspace.executor());
        });
        let error = answer.unwrap_err();
        match attempt {
            "first" => assert!(
                matches!(&error, ToolError::TellModel(text) if text.contains("started again")),
                "{error}"
            ),
            _ => assert!(matches!(error, ToolError::Lost { .. }), "{error}"),
        }
        until(&mark, 0).await;
    }
    workspace.finish().await;
}

#[tokio::test]
async fn harmless_slips_are_taken_as_meant_and_others_are_told_what_there_is() {
    let workspace = Workspace::open();
    workspace
        .run("mkdir -p src/app && printf 'a\\n' > src/app/views.py")
        .await;
    let mut root = workspace.folder.path().components().rev();
    let (name, parent) = (root.next().unwrap(), root.next().unwrap());
    let repeated = Path::new(&parent).join(name).join("src/app/views.py");
    let repeated = repeated.to_str().unwrap();
    assert_eq!(workspace.succeeds("read_file", json!({"path": repeated})).await, "a\n");
    let folder = Path::new(&parent).join(name);
    let here = json!({"command": "ls", "working_directory": folder, "timeout_seconds": -1});
    assert!(workspace.succeeds("execute_command", here).await.starts_with("src\n"));
    workspace
        .succeeds("insert", json!({"path": "src/app/views.py", "line": -1, "text": "b"}))
        .await;
    let all = json!({"path": "src/app/views.py", "view_range": [0, 0]});
    assert_eq!(workspace.succeeds("read_file", all).await, "a\nb\n");

    for (tool, args, expected) in [
        (
            "read_file",
            json!({"path": "views.py"}),
            "views.py does not exist; there is src/app/views.py",
        ),
        (
            "list_files",
            json!({"path": "src/apps"}),
            "src/apps does not exist; did you mean src/app?",
        ),
        (
            "execute_command",
            json!({"command": "ls", "working_directory": "lib/deep"}),
            "lib/deep does not exist; the project has src/",
        ),
        (
            "str_replace",
            json!({"path": "src/model/a.rs", "old": "x", "new": "y"}),
            "src/model/a.rs does not exist; src has app/",
        ),
    ] {
        assert_eq!(workspace.fails(tool, args).await, format!("not_found 404: {expected}"));
    }
    workspace.finish().await;
}

#[tokio::test]
async fn wrong_arguments_are_named() {
    let workspace = Workspace::open();
    let text = workspace
        .fails("str_replace", json!({"path": "a", "old_str": "x", "new": "y"}))
        .await;
    assert!(
        text.contains("the arguments of str_replace") && text.contains("old_str"),
        "{text}"
    );
    assert!(
        workspace
            .fails("dance", json!({}))
            .await
            .contains("there is no tool dance; there are execute_command")
    );
    workspace.finish().await;
}

#[tokio::test]
async fn the_version_is_printed() {
    let program = Path::new(env!("CARGO_BIN_EXE_coding-agent-executor"));
    let output = Command::new(program).arg("--version").output().await.unwrap();
    let expected = format!("coding-agent-executor {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}
