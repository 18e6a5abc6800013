//! The one progress comment: how often it is edited, what it holds however much there is to say,
//! and whose it is.

use std::time::Instant;

use chrono::TimeDelta;
use serde_json::json;

use crate::fake::github::Item;
use crate::fake::model::Plan;
use crate::world::World;
use crate::world::scripts::COMMAND;

#[tokio::test]
async fn it_is_edited_at_most_once_in_five_seconds_and_shows_the_newest() {
    let world = World::start().await;
    world
        .model
        .plans(Plan::of(&["count"]).in_environment("python"))
        .calls(COMMAND, json!({ "command": "echo 1" }))
        .calls(COMMAND, json!({ "command": "echo 2" }))
        .calls(COMMAND, json!({ "command": "echo 3" }))
        .because("Counting to three")
        .done("Counted.")
        .holds();
    let issue = world.github.open_issue("Count").label("coding agent");

    let begun = Instant::now();
    let most_edits = || usize::try_from(begun.elapsed().as_secs() / 5).unwrap();
    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    issue
        .until(|issue| {
            issue
                .comments()
                .iter()
                .any(|comment| comment.body.contains("**Now:** Counting to three"))
        })
        .await;
    let comment = issue.comments().remove(0);
    let edits = comment.earlier.len();
    assert!((1..=most_edits()).contains(&edits), "{:?}", comment.earlier);
    // GitHub counts whole seconds.
    assert!(
        comment.updated - comment.created >= TimeDelta::seconds(4),
        "{comment:?}"
    );
    world.model.release();
    assert_eq!(
        run.ended().await.stdout,
        "github:acme/widgets#1: done\n",
        "{}",
        world.story()
    );
    // The last one does not wait.
    let edits = issue.comments().remove(0).earlier.len();
    assert!((2..=most_edits() + 1).contains(&edits), "{edits}");
    world.finish().await;
}

/// The comment is edited because of facts, and shows what is in the store: whoever wrote them.
#[tokio::test]
async fn it_shows_what_another_process_has_done() {
    let world = World::start().await;
    let script = world.model.plans(Plan::of(&["count"]).in_environment("python"));
    script.done("Counted.").holds().done("Counted.");
    let issue = world.github.open_issue("Count").label("coding agent");
    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    // What the run itself had to show is shown.
    issue.until(|issue| progress(issue).contains("### 🛠️ Working")).await;

    world
        .rewrite_records(|record| record["thread"]["notes"] = json!(["Somebody was here."]))
        .await;
    world
        .add_fact(json!({ "fact": "stage_changed", "from": "preparing", "to": "working" }))
        .await;
    issue
        .until(|issue| progress(issue).contains("Somebody was here."))
        .await;

    world.model.release();
    assert_eq!(run.ended().await.code, Some(0), "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_run_that_was_killed_goes_on_in_the_same_comment() {
    let world = World::start().await;
    world.model.allows_restarts();
    let script = world.model.plans(Plan::of(&["count"]).in_environment("python"));
    let script = script.calls(COMMAND, json!({ "command": "echo 1" }));
    script.done("Counted.").holds().done("Counted.").holds();
    let issue = world.github.open_issue("Count").label("coding agent");
    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    run.kill().await;
    world.model.release();
    let before = issue.comments().remove(0);

    let run = world.spawn(&["run"]);
    world.model.until_held(2).await;
    issue
        .until(|issue| issue.comments()[0].earlier.len() > before.earlier.len())
        .await;
    assert!(progress(&issue).contains("### 🛠️ Working"), "{}", progress(&issue));
    world.model.release();

    assert_eq!(run.ended().await.code, Some(0), "{}", world.story());
    let comments = issue.comments();
    assert_eq!(comments[0].id, before.id);
    assert!(
        matches!(&comments[1..], [end] if end.body.contains("Nothing was changed")),
        "{}",
        issue.timeline()
    );
    world.finish().await;
}

/// Returns the first comment's text.
fn progress(issue: &Item) -> String {
    issue
        .comments()
        .first()
        .map_or_else(String::new, |comment| comment.body.clone())
}

#[tokio::test]
async fn however_long_the_plan_is_it_fits_and_a_deleted_one_does_no_harm() {
    let mut world = World::start().await;
    world.configure(|config| config["planning"] = json!({ "max_subtasks": 400 }));
    let long = "paint every single wall of it twice ".repeat(8);
    let subtasks = vec![long.as_str(); 300];
    world
        .model
        .plans(Plan::of(&subtasks))
        .calls(COMMAND, json!({ "command": "echo red > color.txt" }))
        .holds()
        .done("It is painted.");
    let issue = world.github.open_issue("Paint it").label("coding agent");

    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    let comment = issue.last_comment();
    let text = issue.comments_of(world.github.bot()).remove(0);
    assert!(text.encode_utf16().count() <= 65_536, "{}", text.len());
    assert!(text.contains("characters are left out here"), "{text}");
    comment.delete();
    world.model.release();

    assert_eq!(
        run.ended().await.stdout,
        "github:acme/widgets#1: done\n",
        "{}",
        world.story()
    );
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(issue.comments_of(world.github.bot()).len(), 1, "{}", issue.timeline());
    world.finish().await;
}
