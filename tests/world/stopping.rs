//! SIGTERM or SIGHUP: the safe point is reached, the work is kept, and a later `run` goes on with
//! it.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::process::Command;

use crate::fake::github::Item;
use crate::fake::model::Plan;
use crate::world::facts::count;
use crate::world::processes::{self, mark};
use crate::world::scripts::COMMAND;
use crate::world::{Program, World};

/// A world whose issue asks for two files, with this grace period.
async fn world(grace_seconds: u64) -> (World, Item) {
    let mut world = World::start().await;
    world.configure(|config| config["shutdown_grace_seconds"] = json!(grace_seconds));
    world.model.allows_restarts();
    let issue = world.github.open_issue("Count to two").label("coding agent");
    (world, issue)
}

fn plan() -> Plan {
    Plan::of(&["count"]).with(
        "selected_environment",
        json!({ "name": "python", "reasoning": "", "setup_commands": ["touch /tmp/set-up"] }),
    )
}

/// Makes two files and commits one of them.
const HALF_OF_THE_WORK: &str =
    "echo one > one.txt && git add one.txt && git commit -q -m 'Say one' && echo two > two.txt";

fn expect_both_files(world: &World, issue: &Item) {
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    let pulls = world.github.pulls();
    assert_eq!(pulls.len(), 1, "{}", world.story());
    assert!(!pulls[0].is_draft(), "{}", world.story());
    let files = ["one.txt", "two.txt"].map(|file| pulls[0].file(file).unwrap_or_default());
    assert_eq!(files, ["one\n", "two\n"], "{}", world.story());
    let subjects: Vec<_> = pulls[0]
        .commits()
        .iter()
        .map(|commit| commit.message.lines().next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(subjects, ["Say one", "Count to two"]);
    // The progress comment and the final one.
    assert_eq!(issue.comments().len(), 2, "{}", world.story());
}

#[tokio::test]
async fn the_end_of_the_terminal_is_an_order_to_stop_unless_nohup_is_there() {
    let world = World::start().await;
    let mut service = world.spawn(&["serve"]);
    service.until_it_prints("at work").await;
    service.signal("HUP");
    assert_eq!(service.ended().await.code, Some(0), "{}", world.story());

    let mut command = Command::new("nohup");
    command.arg(env!("CARGO_BIN_EXE_coding-agent")).arg("--config");
    command.arg(world.writes_its_configuration()).arg("serve");
    let mut service = Program::start(world.prepared(command));
    service.until_it_prints("at work").await;
    service.signal("HUP");
    let before = world.github.requests().len();
    let has_searched = || world.github.requests().len() > before + 5;
    world.until("searches after the signal", has_searched).await;
    service.signal("TERM");
    assert_eq!(service.ended().await.code, Some(0), "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn in_the_middle_of_a_command_the_work_goes_into_a_new_container() {
    let (world, issue) = world(30).await;
    let long = mark();
    world
        .model
        .plans(plan())
        .calls(COMMAND, json!({ "command": HALF_OF_THE_WORK }))
        .calls(COMMAND, json!({ "command": format!("sleep {long}") }))
        .calls(
            COMMAND,
            json!({ "command": "ls /tmp/set-up && git status --porcelain" }),
        )
        .done("Counted.");

    let program = world.spawn(&["run"]);
    processes::until_some(&long).await;
    let asked = Instant::now();
    program.signal("TERM");
    let ended = program.ended().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(ended.stdout, "github:acme/widgets#1: interrupted\n");
    assert!(asked.elapsed() < Duration::from_secs(30), "{:?}", asked.elapsed());
    assert_eq!(world.containers().await, [""; 0]);
    assert_eq!(processes::with_mark(&long), [0; 0]);
    assert_eq!(issue.labels(), ["coding agent processing"]);

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    expect_both_files(&world, &issue);
    assert_eq!((count(&world, "planned"), count(&world, "environment_started")), (1, 2));
    let requests = world.model.requests();
    let told = requests[3].last_user_message();
    assert!(told.contains("stopped while this ran"), "{told}");
    assert!(told.contains("new container"), "{told}");
    let seen = requests[4].last_user_message();
    assert!(seen.contains("/tmp/set-up") && seen.contains("?? two.txt"), "{seen}");
    world.finish().await;
}

#[tokio::test]
async fn while_the_model_thinks_it_ends_at_once() {
    let (world, issue) = world(120).await;
    world
        .model
        .plans(plan())
        .calls(COMMAND, json!({ "command": HALF_OF_THE_WORK }))
        .done("This is never heard.")
        .holds()
        .done("Counted.");

    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    let asked = Instant::now();
    program.signal("TERM");
    let ended = program.ended().await;

    ended.prints("github:acme/widgets#1: interrupted\n", &world);
    // The tools' part of the grace period is 48 s; nothing of it is waited for.
    assert!(asked.elapsed() < Duration::from_secs(40), "{:?}", asked.elapsed());
    assert_eq!(world.containers().await, [""; 0]);

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    expect_both_files(&world, &issue);
    world.finish().await;
}

#[tokio::test]
async fn in_the_middle_of_a_check_nothing_is_held_against_the_work() {
    let (world, issue) = world(30).await;
    let long = mark();
    let check = format!("sleep {long} || true");
    world
        .model
        .plans(plan().verified_by(&check))
        .calls(COMMAND, json!({ "command": HALF_OF_THE_WORK }))
        .done("Counted.");

    let program = world.spawn(&["run"]);
    processes::until_some(&long).await;
    program.signal("TERM");
    let ended = program.ended().await;
    ended.prints("github:acme/widgets#1: interrupted\n", &world);

    let program = world.spawn(&["run"]);
    processes::until_some(&long).await;
    processes::with_mark(&long).into_iter().for_each(processes::kill);
    let ended = program.ended().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    expect_both_files(&world, &issue);
    let verified: Vec<_> = world
        .journal()
        .iter()
        .filter(|entry| entry["fact"] == "verified")
        .map(|entry| entry["passed"].clone())
        .collect();
    assert_eq!(verified, [json!(true)], "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once_and_nothing_is_lost() {
    let (world, issue) = world(600).await;
    let long = mark();
    world
        .model
        .plans(plan())
        .calls(COMMAND, json!({ "command": HALF_OF_THE_WORK }))
        .calls(COMMAND, json!({ "command": format!("sleep {long}") }))
        .done("Counted.");

    let program = world.spawn(&["run"]);
    processes::until_some(&long).await;
    program.signal("TERM");
    world.until_logged("reaching the safe point").await;
    program.signal("INT");
    let ended = program.ended().await;

    assert_eq!(ended.code, Some(130), "{ended:?}\n{}", world.story());
    processes::until(&long, 0).await;

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    expect_both_files(&world, &issue);
    assert_eq!(count(&world, "environment_started"), 1, "the container is taken over");
    world.finish().await;
}

#[tokio::test]
async fn an_idle_service_ends_at_either_signal() {
    for signal in ["TERM", "INT"] {
        let world = World::start().await;
        let mut program = world.spawn(&["serve"]);
        program.until_it_prints("at work").await;
        let asked = Instant::now();
        program.signal(signal);
        let ended = program.ended().await;
        assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
        assert!(asked.elapsed() < Duration::from_secs(30), "{:?}", asked.elapsed());
        world.finish().await;
    }
}
