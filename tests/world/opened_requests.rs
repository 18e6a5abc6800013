//! The labels and people of the configuration that a pull/merge request gets when it is opened, and
//! the project's own template.

use serde_json::json;

use crate::fake::github::Permission;
use crate::fake::gitlab::Access;
use crate::fake::model::Plan;
use crate::world::World;
use crate::world::normalized::{last_on_github, last_on_gitlab, told};

const TEMPLATE: &str = "<!-- Thank you! -->\n## What does this change?\n\n## How was it tested?\n<!-- commands -->\n\n\
    ## Checklist\n- [ ] I read the guide\n\ncc @acme/owners, closes #9 <img src=x>\n";

/// Returns a world whose configuration gives pull/merge requests labels and people.
fn furnished(mut world: World) -> World {
    world.configure(|config| {
        config["change_requests"] = json!({
            "labels": ["from a bot"],
            "assignees": ["alice", "nobody"],
            "reviewers": ["bob", "nobody"],
        });
    });
    world
}

fn greets(world: &World) {
    world
        .model
        .plans(Plan::of(&["greet"]).in_environment("python").verified_by("true"))
        .calls(
            "workspace/execute_command",
            json!({"command": "echo Hello > hello.txt"}),
        )
        .done("Greeted.");
}

#[tokio::test]
async fn a_pull_request_gets_the_labels_and_people_of_the_configuration() {
    let mut world = furnished(World::start().await);
    world.configure(|config| {
        config["change_requests"]["reviewers"] = json!(["bob", "acme/painters", "nobody"]);
    });
    let repository = world.github.default_repository();
    repository.member("bob", Permission::Write).team("painters");
    greets(&world);
    let issue = world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let pull = world.github.pulls().remove(0);
    assert_eq!(pull.labels(), ["from a bot"], "{}", world.story());
    assert_eq!(pull.assignees(), ["alice"], "{}", world.story());
    assert_eq!(pull.reviewers(), ["bob", "acme/painters"], "{}", world.story());
    let said = last_on_github(&world, &issue);
    for list in ["assignees", "reviewers"] {
        assert!(said.contains(&format!("{list} names: nobody;")), "{said}");
    }
    world.finish().await;
}

#[tokio::test]
async fn a_merge_request_gets_the_labels_and_people_of_the_configuration() {
    let world = furnished(World::on_gitlab().await);
    world.gitlab.default_project().member("bob", Access::Developer);
    greets(&world);
    let issue = world.gitlab.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("gitlab:acme/widgets#1: done\n", &world);
    let merge = world.gitlab.merge_requests().remove(0);
    assert_eq!(merge.labels(), ["from a bot"], "{}", world.story());
    assert_eq!(
        (merge.assignees(), merge.reviewers()),
        (vec!["alice".to_owned()], vec!["bob".to_owned()])
    );
    let said = last_on_gitlab(&world, &issue);
    assert!(said.contains("names: nobody;"), "{said}");
    world.finish().await;
}

#[tokio::test]
async fn what_a_person_takes_off_is_not_put_on_by_a_new_run() {
    let mut world = furnished(World::start().await);
    world.configure(|config| config["change_requests"] = json!({ "labels": ["from a bot"] }));
    greets(&world);
    let issue = world.github.open_issue("Greet").label("coding agent");
    world.run().await;
    let pull = world.github.pulls().remove(0);
    pull.unlabel("from a bot");
    greets(&world);
    issue.label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(pull.labels(), [""; 0], "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_projects_template_is_filled_in_on_github() {
    let world = World::start().await;
    let repository = world.github.default_repository();
    repository.commit(
        "main",
        "Add a template",
        &[(".github/PULL_REQUEST_TEMPLATE.md", TEMPLATE)],
    );
    greets(&world);
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    insta::assert_snapshot!(told(&world, &world.github.pulls()[0].text()), @r"
    ## What does this change?

    Greeted.

    ## How was it tested?

    **How it was verified**

    - ✅ `true` passed

    Closes #1

    <sub>3 model turns · TOKENS · TIME · run `RUN`</sub>

    ## Checklist

    - [ ] I read the guide

    cc @~acme/owners, closes #~9 \[image]
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_projects_template_is_filled_in_on_gitlab_unless_it_is_switched_off() {
    let mut world = World::on_gitlab().await;
    let path = ".gitlab/merge_request_templates/Default.md";
    let project = world.gitlab.default_project();
    project.commit(
        "main",
        "Add a template",
        &[(path, "## Summary\n\n/close\n\nBe kind.\n")],
    );
    for (title, is_on) in [("Greet", true), ("Wave", false)] {
        world.configure(|config| config["change_requests"] = json!({ "template": is_on }));
        greets(&world);
        world.gitlab.open_issue(title).label("coding agent");

        let ended = world.run().await;

        assert!(ended.stdout.ends_with(": done\n"), "{ended:?}\n{}", world.story());
        let text = told(&world, &world.gitlab.merge_requests().pop().unwrap().text());
        assert_eq!(text.starts_with("## Summary\n\nGreeted.\n\n"), is_on, "{text}");
        assert_eq!(text.contains("Be kind."), is_on, "{text}");
        assert!(!text.lines().any(|line| line.trim() == "/close"), "{text}");
    }
    world.finish().await;
}

#[tokio::test]
async fn subtasks_that_are_not_finished_are_named() {
    let world = World::start().await;
    world
        .model
        .plans(Plan::of(&["greet", "wave"]).in_environment("python"))
        .calls(
            "workspace/execute_command",
            json!({"command": "echo Hello > hello.txt"}),
        )
        .calls("agent/finish_subtask", json!({"id": "task-1"}))
        .done("Greeted; nobody is there to wave at.");
    world.github.open_issue("Greet and wave").label("coding agent");

    world.run().await;

    let text = told(&world, &world.github.pulls()[0].text());
    assert!(text.contains("**Not finished**\n\n- wave\n\n"), "{text}");
    world.finish().await;
}
