//! Tool servers on the worker end with the run, however the run ends.

use serde_json::json;

use crate::fake::model::Plan;
use crate::mcp_servers::judge;
use crate::world::World;
use crate::world::processes;

/// A world with a time server in a time zone no other test uses, so that its processes can be told
/// from theirs.
async fn world(zone: &str) -> World {
    let mut world = World::start().await;
    let program = judge("mcp-server-time");
    world.configure(|config| {
        config["mcp_servers"] = json!([
            { "mcp_server_name": "time", "command": [program, "--local-timezone", zone] }
        ]);
    });
    world.model.allows_restarts();
    world
        .model
        .plans(Plan::of(&["look at the clock"]))
        .calls("time/get_current_time", json!({ "timezone": zone }));
    world.github.open_issue("What time is it?").label("coding agent");
    world
}

async fn expect_the_end(world: World, zone: &str) {
    assert_eq!(processes::with_mark(zone), [0; 0]);
    let times = world.model.requests()[2].last_user_message();
    assert!(times.contains("day_of_week"), "{times}");
    world.finish().await;
}

#[tokio::test]
async fn after_the_end_of_a_run() {
    let zone = "Europe/Helsinki";
    let world = world(zone).await;
    world.model.done("Late.");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    expect_the_end(world, zone).await;
}

#[tokio::test]
async fn after_the_kill_of_the_program() {
    let zone = "Europe/Tallinn";
    let world = world(zone).await;
    world.model.done("Late.").holds().done("Late.");

    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    assert!(!processes::with_mark(zone).is_empty());
    program.kill().await;
    processes::until(zone, 0).await;

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    expect_the_end(world, zone).await;
}

#[tokio::test]
async fn after_a_stop() {
    let zone = "Europe/Riga";
    let world = world(zone).await;
    world.model.done("Late.").holds().done("Late.");

    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    program.signal("TERM");
    let ended = program.ended().await;
    ended.prints("github:acme/widgets#1: interrupted\n", &world);
    assert_eq!(processes::with_mark(zone), [0; 0]);

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    expect_the_end(world, zone).await;
}
