//! A server of tools with more schemas than a small window has room for.

use serde_json::{Value, json};

use crate::fake::model::{Plan, Said};
use crate::world::World;

/// Sixty tools with long schemas, each of which repeats the ticket it is asked for.
const TICKETS: &str = r#"
import json, sys
tools = [{
    "name": "ticket_%02d" % number,
    "description": "Does thing %d with a ticket. There is a lot more to be said about this, and all of it is said here." % number,
    "inputSchema": {
        "type": "object",
        "properties": {"ticket": {"type": "integer", "description": "The number of the ticket."}, "reason": {"type": "string"}},
        "required": ["ticket"],
    },
} for number in range(60)]
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        answer = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "tickets", "version": "1"}}
    elif asked["method"] == "tools/list":
        answer = {"tools": tools}
    elif asked["method"] == "tools/call":
        ticket = asked["params"]["arguments"].get("ticket")
        answer = {"content": [{"type": "text", "text": "ticket %s" % ticket if isinstance(ticket, int) else "ticket must be a number"}], "isError": not isinstance(ticket, int)}
    else:
        answer = {}
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"#;

async fn world(native: bool) -> World {
    let mut world = World::start().await;
    world.configure(|config| {
        config["llm"]["function_calling"] = json!(native);
        config["mcp_servers"] = json!([{ "mcp_server_name": "tickets", "command": ["python3", "-c", TICKETS] }]);
    });
    world
        .model
        .plans(Plan::of(&["look at ticket 7"]))
        .calls(
            "agent/describe_tools",
            json!({ "tools": ["tickets/ticket_07", "tickets/ticket_99"] }),
        )
        .calls("tickets/ticket_07", json!({ "ticket": "seven" }))
        .calls("tickets/ticket_07", json!({ "ticket": 7 }))
        .done("Looked.");
    world.github.open_issue("Look at ticket 7").label("coding agent");
    world
}

#[tokio::test]
async fn many_tools_are_listed_by_name_and_described_on_demand() {
    let world = world(false).await;

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let requests = world.model.requests();
    let system = requests[1].system();
    let listed: Vec<&str> = system
        .lines()
        .filter(|line| {
            ["- read_file", "- describe_tools", "- tickets/ticket_0"]
                .iter()
                .any(|name| line.starts_with(name))
        })
        .take(4)
        .collect();
    insta::assert_snapshot!(listed.join("\n"), @r"
    - read_file {path, view_range?: [integer]}: Read a text file, or its lines view_range [first, last].
    - describe_tools {tools: [string]}: Tells what tools take that are listed with {...}; ask before you call one of them.
    - tickets/ticket_00 {...}: Does thing 0 with a ticket.
    - tickets/ticket_01 {...}: Does thing 1 with a ticket.
    ");
    assert_eq!(system.matches("- tickets/").count(), 60);
    let outputs: Vec<String> = requests[4]
        .messages
        .iter()
        .filter_map(|said| match said {
            Said::User(text) => serde_json::from_str::<Value>(text).ok(),
            _ => None,
        })
        .map(|results| results["output"].as_str().unwrap().to_owned())
        .collect();
    insta::assert_snapshot!(outputs.join("\n---\n"), @r#"
    tickets/ticket_07: Does thing 7 with a ticket. There is a lot more to be said about this, and all of it is said here.
    arguments: {"properties":{"reason":{"type":"string"},"ticket":{"description":"The number of the ticket.","type":"integer"}},"required":["ticket"],"type":"object"}

    tickets/ticket_99: there is no such tool, or it needs no description
    ---
    ticket must be a number
    ---
    ticket 7
    "#);
    world.finish().await;
}

#[tokio::test]
async fn what_is_offered_natively_stays_the_same_after_a_description() {
    let world = world(true).await;

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let requests = world.model.requests();
    let tools = |place: usize| requests[place].body["tools"].clone();
    assert!((2..=4).all(|place| tools(place) == tools(1)));
    let offered = tools(1);
    let of = |name: &str| {
        let offered = offered.as_array().unwrap();
        let tool = offered.iter().find(|tool| tool["function"]["name"] == name);
        tool.unwrap()["function"].clone()
    };
    assert_eq!(
        of("tickets__ticket_07"),
        json!({
            "name": "tickets__ticket_07",
            "description": "Does thing 7 with a ticket.",
            "parameters": { "type": "object", "additionalProperties": true },
        })
    );
    assert_eq!(of("read_file")["parameters"]["required"], json!(["path"]));
    let result = |place: usize| match requests[place].messages.last() {
        Some(Said::Result(_, text)) => text.clone(),
        other => panic!("no result: {other:?}"),
    };
    assert_eq!([result(3), result(4)], ["ticket must be a number", "ticket 7"]);
    world.finish().await;
}
