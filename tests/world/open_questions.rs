//! How the question about a plan or a result ends where it is not simply answered: two people
//! answer at once, nobody does, or what was approved is not what there is any more.

use serde_json::{Value, json};

use crate::fake::github::{Item, Permission};
use crate::reading::{count, facts, last_on_github, told};
use crate::world::World;
use crate::world::scripts::{executes, greets, plan};

const WAITS: [&str; 1] = ["coding agent waiting"];
const DONE: [&str; 1] = ["coding agent done"];
const STOPPED: [&str; 1] = ["coding agent stopped"];

/// Opens an issue in a world with this section `approval`, and runs until its question is asked.
async fn asked(approval: Value) -> (World, Item) {
    let mut world = World::start().await;
    world.configure(|config| config["approval"] = approval.clone());
    world.model.allows_restarts();
    world.github.default_repository().member("bob", Permission::Write);
    let script = world.model.plans(plan().verified_by("grep -q Hello README.md"));
    if approval["plan"] != true {
        greets(script);
    }
    let issue = world.github.open_issue("Greet the reader").label("coding agent");
    runs_to(&world, &issue, WAITS).await;
    (world, issue)
}

async fn runs_to(world: &World, issue: &Item, labels: [&str; 1]) {
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), labels, "{}", world.story());
}

fn said(world: &World, issue: &Item) -> String {
    told(world, &issue.comments_of(world.github.bot()).join("\n"))
}

#[tokio::test]
async fn of_two_approvers_of_a_result_the_first_counts() {
    let (world, issue) = asked(json!({ "result": "always" })).await;
    issue
        .comment("alice", "/agent approve")
        .comment("bob", "/agent approve");
    runs_to(&world, &issue, DONE).await;

    let granted = facts(&world, "approval_granted");
    assert_eq!(granted.len(), 1, "{}", world.story());
    assert_eq!(granted[0]["approver"], "@alice");
    assert_eq!(world.github.pulls().len(), 1);
    let answers = said(&world, &issue);
    assert!(answers.contains("This is decided already."), "{answers}");
    world.finish().await;
}

#[tokio::test]
async fn a_denial_beside_an_approval_of_a_result_delivers_nothing() {
    for (first, second) in [("/agent approve", "/agent deny"), ("/agent deny", "/agent approve")] {
        let (world, issue) = asked(json!({ "result": "always" })).await;
        issue.comment("alice", first).comment("bob", second);
        runs_to(&world, &issue, STOPPED).await;
        assert!(world.github.pulls().is_empty(), "{first}\n{}", world.story());
        assert_eq!(world.github.default_repository().branches(), ["main"]);
        world.finish().await;
    }
}

#[tokio::test]
async fn a_question_that_nobody_answers_lapses() {
    for (approval, what) in [
        (json!({ "plan": true }), "plan"),
        (json!({ "result": "always" }), "result"),
    ] {
        let (mut world, issue) = asked(approval).await;
        world.configure(|config| config["steering"] = json!({ "expire_days": 3 }));
        world
            .rewrite_records(|record| record["waiting"]["paused"]["at"] = json!("2026-01-01T00:00:00Z"))
            .await;
        runs_to(&world, &issue, STOPPED).await;
        let last = last_on_github(&world, &issue);
        assert!(last.contains("nobody let it go on for 3 days"), "{what}: {last}");
        assert_eq!(count(&world, "approval_granted"), 0);
        assert!(world.github.pulls().is_empty(), "{}", world.story());

        // A word that comes after it approves nothing.
        issue.comment("alice", "/agent approve");
        let ended = world.run().await;
        assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
        assert_eq!(issue.labels(), STOPPED, "{}", world.story());
        assert_eq!(count(&world, "approval_granted"), 0);
        world.finish().await;
    }
}

#[tokio::test]
async fn an_approval_is_void_once_the_result_is_another_one() {
    let (world, issue) = asked(json!({ "result": "always" })).await;
    let first = facts(&world, "approval_requested")[0]["digest"]
        .as_str()
        .unwrap()
        .to_owned();
    executes(world.model.script(), "echo Goodbye >> README.md").done("And goodbye.");
    issue.comment("alice", "/agent approve\n\nSay goodbye, too.");
    runs_to(&world, &issue, WAITS).await;

    assert!(world.github.pulls().is_empty(), "{}", world.story());
    let question = last_on_github(&world, &issue);
    assert!(
        question.contains("what was approved before is not what would be pushed now"),
        "{question}"
    );
    assert!(question.contains("+Goodbye"), "{question}");

    issue.comment("alice", &format!("/agent approve {first}"));
    runs_to(&world, &issue, WAITS).await;
    let answers = said(&world, &issue);
    assert!(answers.contains("that digest is not the one"), "{answers}");

    issue.comment("alice", "/agent approve");
    runs_to(&world, &issue, DONE).await;
    assert_eq!(
        world.github.pulls()[0].file("README.md").as_deref(),
        Some("Hello\nGoodbye\n")
    );
    world.finish().await;
}
