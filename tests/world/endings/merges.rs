//! People have the result, and go on with it before the program has come to the end of its
//! delivery: they merge it, or build on it.

use serde_json::json;

use super::{greeting, greets, plan};
use crate::fake::fault::{Disturbance, Fault};
use crate::fake::github::Item;
use crate::world::normalized::{last_on_github, last_on_gitlab};
use crate::world::{Program, World};

const BRANCH: &str = "coding-agent/1-greet-the-reader";
/// GitLab wants to be left alone for an hour.
const LIMITED: Fault = Fault::RefusesWith(429, r#"{"message":"Retry later"}"#, ("retry-after", "3600"));

/// Has the program work until the model is about to be done.
async fn nearly_done(world: &World) -> Program {
    let mut running = world.spawn(&["run"]);
    running.until(world, world.model.until_held(1)).await;
    running
}

/// Lets the model be done, and expects that the run is put back.
async fn is_put_back(world: &World, running: Program) {
    world.model.release();
    let ended = running.ended().await;
    assert!(ended.stdout.contains("put back until"), "{ended:?}\n{}", world.story());
}

/// Has the program open a pull request when the forge takes no final comment.
async fn delivers_without_a_word(world: &World) -> Item {
    greets(world.model.plans(plan())).holds();
    let issue = greeting(world);
    let running = nearly_done(world).await;
    world.github.takes_no_comment();
    is_put_back(world, running).await;
    issue
}

/// Merges the pull request, and deletes its branch.
fn is_merged(world: &World) {
    world.github.pulls()[0].merges();
    let branch = format!("refs/heads/{BRANCH}");
    world.github.default_repository().git().delete_reference(&branch);
}

/// Has the program go on, and expects that it says what it has done, and does no more.
async fn is_done(world: &World, issue: &Item, branches: &[&str]) {
    world.make_everything_due().await;
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", world);
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    let said = last_on_github(world, issue);
    assert!(
        said.starts_with("### ☑️ Done, unchecked: GITHUB/acme/widgets/pull/2\n"),
        "{said}"
    );
    assert_eq!(world.github.pulls().len(), 1, "{}", world.story());
    assert_eq!(world.github.default_repository().branches(), branches);
}

#[tokio::test]
async fn a_run_whose_request_was_merged_and_closed_its_issue_is_done() {
    let world = World::start().await;
    let issue = delivers_without_a_word(&world).await;
    is_merged(&world);
    issue.close();
    is_done(&world, &issue, &["main"]).await;
    world.finish().await;
}

#[tokio::test]
async fn the_branch_of_a_request_that_was_merged_is_not_made_again() {
    let world = World::start().await;
    let issue = delivers_without_a_word(&world).await;
    is_merged(&world);
    is_done(&world, &issue, &["main"]).await;
    assert!(issue.is_open());
    world.finish().await;
}

#[tokio::test]
async fn the_branch_of_a_merged_request_is_not_made_again_by_a_run_that_fails() {
    let world = World::start().await;
    let issue = delivers_without_a_word(&world).await;
    is_merged(&world);
    world.github.fails_next("POST /repos/*/*/issues/1/comments", 403, 1);
    world.make_everything_due().await;

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: failed\n", &world);
    assert_eq!(issue.labels(), ["coding agent failed"], "{}", world.story());
    assert_eq!(world.github.default_repository().branches(), ["main"]);
    let said = last_on_github(&world, &issue);
    assert!(said.contains("The result is in GITHUB/acme/widgets/pull/2\n"), "{said}");
    world.finish().await;
}

#[tokio::test]
async fn commits_that_people_added_to_a_result_are_no_trouble() {
    let world = World::start().await;
    let issue = delivers_without_a_word(&world).await;
    let repository = world.github.default_repository();
    let theirs = repository.commit(BRANCH, "Greet louder", &[("README.md", "HELLO\n")]);
    is_done(&world, &issue, &[BRANCH, "main"]).await;
    assert_eq!(repository.git().resolve(&format!("refs/heads/{BRANCH}")), Some(theirs));
    world.finish().await;
}

#[tokio::test]
async fn a_run_whose_merge_request_was_merged_and_closed_its_issue_is_done() {
    let world = World::on_gitlab().await;
    greets(world.model.plans(plan())).holds();
    let issue = world.gitlab.open_issue("Greet the reader").label("coding agent");
    let running = nearly_done(&world).await;
    world
        .gitlab
        .disturb(Disturbance::of("POST /projects/*/issues/*/notes", LIMITED));
    is_put_back(&world, running).await;
    let project = world.gitlab.default_project();
    world.gitlab.merge_requests()[0].merges();
    project.git().delete_reference(&format!("refs/heads/{BRANCH}"));
    issue.close();

    world.make_everything_due().await;
    let ended = world.run().await;

    ended.prints("gitlab:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    let said = last_on_gitlab(&world, &issue);
    assert!(
        said.starts_with("### ☑️ Done, unchecked: GITLAB/acme/widgets/-/merge_requests/1\n"),
        "{said}"
    );
    assert_eq!(world.gitlab.merge_requests().len(), 1, "{}", world.story());
    assert_eq!(project.branches(), ["main"]);
    world.finish().await;
}

#[tokio::test]
async fn a_request_that_was_merged_meanwhile_gets_no_labels() {
    let mut world = World::start().await;
    world.configure(|config| config["change_requests"] = json!({ "labels": ["from a bot"] }));
    greets(world.model.plans(plan())).holds();
    let issue = greeting(&world);
    let running = nearly_done(&world).await;
    world.github.limits("POST /repos/*/*/issues/2/labels");
    is_put_back(&world, running).await;
    is_merged(&world);
    issue.close();
    is_done(&world, &issue, &["main"]).await;
    assert_eq!(world.github.pulls()[0].labels(), [""; 0], "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_run_whose_labels_were_taken_off_when_its_request_was_there_is_done() {
    let world = World::start().await;
    let issue = delivers_without_a_word(&world).await;
    for label in issue.labels() {
        issue.unlabel(&label);
    }
    is_done(&world, &issue, &[BRANCH, "main"]).await;
    world.finish().await;
}

/// Has people do something with the issue while its request is being furnished, and expects that
/// the run is done all the same.
async fn is_done_though(deed: impl Fn(&World, &Item)) {
    let mut world = World::start().await.attentive();
    world.configure(|config| config["change_requests"] = json!({ "labels": ["from a bot"] }));
    greets(world.model.plans(plan()));
    let issue = greeting(&world).assign(&[world.github.bot()]);
    world
        .github
        .disturb(Disturbance::of("POST /repos/*/*/issues/2/labels", Fault::Hangs));
    let mut running = world.spawn(&["run"]);
    running.until(&world, world.github.until_one_hangs()).await;
    // The label and the assignment are seen before they go.
    running.until(&world, issue.until_comments_are_read()).await;
    deed(&world, &issue);
    running.until(&world, issue.until_comments_are_read()).await;
    world.github.cuts_off();

    let ended = running.ended().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn an_issue_that_is_closed_by_a_merge_during_the_delivery_does_not_end_it() {
    is_done_though(|world, issue| {
        world.github.pulls()[0].merges();
        issue.close();
    })
    .await;
}

#[tokio::test]
async fn a_label_that_is_taken_off_during_the_delivery_does_not_end_it() {
    is_done_though(|_, issue| _ = issue.unlabel("coding agent processing")).await;
}

#[tokio::test]
async fn an_unassignment_during_the_delivery_does_not_end_it() {
    is_done_though(|world, issue| _ = issue.unassign(world.github.bot())).await;
}

#[tokio::test]
async fn a_run_on_a_request_that_was_merged_with_its_result_is_done() {
    let world = World::start().await;
    greets(world.model.plans(plan())).holds();
    let pull = world
        .github
        .open_pull("Greet the reader", "greeting", &[("greet.py", "print('hi')\n")])
        .label("coding agent");
    let running = nearly_done(&world).await;
    world.github.takes_no_comment();
    is_put_back(&world, running).await;
    assert_eq!(pull.file("README.md").as_deref(), Some("Hello\n"), "{}", world.story());
    let repository = world.github.default_repository();
    pull.merges();
    repository.git().delete_reference("refs/heads/greeting");

    world.make_everything_due().await;
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(pull.labels(), ["coding agent done"], "{}", world.story());
    let said = last_on_github(&world, &pull);
    assert!(
        said.starts_with("### ☑️ Done, unchecked: pushed to `greeting`\n"),
        "{said}"
    );
    assert_eq!(repository.branches(), ["main"]);
    world.finish().await;
}
