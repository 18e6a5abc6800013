//! A container that dies by itself, by somebody's hand, or because the run has to wait: another one
//! takes its place, with the work as it was last kept.

use serde_json::json;

use crate::fake::model::Plan;
use crate::world::World;
use crate::world::processes::{self, mark};
use crate::world::scripts::COMMAND;

#[tokio::test]
async fn in_the_middle_of_the_work_only_the_last_turns_are_lost() {
    let world = World::start().await;
    let mut script = world.model.plans(Plan::of(&["count"]).in_environment("python"));
    script = script.calls(
        COMMAND,
        json!({ "command": "echo 1 > 1.txt && git add -A && git commit -q -m One" }),
    );
    for number in 2..=10 {
        script = script.calls(COMMAND, json!({ "command": format!("echo {number} > {number}.txt") }));
    }
    script
        .calls(COMMAND, json!({ "command": "echo never > heard.txt" }))
        .holds()
        .calls(
            COMMAND,
            json!({ "command": "git status --porcelain && git log --format=%s" }),
        )
        .done("Counted to ten.");
    let issue = world.github.open_issue("Count to ten").label("coding agent");

    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    world.until_kept().await;
    world.kill_containers().await;
    world.model.release();
    let ended = program.ended().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let requests = world.model.requests();
    let told = requests[12].last_user_message();
    assert!(told.contains("Whether it took effect is unknown"), "{told}");
    assert!(told.contains("A new container has taken the place"), "{told}");
    let seen = requests[13].last_user_message();
    for part in ["?? 2.txt", "?? 10.txt", "One\\nBegin"] {
        assert!(seen.contains(part), "{part} is not in {seen}");
    }
    assert!(!seen.contains("heard.txt"), "{seen}");
    let pulls = world.github.pulls();
    assert_eq!(pulls.len(), 1, "{}", world.story());
    assert_eq!(pulls[0].files().len(), 11, "{:?}", pulls[0].files());
    let people_know = issue
        .comments()
        .iter()
        .any(|comment| comment.body.contains("The container was lost"));
    assert!(people_know, "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn while_the_program_checks_nothing_is_lost() {
    let world = World::start().await;
    let nap = format!("8.{}", mark().replace('.', ""));
    world
        .model
        .plans(
            Plan::of(&["count"])
                .in_environment("python")
                .verified_by(&format!("sleep {nap} && grep -q one one.txt")),
        )
        .calls(COMMAND, json!({ "command": "echo one > one.txt" }))
        .done("Counted.");
    let issue = world.github.open_issue("Count to one").label("coding agent");

    let program = world.spawn(&["run"]);
    processes::until_some(&nap).await;
    world.kill_containers().await;
    let ended = program.ended().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"]);
    let pulls = world.github.pulls();
    assert!(pulls.len() == 1 && !pulls[0].is_draft(), "{}", world.story());
    assert_eq!(pulls[0].file("one.txt").as_deref(), Some("one\n"));
    world.finish().await;
}

#[tokio::test]
async fn a_new_container_that_was_not_ready_when_the_program_died_is_not_taken_over() {
    let world = World::start().await;
    world.model.allows_restarts();
    world.model.repeats_answers();
    let nap = format!("8.{}", mark().replace('.', ""));
    let environment = json!({
        "name": "python",
        "reasoning": "",
        "setup_commands": [format!("sleep {nap} && touch /tmp/is-set-up")],
    });
    world
        .model
        .plans(
            Plan::of(&["count"])
                .with("selected_environment", environment)
                .verified_by("test -f /tmp/is-set-up && grep -q one one.txt"),
        )
        .calls(COMMAND, json!({ "command": "echo one > lost.txt" }))
        .holds()
        .calls(COMMAND, json!({ "command": "echo one > one.txt" }))
        .done("Counted.");
    let issue = world.github.open_issue("Count to one").label("coding agent");

    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    world.kill_containers().await;
    world.model.release();
    processes::until_some(&nap).await;
    program.kill().await;
    processes::until(&nap, 0).await;
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"]);
    let told = world.model.requests()[2].last_user_message();
    assert!(told.contains("A new container has taken the place"), "{told}");
    assert!(!world.github.pulls()[0].is_draft(), "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_container_that_dies_again_and_again_fails_the_run() {
    let world = World::start().await;
    let naps: Vec<String> = (0..4).map(|_| mark()).collect();
    let mut script = world.model.plans(Plan::of(&["count"]).in_environment("python"));
    for nap in &naps {
        script = script.calls(COMMAND, json!({ "command": format!("sleep {nap}") }));
    }
    let issue = world.github.open_issue("Count to one").label("coding agent");

    let program = world.spawn(&["run"]);
    for nap in &naps {
        processes::until_some(nap).await;
        world.kill_containers().await;
    }
    let ended = program.ended().await;

    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(1), "github:acme/widgets#1: failed\n"),
        "{}",
        world.story()
    );
    assert_eq!(issue.labels(), ["coding agent failed"]);
    world.finish().await;
}

#[tokio::test]
async fn a_forge_that_is_away_at_the_delivery_costs_no_work() {
    let world = World::start().await;
    world
        .model
        .plans(Plan::of(&["count"]).in_environment("python"))
        .calls(COMMAND, json!({ "command": "echo one > one.txt" }))
        .done("Counted.")
        .holds();
    let issue = world.github.open_issue("Count to one").label("coding agent");

    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    // As often as one request is tried.
    world.github.fails_next("GET /repos/*/*/issues/*", 502, 4);
    world.model.release();
    let ended = program.ended().await;

    assert!(
        ended.stdout.starts_with("github:acme/widgets#1: put back until"),
        "{ended:?}\n{}",
        world.story()
    );
    assert_eq!(world.containers().await, [""; 0]);
    world.make_everything_due().await;
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let pulls = world.github.pulls();
    assert_eq!(pulls.len(), 1, "{}", world.story());
    assert_eq!(pulls[0].file("one.txt").as_deref(), Some("one\n"));
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}
