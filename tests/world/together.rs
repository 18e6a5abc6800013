//! Several calls in one reply: what only reads runs side by side, and nothing overtakes what may
//! write.

use serde_json::{Value, json};

use crate::fake::model::{Plan, Said};
use crate::world::World;

const READ: &str = "workspace/read_file";
const WRITE: &str = "workspace/write_file";

/// Returns how many calls of this tool have begun, by the program's log.
fn begun(world: &World, tool: &str) -> usize {
    let story = world.story();
    let named = format!("tool=\"{tool}\"");
    story
        .lines()
        .filter(|said| said.contains("a call begins") && said.contains(&named))
        .count()
}

fn write(content: &str) -> (&'static str, Value) {
    (
        WRITE,
        json!({ "path": "note.txt", "content": content, "mode": "overwrite" }),
    )
}

#[tokio::test]
async fn files_are_read_side_by_side_and_none_before_what_is_written_first() {
    let mut world = World::start().await;
    world.configure(|config| config["logs"]["level"] = json!("debug"));
    let note = || (READ, json!({ "path": "note.txt" }));
    world
        .model
        .plans(Plan::of(&["take notes"]))
        .calls_all([write("one\n")])
        .calls_all([
            note(),
            (READ, json!({ "path": "README.md" })),
            note(),
            write("two\n"),
            note(),
            note(),
        ])
        .holds()
        .done("Noted.");
    world.github.open_issue("Take notes").label("coding agent");
    let mut program = world.spawn(&["run"]);
    let read = async {
        world.model.until_held(1).await;
        // Nothing is answered until all three have been asked for.
        world.freeze_containers().await;
        world.model.release();
        world.until("three calls at once", || begun(&world, READ) == 3).await;
        assert_eq!(
            begun(&world, WRITE),
            1,
            "the second one does not wait\n{}",
            world.story()
        );
        world.thaw_containers().await;
    };
    program.until(&world, read).await;

    let ended = program.ended().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let last = world.model.requests().pop().unwrap();
    let Some(Said::User(results)) = last.messages.last() else {
        panic!("no results: {:?}", last.messages)
    };
    let results: Value = serde_json::from_str(results).unwrap();
    let outputs: Vec<&str> = results["previous_output"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| result["output"].as_str().unwrap())
        .collect();
    assert_eq!(
        outputs,
        ["one\n", "# widgets\n", "one\n", "overwrote note.txt", "two\n", "two\n"]
    );
    let called: Vec<String> = world
        .journal()
        .iter()
        .filter(|fact| fact["fact"] == "tool_called")
        .map(|fact| format!("{} {}", fact["tool"].as_str().unwrap(), fact["path"].as_str().unwrap()))
        .collect();
    let note = |tool: &str| format!("{tool} note.txt");
    let readme = format!("{READ} README.md");
    // Noted in the order of the calls, whichever came back first.
    assert_eq!(
        called,
        [
            note(WRITE),
            note(READ),
            readme,
            note(READ),
            note(WRITE),
            note(READ),
            note(READ)
        ]
    );
    world.finish().await;
}

/// A server on the worker that says of its tool that it only reads, and tells how many calls it had
/// at once.
const BOASTER: &str = r#"
import json, sys, threading, time
lock, state = threading.Lock(), {"now": 0, "most": 0}
def say(id, result):
    with lock:
        print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
def count(id):
    with lock:
        state["now"] += 1
        state["most"] = max(state["most"], state["now"])
    time.sleep(0.2)
    with lock:
        state["now"] -= 1
    say(id, {"content": [{"type": "text", "text": "at most %d at once" % state["most"]}]})
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "tools/call":
        threading.Thread(target=count, args=(asked["id"],)).start()
    elif asked["method"] == "initialize":
        say(asked["id"], {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "boaster", "version": "1"}})
    elif asked["method"] == "tools/list":
        say(asked["id"], {"tools": [{"name": "count", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]})
    elif "id" in asked:
        say(asked["id"], {})
"#;

#[tokio::test]
async fn what_a_server_says_of_itself_is_not_relied_on() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["mcp_servers"] = json!([{ "mcp_server_name": "boaster", "command": ["python3", "-c", BOASTER] }]);
    });
    world
        .model
        .plans(Plan::of(&["count"]))
        .calls_all([
            ("boaster/count", json!({})),
            ("boaster/count", json!({})),
            ("boaster/count", json!({})),
        ])
        .done("Counted.");
    world.github.open_issue("Count").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let last = world.model.requests().pop().unwrap();
    assert_eq!(last.text().matches("at most 1 at once").count(), 3, "{}", world.story());
    world.finish().await;
}
