//! Reviewers whose server is not there, or is asked and gives no answer.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use serde_json::json;

use super::{Team, changes, good_plan, judged};
use crate::fake::gateway::Gateway;
use crate::fake::github::Item;
use crate::world::Ended;
use crate::world::facts::count;

/// A team whose results are reviewed, and are drafts where they do not pass.
async fn drafting() -> Team {
    Team::start(json!({ "result": { "enabled": true, "on_unready": "draft" } })).await
}

/// Opens an issue whose run greets.
fn greets(team: &Team) -> Item {
    team.planner.plans(good_plan());
    changes(team, "echo Hello > README.md", "Greeted.");
    team.world.github.open_issue("Greet the reader").label("coding agent")
}

/// Expects a draft that says why there is no review.
fn expect_a_draft(team: &Team, issue: &Item, ended: &Ended, why: &str) {
    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", team.world.story());
    assert_eq!(issue.labels(), ["coding agent done"], "{}", team.world.story());
    let pulls = team.world.github.pulls();
    assert_eq!(pulls.len(), 1, "{}", team.world.story());
    assert!(pulls[0].is_draft(), "{}", team.world.story());
    assert_eq!(count(&team.world, "review_missing"), 1);
    let last = issue.comments_of(team.world.github.bot()).pop().unwrap();
    assert!(
        last.contains("there is no review of it: ") && last.contains(why),
        "{last}"
    );
}

#[tokio::test]
async fn a_reviewer_that_is_silent_for_too_long_keeps_no_verified_result_waiting() {
    let mut team = drafting().await;
    team.world
        .configure(|config| config["llm"]["timeout_seconds"] = json!(5));
    for _ in 0..3 {
        team.reviewer.says(&judged(true, 9.0, "Good.")).holds();
    }
    let issue = greets(&team);

    let ended = team.world.run().await;

    expect_a_draft(&team, &issue, &ended, "no reply within 5 s");
    assert_eq!(team.questions().len(), 3);
    team.finish().await;
}

#[tokio::test]
async fn a_reviewer_that_is_not_there_is_waited_for_and_then_done_without() {
    let mut team = drafting().await;
    let address = |team: &mut Team, address: &str| {
        let address = json!(format!("{address}/v1"));
        team.world
            .configure(|config| config["llm"]["models"]["critic"]["base_url"] = address);
    };
    address(&mut team, "http://127.0.0.1:9");
    let issue = greets(&team);
    let ended = team.world.run().await;
    assert!(
        ended.stdout.starts_with("github:acme/widgets#1: put back until "),
        "{ended:?}\n{}",
        team.world.story()
    );
    assert_eq!(count(&team.world, "review_missing"), 0);

    let long_ago = Utc::now() - TimeDelta::hours(24);
    team.world
        .rewrite_records(|record| record["waiting"]["parked_since"] = json!(long_ago))
        .await;
    team.world.make_everything_due().await;
    // An answer that cannot be read, before the server goes away again, is no end of the wait.
    let gateway = Gateway::before(team.reviewer.socket(), Duration::from_mins(1)).await;
    address(&mut team, gateway.address());
    team.reviewer.says("I like this result very much.").holds();
    let program = team.world.spawn(&["run"]);
    team.reviewer.until_held(1).await;
    drop(gateway);
    team.reviewer.release();
    let ended = program.ended().await;

    expect_a_draft(&team, &issue, &ended, "it was tried again and again for 24 hours");
    team.finish().await;
}
