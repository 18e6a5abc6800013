//! Parts of the cluster that die, hang or are away while a command runs.

use std::time::Duration;

use serde_json::json;

use super::{is_done, runs};
use crate::fake::github::Item;
use crate::reading::{facts, output};
use crate::world::clusters::{Mended, control};
use crate::world::{Program, World};

/// Longer than the program goes on trying to reach the executor.
const LONG_AWAY: Duration = Duration::from_secs(75);

/// Starts the program, and waits until its command runs in a pod.
async fn begun(world: &mut World) -> (Program, Item) {
    world.configure(|config| config["command_executor"]["timeout_seconds"] = json!(900));
    let waits = "touch /tmp/begun; echo run >> /tmp/runs; until [ -e /tmp/enough ]; do sleep 0.1; done; cat /tmp/runs";
    let (script, issue) = runs(world, &[waits]);
    script.done("Waited.");
    let program = world.spawn(&["run"]);
    world.model.until(|requests| requests.len() >= 2).await;
    world.in_container("until [ -e /tmp/begun ]; do sleep 0.1; done").await;
    (program, issue)
}

async fn ends(world: World, program: Program, issue: Item) {
    world.in_container("touch /tmp/enough").await;
    let ended = program.ended().await;
    assert_eq!(issue.labels(), ["coding agent done"], "{ended:?}\n{}", world.story());
    assert_eq!(output(&world, 0), "run", "the command ran once");
    assert_eq!(facts(&world, "environment_started").len(), 1);
    world.finish().await;
}

#[tokio::test]
async fn the_api_server_is_killed_and_comes_back() {
    let mut world = World::start().await;
    let _mended = Mended::when_dropped();
    let (program, issue) = begun(&mut world).await;

    control(&["kill", "api"]).await;
    control(&["start", "api"]).await;

    ends(world, program, issue).await;
}

#[tokio::test]
async fn the_kubelet_is_killed_and_comes_back() {
    let mut world = World::start().await;
    let _mended = Mended::when_dropped();
    let (program, issue) = begun(&mut world).await;

    control(&["kill", "kubelet"]).await;
    control(&["start", "kubelet"]).await;

    ends(world, program, issue).await;
}

#[tokio::test]
async fn all_that_is_between_is_killed_and_comes_back() {
    let mut world = World::start().await;
    let _mended = Mended::when_dropped();
    let (program, issue) = begun(&mut world).await;

    for part in ["api", "kubelet", "controllers", "scheduler"] {
        control(&["kill", part]).await;
    }
    for part in ["api", "kubelet", "controllers", "scheduler"] {
        control(&["start", part]).await;
    }

    ends(world, program, issue).await;
}

#[tokio::test]
async fn an_api_server_that_hangs_is_waited_for() {
    let mut world = World::start().await;
    let _mended = Mended::when_dropped();
    let (program, issue) = begun(&mut world).await;

    control(&["freeze", "api"]).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    control(&["thaw", "api"]).await;

    ends(world, program, issue).await;
}

#[tokio::test]
async fn an_api_server_that_is_away_for_long_postpones_the_run_and_loses_nothing() {
    let mut world = World::start().await;
    let _mended = Mended::when_dropped();
    world.model.allows_restarts();
    world.configure(|config| config["command_executor"]["timeout_seconds"] = json!(900));
    let (script, issue) = runs(&world, &["echo kept > kept.txt && git add -A && git commit -qm Kept"]);
    script
        .calls("workspace/execute_command", json!({ "command": "sleep 400" }))
        .calls("workspace/execute_command", json!({ "command": "cat kept.txt" }))
        .done("Kept.");
    let program = world.spawn(&["run"]);
    world.model.until(|requests| requests.len() >= 3).await;
    world.in_container("until pgrep -x sleep; do sleep 0.1; done").await;

    control(&["kill", "api"]).await;
    tokio::time::sleep(LONG_AWAY).await;
    let ended = program.ended().await;
    assert_eq!(issue.labels(), ["coding agent paused"], "{ended:?}\n{}", world.story());
    let comment = issue.comments().pop().unwrap().body;
    assert!(comment.contains("Kubernetes cluster"), "{comment}");

    control(&["start", "api"]).await;
    issue.label("coding agent");
    is_done(&world, &issue).await;
    let pulls = world.github.pulls();
    assert_eq!(pulls[0].file("kept.txt").as_deref(), Some("kept\n"));
    world.finish().await;
}

#[tokio::test]
async fn a_node_that_does_not_answer_is_named() {
    let mut world = World::start().await;
    let _mended = Mended::when_dropped();
    let (program, issue) = begun(&mut world).await;
    control(&["kill", "kubelet"]).await;

    let ended = program.ended().await;

    assert_eq!(issue.labels(), ["coding agent paused"], "{ended:?}\n{}", world.story());
    let comment = issue.comments().pop().unwrap().body;
    assert!(comment.contains("the node of the pod does not answer"), "{comment}");
    control(&["start", "kubelet"]).await;
    world.in_container("touch /tmp/enough").await;
    world.model.allows_restarts();
    issue.label("coding agent");
    is_done(&world, &issue).await;
    world.finish().await;
}
