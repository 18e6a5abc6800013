//! SIGTERM before the model's work began: nothing waits for the outside, and the next `run` begins
//! where it was.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::fake::model::Plan;
use crate::world::World;
use crate::world::processes::{self, mark};

#[tokio::test]
async fn while_the_repository_is_fetched() {
    let world = World::start().await;
    let issue = world.github.open_issue("Greet").label("coding agent");
    world.github.hangs("POST /acme/widgets.git/git-upload-pack", 0, false);
    let program = world.spawn(&["run"]);
    world.github.until_one_hangs().await;
    let asked = Instant::now();
    program.signal("TERM");

    let ended = program.ended().await;

    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "github:acme/widgets#1: interrupted\n"),
        "{ended:?}"
    );
    let script = world.model.plans(Plan::of(&["greet"]));
    script.done("Nothing to do.").done("Nothing to do.");
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn while_a_tool_server_does_not_answer() {
    let mut world = World::start().await;
    let silent = mark();
    world.configure(|config| {
        config["mcp_servers"] = json!([{ "mcp_server_name": "silent", "command": ["sleep", silent] }]);
    });
    world.model.plans(Plan::of(&["greet"]));
    let issue = world.github.open_issue("Greet").label("coding agent");
    let program = world.spawn(&["run"]);
    processes::until_some(&silent).await;
    let asked = Instant::now();
    program.signal("TERM");

    let ended = program.ended().await;

    assert!(asked.elapsed() < Duration::from_secs(10), "{:?}", asked.elapsed());
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "github:acme/widgets#1: interrupted\n"),
        "{ended:?}"
    );
    assert_eq!(issue.labels(), ["coding agent processing"]);
    // Its guard ends it, with or without the program.
    processes::until(&silent, 0).await;
    world.finish().await;
}
