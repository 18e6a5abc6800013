//! Refusals of pushes and questions in the forges' own words, each with what to do.

use serde_json::json;

use crate::fake::fault::{Disturbance, Fault};
use crate::world::World;
use crate::world::normalized::told;
use crate::world::scripts::{greets, plan, writes};

#[tokio::test]
async fn a_token_that_may_not_change_workflows_is_told_which_right_it_lacks() {
    let mut world = World::start().await;
    world.configure(|config| config["git"] = json!({ "protected_paths": [] }));
    let file = ".github/workflows/ci.yml";
    writes(world.model.plans(plan()), file, "on: push\n").done("There is a workflow now.");
    world.github.default_repository().git().reject_pushes_to(
        "coding-agent/1-add-a-workflow",
        "refusing to allow a Personal Access Token to create or update workflow `.github/workflows/ci.yml` without `workflow` scope",
    );
    let issue = world.github.open_issue("Add a workflow").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: failed\n", &world);
    assert_eq!(issue.labels(), ["coding agent failed"]);
    let said = told(&world, issue.comments_of(world.github.bot()).last().unwrap());
    assert!(
        said.contains("without `workflow` scope") && said.contains("give the token the right to change workflows"),
        "{said}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_branch_that_is_in_the_way_of_new_ones_is_named() {
    let world = World::start().await;
    greets(world.model.plans(plan()));
    let repository = world.github.default_repository();
    repository.commit("coding-agent", "Try something", &[("try.txt", "tried\n")]);
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: failed\n", &world);
    assert_eq!(issue.labels(), ["coding agent failed"]);
    let said = told(&world, issue.comments_of(world.github.bot()).last().unwrap());
    assert!(
        said.contains("another branch has the new one's name up to a `/`") && said.contains("rename or delete it"),
        "{said}"
    );
    assert_eq!(repository.branches(), ["coding-agent", "main"]);
    world.finish().await;
}

#[tokio::test]
async fn a_limit_of_graphql_within_a_success_is_waited_for() {
    let world = World::start().await;
    greets(world.model.plans(plan()));
    let limited = r#"{"errors":[{"type":"RATE_LIMITED","code":"graphql_rate_limit","message":"API rate limit already exceeded for user ID 1."}]}"#;
    world
        .github
        .disturb(Disturbance::of("POST /api/graphql", Fault::Says(limited)));
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert!(
        ended.stdout.starts_with("github:acme/widgets#1: put back until "),
        "{ended:?}\n{}",
        world.story()
    );
    assert_eq!(issue.labels(), ["coding agent paused"]);
    world.make_everything_due().await;
    let ended = world.run().await;
    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}
