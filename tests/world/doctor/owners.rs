//! `doctor` on all repositories of an owner: what it can try before anything carries the label.

use serde_json::json;

use crate::credentials::becomes_an_app;
use crate::fake::fault::{Disturbance, Fault};
use crate::fake::github::Permission;
use crate::least_rights::told_by_doctor;
use crate::world::World;

/// A world in which all repositories of acme are worked on, and one of them is out of reach.
async fn of_acme() -> World {
    let mut world = World::start().await;
    world.configure(|config| config["github"]["repositories"] = json!(["acme/*"]));
    let github = &world.github;
    github.repository("acme/closed").member(github.bot(), Permission::Read);
    github.repository("acme/tools");
    world
}

#[tokio::test]
async fn git_and_labels_of_an_owner_are_tried_before_anything_is_labelled() {
    let world = of_acme().await;
    insta::assert_snapshot!(told_by_doctor(&world, "GitHub").await, @"
    ok GitHub token works, as coding-agent-bot
    look GitHub repositories acme/* can be searched; 0 items carry the trigger label now; repositories looked at: 3; the token's account may not push to acme/closed
    -> give the account the role Write, and a fine-grained token the permission 'Contents' (Read and write), or name the other repositories one by one in github.repositories
    look GitHub labels in acme/widgets 'coding agent' is for you to create; the others will be made when they are needed
    -> create that label there: work begins where people put it on
    look GitHub labels in acme/tools 'coding agent' is for you to create; the others will be made when they are needed
    -> create that label there: work begins where people put it on
    ok GitHub git of acme/widgets can be fetched, and takes claims
    ");

    // What waits for work is what is tried.
    world
        .github
        .repository("acme/tools")
        .open_issue("Greet")
        .label("coding agent");
    insta::assert_snapshot!(told_by_doctor(&world, "GitHub git").await, @"
    ok GitHub git of acme/tools can be fetched, and takes claims
    ");
    world.finish().await;
}

#[tokio::test]
async fn a_repository_without_a_commit_is_told_before_the_first_task() {
    let mut world = World::start().await;
    world.configure(|config| config["task_sources"] = json!(["github", "gitlab"]));
    world.github.default_repository().empty();
    world.gitlab.default_project().empty();
    for forge in ["GitHub", "GitLab"] {
        assert_eq!(
            told_by_doctor(&world, &format!("{forge} git")).await,
            format!(
                "look {forge} git of acme/widgets can be fetched, but its default branch has no commit yet, so no run can begin\n\
                 -> push a first commit (a README is enough), or choose a default branch that is there"
            )
        );
    }
    world.finish().await;
}

#[tokio::test]
async fn a_forge_whose_git_does_not_answer_is_found_out_before_the_first_task() {
    let world = of_acme().await;
    let refused = Fault::Fails(502);
    world
        .github
        .disturb(Disturbance::of("GET /acme/*/info/refs", refused).always());

    let ended = world.command(&["doctor"]).await;

    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("BAD   GitHub git of acme/"), "{}", ended.stdout);
    world.finish().await;
}

#[tokio::test]
async fn an_app_is_tried_on_the_repositories_that_it_is_installed_on() {
    let mut world = World::start().await;
    world.github.repository("acme/tools");
    becomes_an_app(&mut world);
    world.configure(|config| config["github"]["repositories"] = json!(["acme/*"]));

    insta::assert_snapshot!(told_by_doctor(&world, "GitHub").await, @"
    ok GitHub App works, as coding-agent[bot]
    ok GitHub repositories acme/* can be searched; 0 items carry the trigger label now; repositories looked at: 2
    look GitHub labels in acme/widgets 'coding agent' is for you to create; the others will be made when they are needed
    -> create that label there: work begins where people put it on
    look GitHub labels in acme/tools 'coding agent' is for you to create; the others will be made when they are needed
    -> create that label there: work begins where people put it on
    ok GitHub git of acme/widgets can be fetched, and takes claims
    ");
    assert!(world.github.count("GET /installation/repositories") > 0);
    world.finish().await;
}

#[tokio::test]
async fn a_group_is_tried_in_its_first_projects() {
    let mut world = World::on_gitlab().await;
    world.configure(|config| config["gitlab"]["projects"] = json!(["acme/*", "acme/widgets"]));
    for name in ["acme/a", "acme/b", "acme/c", "acme/deep/d"] {
        world.gitlab.project(name);
    }

    insta::assert_snapshot!(told_by_doctor(&world, "GitLab").await, @"
    ok GitLab token works, as coding-agent-bot
    ok GitLab group acme acme can be searched; 0 items carry the trigger label now; projects looked at: 5
    look GitLab labels in acme/a 'coding agent' is for you to create; the others will be made when they are needed
    -> create that label there: work begins where people put it on
    look GitLab labels in acme/b 'coding agent' is for you to create; the others will be made when they are needed
    -> create that label there: work begins where people put it on
    look GitLab labels in acme/c 'coding agent' is for you to create; the others will be made when they are needed
    -> create that label there: work begins where people put it on
    ok GitLab project acme/widgets can be read and pushed to
    look GitLab labels in acme/widgets 'coding agent' is for you to create; the others will be made when they are needed
    -> create that label there: work begins where people put it on
    ok GitLab git of acme/a can be fetched, and takes claims
    ok GitLab git of acme/widgets can be fetched, and takes claims
    ");
    world.finish().await;
}

#[tokio::test]
async fn what_single_sign_on_leaves_out_is_told_beside_what_it_shows() {
    let world = of_acme().await;
    world.github.open_issue("Greet").label("coding agent");
    let hides = Fault::Adds("x-github-sso", "partial-results; organizations=21955855");
    for route in ["GET /search/issues", "GET /orgs/*/repos"] {
        world.github.disturb(Disturbance::of(route, hides));
        let told = told_by_doctor(&world, "GitHub repositories").await;
        insta::allow_duplicates! {
            insta::assert_snapshot!(told, @"
            look GitHub repositories acme/* can be searched; 1 item carries the trigger label now; repositories looked at: 3; single sign-on hides some of it from the token; the token's account may not push to acme/closed
            -> authorise the token for the organisation's single sign-on (in the token's settings, 'Configure SSO'); give the account the role Write, and a fine-grained token the permission 'Contents' (Read and write), or name the other repositories one by one in github.repositories
            ");
        }
    }
    world.finish().await;
}

#[tokio::test]
async fn a_repository_behind_single_sign_on_is_told_with_the_place_to_authorise() {
    let world = World::start().await;
    let refuses = Fault::RefusesWith(
        403,
        r#"{"message":"Resource protected by organization SAML enforcement. You must grant your Personal Access token access to this organization."}"#,
        (
            "x-github-sso",
            "required; url=https://github.com/orgs/acme/sso?authorization_request=ABC",
        ),
    );
    world
        .github
        .disturb(Disturbance::of("GET /repos/acme/widgets", refuses).always());

    insta::assert_snapshot!(told_by_doctor(&world, "GitHub repository").await, @r#"
    BAD GitHub repository acme/widgets something must be set up first
    -> it says "Resource protected by organization SAML enforcement. You must grant your Personal Access token access to this organization.": authorise the token for the organisation's single sign-on (in the token's settings, 'Configure SSO')
    "#);
    world.finish().await;
}
