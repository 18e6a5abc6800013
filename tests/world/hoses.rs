//! Endless streams and costly patterns: whoever gives one to the worker fills neither its memory nor
//! its disk.

use std::time::Duration;

use serde_json::{Value, json};

use crate::fake::model::{Plan, Request};
use crate::world::scripts::COMMAND;
use crate::world::{Ended, World};

const MEGABYTE: u64 = 1024 * 1024;

/// An MCP server that, once its tool is called, says a megabyte after the other without being
/// asked.
const HOSE: &str = r#"
import json, sys
def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()
for line in sys.stdin:
    request = json.loads(line)
    method, number = request.get("method"), request.get("id")
    if method == "initialize":
        say({"id": number, "result": {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}},
             "serverInfo": {"name": "hose", "version": "1"}}})
    elif method == "tools/list":
        tools = [{"name": "open", "inputSchema": {"type": "object"}}, {"name": "ping", "inputSchema": {"type": "object"}}]
        say({"id": number, "result": {"tools": tools}})
    elif method == "tools/call" and request["params"]["name"] == "open":
        for _ in range(2000):
            say({"method": "notifications/message", "params": {"level": "error", "data": "x" * (1 << 20)}})
    elif method == "tools/call":
        for turn in range(5000000):
            say({"id": 1000000 + turn, "method": "ping"})
"#;

/// Runs the program to its end; returns with it the most memory that the worker and each process
/// below it ever had.
async fn run_watched(world: &World) -> (Ended, u64) {
    let program = world.spawn(&["run"]);
    let worker = program.pid();
    let watching = tokio::spawn(async move {
        let mut looks = tokio::time::interval(Duration::from_millis(20));
        let mut most = 0;
        loop {
            looks.tick().await;
            let Some(now) = high_water(worker) else { return most };
            most = most.max(now);
        }
    });
    let ended = program.ended().await;
    (ended, watching.await.unwrap())
}

/// Returns the highest mark among a process and its children; `None` where it has ended.
fn high_water(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM"))?;
    let own = line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024;
    let tasks = std::fs::read_dir(format!("/proc/{process}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let children: Vec<u32> = children
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|id| id.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect();
    let below = children.into_iter().filter_map(high_water).max();
    Some(own.max(below.unwrap_or(0)))
}

fn log_size(world: &World) -> u64 {
    let entries = std::fs::read_dir(world.folder().join("logs")).unwrap().flatten();
    let logs = entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(".log"));
    logs.map(|entry| entry.metadata().unwrap().len()).sum()
}

async fn floods(tool: &str) {
    let mut world = World::start().await;
    world.configure(|config| {
        config["mcp_servers"] = json!([{ "mcp_server_name": "hose", "command": ["python3", "-c", HOSE] }]);
    });
    world
        .model
        .plans(Plan::of(&["write"]).in_environment("python"))
        .calls(tool, json!({}))
        .calls(
            "workspace/write_file",
            json!({ "path": "a.txt", "content": "A line.\n" }),
        )
        .done("Wrote it.");
    world.github.open_issue("Write a.txt").label("coding agent");

    let (ended, most) = run_watched(&world).await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let requests = world.model.requests();
    let is_told = requests
        .iter()
        .any(|request| request.last_user_message().contains("was started again"));
    assert!(is_told, "{}", world.story());
    assert!(
        log_size(&world) < 10 * MEGABYTE,
        "the log has {} bytes",
        log_size(&world)
    );
    assert!(most < 300 * MEGABYTE, "a process had {most} bytes");
    world.finish().await;
}

#[tokio::test]
async fn large_messages_that_nobody_asked_for_end_the_session() {
    floods("hose/open").await;
}

#[tokio::test]
async fn requests_that_nobody_expects_end_the_session() {
    floods("hose/ping").await;
}

/// An MCP server that, once its tool is called, complains 20 MB long.
const COMPLAINER: &str = r#"
import json, sys
def say(number, result):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}) + "\n")
    sys.stdout.flush()
for line in sys.stdin:
    request = json.loads(line)
    method, number = request.get("method"), request.get("id")
    if method == "initialize":
        say(number, {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}},
            "serverInfo": {"name": "complainer", "version": "1"}})
    elif method == "tools/list":
        say(number, {"tools": [{"name": "complain", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        for turn in range(20000):
            print("x" * 1000, file=sys.stderr)
        say(number, {"content": [{"type": "text", "text": "complained"}]})
"#;

#[tokio::test]
async fn what_a_server_complains_of_does_not_fill_the_log() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["mcp_servers"] = json!([{ "mcp_server_name": "complainer", "command": ["python3", "-c", COMPLAINER] }]);
    });
    world
        .model
        .plans(Plan::of(&["write"]).in_environment("python"))
        .calls("complainer/complain", json!({}))
        .calls("complainer/complain", json!({}))
        .calls(
            "workspace/write_file",
            json!({ "path": "a.txt", "content": "A line.\n" }),
        )
        .done("Wrote it.");
    world.github.open_issue("Write a.txt").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let size = log_size(&world);
    assert!((MEGABYTE / 2..2 * MEGABYTE).contains(&size), "the log has {size} bytes");
    assert!(
        world
            .story()
            .contains("the rest of what it writes to stderr is left out")
    );
    world.finish().await;
}

/// Opening a stream, or the memory, of a process is refused to others of the same user; what the
/// process starts is not affected.
#[tokio::test]
async fn no_process_in_the_container_gets_at_the_executor() {
    let world = World::start().await;
    let tries = "n=0; for p in /proc/[0-9]*; do [ \"$(cat $p/comm)\" = coding-agent-ex ] || continue; n=$((n+1)); \
                 (: > $p/fd/1) 2>/dev/null && echo opened; (: > $p/mem) 2>/dev/null && echo written; cat $p/environ >/dev/null 2>&1 && echo read; \
                 done; (: < /usr/local/bin/coding-agent-executor) 2>/dev/null && echo 'the program'; echo \"tried $n of them\"; cat /proc/self/environ >/dev/null && echo own";
    world
        .model
        .plans(Plan::of(&["write"]).in_environment("python"))
        .calls(COMMAND, json!({ "command": tries }))
        .calls(COMMAND, json!({ "command": "echo A line. > a.txt" }))
        .done("Wrote it.");
    world.github.open_issue("Write a.txt").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let requests = world.model.requests();
    let told = requests.iter().map(Request::last_user_message);
    let told = told.into_iter().find(|text| text.contains("of them")).unwrap();
    assert!(!told.contains("tried 0 of them") && told.contains("own"), "{told}");
    // The command itself names them, too.
    let printed = told.rsplit("\"output\":").next().unwrap_or_default();
    for reached in ["opened", "written", "read", "the program"] {
        assert!(!printed.contains(reached), "{told}");
    }
    world.finish().await;
}

#[tokio::test]
async fn explosive_patterns_are_answered_at_once_and_take_no_memory() {
    let world = World::start().await;
    let line = "x".repeat(3_000);
    world
        .github
        .default_repository()
        .commit("main", "Add", &[("long.txt", &line)]);
    let patterns = [
        "(((a{1,255}){1,255}){1,255})",
        "((a{1,32767}){1,32767})",
        "^(.*)(.*)(.*)(.*)\\1\\2\\3\\4b$",
        "(\\w{1,200}){1,200}",
    ];
    let calls = patterns.map(|pattern| ("repository/search", json!({ "pattern": pattern })));
    world
        .model
        .calls("repository/list_files", json!({}))
        .calls_all(calls)
        .plans(Plan::of(&["write"]).in_environment("python"))
        .calls(
            "workspace/write_file",
            json!({ "path": "a.txt", "content": "A line.\n" }),
        )
        .done("Wrote it.");
    world.github.open_issue("Write a.txt").label("coding agent");

    let (ended, most) = run_watched(&world).await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert!(most < 300 * MEGABYTE, "a process had {most} bytes");
    let journal = world.journal();
    let searches = journal.iter().filter(|line| line["tool"] == "repository/search");
    let milliseconds: Vec<u64> = searches.filter_map(|line| line["milliseconds"].as_u64()).collect();
    assert_eq!(milliseconds.len(), patterns.len(), "{}", world.story());
    assert!(milliseconds.iter().all(|took| *took < 25_000), "{milliseconds:?}");
    let told = world.model.requests()[2].last_user_message();
    assert_eq!(told.matches("searched as plain text").count(), patterns.len(), "{told}");
    world.finish().await;
}

/// The value is here so that the test of the log's size above cannot pass by there being no log.
#[tokio::test]
async fn a_day_s_log_does_not_grow_beyond_its_size() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["logs"]["max_file_bytes"] = Value::from(2_000);
        config["logs"]["level"] = Value::from("debug");
    });
    world
        .model
        .plans(Plan::of(&["write"]).in_environment("python"))
        .calls(COMMAND, json!({ "command": "echo A line. > a.txt" }))
        .done("Wrote it.");
    world.github.open_issue("Write a.txt").label("coding agent");
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert!(log_size(&world) < 4_000, "{}", log_size(&world));
    world.finish().await;
}
