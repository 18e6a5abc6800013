//! People change their mind while the work goes on.

use insta::assert_snapshot;
use serde_json::json;

use super::{greeting, greets, plan, told};
use crate::fake::github::Item;
use crate::fake::model::Script;
use crate::world::{Ended, World};

/// Lets people do something while the model thinks about its last reply. The program first looks at
/// the item when it delivers.
async fn while_working(world: &mut World, deed: impl FnOnce(&Item)) -> (Ended, Item) {
    world.configure(|config| config["steering"] = json!({ "interval_seconds": 3600 }));
    greets(world.model.plans(plan())).holds();
    let issue = greeting(world);
    let mut running = world.spawn(&["run"]);
    running.until(world, world.model.until_held(1)).await;
    deed(&issue);
    world.model.release();
    (running.ended().await, issue)
}

async fn nothing_was_delivered(world: World) {
    assert_eq!(world.github.default_repository().branches(), ["main"]);
    no_request_was_opened(world).await;
}

async fn no_request_was_opened(world: World) {
    assert!(world.github.pulls().is_empty());
    let status = world.command(&["status", "--json"]).await.stdout;
    assert!(status.contains("\"state\":\"stopped\""), "{status}");
    world.finish().await;
}

#[tokio::test]
async fn an_item_that_was_closed_is_not_worked_on() {
    let mut world = World::start().await;
    let (ended, issue) = while_working(&mut world, |issue| _ = issue.close()).await;
    assert_snapshot!(told(&ended, &issue), @"
    exit code: 0
    labels: coding agent stopped
    -----
    <details><summary>🛠️ Stopped: how it went</summary>

    Planned.

    - [ ] greet the reader

    <sub>Environment `python` · 3 model turns · <tokens> · <time> · run `<run>`</sub>

    </details>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ⏹️ Stopped

    The run was ended because this issue was closed.

    What of its work was not pushed by then is on no branch.

    To start a new run, reopen this and set the label `coding agent` again.

    <sub>3 model turns · <tokens> · <time></sub>

    <!-- coding-agent:<run>:final -->
    ");
    nothing_was_delivered(world).await;
}

#[tokio::test]
async fn an_item_that_was_deleted_is_left_in_peace() {
    let mut world = World::start().await;
    let (ended, _) = while_working(&mut world, |issue| _ = issue.delete()).await;
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "github:acme/widgets#1: stopped\n"),
        "{ended:?}"
    );
    nothing_was_delivered(world).await;
}

#[tokio::test]
async fn taking_the_processing_label_off_stops_the_run_and_keeps_its_work_on_a_branch() {
    let mut world = World::start().await;
    let (ended, issue) = while_working(&mut world, |issue| _ = issue.unlabel("coding agent processing")).await;
    assert_snapshot!(told(&ended, &issue), @"
    exit code: 0
    labels: coding agent stopped
    -----
    <details><summary>🛠️ Stopped: how it went</summary>

    Planned.

    - [ ] greet the reader

    <sub>Environment `python` · 3 model turns · <tokens> · <time> · run `<run>`</sub>

    </details>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ⏹️ Stopped

    The run was ended because the label `coding agent processing` was taken off.

    The work so far is on the branch `coding-agent/1-greet-the-reader`.

    To start a new run, set the label `coding agent` again.

    <sub>3 model turns · <tokens> · <time></sub>

    <!-- coding-agent:<run>:final -->
    ");
    let repository = world.github.default_repository();
    let saved = repository.file("coding-agent/1-greet-the-reader", "README.md");
    assert_eq!(saved.as_deref(), Some("Hello\n"));
    no_request_was_opened(world).await;
}

#[tokio::test]
async fn an_item_that_another_installation_finished_keeps_its_labels() {
    let mut world = World::start().await;
    let other = world.github.bot();
    let (ended, issue) = while_working(&mut world, |issue| {
        issue
            .label_by(other, "coding agent done")
            .unlabel("coding agent processing");
    })
    .await;
    assert_snapshot!(told(&ended, &issue), @"
    exit code: 0
    labels: coding agent done
    -----
    <details><summary>🛠️ Stopped: how it went</summary>

    Planned.

    - [ ] greet the reader

    <sub>Environment `python` · 3 model turns · <tokens> · <time> · run `<run>`</sub>

    </details>

    <!-- coding-agent:<run>:progress -->
    -----
    ### ⏹️ Stopped

    Another installation of this program, which looks for the same label, has ended its work on this. What this run did is not delivered, and the labels are left as they are. Where the forge takes no claims (`coding-agent doctor` tells), give each installation a label of its own (`labels.trigger`).

    <!-- coding-agent:<run>:final -->
    ");
    nothing_was_delivered(world).await;
}

/// Has another installation end its work with this label while the model thinks, and expects that
/// the run leaves it at that.
async fn leaves_the_label(world: World, label: &str) {
    let issue = greeting(&world);
    let mut running = world.spawn(&["run"]);
    running.until(&world, world.model.until_held(1)).await;
    let other = world.github.bot();
    issue.label_by(other, label).unlabel("coding agent processing");
    world.model.release();

    let ended = running.ended().await;

    assert_eq!(ended.stdout, "github:acme/widgets#1: stopped\n", "{}", world.story());
    assert_eq!(issue.labels(), [label], "{}", world.story());
    let said = issue.comments_of(other).pop().unwrap_or_default();
    assert!(said.contains("Another installation of this program"), "{said}");
    nothing_was_delivered(world).await;
}

/// Has the model read a file, and think for longer before it does.
fn reads(world: &World) -> Script<'_> {
    let read = json!({"path": "README.md"});
    world.model.plans(plan()).calls("workspace/read_file", read).holds()
}

#[tokio::test]
async fn what_fails_where_another_installation_finished_has_no_second_label() {
    let world = World::start().await;
    reads(&world).fails(401, 1);
    leaves_the_label(world, "coding agent done").await;
}

#[tokio::test]
async fn what_reaches_a_limit_where_another_installation_finished_has_no_second_label() {
    let mut world = World::start().await;
    world.configure(|config| config["budget"] = json!({"tokens": 20_000}));
    reads(&world).counts(30_000);
    leaves_the_label(world, "coding agent done").await;
}

#[tokio::test]
async fn what_has_to_wait_where_another_installation_finished_has_no_second_label() {
    let world = World::start().await;
    reads(&world).rate_limited(Some(7_200));
    leaves_the_label(world, "coding agent done").await;
}

#[tokio::test]
async fn nobody_is_asked_about_what_another_installation_finished() {
    let world = World::start().await;
    let question = json!({"question": "Whom?"});
    let script = world.model.plans(plan()).calls("agent/ask_people", question);
    script.holds();
    leaves_the_label(world, "coding agent done").await;
}

#[tokio::test]
async fn an_item_on_which_another_installation_failed_or_was_stopped_keeps_its_labels() {
    for label in ["coding agent failed", "coding agent stopped"] {
        let world = World::start().await;
        greets(world.model.plans(plan())).holds();
        leaves_the_label(world, label).await;
    }
}

/// The same on GitLab, where the other installation finishes while the model thinks about what it
/// replies then, or fails.
async fn finished_elsewhere_on_gitlab(world: World) {
    let issue = world.gitlab.open_issue("Greet the reader").label("coding agent");
    let mut running = world.spawn(&["run"]);
    running.until(&world, world.model.until_held(1)).await;
    let other = world.gitlab.bot();
    issue
        .label_by(other, "coding agent done")
        .unlabel("coding agent processing");
    world.model.release();

    let ended = running.ended().await;

    assert_eq!(ended.stdout, "gitlab:acme/widgets#1: stopped\n", "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    let said = issue.comments_of(other).pop().unwrap_or_default();
    assert!(said.contains("Another installation of this program"), "{said}");
    assert!(world.gitlab.merge_requests().is_empty(), "{}", world.story());
    assert_eq!(world.gitlab.default_project().branches(), ["main"]);
    world.finish().await;
}

#[tokio::test]
async fn an_issue_of_gitlab_that_another_installation_finished_keeps_its_labels() {
    let world = World::on_gitlab().await;
    greets(world.model.plans(plan())).holds();
    finished_elsewhere_on_gitlab(world).await;
}

#[tokio::test]
async fn what_fails_where_another_installation_finished_has_no_second_label_on_gitlab() {
    let world = World::on_gitlab().await;
    let read = json!({"path": "README.md"});
    let script = world.model.plans(plan()).calls("workspace/read_file", read).holds();
    script.fails(401, 1);
    finished_elsewhere_on_gitlab(world).await;
}

#[tokio::test]
async fn an_item_that_was_closed_before_the_run_began_is_not_planned() {
    let world = World::start().await;
    let issue = greeting(&world).label("coding agent failed");
    let mut producing = world.spawn(&["produce"]);
    let taken_up = ["coding agent failed", "coding agent processing"];
    issue.until(|issue| issue.labels() == taken_up).await;
    producing.until_it_prints("at work").await;
    producing.signal("TERM");
    assert_eq!(producing.ended().await.code, Some(0));
    issue.close();

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 0
    labels: coding agent stopped
    -----
    ### ⏹️ Stopped

    The run was ended because this issue was closed.

    To start a new run, reopen this and set the label `coding agent` again.

    <!-- coding-agent:<run>:final -->
    ");
    assert!(world.model.requests().is_empty());
    nothing_was_delivered(world).await;
}
