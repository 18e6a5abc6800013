//! MCP servers in a run: called by the model, killed, or never there.

use std::path::Path;

use insta::assert_snapshot;
use serde_json::json;

use super::{greeting, greets, plan, told};
use crate::mcp_servers::judge;
use crate::world::World;
use crate::world::processes::{kill, until, with_mark};

const NOON: &str = r#"{"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}"#;

/// The time server that others wrote, in a time zone no other test uses, so that its processes can
/// be told from theirs.
fn time_server(zone: &str) -> serde_json::Value {
    let program = judge("mcp-server-time");
    json!([{
        "mcp_server_name": "time",
        "command": [program, "--local-timezone", zone],
        "system_prompt": "Ask the clock before you write a date.",
    }])
}

#[tokio::test]
async fn a_configured_server_is_called_by_the_model_and_gone_at_the_end() {
    let mut world = World::start().await;
    let zone = "Europe/Madrid";
    world.configure(|config| config["mcp_servers"] = time_server(zone));
    let noon = serde_json::from_str(NOON).unwrap();
    greets(world.model.plans(plan()).calls("time/convert_time", noon));
    greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let requests = world.model.requests();
    let system = requests[1].system();
    assert!(system.ends_with("Ask the clock before you write a date."), "{system}");
    assert!(system.contains("- time/convert_time {"), "{system}");
    assert!(requests[2].last_user_message().contains("21:00"), "{}", world.story());
    assert_eq!(with_mark(zone), [0; 0]);
    world.finish().await;
}

#[tokio::test]
async fn a_server_that_dies_once_is_started_again() {
    let mut world = World::start().await;
    let zone = "Europe/Dublin";
    world.configure(|config| {
        config["mcp_servers"] = time_server(zone);
        // The same call again and again would have the plan revised.
        config["planning"] = json!({ "replanning": { "max_revisions": 0 } });
    });
    let noon: serde_json::Value = serde_json::from_str(NOON).unwrap();
    let mut later = noon.clone();
    later["time"] = "13:00".into();
    let script = world.model.plans(plan()).calls("time/convert_time", noon.clone());
    let script = script.calls("time/convert_time", noon).holds();
    // A third call like these two would be a loop.
    greets(script.calls("time/convert_time", later));
    greeting(&world);

    let mut running = world.spawn(&["run"]);
    running.until(&world, world.model.until_held(1)).await;
    for id in with_mark(zone) {
        // Not the guard, which has the server's arguments too.
        let program = std::fs::read_link(format!("/proc/{id}/exe")).unwrap();
        if program != Path::new(env!("CARGO_BIN_EXE_coding-agent")) {
            kill(id);
        }
    }
    until(zone, 0).await;
    world.model.release();
    let ended = running.ended().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    // The second call met the new server, or the end of the old one and said so; the third one
    // works in either case.
    let results = [3, 4].map(|place| world.model.requests()[place].last_user_message());
    assert!(
        results[0].contains("21:00") || results[0].contains("died during convert_time and was started again"),
        "{}",
        world.story()
    );
    assert!(results[1].contains("22:00"), "{}", world.story());
    assert_eq!(with_mark(zone), [0; 0]);
    world.finish().await;
}

/// A server with one tool, whose calls it never answers.
const SILENT: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    answers = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "oracle", "version": "1"}},
        "tools/list": {"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]},
    }
    if asked.get("method") in answers:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answers[asked["method"]]}), flush=True)
"#;

#[tokio::test]
async fn a_call_that_a_server_never_answers_ends_after_its_time_and_the_model_goes_on() {
    let mut world = World::start().await;
    let mark = "a-server-that-never-answers";
    world.configure(|config| {
        config["mcp_servers"] = json!([{
            "mcp_server_name": "oracle",
            "command": ["python3", "-c", SILENT, mark],
            "timeout_seconds": 1,
        }]);
    });
    greets(world.model.plans(plan()).calls("oracle/ask", json!({})));
    greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let result = world.model.requests()[2].last_user_message();
    assert!(
        result.contains("oracle/ask did not answer within 1 s and was cancelled"),
        "{}",
        world.story()
    );
    assert_eq!(with_mark(mark), [0; 0]);
    world.finish().await;
}

#[tokio::test]
async fn a_server_that_does_not_start_fails_the_task_and_says_why() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["mcp_servers"] = json!([
            {"mcp_server_name": "clock", "command": ["sh", "-c", "echo 'no licence' >&2; exit 3"]},
        ]);
    });
    world.model.plans(plan());
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 1
    labels: coding agent failed
    -----
    <details><summary>🛠️ Failed: how it went</summary>

    Planned.

    - [ ] greet the reader

    <sub>Environment `python` · 1 model turn · <tokens> · <time> · run `<run>`</sub>

    </details>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ❌ This could not be done

    The tool server 'clock' is lost: `sh -c echo 'no licence' >&2; exit 3` (which said last: no licence) failed the handshake: connection closed: initialize response; mend its entry in mcp_servers (`coding-agent doctor` tries each of them).

    To start a new run, set the label `coding agent` again.

    <sub>1 model turn · <tokens> · <time></sub>

    <!-- coding-agent:<run>:final -->
    ");
    let story = world.story();
    let logged: Vec<_> = story.lines().filter(|line| line.contains(" mcp: ")).collect();
    assert!(
        logged
            .iter()
            .any(|line| line.contains("no licence") && line.contains("clock")),
        "{story}"
    );
    world.finish().await;
}
