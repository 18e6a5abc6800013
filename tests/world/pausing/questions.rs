//! A run that asks people something waits for their answer, but not for ever.

use serde_json::json;

use super::{COMMAND, HALF_OF_THE_WORK, last_on_github, plan, world};

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

    assert_eq!(
        ended.stdout,
        "github:acme/widgets#1: done\n",
        "{ended:?}\n{}",
        world.story()
    );
    let requests = world.model.requests();
    let told = requests[3].text();
    assert!(told.contains("Blue, please.") && !told.contains("Pink."), "{told}");
    assert_eq!(world.github.pulls()[0].file("color.txt").as_deref(), Some("blue\n"));
    world.finish().await;
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
    assert_eq!(world.run().await.stdout, "", "{}", world.story());

    assert_eq!(issue.labels(), ["coding agent stopped"]);
    insta::assert_snapshot!(last_on_github(&world, &issue), @"
    ### ⏹️ Stopped

    The run was ended because nobody let it go on for 30 days. To start a new one, set the label `coding agent` again.

    <!-- coding-agent:RUN:final -->
    ");
    world.finish().await;
}
