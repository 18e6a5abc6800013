//! Replies that take long to arrive, and what stands between.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::fake::gateway::Gateway;
use crate::fake::model::Plan;
use crate::world::World;
use crate::world::facts::facts;

#[tokio::test]
async fn people_see_that_a_long_reply_arrives() {
    let world = World::start().await;
    world.model.plans(Plan::of(&["greet"]));
    let script = world.model.done(&"Greeted, at great length. ".repeat(100)).halts();
    script.done("Greeted.");
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
    let script = world.model.done(&"Greeted, at great length. ".repeat(100)).halts();
    script.done("Greeted.");
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
async fn a_reply_that_only_repeats_itself_is_ended_and_asked_for_again() {
    let world = World::start().await;
    let line = "Now I run the tests once more, and then I read what they say.\n";
    world.model.plans(Plan::of(&["greet"]));
    // The rest would never come.
    world
        .model
        .says(&format!("I begin.\n{}", line.repeat(400)))
        .halts()
        .done("Greeted.")
        .done("Greeted.");
    let issue = world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.model.until_hung_up(1).await;
    let requests = world.model.requests();
    let told = requests[2].last_user_message();
    assert!(
        told.starts_with(
            "Your reply could not be used: The reply repeated the same text over and over, and was ended there; write it once."
        ),
        "{told}"
    );
    assert_eq!(requests[2].text().matches("Now I run the tests").count(), 1);
    let repeated = facts(&world, "reply_repeated");
    assert_eq!(repeated.len(), 1, "{}", world.story());
    assert_eq!(
        (&repeated[0]["piece"], &repeated[0]["characters"]),
        (&json!(line), &json!(62))
    );
    assert!(repeated[0]["times"].as_u64() >= Some(20), "{repeated:?}");
    let called = facts(&world, "model_called");
    assert!(called[1]["output"].as_u64() >= Some(300), "{called:?}");
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

/// The longest time between a stop and the end of the connection to the model. It takes
/// milliseconds; on a machine that does other things as well, everything takes longer.
const AT_ONCE: Duration = Duration::from_secs(3);

/// A model that says this halts for ever in the middle.
fn begins_and_never_ends(world: &World) {
    world.model.plans(Plan::of(&["greet"]));
    world.model.done(&"This is never heard. ".repeat(100)).halts();
}

#[tokio::test]
async fn a_stop_does_not_wait_for_the_rest_of_a_reply() {
    let world = World::start().await;
    begins_and_never_ends(&world);
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
    let hung_up = world.model.until_hung_up(1).await;
    let ended = program.ended().await;

    ended.prints("github:acme/widgets#1: interrupted\n", &world);
    let took = hung_up.duration_since(asked);
    assert!(took < AT_ONCE, "{took:?}");
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn a_stop_by_a_comment_ends_a_reply_as_soon_as_it_is_heard() {
    let world = World::start().await.attentive();
    begins_and_never_ends(&world);
    let issue = world.github.open_issue("Greet").label("coding agent");

    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    // The command is marked as seen right after the run was told of it.
    let (notes, heard) = tokio::sync::oneshot::channel();
    world
        .github
        .after("POST /repos/*/*/issues/comments/*/reactions", move || {
            let _ = notes.send(Instant::now());
        });
    issue.comment("alice", "/agent stop");
    let heard = heard.await.unwrap();
    let hung_up = world.model.until_hung_up(1).await;
    let ended = run.ended().await;

    let took = hung_up.duration_since(heard);
    assert!(took < AT_ONCE, "{took:?}");
    ended.prints("github:acme/widgets#1: stopped\n", &world);
    assert_eq!(issue.labels(), ["coding agent stopped"]);
    assert_eq!(world.model.requests().len(), 2);
    world.finish().await;
}

/// Puts a gateway with this patience before the model.
async fn behind_a_gateway(world: &mut World, patience: Duration) -> Gateway {
    let gateway = Gateway::before(world.model.socket(), patience).await;
    let base_url = format!("{}/v1", gateway.address());
    world.configure(|config| config["llm"]["openai"]["base_url"] = json!(base_url));
    gateway
}

#[tokio::test]
async fn a_gateway_that_gives_up_waiting_is_named_and_the_reply_is_paid_for_once() {
    let mut world = World::start().await;
    // One that gives up in less than ten seconds is asked again.
    let gateway = behind_a_gateway(&mut world, Duration::from_secs(11)).await;
    world.model.plans(Plan::of(&["greet"]));
    // Nothing comes while the prompt is read, whether the reply is streamed or not.
    world.model.done("Greeted.").holds();
    let issue = world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    assert!(
        ended.stdout.starts_with("github:acme/widgets#1: put back until "),
        "{ended:?}\n{}",
        world.story()
    );
    assert_eq!(issue.labels(), ["coding agent paused"]);
    let told = issue.comments_of(world.github.bot()).join("\n");
    assert!(
        told.contains(
            "a proxy in front of it answered 504 Gateway Timeout because the reply took longer than the proxy waits"
        ) && told.contains("let replies be streamed (llm.openai.stream)"),
        "{told}"
    );
    // The plan, and the reply that did not come: nothing was made a second time.
    assert_eq!((world.model.requests().len(), gateway.gave_up()), (2, 1));
    world.finish().await;
}

/// Does what the message about a gateway advises.
#[tokio::test]
async fn a_reply_that_takes_longer_than_a_gateway_waits_passes_it_as_a_stream() {
    let mut world = World::start().await;
    let gateway = behind_a_gateway(&mut world, Duration::from_secs(2)).await;
    world.model.plans(Plan::of(&["greet"]));
    // Longer than the gateway waits, and never silent for long.
    world.model.done("Greeted.").trickles().done("Greeted.");
    world.configure(|config| config["llm"]["openai"]["stream"] = json!(true));
    let issue = world.github.open_issue("Greet").label("coding agent");
    let begun = Instant::now();
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert!(begun.elapsed() > Duration::from_secs(4), "{:?}", begun.elapsed());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!((world.model.requests().len(), gateway.gave_up()), (3, 0));
    world.finish().await;
}

/// Has the model begin a reply and halt in the middle, where a gateway loses its patience.
fn begins_and_halts(world: &World) {
    world.model.done(&"Greeted, at great length. ".repeat(100)).halts();
}

#[tokio::test]
async fn a_gateway_that_cuts_every_reply_off_is_named_and_the_reply_is_paid_for_twice() {
    let mut world = World::start().await;
    let gateway = behind_a_gateway(&mut world, Duration::from_secs(2)).await;
    world.model.plans(Plan::of(&["greet"]));
    begins_and_halts(&world);
    begins_and_halts(&world);
    let issue = world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    assert!(
        ended.stdout.starts_with("github:acme/widgets#1: put back until "),
        "{ended:?}\n{}",
        world.story()
    );
    assert_eq!(issue.labels(), ["coding agent paused"]);
    let told = issue.comments_of(world.github.bot()).join("\n");
    assert!(
        told.contains(
            "such as a proxy or gateway with a limit on how long a whole response may take, seems to cut replies off"
        ) && told.contains("set in llm.openai an address that leads past it"),
        "{told}"
    );
    // The plan, and the reply twice.
    assert_eq!((world.model.requests().len(), gateway.gave_up()), (3, 2));

    // Later it is made and paid again.
    world.model.done("Greeted.").done("Greeted.");
    issue.comment("alice", "/agent resume");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!((world.model.requests().len(), gateway.gave_up()), (5, 2));
    world.finish().await;
}

#[tokio::test]
async fn a_reply_that_a_gateway_cuts_off_once_comes_at_the_second_attempt() {
    let mut world = World::start().await;
    let gateway = behind_a_gateway(&mut world, Duration::from_secs(2)).await;
    world.model.plans(Plan::of(&["greet"]));
    begins_and_halts(&world);
    world.model.done("Greeted.").done("Greeted.");
    let issue = world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!((world.model.requests().len(), gateway.gave_up()), (4, 1));
    world.finish().await;
}
