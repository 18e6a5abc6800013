//! A forge whose API does not see a branch yet that was pushed a moment ago.

use crate::fake::fault::{Disturbance, Fault};
use crate::world::World;
use crate::world::scripts::{greets, plan};

const GITHUB_PULLS: &str = "POST /repos/acme/widgets/pulls";
const GITLAB_MERGE_REQUESTS: &str = "POST /projects/*/merge_requests";

/// GitHub's refusal of a pull request whose branch it does not see yet.
const GITHUB_SAYS: &str =
    r#"{"message":"Validation Failed","errors":[{"resource":"PullRequest","field":"head","code":"invalid"}]}"#;
/// GitLab 19's refusal of a merge request whose branch it does not see yet.
const GITLAB_SAYS: &str = r#"{"message":{"source_branch":["does not exist"]}}"#;

const PUSH: &str = "POST /acme/widgets.git/git-receive-pack";

/// Returns a forge's trouble with a branch that was pushed a moment ago: the first three requests
/// for it are refused.
fn learns_late(route: &str, refusal: Fault) -> Disturbance {
    Disturbance::of(route, refusal).times(3).once_answered(PUSH)
}

/// Lets the model greet the reader of the README.
fn greet(world: &World) {
    let plan = plan().verified_by("grep -q Hello README.md");
    greets(world.model.plans(plan));
}

#[tokio::test]
async fn the_pull_request_is_opened_as_soon_as_github_sees_the_branch() {
    let world = World::start().await;
    greet(&world);
    world
        .github
        .disturb(learns_late(GITHUB_PULLS, Fault::Refuses(422, GITHUB_SAYS)));
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(world.github.pulls().len(), 1, "{}", world.story());
    assert_eq!(world.github.count(GITHUB_PULLS), 4);
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn a_branch_that_github_never_sees_puts_the_run_back_and_fails_nothing() {
    let world = World::start().await;
    greet(&world);
    // As often as it is asked within a minute and a half.
    let never = Disturbance::of(GITHUB_PULLS, Fault::Refuses(422, GITHUB_SAYS));
    world.github.disturb(never.times(11));
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert!(
        ended.stdout.starts_with("github:acme/widgets#1: put back until "),
        "{ended:?}\n{}",
        world.story()
    );
    assert_eq!(world.github.count(GITHUB_PULLS), 11);
    assert_eq!(issue.labels(), ["coding agent paused"]);
    let said = issue.comments_of(world.github.bot());
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("the forge does not see it yet"), "{}", said[0]);

    // Nothing of it is done again: the branch is there, and the model is not asked.
    let asked = world.model.requests().len();
    world.make_everything_due().await;
    let ended = world.run().await;
    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(world.model.requests().len(), asked);
    assert_eq!(world.github.pulls().len(), 1, "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn the_merge_request_is_opened_as_soon_as_gitlab_sees_the_branch() {
    let world = World::on_gitlab().await;
    greet(&world);
    world
        .gitlab
        .disturb(learns_late(GITLAB_MERGE_REQUESTS, Fault::Refuses(400, GITLAB_SAYS)));
    let issue = world.gitlab.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(world.gitlab.merge_requests().len(), 1, "{}", world.story());
    assert_eq!(world.gitlab.count(GITLAB_MERGE_REQUESTS), 4);
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}
