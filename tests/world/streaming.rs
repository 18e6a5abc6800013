//! Replies that take long to arrive.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::fake::model::Plan;
use crate::world::World;

#[tokio::test]
async fn people_see_that_a_long_reply_arrives() {
    let world = World::start().await;
    world.model.plans(Plan::of(&["greet"]));
    world.model.done(&"Greeted, at great length. ".repeat(100)).halts();
    let issue = world.github.open_issue("Greet").label("coding agent");

    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    issue
        .until(|issue| {
            let comments = issue.comments();
            comments.iter().any(|comment| {
                comment.body.contains("**Now:** the model is replying; about ") && comment.body.contains("have arrived")
            })
        })
        .await;
    world.model.release();

    let ended = run.ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn a_stop_does_not_wait_for_the_rest_of_a_reply() {
    let world = World::start().await;
    world.model.plans(Plan::of(&["greet"]));
    world.model.done(&"This is never heard. ".repeat(100)).halts();
    world.model.calls(
        "workspace/write_file",
        json!({"path": "hello.txt", "content": "Hello\n", "mode": "create"}),
    );
    world.model.done("Greeted.");
    let issue = world.github.open_issue("Greet").label("coding agent");

    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    let asked = Instant::now();
    program.signal("TERM");
    let ended = program.ended().await;

    assert_eq!(
        ended.stdout,
        "github:acme/widgets#1: interrupted\n",
        "{ended:?}\n{}",
        world.story()
    );
    assert!(asked.elapsed() < Duration::from_secs(30), "{:?}", asked.elapsed());
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}
