//! The cost of reviews is counted, whatever comes of them.

use serde_json::{Value, json};

use super::{PLANS, Team, good_plan, judged};
use crate::world::facts::{count, facts};

/// Returns the turns of the run at which its reviewer was paid.
fn paid(team: &Team) -> Vec<Value> {
    let mut called = facts(&team.world, "model_called");
    called.retain(|fact| fact["role"] == "reviewer");
    called.iter().map(|fact| fact["turn"].clone()).collect()
}

#[tokio::test]
async fn calls_of_a_review_that_has_to_wait_are_told_and_a_refusal_is_no_turn() {
    let team = Team::start(PLANS()).await;
    team.planner.plans(good_plan());
    team.reviewer
        .says("I like this plan very much.")
        .rate_limited(Some(7_200));
    let issue = team.world.github.open_issue("Greet the reader").label("coding agent");
    let ended = team.world.run().await;
    assert!(
        ended.stdout.starts_with("github:acme/widgets#1: put back until "),
        "{ended:?}\n{}",
        team.world.story()
    );
    // The first turn was the planner's.
    assert_eq!(paid(&team), [2], "{}", team.world.story());

    team.reviewer.declines("I do not judge plans.");
    issue.label("coding agent");
    let ended = team.world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", team.world.story());
    assert_eq!(issue.labels(), ["coding agent failed"]);
    assert_eq!(count(&team.world, "review_missing"), 1);
    assert_eq!(paid(&team), [2, 2], "{}", team.world.story());
    team.finish().await;
}

#[tokio::test]
async fn calls_of_a_review_that_a_person_stops_are_counted() {
    let mut team = Team::start(PLANS()).await;
    team.world
        .configure(|config| config["steering"] = json!({ "interval_seconds": 1 }));
    team.planner.plans(good_plan());
    let script = team.reviewer.says("I like this plan very much.");
    script.says(&judged(true, 9.0, "Good.")).holds();
    let issue = team.world.github.open_issue("Greet the reader").label("coding agent");

    let program = team.world.spawn(&["run"]);
    team.reviewer.until_held(1).await;
    issue.comment("alice", "/agent stop");
    let ended = program.ended().await;

    assert_eq!(
        ended.stdout,
        "github:acme/widgets#1: stopped\n",
        "{ended:?}\n{}",
        team.world.story()
    );
    assert_eq!(paid(&team), [2], "{}", team.world.story());
    team.finish().await;
}
