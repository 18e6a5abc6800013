//! What a cluster refuses, or cannot do now: each is a sentence with the mend, and the run goes on when it is mended.

use serde_json::json;

use super::{is_done, runs};
use crate::fake::github::Item;
use crate::world::World;
use crate::world::clusters::kubectl;
use crate::world::processes;

/// Returns the last comment on an issue that waits.
async fn why_it_waits(world: &World, issue: &Item) -> String {
    let ended = world.run().await;
    assert_eq!(issue.labels(), ["coding agent paused"], "{ended:?}\n{}", world.story());
    issue.comments().pop().unwrap().body
}

#[tokio::test]
async fn a_quota_that_is_reached_is_waited_for() {
    let world = World::start().await;
    world.model.allows_restarts();
    let (script, issue) = runs(&world, &["echo in"]);
    script.done("Was in.");
    kubectl(&["create", "quota", "full", "--hard=pods=0"]).await;
    // The controller of quotas counts first.
    let counted = "jsonpath={.status.hard.pods}";
    while kubectl(&["get", "quota", "full", "--output", counted]).await != "0" {}

    let comment = why_it_waits(&world, &issue).await;
    kubectl(&["delete", "quota", "full"]).await;

    assert!(
        comment.contains("exceeded quota") && comment.contains("raise the quota"),
        "{comment}"
    );
    issue.label("coding agent");
    is_done(&world, &issue).await;
    world.finish().await;
}

#[tokio::test]
async fn where_no_node_has_room_the_run_waits() {
    let mut world = World::start().await;
    world.model.allows_restarts();
    world.configure(|config| {
        config["command_executor"]["resources"]["memory_limit"] = json!("900g");
        config["environment"]["kubernetes"]["start_seconds"] = json!(30);
    });
    let (script, issue) = runs(&world, &["echo in"]);
    script.done("Was in.");

    let comment = why_it_waits(&world, &issue).await;

    assert!(comment.contains("no node took the pod"), "{comment}");
    assert!(comment.contains("Insufficient memory"), "{comment}");
    world.configure(|config| config["command_executor"]["resources"]["memory_limit"] = json!("512m"));
    world.configure(|config| config["environment"]["kubernetes"]["start_seconds"] = json!(300));
    issue.label("coding agent");
    is_done(&world, &issue).await;
    world.finish().await;
}

#[tokio::test]
async fn an_image_that_no_registry_has_fails_the_run_with_the_nodes_words() {
    let mut world = World::start().await;
    world.configure(|config| {
        // A registry that is surely not there.
        config["command_executor"]["environments"]["other"] = json!("127.0.0.1:1/acme/python:1");
    });
    world
        .model
        .plans(crate::fake::model::Plan::of(&["count"]).in_environment("other"));
    let issue = world.github.open_issue("Count").label("coding agent");

    let ended = world.run().await;

    assert_eq!(issue.labels(), ["coding agent failed"], "{ended:?}\n{}", world.story());
    let comment = issue.comments().pop().unwrap().body;
    assert!(comment.contains("127.0.0.1:1/acme/python:1"), "{comment}");
    assert!(comment.contains("push it to a registry that they reach"), "{comment}");
    world.finish().await;
}

#[tokio::test]
async fn a_namespace_that_is_not_there_is_told() {
    let mut world = World::start().await;
    world.configure(|config| config["environment"]["kubernetes"]["namespace"] = json!("nowhere"));
    let (_script, issue) = runs(&world, &[]);

    let comment = why_it_waits(&world, &issue).await;

    assert!(comment.contains("namespace nowhere"), "{comment}");
    world.model.allows_restarts();
    world.finish().await;
}

#[tokio::test]
async fn a_pod_that_is_evicted_is_replaced() {
    let world = World::start().await;
    let nap = processes::mark();
    let (script, issue) = runs(
        &world,
        &[
            "echo one > one.txt && git add -A && git commit -qm One",
            &format!("sleep {nap}"),
        ],
    );
    script
        .calls("workspace/execute_command", json!({ "command": "ls" }))
        .done("Counted.");
    let program = world.spawn(&["run"]);
    processes::until_some(&nap).await;
    let pods = world.containers().await;
    let eviction = json!({
        "apiVersion": "policy/v1beta1",
        "kind": "Eviction",
        "metadata": { "name": pods[0], "namespace": "coding-agent-runs" },
    });
    let file = world.keeps("eviction.json", &eviction.to_string());
    let path = format!("/api/v1/namespaces/coding-agent-runs/pods/{}/eviction", pods[0]);
    kubectl(&["create", "--raw", &path, "--filename", &file]).await;
    let ended = program.ended().await;

    assert_eq!(issue.labels(), ["coding agent done"], "{ended:?}\n{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_pod_that_fills_its_disk_is_replaced_and_the_reason_is_told() {
    let mut world = World::start().await;
    world.configure(|config| config["command_executor"]["resources"]["disk_limit"] = json!("30m"));
    let (script, issue) = runs(
        &world,
        &[
            "echo one > one.txt && git add -A && git commit -qm One",
            "head -c 60000000 /dev/zero > /workspace/big; sleep 300",
        ],
    );
    script
        .calls("workspace/execute_command", json!({ "command": "ls" }))
        .done("Counted.");

    is_done(&world, &issue).await;

    let told = world.model.requests()[3].last_user_message();
    assert!(told.contains("A new container has taken the place"), "{told}");
    assert!(
        world.story().contains("Evicted") || world.story().contains("exceeds"),
        "{}",
        world.story()
    );
    world.finish().await;
}
