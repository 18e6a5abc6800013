//! A run that asks people something waits for their answer, but not for ever.

use serde_json::json;

use super::{COMMAND, HALF_OF_THE_WORK, last_on_github, plan, world};
use crate::fake::github::Item;
use crate::world::people::says;
use crate::world::{Program, World};

const PUSH: &str = "POST /acme/widgets.git/git-receive-pack";
const ASKED: &str = "github:acme/widgets#1: waiting for an answer\n";

/// Starts the program on an issue about which the model asks people something, and stops it where
/// the work is pushed before the question is put.
async fn about_to_ask(world: &World) -> (Item, Program) {
    world
        .model
        .plans(plan())
        .calls(COMMAND, json!({ "command": HALF_OF_THE_WORK }))
        .calls("agent/ask_people", json!({ "question": "Red or blue?" }));
    let issue = world.github.open_issue("Paint it").label("coding agent");
    // The first one claims the item.
    world.github.hangs(PUSH, 1, false);
    let program = world.spawn(&["run"]);
    world.github.until_one_hangs().await;
    (issue, program)
}

/// Has the program go on, and expects the question on the item.
async fn asks(world: &World, issue: &Item, program: Program) {
    world.github.cuts_off();
    let ended = program.ended().await;
    ended.prints(ASKED, world);
    assert_eq!(issue.labels(), ["coding agent waiting"]);
    let said = issue.comments_of(world.github.bot()).join("\n");
    assert!(said.contains("Red or blue?"), "{}", world.story());
}

/// Answers the question, and expects the answer to be worked on.
async fn is_answered(world: &World, issue: &Item) {
    world
        .model
        .calls(COMMAND, json!({ "command": "echo blue > color.txt" }))
        .done("It is blue.");
    issue.comment("alice", "Blue, please.");
    let ended = world.run().await;
    ended.prints("github:acme/widgets#1: done\n", world);
    let told = world.model.requests()[3].text();
    assert!(told.contains("Blue, please."), "{told}");
}

#[tokio::test]
async fn a_question_waits_for_an_answer_and_the_answer_reaches_the_model() {
    let world = world().await;
    world
        .model
        .plans(plan())
        .calls(COMMAND, json!({ "command": HALF_OF_THE_WORK }))
        .calls("agent/ask_people", json!({ "question": "Red or blue?" }));
    let issue = world.github.open_issue("Paint it").label("coding agent");

    let ended = world.run().await;

    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "github:acme/widgets#1: waiting for an answer\n"),
        "{}",
        world.story()
    );
    assert_eq!(issue.labels(), ["coding agent waiting"]);
    insta::assert_snapshot!(last_on_github(&world, &issue), @"
    ### ❓ A question

    Red or blue?

    The work goes on when somebody who may write to the repository answers below; `/agent resume` resumes it without an answer, `/agent stop` ends it.

    The work so far is on the branch `coding-agent/1-paint-it`.

    <sub>3 model turns · TOKENS · TIME</sub>

    <!-- coding-agent:RUN:set-aside-1 -->
    ");
    issue.comment("mallory", "Pink.");
    assert_eq!(world.run().await.stdout, "");

    world
        .model
        .calls(COMMAND, json!({ "command": "echo blue > color.txt" }))
        .done("It is blue.");
    issue.comment("alice", "Blue, please.");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let requests = world.model.requests();
    let told = requests[3].text();
    assert!(told.contains("Blue, please.") && !told.contains("Pink."), "{told}");
    assert_eq!(world.github.pulls()[0].file("color.txt").as_deref(), Some("blue\n"));
    world.finish().await;
}

#[tokio::test]
async fn a_model_that_asks_people_something_beside_done_is_not_done() {
    for native in [false, true] {
        let mut world = world().await;
        world.configure(|config| config["llm"]["function_calling"] = json!(native));
        world
            .model
            .plans(plan())
            .calls(COMMAND, json!({ "command": HALF_OF_THE_WORK }))
            .calls("agent/tell_program", json!({ "ask_people": "Red or blue?" }))
            .and_done();
        let issue = world.github.open_issue("Paint it").label("coding agent");

        let ended = world.run().await;

        assert_eq!(ended.stdout, ASKED, "native: {native}, {ended:?}\n{}", world.story());
        assert!(last_on_github(&world, &issue).contains("Red or blue?"));
        is_answered(&world, &issue).await;
        world.finish().await;
    }
}

#[tokio::test]
async fn a_run_that_nobody_lets_go_on_is_closed() {
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

    world
        .rewrite_records(|record| record["waiting"]["paused"]["at"] = json!("2026-01-01T00:00:00Z"))
        .await;
    assert_eq!(
        world.run().await.stdout,
        "github:acme/widgets#1: stopped\n",
        "{}",
        world.story()
    );

    assert_eq!(issue.labels(), ["coding agent stopped"]);
    insta::assert_snapshot!(last_on_github(&world, &issue), @"
    ### ⏹️ Stopped

    The run was ended because nobody let it go on for 30 days.

    Nothing of its work was pushed.

    To start a new run, set the label `coding agent` again.

    <sub>2 model turns · TOKENS · TIME</sub>

    <!-- coding-agent:RUN:final -->
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_pause_of_all_runs_that_meets_a_question_leaves_it_open() {
    let world = world().await;
    let (issue, program) = about_to_ask(&world).await;
    world.all_runs("pause").await;
    // The store is looked at as often as the thread.
    issue.until_comments_are_read().await;
    issue.until_comments_are_read().await;

    asks(&world, &issue, program).await;

    world.all_runs("resume").await;
    assert_eq!(
        world.run().await.stdout,
        "",
        "nobody has answered yet\n{}",
        world.story()
    );
    assert_eq!(issue.labels(), ["coding agent waiting"]);
    is_answered(&world, &issue).await;
    world.finish().await;
}

#[tokio::test]
async fn of_what_is_said_to_a_question_during_a_pause_of_all_runs_the_last_counts_after_it() {
    let world = world().await;
    world
        .model
        .plans(plan())
        .calls(COMMAND, json!({ "command": HALF_OF_THE_WORK }))
        .calls("agent/ask_people", json!({ "question": "Red or blue?" }));
    let issue = world.github.open_issue("Paint it").label("coding agent");
    assert_eq!(world.run().await.stdout, ASKED, "{}", world.story());

    world.all_runs("pause").await;
    issue.comment("alice", "Blue, please.");
    issue.comment("alice", "/agent pause");
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    world.all_runs("resume").await;
    assert_eq!(
        world.run().await.stdout,
        "",
        "it is paused since the answer\n{}",
        world.story()
    );
    assert_eq!(issue.labels(), ["coding agent waiting"]);

    issue.comment("alice", "/agent resume");
    // The operator pauses it before a visit has read that.
    let paused = world.command(&["pause", "github:acme/widgets#1"]).await;
    assert_eq!(paused.stdout, "github:acme/widgets#1: it waits\n", "{}", world.story());

    world.all_runs("pause").await;
    issue.comment("alice", "/agent resume");
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    let answer = last_on_github(&world, &issue);
    assert!(answer.starts_with("All work is paused by the operator"), "{answer}");
    world.all_runs("resume").await;
    world
        .model
        .calls(COMMAND, json!({ "command": "echo blue > color.txt" }))
        .done("It is blue.");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let told = world.model.requests()[3].text();
    assert_eq!(told.matches("Blue, please.").count(), 1, "{told}");
    world.finish().await;
}

#[tokio::test]
async fn a_persons_pause_that_meets_a_question_is_answered_and_leaves_it_open() {
    let world = world().await;
    let (issue, program) = about_to_ask(&world).await;
    says(&world, &issue, "alice", "Mind the frame.").await;
    says(&world, &issue, "alice", "/agent pause").await;

    asks(&world, &issue, program).await;

    let answer = last_on_github(&world, &issue);
    assert!(answer.starts_with("It waits already."), "{answer}");
    // What she said before the pause answers nothing.
    assert_eq!(world.run().await.stdout, "", "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent waiting"]);
    is_answered(&world, &issue).await;
    world.finish().await;
}
