//! People are asked where a review is not passed.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::{PLANS, Team, changes, good_plan, judged};
use crate::fake::github::Item;
use crate::world::facts::{count, facts, until_facts};
use crate::world::normalized::told;
use crate::world::people::says;
use crate::world::{Program, World};

const WAITS: [&str; 1] = ["coding agent waiting"];

/// Puts another git before the real one: it waits while there is a file `hold` in the world's
/// folder, and says so with a file `reached`.
fn has_a_git_that_waits(world: &mut World) {
    let search = std::env::var_os("PATH").unwrap();
    let mut places = std::env::split_paths(&search).map(|place| place.join("git"));
    let real = places.find(|file| file.is_file()).unwrap();
    let [hold, reached] = ["hold", "reached"].map(|name| world.folder().join(name));
    let script = format!(
        "#!/bin/sh\nwhile test -e '{}'; do touch '{}'; sleep 0.05; done\nexec '{}' \"$@\"\n",
        hold.display(),
        reached.display(),
        real.display()
    );
    let git = world.keeps("programs/git", &script);
    std::fs::set_permissions(&git, Permissions::from_mode(0o755)).unwrap();
    let programs = world.folder().join("programs");
    let search = format!("{}:{}", programs.display(), search.display());
    world.sets("PATH", &search);
}

/// Starts the program with this section `review`, and stops it between the judgement that does not
/// let something pass and the question about that.
async fn about_to_ask(review: Value) -> (Team, Item, Program) {
    let is_of_result = review.get("result").is_some();
    let mut team = Team::start(review).await;
    team.world
        .configure(|config| config["steering"] = json!({ "interval_seconds": 1 }));
    has_a_git_that_waits(&mut team.world);
    team.planner.plans(good_plan());
    if is_of_result {
        team.works();
    }
    team.reviewer.says(&judged(false, 4.0, "It greets nobody.")).holds();
    let issue = team.world.github.open_issue("Greet the reader").label("coding agent");
    let program = team.world.spawn(&["run"]);
    team.reviewer.until_held(1).await;
    team.world.keeps("hold", "");
    team.reviewer.release();
    until_facts(&team.world, "review_given", 1).await;
    let reached = team.world.folder().join("reached");
    team.world.until("a git that waits", || reached.exists()).await;
    (team, issue, program)
}

/// Has the program go on, and expects the question on the item.
async fn asks(team: &Team, issue: &Item, program: Program) {
    std::fs::remove_file(team.world.folder().join("hold")).unwrap();
    let ended = program.ended().await;
    assert!(
        ended
            .stdout
            .starts_with("github:acme/widgets#1: waiting for approval of its "),
        "{ended:?}\n{}",
        team.world.story()
    );
    assert_eq!(issue.labels(), WAITS);
    let said = issue.comments_of(team.world.github.bot()).join("\n");
    assert!(said.contains("Round 1: 4.0 of 10, not ready"), "{}", team.world.story());
}

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

#[tokio::test]
async fn people_decide_on_a_plan_that_did_not_pass() {
    let team = Team::start(json!({ "plan": { "enabled": true, "max_rounds": 1 } })).await;
    team.planner.plans(good_plan());
    team.reviewer.says(&judged(false, 4.0, "It greets nobody, @bob."));
    let issue = team.world.github.open_issue("Greet the reader").label("coding agent");

    let ended = team.world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", team.world.story());
    assert_eq!(issue.labels(), WAITS);
    assert_eq!(count(&team.world, "environment_started"), 0);
    let question = issue.comments_of(team.world.github.bot()).pop().unwrap();
    let question = told(&team.world, &question);
    for words in [
        "A review did not let it pass: after 1 round its score is 4.0 where 8.0 is needed",
        "Round 1: 4.0 of 10, not ready",
        "It greets nobody, @~bob.",
    ] {
        assert!(question.contains(words), "{words}: {question}");
    }
    issue.comment("alice", "/agent approve");
    team.works();
    team.world.run().await;

    assert_eq!(issue.labels(), ["coding agent done"], "{}", team.world.story());
    assert_eq!(facts(&team.world, "approval_granted").len(), 1);
    assert_eq!(team.questions().len(), 1);
    team.finish().await;
}

#[tokio::test]
async fn a_plan_that_people_deny_is_made_anew_and_has_all_rounds_again() {
    let team = Team::start(json!({ "plan": { "enabled": true, "max_rounds": 1 } })).await;
    team.planner.plans(good_plan());
    team.reviewer.says(&judged(false, 4.0, "No."));
    let issue = team.world.github.open_issue("Greet the reader").label("coding agent");
    team.world.run().await;
    assert_eq!(issue.labels(), WAITS);

    issue.comment("alice", "/agent deny Read the README first.");
    team.planner.plans(good_plan().with("comment", json!("I read first.")));
    team.reviewer.says(&judged(true, 8.0, "Better."));
    team.works();
    team.world.run().await;

    assert_eq!(issue.labels(), ["coding agent done"], "{}", team.world.story());
    let again = team.planner.requests()[1].first_user_message();
    assert!(again.contains("Read the README first."), "{again}");
    assert_eq!(team.questions().len(), 2);
    team.finish().await;
}

#[tokio::test]
async fn people_are_asked_about_a_plan_after_its_review_where_every_plan_waits() {
    let mut team = Team::start(PLANS()).await;
    team.world
        .configure(|config| config["approval"] = json!({ "plan": true }));
    team.planner.plans(good_plan());
    team.reviewer.says(&judged(true, 9.0, "Good."));
    let issue = team.world.github.open_issue("Greet the reader").label("coding agent");
    team.world.run().await;
    assert_eq!(issue.labels(), WAITS, "{}", team.world.story());
    let question = issue.comments_of(team.world.github.bot()).pop().unwrap();
    assert!(question.contains("Round 1: 9.0 of 10"), "{question}");

    issue.comment("alice", "/agent approve");
    team.works();
    team.world.run().await;

    assert_eq!(issue.labels(), ["coding agent done"], "{}", team.world.story());
    assert_eq!(team.questions().len(), 1);
    team.finish().await;
}

#[tokio::test]
async fn nobody_is_asked_about_a_local_task() {
    let team = Team::start(json!({ "plan": { "enabled": true, "max_rounds": 1 } })).await;
    team.planner.plans(good_plan());
    team.reviewer.says(&judged(false, 4.0, "No."));
    let folder = team.world.folder().join("project");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("README.md"), "widgets\n").unwrap();

    let ended = team
        .world
        .command(&["run", "--task", "Greet the reader", "--root", folder.to_str().unwrap()])
        .await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", team.world.story());
    assert!(
        ended.stderr.contains("nobody can be asked while a local task runs"),
        "{ended:?}"
    );
    assert!(ended.stderr.contains("Review of the plan: 4.0"), "{ended:?}");
    team.finish().await;
}

#[tokio::test]
async fn the_end_of_a_pause_of_all_runs_delivers_no_result_that_did_not_pass() {
    let review = json!({ "result": { "enabled": true, "max_rounds": 1, "on_unready": "ask" } });
    let (team, issue, program) = about_to_ask(review).await;
    assert_eq!(team.world.command(&["pause", "--all"]).await.code, Some(0));
    // The store is looked at as often as the thread.
    issue.until_comments_are_read().await;
    issue.until_comments_are_read().await;
    asks(&team, &issue, program).await;

    assert_eq!(team.world.command(&["resume", "--all"]).await.code, Some(0));
    assert_eq!(team.world.run().await.stdout, "", "{}", team.world.story());
    assert_eq!(issue.labels(), WAITS);
    assert_eq!(team.world.github.pulls().len(), 0);

    issue.comment("alice", "/agent approve");
    team.world.run().await;
    assert_eq!(issue.labels(), ["coding agent done"], "{}", team.world.story());
    assert_eq!(facts(&team.world, "approval_granted").len(), 1);
    team.finish().await;
}

#[tokio::test]
async fn a_plan_that_did_not_pass_is_approved_after_a_persons_pause() {
    let (team, issue, program) = about_to_ask(json!({ "plan": { "enabled": true, "max_rounds": 1 } })).await;
    says(&team.world, &issue, "alice", "/agent pause").await;
    asks(&team, &issue, program).await;
    let answer = issue.comments_of(team.world.github.bot()).pop().unwrap();
    assert!(answer.starts_with("It waits already."), "{answer}");

    assert_eq!(team.world.run().await.stdout, "", "{}", team.world.story());
    assert_eq!(count(&team.world, "environment_started"), 0);
    issue.comment("alice", "/agent approve");
    team.works();
    team.world.run().await;
    assert_eq!(issue.labels(), ["coding agent done"], "{}", team.world.story());
    assert_eq!(facts(&team.world, "approval_granted").len(), 1);
    team.finish().await;
}
