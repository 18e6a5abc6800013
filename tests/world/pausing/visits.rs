//! A run that waits is visited again and again: what is said to it is noted, and acknowledged, once.

use serde_json::json;

use super::{COMMAND, HALF_OF_THE_WORK, paused, plan, world};
use crate::world::World;
use crate::world::facts::count;

/// Returns how often something was noted, acknowledged, and asked for.
fn noted(world: &World) -> [usize; 5] {
    let asked = |login: &str| {
        let route = format!("GET /repos/*/*/collaborators/{login}/permission");
        world.github.count(&route)
    };
    [
        count(world, "ignored"),
        count(world, "heard"),
        world.github.count("POST /repos/*/*/issues/comments/*/reactions"),
        asked("mallory"),
        asked("alice"),
    ]
}

#[tokio::test]
async fn what_is_said_to_a_paused_run_is_noted_once_and_read_when_it_goes_on() {
    let world = world().await;
    let issue = paused(&world).await;
    issue.comment("mallory", "Pink, please.");
    issue.comment("alice", "Mind the frame.");
    let before = noted(&world);
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    let once = noted(&world);
    assert_eq!(
        [once[0], once[1], once[2]],
        [before[0] + 1, before[1] + 1, before[2] + 1],
        "{}",
        world.story()
    );

    for _ in 0..2 {
        assert_eq!(world.run().await.stdout, "", "{}", world.story());
    }
    assert_eq!(noted(&world), once, "{}", world.story());
    // What is edited is another text.
    issue.last_comment().edit("Mind the frame and the door.");
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    assert_eq!(noted(&world)[1], once[1] + 1, "{}", world.story());

    world
        .model
        .calls(COMMAND, json!({ "command": HALF_OF_THE_WORK }))
        .done("It is dry.");
    issue.comment("alice", "/agent resume");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let told = world.model.requests().last().unwrap().text();
    assert_eq!(told.matches("Mind the frame and the door.").count(), 1, "{told}");
    assert!(!told.contains("Pink"), "{told}");
    world.finish().await;
}

#[tokio::test]
async fn an_answer_that_was_seen_during_a_pause_of_all_runs_counts_after_it() {
    let world = world().await;
    world
        .model
        .plans(plan())
        .calls("agent/ask_people", json!({ "question": "Red or blue?" }));
    let issue = world.github.open_issue("Paint it").label("coding agent");
    assert_eq!(
        world.run().await.stdout,
        "github:acme/widgets#1: waiting for an answer\n",
        "{}",
        world.story()
    );
    world.all_runs("pause").await;
    issue.comment("alice", "Blue, please.");
    for _ in 0..2 {
        assert_eq!(world.run().await.stdout, "", "{}", world.story());
    }
    assert_eq!(count(&world, "heard"), 1, "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent waiting"]);

    world.all_runs("resume").await;
    world
        .model
        .calls(COMMAND, json!({ "command": "echo blue > color.txt" }))
        .done("It is blue.");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let told = world.model.requests().last().unwrap().text();
    assert_eq!(told.matches("Blue, please.").count(), 1, "{told}");
    world.finish().await;
}
