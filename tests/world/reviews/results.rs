//! The result is judged with the task and the outcome of the checks.

use serde_json::{Value, json};

use super::{Team, changes, good_plan, judged, uncounted};
use crate::world::facts::{count, facts};
use crate::world::normalized::told;

fn results(on_unready: &str) -> Value {
    json!({ "result": { "enabled": true, "on_unready": on_unready } })
}

#[tokio::test]
async fn the_worker_gets_the_review_and_works_on() {
    let team = Team::start(results("draft")).await;
    team.planner.plans(good_plan());
    changes(&team, "echo Hello > README.md", "Greeted.");
    changes(&team, "echo 'Hello, reader' > README.md", "Greeted the reader.");
    let missing = json!({
        "ready_for_implementation": false, "score": 4, "rationale": "Nobody is greeted.",
        "blockers": [{"claim": "It greets nobody", "evidence": ["README.md:1"]}],
    });
    team.reviewer
        .says(&missing.to_string())
        .says(&judged(true, 9.0, "Fine."));
    let issue = team.world.github.open_issue("Greet the reader").label("coding agent");

    let ended = team.world.run().await;

    let story = || team.world.story();
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", story());
    let pulls = team.world.github.pulls();
    assert_eq!(pulls[0].file("README.md").unwrap(), "Hello, reader\n");
    assert!(!pulls[0].is_draft(), "{}", story());
    let questions = team.questions();
    for words in [
        "Greet the reader",
        "`grep -q Hello README.md` passed",
        "diff --git a/README.md b/README.md",
        "+Hello\n",
    ] {
        assert!(questions[0].contains(words), "{words}: {}", questions[0]);
    }
    assert!(!questions[0].contains("\nindex "), "{}", questions[0]);
    assert!(questions[1].contains("+Hello, reader\n"), "{}", questions[1]);
    let worker = team.world.model.requests();
    let words = worker[2].last_user_message();
    assert!(words.contains("Your result was reviewed, and did not pass"), "{words}");
    assert!(words.contains("- It greets nobody (README.md:1)"), "{words}");
    let given: Vec<Value> = facts(&team.world, "review_given")
        .iter()
        .map(|fact| fact["passed"].clone())
        .collect();
    assert_eq!(given, [false, true]);
    let comments = issue.comments_of(team.world.github.bot());
    let last = told(&team.world, &uncounted(comments.last().unwrap()));
    insta::assert_snapshot!(last, @"
    ### ✅ Done: GITHUB/acme/widgets/pull/2

    Greeted the reader.

    **How it was verified**

    - ✅ `grep -q Hello README.md` passed

    **Review of the result**

    - 🔁 Round 1: 4.0 of 10, not ready, 8.0 is needed, 1 blocker
    - ✅ Round 2: 9.0 of 10

    <details><summary>What the reviewer said of the result</summary>

    **Round 1: 4.0 of 10, not ready, 8.0 is needed, 1 blocker**

    Nobody is greeted.

    - Blocker: It greets nobody (README.md:1)

    **Round 2: 9.0 of 10**

    Fine.

    </details>

    <sub>7 model turns · TOKENS</sub>

    <!-- coding-agent:RUN:final -->
    ");
    let body = told(&team.world, &pulls[0].text());
    assert!(body.contains("Round 2: 9.0 of 10"), "{body}");
    team.finish().await;
}

#[tokio::test]
async fn a_result_that_is_not_ready_is_a_draft_that_says_so() {
    let team = Team::start(results("draft")).await;
    team.planner.plans(good_plan());
    changes(&team, "echo Hello > README.md", "Greeted.");
    changes(&team, "echo 'Hello!' > README.md", "Greeted again.");
    let blocked = json!({
        "ready_for_implementation": false, "score": 5, "conclusion": "Still not.",
        "blockers": [{"claim": "Nobody is greeted", "evidence": ["README.md:1", "README.md:90"]}],
    });
    team.reviewer
        .says(&judged(false, 4.0, "No."))
        .says(&blocked.to_string());
    let issue = team.world.github.open_issue("Greet the reader").label("coding agent");

    let ended = team.world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", team.world.story());
    assert!(team.world.github.pulls()[0].is_draft(), "{}", team.world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let last = told(&team.world, issue.comments_of(team.world.github.bot()).last().unwrap());
    assert!(
        last.starts_with("### ⚠️ Done, but it did not pass its review: "),
        "{last}"
    );
    assert!(
        last.contains("after 2 rounds its score is 5.0 where 8.0 is needed"),
        "{last}"
    );
    // What blocks is shown where it stands, at the commit that was pushed.
    let pull = &team.world.github.pulls()[0];
    let branches = team.world.github.default_repository().git().branches();
    let (_, head) = branches.iter().find(|(name, _)| name != "main").unwrap();
    for text in [issue.comments_of(team.world.github.bot()).concat(), pull.text()] {
        assert!(text.contains(&format!("/blob/{head}/README.md#L1")), "{text}");
        assert!(!text.contains("#L90"), "{text}");
    }
    team.finish().await;
}

#[tokio::test]
async fn a_result_that_is_not_ready_fails_where_the_operator_says_so_and_its_work_is_kept() {
    let mut review = results("fail");
    review["result"]["max_rounds"] = json!(1);
    let team = Team::start(review).await;
    team.planner.plans(good_plan());
    changes(&team, "echo Hello > README.md", "Greeted.");
    team.reviewer.says(&judged(false, 4.0, "No."));
    let issue = team.world.github.open_issue("Greet the reader").label("coding agent");

    let ended = team.world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", team.world.story());
    assert_eq!(issue.labels(), ["coding agent failed"]);
    assert_eq!(team.world.github.pulls().len(), 0);
    let last = told(&team.world, issue.comments_of(team.world.github.bot()).last().unwrap());
    assert!(
        last.contains("The result did not pass its review: after 1 round"),
        "{last}"
    );
    assert!(
        last.contains("The work so far is on the branch `coding-agent/1-greet-the-reader`"),
        "{last}"
    );
    team.finish().await;
}

#[tokio::test]
async fn what_people_say_during_a_review_changes_the_result_and_begins_the_rounds_anew() {
    let mut review = results("draft");
    review["result"]["max_rounds"] = json!(1);
    let mut team = Team::start(review).await;
    team.world
        .configure(|config| config["steering"] = json!({ "interval_seconds": 1 }));
    team.planner.plans(good_plan());
    changes(&team, "echo Hello > README.md", "Greeted.");
    changes(&team, "echo 'Hello, all' > README.md", "Greeted all.");
    team.reviewer.says(&judged(true, 9.0, "Good.")).holds();
    team.reviewer.says(&judged(true, 8.0, "Good, too."));
    let issue = team.world.github.open_issue("Greet the reader").label("coding agent");

    let program = team.world.spawn(&["run"]);
    team.reviewer.until_held(1).await;
    issue.comment("alice", "Greet all of them.");
    team.reviewer.release();
    let ended = program.ended().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", team.world.story());
    let pulls = team.world.github.pulls();
    assert_eq!(pulls[0].file("README.md").unwrap(), "Hello, all\n");
    assert!(!pulls[0].is_draft(), "{}", team.world.story());
    assert_eq!(count(&team.world, "review_given"), 2);
    team.finish().await;
}
