//! Forges as people have them: what they answer beside their documentation.

mod pages;
mod pipelines;
mod refusals;

use serde_json::json;

use crate::credentials::becomes_an_app;
use crate::fake::fault::{Disturbance, Fault, Quirk};
use crate::fake::gitlab::{self, Access};
use crate::fake::model::Plan;
use crate::world::World;
use crate::world::normalized::told;
use crate::world::scripts::{COMMAND, greets, plan};

const FILES: [(&str, &str); 1] = [("greet.py", "print('hi')\n")];

#[tokio::test]
async fn a_comment_behind_a_full_page_that_is_only_confirmed_is_heard() {
    let mut world = World::start().await;
    world.configure(|config| config["steering"] = json!({ "interval_seconds": 1 }));
    world.github.behaves(Quirk::TagsIgnoreLinks);
    world
        .model
        .plans(plan())
        .calls(COMMAND, json!({ "command": "echo one > one.txt" }))
        .holds();
    let issue = world.github.open_issue("Greet the reader");
    // One comment is the program's own: the page of its run is full.
    for number in 0..99 {
        issue.comment("alice", &format!("+{number}"));
    }
    issue.label("coding agent");

    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    issue.until_comments_are_read().await;
    assert_eq!(issue.comments().len(), 100, "{}", issue.timeline());
    issue.comment("alice", "/agent stop");
    let ended = run.ended().await;

    assert_eq!(issue.labels(), ["coding agent stopped"], "{ended:?}\n{}", world.story());
    world.model.release();
    world.finish().await;
}

#[tokio::test]
async fn labels_that_a_repository_spells_in_another_case_are_the_same_labels() {
    let world = World::start().await;
    greets(world.model.plans(plan()));
    let issue = world.github.open_issue("Greet the reader");
    // This is how the repository has them.
    issue.label("Coding Agent Processing").label("Coding Agent Done");
    issue.unlabel("Coding Agent Processing").unlabel("Coding Agent Done");
    issue.label("Coding Agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["Coding Agent Done"], "{}", world.story());

    greets(world.model.plans(plan()));
    issue.label("Coding Agent");
    let again = world.run().await;
    assert_eq!(again.stdout, "github:acme/widgets#1: done\n", "{}", world.story());
    assert_eq!(issue.labels(), ["Coding Agent Done"], "{}", world.story());
    world.finish().await;
}

/// Has a merge request opened, something fail on it, and that worked on.
async fn what_fails_is_worked_on(fails: impl FnOnce(&gitlab::Item)) {
    let mut world = World::on_gitlab().await;
    world.configure(|config| config["follow_up"] = json!({ "debounce_seconds": 0, "max_ci_rounds": 1 }));
    greets(world.model.plans(plan()));
    world.gitlab.open_issue("Greet the reader").label("coding agent");
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    let merge = world.gitlab.merge_requests().remove(0);
    fails(&merge);
    world
        .model
        .plans(plan())
        .calls(COMMAND, json!({ "command": "echo Good day > README.md" }))
        .done("It is polite.");

    let ended = world.run().await;

    ended.prints("gitlab:acme/widgets!1: done\n", &world);
    let task = world.model.requests().last().unwrap().first_user_message();
    assert!(task.contains("it is rude"), "{task}");
    assert_eq!(merge.file("README.md").as_deref(), Some("Good day\n"));
    world.finish().await;
}

#[tokio::test]
async fn a_pipeline_of_merged_results_is_the_one_that_counts() {
    // The branch's own pipeline passes; merged into the target branch it does not.
    what_fails_is_worked_on(|merge| {
        merge
            .pipeline_passes("test")
            .merged_pipeline_fails("test", "E   it is rude");
    })
    .await;
}

#[tokio::test]
async fn a_pipeline_of_a_merge_train_counts_as_well() {
    // It passes alone, and fails together with what is before it in the train.
    what_fails_is_worked_on(|merge| {
        merge
            .merged_pipeline_passes("test")
            .train_pipeline_fails("test", "E   it is rude");
    })
    .await;
}

#[tokio::test]
async fn a_fork_that_a_fine_grained_token_cannot_reach_costs_no_work() {
    let mut world = World::start().await;
    let token = world.github.fine_grained_token();
    world.configure(|config| config["github"]["token"] = json!(token));
    let pull = world
        .github
        .open_pull_from_fork("mallory", "Greet", "greeting", &FILES)
        .allows_maintainers()
        .label("coding agent");

    world.run().await;

    assert_eq!(world.model.requests().len(), 0, "{}", world.story());
    let comments = pull.comments_of(world.github.bot());
    let said = told(&world, comments.last().unwrap());
    assert!(
        said.contains("a fine-grained token reaches no fork of another owner"),
        "{said}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_fork_that_an_app_cannot_reach_costs_no_work() {
    let mut world = World::start().await;
    becomes_an_app(&mut world);
    let pull = world
        .github
        .open_pull_from_fork("mallory", "Greet", "greeting", &FILES)
        .allows_maintainers()
        .label("coding agent");

    world.run().await;

    assert_eq!(world.model.requests().len(), 0, "{}", world.story());
    let comments = pull.comments_of("coding-agent[bot]");
    let said = told(&world, comments.last().unwrap());
    assert!(
        said.contains("an App or a fine-grained token reaches no fork of another owner"),
        "{said}"
    );
    world.finish().await;
}

/// A token as an App's installation has it, that the operator made and configured as a token.
#[tokio::test]
async fn a_configured_token_of_an_installation_reaches_no_fork_either() {
    let mut world = World::start().await;
    let token = world.github.installation_token();
    world.configure(|config| {
        config["github"]["token"] = json!(token);
        config["github"]["bot_name"] = json!("coding-agent[bot]");
    });
    let pull = world
        .github
        .open_pull_from_fork("mallory", "Greet", "greeting", &FILES)
        .allows_maintainers()
        .label("coding agent");

    world.run().await;

    assert_eq!(world.model.requests().len(), 0, "{}", world.story());
    let comments = pull.comments_of("coding-agent[bot]");
    let said = told(&world, comments.last().unwrap());
    assert!(said.contains("reaches no fork of another owner"), "{said}");
    world.finish().await;
}

#[tokio::test]
async fn a_fork_whose_target_only_others_may_merge_into_costs_no_work() {
    let world = World::on_gitlab().await;
    world.gitlab.default_project().merged_by(Access::Maintainer);
    let merge = world
        .gitlab
        .open_merge_request_from_fork("mallory", "Greet", "greeting", &FILES)
        .allows_collaboration()
        .label("coding agent");

    world.run().await;

    assert_eq!(world.model.requests().len(), 0, "{}", world.story());
    let comments = merge.comments_of(world.gitlab.bot());
    let said = told(&world, &comments.last().unwrap().clone());
    assert!(said.contains("merge into the target branch"), "{said}");
    world.finish().await;
}

#[tokio::test]
async fn what_single_sign_on_hides_is_said() {
    let mut world = World::start().await;
    world.configure(|config| config["github"]["repositories"] = json!(["acme/*"]));
    let hides = Fault::Adds("x-github-sso", "partial-results; organizations=21955855");
    world
        .github
        .disturb(Disturbance::of("GET /search/issues", hides).always());

    let run = world.run().await;
    let doctor = world.command(&["doctor"]).await;

    assert_eq!(run.code, Some(1), "{run:?}");
    for said in [run.stderr, doctor.stdout] {
        assert!(
            said.contains("authorise the token for the organisation's single sign-on"),
            "{said}"
        );
    }
    world.finish().await;
}

#[tokio::test]
async fn a_project_that_moves_during_a_run_is_written_to_where_it_is() {
    let world = World::on_gitlab().await;
    greets(world.model.plans(plan())).holds();
    let issue = world.gitlab.open_issue("Greet the reader").label("coding agent");

    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    world.gitlab.default_project().moves_to("tools/gadgets");
    world.model.release();
    let ended = run.ended().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    assert_eq!(world.gitlab.merge_requests().len(), 1, "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_repository_that_is_renamed_during_a_run_is_pushed_to_where_it_is() {
    let world = World::start().await;
    greets(world.model.plans(plan())).holds();
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let mut run = world.spawn(&["run"]);
    run.until(&world, world.model.until_held(1)).await;
    world.github.default_repository().renames_to("gadgets");
    world.model.release();
    let ended = run.ended().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    let pulls = world.github.pulls();
    assert_eq!(pulls.len(), 1, "{}", world.story());
    assert_eq!(pulls[0].file("README.md").as_deref(), Some("Hello\n"));
    // Git follows no redirect: it is given the new address.
    let requests = world.github.git_requests();
    let is_pushed_to = |path: &str| {
        requests
            .iter()
            .any(|request| request.path == path && request.status == Some(200))
    };
    assert!(is_pushed_to("/acme/gadgets.git/git-receive-pack"), "{requests:?}");
    world.finish().await;
}

#[tokio::test]
async fn a_check_beyond_the_first_hundred_is_seen_and_a_signature_is_for_people() {
    let mut world = World::start().await;
    world.configure(|config| config["follow_up"] = json!({ "debounce_seconds": 0, "max_ci_rounds": 1 }));
    greets(world.model.plans(plan()));
    world.github.open_issue("Greet the reader").label("coding agent");
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    let pull = world.github.pulls().remove(0);
    for number in 0..100 {
        pull.check_passes(&format!("test ({number})"));
    }
    pull.status(
        "license/cla",
        "failure",
        "Contributor License Agreement is not signed yet.",
    );
    assert_eq!(world.run().await.stdout, "", "{}", world.story());

    pull.check_fails("test (100)", "E   it is rude");
    world.make_checks_old().await;
    world.model.plans(Plan::of(&["look"])).done("It cannot be mended.");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#2: done\n", &world);
    let task = world.model.requests().last().unwrap().first_user_message();
    assert!(task.contains("it is rude") && !task.contains("license/cla"), "{task}");
    world.finish().await;
}

#[tokio::test]
async fn a_status_beyond_the_first_hundred_is_seen() {
    let mut world = World::start().await;
    world.configure(|config| config["follow_up"] = json!({ "debounce_seconds": 0, "max_ci_rounds": 1 }));
    greets(world.model.plans(plan()));
    world.github.open_issue("Greet the reader").label("coding agent");
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    let pull = world.github.pulls().remove(0);
    for number in 0..100 {
        pull.status(&format!("ci/legacy ({number})"), "success", "It builds.");
    }
    assert_eq!(world.run().await.stdout, "", "{}", world.story());

    pull.status("ci/legacy (100)", "failure", "3 tests failed");
    world.make_checks_old().await;
    world.model.plans(Plan::of(&["look"])).done("It cannot be mended.");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#2: done\n", &world);
    let task = world.model.requests().last().unwrap().first_user_message();
    assert!(
        task.contains("ci/legacy (100)") && task.contains("3 tests failed"),
        "{task}"
    );
    world.finish().await;
}

#[tokio::test]
async fn a_user_in_the_place_of_a_group_is_told_what_to_write_instead() {
    let mut world = World::on_gitlab().await;
    world.configure(|config| config["gitlab"]["projects"] = json!(["alice/*"]));

    let run = world.run().await;

    assert_eq!(run.code, Some(1), "{run:?}");
    assert!(run.stderr.contains("alice is a user and no group"), "{}", run.stderr);
    world.finish().await;
}
