//! Issues that only some may read of a GitLab project are not shown to all who can read the
//! project.

use serde_json::json;

use crate::fake::gitlab::{Access, Item};
use crate::fake::model::{Plan, Script};
use crate::world::World;
use crate::world::normalized::{last_on_gitlab, told};

const TITLE: &str = "Overflow in login";

/// Starts a world with a project that everybody can read.
async fn in_public() -> World {
    let world = World::on_gitlab().await;
    world.gitlab.default_project().public();
    world
}

fn confidential(world: &World) -> Item {
    let issue = world.gitlab.open_issue(TITLE).body("SECRETWORDS overflow the buffer.");
    issue.confidential().label("coding agent")
}

fn mends(world: &World) -> Script<'_> {
    world
        .model
        .plans(Plan::of(&["mend the SECRETWORDS"]).in_environment("python").verified_by("grep -q Hello README.md"))
        .calls(
            "workspace/execute_command",
            json!({"command": "echo Hello > README.md && git commit -qam 'Mend the SECRETWORDS' && echo Bye >> README.md"}),
        )
        .done("The SECRETWORDS are mended.")
}

#[tokio::test]
async fn a_confidential_issue_of_a_public_project_is_refused_on_the_issue() {
    let world = in_public().await;
    let issue = confidential(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert!(issue.labels().is_empty() && world.model.requests().is_empty());
    assert_eq!(world.gitlab.default_project().branches(), ["main"]);
    insta::assert_snapshot!(last_on_gitlab(&world, &issue), @"
    This issue is confidential, and more people can read the project than the issue. What I would make of it, a branch and a merge request, could be read by all of them, so I do not work on it and have taken the label `coding agent` off again. Make the issue or the project visible to the same people, or have the operator set `gitlab.confidential_issues: neutral_names`, and put the label on once more.

    <!-- coding-agent:GATE -->
    ");
    assert!(world.journal().iter().any(|entry| entry["fact"] == "ignored"));
    world.finish().await;
}

#[tokio::test]
async fn in_a_private_project_a_confidential_issue_is_one_like_others() {
    let world = World::on_gitlab().await;
    mends(&world);
    let issue = confidential(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(world.gitlab.merge_requests()[0].title(), TITLE);
    world.finish().await;
}

#[tokio::test]
async fn with_neutral_names_only_the_files_are_shown() {
    let mut world = in_public().await;
    world.configure(|config| config["gitlab"]["confidential_issues"] = json!("neutral_names"));
    mends(&world);
    let issue = confidential(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let merge = &world.gitlab.merge_requests()[0];
    assert_eq!(
        (merge.title(), merge.source()),
        ("Resolve issue 1".to_owned(), "coding-agent/1".to_owned())
    );
    insta::assert_snapshot!(told(&world, &merge.text()), @"
    What this is about can be read in its issue, by those who may see it.

    Closes #1

    <sub>run `RUN`</sub>
    ");
    let messages: Vec<String> = merge.commits().into_iter().map(|commit| commit.message).collect();
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].starts_with("Resolve issue 1\n"), "{messages:?}");
    assert_eq!(merge.file("README.md").as_deref(), Some("Hello\nBye\n"));
    world.finish().await;
}

#[tokio::test]
async fn with_neutral_names_unfinished_work_is_shown_without_words_too() {
    let mut world = in_public().await;
    world.configure(|config| config["gitlab"]["confidential_issues"] = json!("neutral_names"));
    world
        .model
        .plans(Plan::of(&["mend the SECRETWORDS"]).in_environment("python"))
        .calls(
            "workspace/execute_command",
            json!({"command": "echo Hello > README.md && git commit -qam 'Mend the SECRETWORDS'"}),
        )
        .calls("agent/ask_people", json!({"question": "Which SECRETWORDS?"}));
    confidential(&world);

    let ended = world.run().await;

    let project = world.gitlab.default_project();
    assert_eq!(
        project.branches(),
        ["coding-agent/1", "main"],
        "{ended:?}\n{}",
        world.story()
    );
    let shown = project.git().commit_named("refs/heads/coding-agent/1").unwrap();
    assert!(!shown.message.contains("SECRETWORDS"), "{shown:?}");
    world.finish().await;
}

#[tokio::test]
async fn an_issue_that_becomes_confidential_while_it_is_worked_on_is_not_published() {
    let world = in_public().await;
    mends(&world).holds();
    let issue = world.gitlab.open_issue(TITLE).label("coding agent");

    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    issue.confidential();
    world.model.release();
    let ended = run.ended().await;

    assert_eq!(ended.code, Some(2), "{ended:?}\n{}", world.story());
    assert_eq!(world.gitlab.default_project().branches(), ["main"]);
    assert!(world.gitlab.merge_requests().is_empty());
    insta::assert_snapshot!(last_on_gitlab(&world, &issue), @"
    ### ❌ This could not be done

    The issue became confidential while it was worked on, and more people can read the project than the issue, so nothing of the work was pushed; what was done so far is kept by the worker.

    To start a new run, set the label `coding agent` again.

    <sub>3 model turns · TOKENS · TIME</sub>

    <!-- coding-agent:RUN:final -->
    ");
    world.finish().await;
}

/// Has the program work on an item with an internal note; returns whether the model was told of it.
async fn is_told_of_internal_notes(world: World, item: Item) -> bool {
    world.gitlab.default_project().member("pia", Access::Developer);
    world
        .model
        .plans(Plan::of(&["greet the reader"]).in_environment("python"))
        .calls(
            "workspace/write_file",
            json!({"path": "README.md", "content": "Hello\n", "mode": "overwrite"}),
        )
        .done("Done.");
    item.internal_note("pia", "INTERNALWORDS of a customer")
        .label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let asked = world.model.requests();
    let is_told = asked.iter().any(|request| request.text().contains("INTERNALWORDS"));
    world.finish().await;
    is_told
}

#[tokio::test]
async fn internal_notes_of_a_public_project_are_not_read() {
    let world = in_public().await;
    let issue = world.gitlab.open_issue("Greet the reader");
    assert!(!is_told_of_internal_notes(world, issue).await);
}

#[tokio::test]
async fn internal_notes_of_a_private_project_are_read_where_no_guest_reads_the_item() {
    for (is_confidential, is_told) in [(false, false), (true, true)] {
        let world = World::on_gitlab().await;
        let issue = world.gitlab.open_issue("Greet the reader");
        if is_confidential {
            issue.confidential();
        }
        assert_eq!(is_told_of_internal_notes(world, issue).await, is_told);
    }
    let world = World::on_gitlab().await;
    let merge = world
        .gitlab
        .open_merge_request("Greet the reader", "greet", &[("greet.txt", "Hi\n")]);
    assert!(is_told_of_internal_notes(world, merge).await);
}
