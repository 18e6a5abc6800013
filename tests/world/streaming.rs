//! Replies that take long to arrive.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

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
async fn the_terminal_of_a_local_task_shows_that_a_long_reply_arrives() {
    let world = World::start().await;
    world.model.plans(Plan::of(&["greet"]));
    world.model.done(&"Greeted, at great length. ".repeat(100)).halts();
    let folder = world.folder().join("project");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("README.md"), "A program.\n").unwrap();

    let config = world.writes_its_configuration();
    let mut command = world.program();
    command
        .arg("--config")
        .arg(config)
        .args(["run", "--task", "Greet the reader", "--dry-run", "--root"])
        .arg(&folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut told = Vec::new();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains("the model is replying; about ") && line.ends_with(" tokens have arrived") {
            // Told while the rest of the reply is still to come.
            world.model.release();
        }
        told.push(line);
    }

    let status = child.wait().await.unwrap();
    assert_eq!(status.code(), Some(0), "{told:?}\n{}", world.story());
    assert!(
        told.iter().any(|line| line.contains("the model is replying")),
        "{told:?}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_reply_that_takes_longer_than_the_bound_is_given_up_and_the_run_waits() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["llm"]["timeout_seconds"] = json!(2);
        config["llm"]["reply_seconds"] = json!(3);
    });
    world.model.plans(Plan::of(&["greet"]));
    world.model.done(&"Greeted, at great length. ".repeat(400)).trickles();
    let issue = world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    assert!(ended.stdout.contains("put back until"), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent paused"]);
    let told = issue.comments_of(world.github.bot()).join("\n");
    assert!(told.contains("a reply took longer than 3 s"), "{told}");
    assert_eq!(world.model.requests().len(), 2);
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
