//! People are asked where a review is not passed.

use serde_json::json;

use super::{Team, changes, good_plan, judged};
use crate::reading::{facts, told};

const WAITS: [&str; 1] = ["coding agent waiting"];

#[tokio::test]
async fn people_decide_on_a_result_that_did_not_pass() {
    let team = Team::start(json!({ "result": { "enabled": true, "max_rounds": 1, "on_unready": "ask" } })).await;
    team.planner.plans(good_plan());
    changes(&team, "echo Hello > README.md && echo rules > AGENTS.md", "Greeted.");
    team.reviewer.says(&judged(false, 4.0, "It greets nobody, @bob."));
    let issue = team.world.github.open_issue("Greet the reader").label("coding agent");

    let ended = team.world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", team.world.story());
    assert_eq!(issue.labels(), WAITS);
    assert_eq!(team.world.github.pulls().len(), 0);
    let question = issue.comments_of(team.world.github.bot()).pop().unwrap();
    let question = told(&team.world, &question);
    for words in [
        "- it did not pass its review: after 1 round its score is 4.0 where 8.0 is needed",
        "- `AGENTS.md` is changed",
        "Round 1: 4.0 of 10, not ready",
        "It greets nobody, @~bob.",
        "+Hello",
    ] {
        assert!(question.contains(words), "{words}: {question}");
    }
    issue.comment("alice", "/agent approve");
    team.world.run().await;

    assert_eq!(issue.labels(), ["coding agent done"], "{}", team.world.story());
    assert!(!team.world.github.pulls()[0].is_draft(), "{}", team.world.story());
    assert_eq!(facts(&team.world, "approval_granted").len(), 1);
    assert_eq!(team.questions().len(), 1);
    team.finish().await;
}

#[tokio::test]
async fn a_result_that_people_deny_ends_the_run() {
    let team = Team::start(json!({ "result": { "enabled": true, "max_rounds": 1, "on_unready": "ask" } })).await;
    team.planner.plans(good_plan());
    changes(&team, "echo Hello > README.md", "Greeted.");
    team.reviewer.says(&judged(false, 4.0, "No."));
    let issue = team.world.github.open_issue("Greet the reader").label("coding agent");
    team.world.run().await;
    assert_eq!(issue.labels(), WAITS);

    issue.comment("alice", "/agent deny The reviewer is right.");
    team.world.run().await;

    assert_eq!(issue.labels(), ["coding agent stopped"], "{}", team.world.story());
    assert_eq!(team.world.github.pulls().len(), 0);
    team.finish().await;
}
