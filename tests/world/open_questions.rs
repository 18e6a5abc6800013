//! How the question about a plan or a result ends where it is not simply answered: two people
//! answer at once, nobody does, somebody wants something else, or the branch went on.

use serde_json::{Value, json};

use crate::fake::github::{Item, Permission};
use crate::world::World;
use crate::world::facts::{count, facts};
use crate::world::normalized::{last_on_github, told};
use crate::world::scripts::{greets, plan};

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
    world.runs_to(&issue, WAITS).await;
    (world, issue)
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
    world.runs_to(&issue, DONE).await;

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
        world.runs_to(&issue, STOPPED).await;
        assert!(world.github.pulls().is_empty(), "{first}\n{}", world.story());
        assert_eq!(world.github.default_repository().branches(), ["main"]);
        world.finish().await;
    }
}

#[tokio::test]
async fn a_result_that_is_paused_after_its_approval_is_not_delivered_with_the_end_of_a_pause_of_all_runs() {
    let (world, issue) = asked(json!({ "result": "always" })).await;
    world.all_runs("pause").await;
    issue.comment("alice", "/agent approve").comment("bob", "/agent pause");
    world.runs_to(&issue, WAITS).await;
    assert_eq!(count(&world, "approval_granted"), 1, "{}", world.story());

    world.all_runs("resume").await;
    // Who approves it again is told what it waits for.
    issue.comment("alice", "/agent approve");
    world.runs_to(&issue, WAITS).await;
    assert!(world.github.pulls().is_empty(), "{}", world.story());
    let answer = last_on_github(&world, &issue);
    assert!(answer.contains("Somebody has paused it since"), "{answer}");

    issue.comment("bob", "/agent resume");
    world.runs_to(&issue, DONE).await;
    assert_eq!(world.github.pulls().len(), 1);
    world.finish().await;
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
        world.runs_to(&issue, STOPPED).await;
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
async fn what_stands_below_an_approval_changes_nothing_of_the_result_and_is_answered() {
    let (world, issue) = asked(json!({ "result": "always" })).await;
    issue.comment("alice", "/agent approve\n\nSay goodbye, too.");
    world.runs_to(&issue, DONE).await;

    let pulls = world.github.pulls();
    assert_eq!(pulls[0].file("README.md").as_deref(), Some("Hello\n"));
    let answers = said(&world, &issue);
    assert!(answers.contains("It is delivered as it was shown."), "{answers}");
    world.finish().await;
}

#[tokio::test]
async fn an_approval_delivers_nothing_over_what_people_pushed_after_the_question() {
    let mut world = World::start().await;
    world.configure(|config| config["approval"] = json!({ "result": "always" }));
    world.model.allows_restarts();
    greets(world.model.plans(plan().verified_by("grep -q Hello README.md")));
    let pull = world
        .github
        .open_pull("Greet the reader", "theirs", &[("theirs.txt", "x\n")])
        .label("coding agent");
    world.runs_to(&pull, WAITS).await;

    let files = [("theirs.txt", "y\n")];
    let newest = world.github.default_repository().commit("theirs", "And this", &files);
    pull.comment("alice", "/agent approve");
    let ended = world.run().await;

    assert_ne!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_ne!(pull.labels(), DONE, "{}", world.story());
    let git = world.github.default_repository().git();
    assert_eq!(git.resolve("refs/heads/theirs"), Some(newest), "{}", world.story());
    let last = last_on_github(&world, &pull);
    assert!(last.contains("`theirs`"), "{last}");
    world.finish().await;
}
