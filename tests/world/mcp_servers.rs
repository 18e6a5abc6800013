//! MCP servers that others wrote: listed, called, killed, and gone after the end.

use coding_agent::rules::Tools;
use coding_agent::tool::mcp::McpServer;
use coding_agent::tool::toolbox::Toolbox;
use coding_agent::tool::{McpServerConfig, ToolError, ToolServer};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::world::processes::{kill, until, with_mark};

const AGENT: &str = env!("CARGO_BIN_EXE_coding-agent");

/// Returns the path of a program by others that `make setup` installs into the target folder.
pub fn judge(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .with_file_name("judges")
        .join("bin")
        .join(name);
    assert!(path.exists(), "{} is missing; run `make setup`", path.display());
    path
}

fn config(name: &str, command: &[&str]) -> McpServerConfig {
    let command = json!({"mcp_server_name": name, "command": command});
    serde_json::from_value(command).unwrap()
}

fn server(name: &str, command: &[&str]) -> McpServer {
    McpServer::configured(&config(name, command), Path::new(AGENT))
}

fn arguments(arguments: Value) -> Map<String, Value> {
    serde_json::from_value(arguments).unwrap()
}

/// The time server, in a time zone no other test uses, so that its processes can be told from
/// theirs.
fn time_server(zone: &str) -> McpServer {
    let program = judge("mcp-server-time");
    server("time", &[program.to_str().unwrap(), "--local-timezone", zone])
}

async fn convert(server: &McpServer) -> Result<String, ToolError> {
    let noon = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let output = server.call("convert_time", &arguments(noon)).await?;
    assert!(!output.is_error, "{}", output.text);
    Ok(output.text)
}

#[tokio::test]
async fn the_time_server_is_listed_and_called_and_gone() {
    let zone = "Europe/Berlin";
    let time = time_server(zone);
    assert!(with_mark(zone).is_empty(), "nothing is started before the first use");
    let names: Vec<_> = time.list().await.unwrap().into_iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["time/get_current_time", "time/convert_time"]);
    assert!(convert(&time).await.unwrap().contains("21:00"));

    let refused = time.call("convert_time", &arguments(json!({"time": "25:99"}))).await;
    assert!(
        refused.map_or(true, |output| output.is_error),
        "a wrong call is an error for the model"
    );

    time.close().await;
    assert_eq!(with_mark(zone), [0; 0]);
    assert!(matches!(convert(&time).await, Err(ToolError::Lost { .. })));
}

#[tokio::test]
async fn a_killed_server_is_started_again_once() {
    let zone = "Europe/Lisbon";
    let time = time_server(zone);
    convert(&time).await.unwrap();

    // Killed between two calls: the next one just works, unless it was sent before the end of the
    // stream was seen; then it says so, and is not sent twice.
    with_mark(zone).into_iter().for_each(kill_if_server);
    until(zone, 0).await;
    let answer = match convert(&time).await {
        Err(ToolError::TellModel(text)) if text.contains("was started again") => convert(&time).await,
        answer => answer,
    };
    assert!(answer.unwrap().contains("21:00"));

    with_mark(zone).into_iter().for_each(kill_if_server);
    until(zone, 0).await;
    let lost = convert(&time).await.unwrap_err();
    assert!(
        matches!(&lost, ToolError::Lost { server, .. } if server == "time"),
        "{lost}"
    );
    time.close().await;
}

/// The guard has the server's arguments too; killing it is another story.
fn kill_if_server(id: u32) {
    let program = std::fs::read_link(format!("/proc/{id}/exe")).unwrap();
    if program != Path::new(AGENT) {
        kill(id);
    }
}

#[tokio::test]
async fn the_git_server_shows_a_repository() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let made = std::process::Command::new("git")
        .args(["init", "-q", path])
        .status()
        .unwrap();
    assert!(made.success());
    std::fs::write(folder.path().join("new.txt"), "new").unwrap();
    let program = judge("mcp-server-git");
    let mut config = config("git", &[program.to_str().unwrap(), "--repository", path]);
    config.tools = Some(vec!["git_status".to_owned()]);
    let git = McpServer::configured(&config, Path::new(AGENT));

    let tools = git.list().await.unwrap();
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0].name, "git/git_status");
    assert_eq!(tools[0].schema["type"], "object");
    let status = git
        .call("git_status", &arguments(json!({"repo_path": path})))
        .await
        .unwrap();
    assert!(status.text.contains("new.txt"), "{}", status.text);
    let hidden = git.call("git_log", &arguments(json!({"repo_path": path}))).await;
    assert!(matches!(hidden, Err(ToolError::TellModel(_))));
    git.close().await;
    assert_eq!(with_mark(path), [0; 0]);
}

#[tokio::test]
async fn a_toolbox_holds_several_servers() {
    let zone = "Europe/Vienna";
    let git = judge("mcp-server-git");
    let toolbox = Toolbox::new(
        vec![
            Arc::new(time_server(zone)),
            Arc::new(server("git", &[git.to_str().unwrap()])),
        ],
        Tools::default(),
    );
    let specs = toolbox.specs().await.unwrap();
    assert!(specs.iter().any(|spec| spec.name == "time/convert_time"));
    assert!(specs.iter().any(|spec| spec.name == "git/git_status"));
    let unknown: coding_agent::conversation::ToolCall =
        serde_json::from_value(json!({"tool": "time/travel", "args": {}})).unwrap();
    let Err(ToolError::TellModel(text)) = toolbox.call(&unknown).await else {
        panic!("an unknown tool is the model's to mend")
    };
    assert!(
        text.contains("there is no tool time/travel") && text.contains("time/convert_time"),
        "{text}"
    );
    toolbox.close().await;
    assert_eq!(with_mark(zone), [0; 0]);
}

/// A server whose list of two tools goes on for ever: each page has both and names the next one by
/// the cursor that its only argument says, with `N` for the number of the page.
const ENDLESS: &str = r#"
import json, sys
pages = 0
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        answer = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "endless", "version": "1"}}
    elif asked["method"] == "tools/list":
        pages += 1
        cursor = sys.argv[1].replace("N", str(pages))
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("pages", "other")]
        answer = {"tools": tools, "nextCursor": cursor}
    elif asked["method"] == "tools/call":
        answer = {"content": [{"type": "text", "text": "%d pages" % pages}]}
    else:
        answer = {}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"#;

#[tokio::test]
async fn a_list_that_does_not_end_has_each_tool_once() {
    for (cursor, pages) in [("", "1 pages"), ("always", "2 pages"), ("page N", "2 pages")] {
        let endless = server("endless", &["python3", "-c", ENDLESS, cursor]);
        let names: Vec<_> = endless
            .list()
            .await
            .unwrap()
            .into_iter()
            .map(|tool| tool.name)
            .collect();
        assert_eq!(names, ["endless/pages", "endless/other"], "{cursor:?}");
        let asked = endless.call("pages", &arguments(json!({}))).await.unwrap();
        assert_eq!(asked.text, pages, "{cursor:?}");
        endless.close().await;
    }
}

#[tokio::test]
async fn a_server_that_does_not_start_says_why() {
    let lost = server("nothing", &["/no/such/server", "--fast"])
        .list()
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(
        lost,
        "the tool server 'nothing' is lost: `/no/such/server` cannot be started: No such file or directory (os error 2); \
         install it, or name it with its whole path"
    );
    let lost = server("broken", &["sh", "-c", "echo no licence >&2; exit 3"])
        .list()
        .await
        .unwrap_err()
        .to_string();
    assert!(lost.contains("no licence"), "{lost}");
}

#[tokio::test]
async fn a_server_gets_only_the_environment_that_is_configured() {
    let mut config = config(
        "env",
        &["sh", "-c", "env | cut -d= -f1 | sort | tr '\\n' ' ' >&2; exit 1"],
    );
    config.env.insert("TOKEN".to_owned(), "s3cret".into());
    let lost = McpServer::configured(&config, Path::new(AGENT))
        .list()
        .await
        .unwrap_err()
        .to_string();
    let allowed = ["HOME", "LANG", "PATH", "PWD", "TMPDIR", "TOKEN", "OLDPWD", "SHLVL", "_"];
    let said = lost.split("said last: ").nth(1).unwrap().split(')').next().unwrap();
    assert!(said.contains("TOKEN"), "{lost}");
    for name in said.split_whitespace() {
        assert!(allowed.contains(&name), "{name} is in the environment");
    }
}
