//! A run that waits for the outside: it holds nobody up, tells of it in its one comment, and does
//! not wait for ever.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::fake::model::{Plan, Request};
use crate::world::World;
use crate::world::normalized::told;
use crate::world::people::says;

fn nothing() -> Plan {
    Plan::of(&["look at it"])
}

/// Returns the one run that `status` shows.
async fn waiting(world: &World) -> Value {
    let status = world.command(&["status", "--json"]).await;
    let mut status: Value = serde_json::from_str(&status.stdout).unwrap();
    status["runs"][0].take()
}

#[tokio::test]
async fn the_worker_is_free_for_other_tasks() {
    let mut world = World::start().await;
    world.configure(|config| config["consumers"] = json!(1));
    world.model.for_task("Wait").plans(nothing()).rate_limited(Some(7_200));
    let script = world.model.for_task("Go on").plans(nothing());
    script.done("Nothing to do.").done("Nothing to do.");
    let first = world.github.open_issue("Wait").label("coding agent");
    let second = world.github.open_issue("Go on").label("coding agent");

    let ended = world.run().await;

    let endings: Vec<_> = ended.stdout.lines().collect();
    assert!(
        matches!(endings[..], [parked, "github:acme/widgets#2: done"] if parked.starts_with("github:acme/widgets#1: put back until")),
        "{ended:?}\n{}",
        world.story()
    );
    assert_eq!(first.labels(), ["coding agent paused"]);
    assert_eq!(second.labels(), ["coding agent done"]);
    assert_eq!(world.containers().await, [""; 0]);
    world.finish().await;
}

#[tokio::test]
async fn a_run_that_is_put_back_is_stopped_and_resumed_by_comments() {
    let world = World::start().await;
    world.model.for_task("Stop").plans(nothing()).rate_limited(Some(7_200));
    let script = world
        .model
        .for_task("Resume")
        .plans(nothing())
        .rate_limited(Some(7_200));
    let stopped = world.github.open_issue("Stop").label("coding agent");
    let resumed = world.github.open_issue("Resume").label("coding agent");
    world.run().await;
    assert_eq!(
        [stopped.labels(), resumed.labels()],
        [["coding agent paused"], ["coding agent paused"]]
    );

    // Nothing is due, and nobody has said anything.
    let ended = world.run().await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{}", world.story());

    script.done("Nothing to do.").done("Nothing to do.");
    stopped.comment("alice", "/agent stop");
    resumed
        .comment("mallory", "/agent stop")
        .comment("alice", "/agent resume");
    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(stopped.labels(), ["coding agent stopped"]);
    assert_eq!(resumed.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn what_stays_away_is_tried_ever_more_rarely_and_given_up_in_the_end() {
    let mut world = World::start().await;
    world.configure(|config| config["steering"] = json!({ "give_up_hours": 3 }));
    world.sets("DOCKER_HOST", "unix:///no/such/docker.sock");
    world.model.plans(nothing());
    let issue = world.github.open_issue("Look at it").label("coding agent");

    let mut minutes = Vec::new();
    for _ in 0..3 {
        let ended = world.run().await;
        assert!(
            ended.stdout.starts_with("github:acme/widgets#1: put back until"),
            "{}",
            world.story()
        );
        let until: DateTime<Utc> = serde_json::from_value(waiting(&world).await["not_before"].take()).unwrap();
        // Asked a moment later: 119 s are two minutes.
        minutes.push(((until - Utc::now()).num_seconds() + 30) / 60);
        assert_eq!(issue.labels(), ["coding agent paused"]);
        assert_eq!(issue.comments_of(world.github.bot()).len(), 1, "{}", issue.timeline());
        world.make_everything_due().await;
    }
    assert_eq!(minutes, [2, 4, 8]);

    let long_ago = Utc::now() - chrono::TimeDelta::hours(3);
    world
        .rewrite_records(|record| record["waiting"]["parked_since"] = json!(long_ago))
        .await;
    assert_eq!(
        world.run().await.stdout,
        "github:acme/widgets#1: failed\n",
        "{}",
        world.story()
    );
    assert_eq!(issue.labels(), ["coding agent failed"]);
    let comments: Vec<_> = issue.comments_of(world.github.bot());
    insta::assert_snapshot!(told(&world, &comments.join("\n=====\n")), @"
    <details><summary>🛠️ Failed: how it went</summary>

    Planned.

    - [ ] look at it

    > ⚠️ The plan selected no environment; the default `python` is used.

    <sub>Environment `python` · 1 model turn · TOKENS · TIME · run `RUN`</sub>

    </details>

    <!-- coding-agent:RUN:progress -->
    =====
    ### ❌ This could not be done

    The Docker engine at `unix:///no/such/docker.sock` cannot be used: Socket not found: /no/such/docker.sock; start it, or set DOCKER_HOST; it was tried again and again for 3 hours (steering.give_up_hours).

    > ⚠️ The plan selected no environment; the default `python` is used.

    To start a new run, set the label `coding agent` again.

    <sub>1 model turn · TOKENS · TIME</sub>

    <!-- coding-agent:RUN:final -->
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_round_on_an_own_pull_request_that_has_to_wait_says_so() {
    let mut world = World::start().await;
    world.configure(|config| config["follow_up"] = json!({ "debounce_seconds": 0 }));
    let paint = |color: &str| json!({ "command": format!("echo {color} > color.txt") });
    world
        .model
        .plans(Plan::of(&["paint it"]))
        .calls("workspace/execute_command", paint("red"))
        .done("It is red.");
    world.github.open_issue("Paint it").label("coding agent");
    assert_eq!(
        world.run().await.stdout,
        "github:acme/widgets#1: done\n",
        "{}",
        world.story()
    );
    let pull = world.github.pulls().remove(0);
    pull.comment("alice", "Blue, please.");
    world.model.plans(Plan::of(&["paint it"])).rate_limited(Some(7_200));
    assert!(
        world
            .run()
            .await
            .stdout
            .starts_with("github:acme/widgets#2: put back until")
    );
    let comments = pull.comments_of(world.github.bot());
    assert!(
        matches!(&comments[..], [waits] if waits.starts_with("### ⏳ Waiting until")),
        "{comments:?}"
    );

    world
        .model
        .calls("workspace/execute_command", paint("blue"))
        .done("It is blue.");
    world.make_everything_due().await;
    assert_eq!(
        world.run().await.stdout,
        "github:acme/widgets#2: done\n",
        "{}",
        world.story()
    );
    let comments = pull.comments_of(world.github.bot());
    assert!(
        matches!(&comments[..], [progress, _] if progress.starts_with("<details><summary>🛠️ Done")),
        "{comments:?}"
    );
    assert_eq!(pull.labels(), ["coding agent done"]);
    world.finish().await;
}

/// Expects words once in what a conversation begins with.
fn begins_with(request: &Request, words: &str) {
    let begin = request.first_user_message();
    assert_eq!(begin.matches(words).count(), 1, "{begin}");
}

#[tokio::test]
async fn what_is_said_before_the_models_first_reply_outlasts_the_wait_for_it() {
    let world = World::start().await.attentive();
    world.model.allows_restarts();
    world.model.plans(nothing()).holds().rate_limited(Some(7_200));
    let issue = world.github.open_issue("Look at it").label("coding agent");
    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    says(&world, &issue, "alice", "Look at the color.").await;
    world.model.release();
    let ended = run.ended().await;
    assert!(
        ended.stdout.starts_with("github:acme/widgets#1: put back until"),
        "{ended:?}\n{}",
        world.story()
    );
    assert!(world.model.requests()[1].text().contains("Look at the color."));

    world.model.done("Nothing to do.").done("Nothing to do.");
    world.make_everything_due().await;
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    begins_with(&world.model.requests()[2], "Look at the color.");
    world.finish().await;
}

#[tokio::test]
async fn what_is_said_before_the_models_first_reply_outlasts_a_pause() {
    let world = World::start().await.attentive();
    world.model.allows_restarts();
    world
        .model
        .plans(nothing())
        .holds()
        .done("This is never heard.")
        .holds();
    let issue = world.github.open_issue("Look at it").label("coding agent");
    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    says(&world, &issue, "alice", "Look at the color.").await;
    world.model.release();
    world.model.until_held(2).await;
    issue.comment("alice", "/agent pause");
    let ended = run.ended().await;
    ended.prints("github:acme/widgets#1: paused\n", &world);
    world.model.release();

    world.model.done("Nothing to do.").done("Nothing to do.");
    issue.comment("alice", "/agent resume");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    begins_with(&world.model.requests()[2], "Look at the color.");
    world.finish().await;
}
