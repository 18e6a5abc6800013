//! Parts of the cluster that die, hang or are away while a command runs.

use std::time::Duration;

use serde_json::json;

use super::{is_done, runs};
use crate::fake::github::Item;
use crate::fake::model::Request;
use crate::world::clusters::{Mended, control, kubectl};
use crate::world::facts::facts;
use crate::world::processes;
use crate::world::scripts::{executes, output};
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

/// The controllers are away meanwhile: after a minute they would remove every pod of that node, and
/// so the neighbour that other tests need. Nobody but the program removes what the node has left.
#[tokio::test]
async fn a_node_that_is_gone_for_good_is_named_and_its_run_waits_for_another_and_loses_nothing() {
    let mut world = World::start().await;
    let _mended = Mended::when_dropped();
    world.model.allows_restarts();
    world.configure(|config| {
        config["command_executor"]["timeout_seconds"] = json!(900);
        config["environment"]["kubernetes"]["start_seconds"] = json!(30);
    });
    let nap = processes::mark();
    let (script, issue) = runs(&world, &["echo 1 > 1.txt && git add -A && git commit -qm One"]);
    let script = (2..=10).fold(script, |script, number| {
        executes(script, &format!("echo {number} > {number}.txt"))
    });
    executes(executes(script, &format!("sleep {nap}")), "ls *.txt | wc -l").done("Counted.");
    let program = world.spawn(&["run"]);
    processes::until_some(&nap).await;
    world.until_kept().await;

    let instance = coding_agent::service::instance(&world.state_dir());
    let own = format!("coding-agent.instance={instance}");
    // The node is still at removing them, and would leave them behind; this waits for it.
    let of_the_trial = format!("{own},coding-agent.purpose=trial");
    kubectl(&["delete", "pods", "--ignore-not-found", "--selector", &of_the_trial]).await;
    control(&["kill", "controllers"]).await;
    control(&["kill", "kubelet"]).await;
    // As whoever looks after a cloud's machines does.
    kubectl(&["delete", "node", "node"]).await;
    let ended = program.ended().await;

    assert_eq!(issue.labels(), ["coding agent paused"], "{ended:?}\n{}", world.story());
    let comment = issue.comments().pop().unwrap().body;
    assert!(comment.contains("no node took the pod"), "{comment}");
    let gone = "is on the node node, which the cluster does not have any more";
    assert!(world.story().contains(gone), "{}", world.story());
    let left = kubectl(&["get", "pods", "--selector", &own, "--output", "name"]).await;
    assert_eq!(left, "", "no pod waits for a node that does not come back");

    control(&["start", "kubelet"]).await;
    control(&["start", "controllers"]).await;
    world.configure(|config| config["environment"]["kubernetes"]["start_seconds"] = json!(300));
    issue.label("coding agent");
    is_done(&world, &issue).await;
    let pulls = world.github.pulls();
    assert_eq!(pulls.len(), 1, "{}", world.story());
    for number in 1..=10 {
        let file = pulls[0].file(&format!("{number}.txt"));
        assert_eq!(file, Some(format!("{number}\n")), "{}", world.story());
    }
    let told: Vec<String> = world.model.requests().iter().map(Request::last_user_message).collect();
    assert!(
        told.iter()
            .any(|text| text.contains("A new container has taken the place")),
        "{told:?}"
    );
    // The node ends what went on without it, once it is back.
    processes::until(&nap, 0).await;
    world.finish().await;
}
