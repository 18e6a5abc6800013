//! Every write happens once, whatever becomes of its answer, and a request goes to a branch that is
//! there.

use super::{executes, greeting, greets, left_on, plan};
use crate::fake::github::{GitHub, Item, Repository};
use crate::world::World;

/// Every write of a run: what the forge does and what git does.
const WRITES: [&str; 6] = [
    "POST /repos/*/*/issues/*/labels",
    "DELETE /repos/*/*/issues/*/labels/*",
    "POST /repos/*/*/issues/*/comments",
    "PATCH /repos/*/*/issues/comments/*",
    "POST /repos/*/*/pulls",
    "POST /acme/widgets.git/git-receive-pack",
];

/// Lets every write go wrong in one way, and expects that each has happened once in the end.
async fn with_trouble(goes_wrong: impl Fn(&GitHub, &str)) {
    let world = World::start().await;
    greets(world.model.plans(plan().verified_by("true")));
    let issue = greeting(&world);
    for route in WRITES {
        goes_wrong(&world.github, route);
    }

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let left = left_on(&issue);
    assert!(left.starts_with("labels: coding agent done\n-----"), "{left}");
    let comments = ["progress", "final"].map(|what| left.matches(&format!("<run>:{what} -->")).count());
    assert_eq!((comments, left.matches("-----").count()), ([1, 1], 2), "{left}");
    assert_eq!(world.github.pulls().len(), 1);
    assert_eq!(world.github.default_repository().branches().len(), 2);
    let requests = [world.github.requests(), world.github.git_requests()].concat();
    for route in WRITES {
        let trouble = |status: Option<u16>| status.is_none_or(|status| status == 502);
        let was_hit = requests
            .iter()
            .any(|request| request.is(route) && trouble(request.status));
        assert!(was_hit, "nothing went wrong at {route}");
    }
    world.finish().await;
}

#[tokio::test]
async fn writes_that_were_refused_for_the_moment_are_repeated() {
    with_trouble(|github, route| github.fails_next(route, 502, 2)).await;
}

#[tokio::test]
async fn writes_that_were_done_and_answered_with_an_error_are_not_done_twice() {
    with_trouble(|github, route| github.fails_after_work(route, 502, 1)).await;
}

#[tokio::test]
async fn writes_whose_connection_broke_off_before_are_repeated() {
    with_trouble(|github, route| github.drops_connection(route, 1)).await;
}

#[tokio::test]
async fn writes_whose_answer_was_lost_are_not_done_twice() {
    with_trouble(|github, route| github.drops_connection_after_work(route, 1)).await;
}

/// Has a result wait for a person's word, since it changes rules for agents.
async fn waiting(world: &World) -> Item {
    executes(world.model.plans(plan()), "echo brief > AGENTS.md").done("There are rules now.");
    let issue = greeting(world);
    assert_eq!(world.run().await.code, Some(0), "{}", world.story());
    assert_eq!(issue.labels(), ["coding agent waiting"], "{}", world.story());
    issue
}

#[tokio::test]
async fn a_request_goes_to_the_new_name_of_a_default_branch_that_was_renamed_during_a_wait() {
    let world = World::start().await;
    let issue = waiting(&world).await;
    world.github.default_repository().renames_default_branch("trunk");
    issue.comment("alice", "/agent approve");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let pulls = world.github.pulls();
    assert_eq!(
        (pulls.len(), pulls[0].base().as_str()),
        (1, "trunk"),
        "{}",
        world.story()
    );
    let said = issue.comments_of(world.github.bot()).pop().unwrap();
    assert!(said.contains("it goes to") && said.contains("trunk"), "{said}");
    world.finish().await;
}

#[tokio::test]
async fn a_request_goes_to_the_new_name_of_a_default_branch_that_is_renamed_just_before() {
    let world = World::start().await;
    greets(world.model.plans(plan()));
    let issue = greeting(&world);
    // The program looks for an open request first.
    let repository = world.github.default_repository();
    world.github.after("GET /repos/*/*/pulls", move || {
        repository.renames_default_branch("trunk");
    });

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    let pulls = world.github.pulls();
    assert_eq!(
        (pulls.len(), pulls[0].base().as_str()),
        (1, "trunk"),
        "{}",
        world.story()
    );
    world.finish().await;
}

#[tokio::test]
async fn work_that_an_earlier_run_began_goes_to_the_new_name_of_the_default_branch() {
    let world = World::start().await;
    executes(world.model.plans(plan()), "echo Hello > README.md").refuses("the account is closed");
    let issue = greeting(&world);
    world.run().await;
    assert_eq!(issue.labels(), ["coding agent failed"], "{}", world.story());
    executes(world.model.plans(plan()), "echo more > more.txt").done("It says more.");
    issue.label("coding agent");
    // While it plans, the program looks whether the branch with that work has a request.
    let repository = world.github.default_repository();
    world.github.after("GET /repos/*/*/pulls", move || {
        repository.renames_default_branch("trunk");
    });

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let pulls = world.github.pulls();
    assert_eq!(
        (pulls.len(), pulls[0].base().as_str()),
        (1, "trunk"),
        "{}",
        world.story()
    );
    assert_eq!(pulls[0].files(), ["README.md", "more.txt"], "{}", world.story());
    world.finish().await;
}

/// Gives a repository a branch `old` without the last commit of `main`.
fn has_an_old_branch(repository: &Repository) {
    let git = repository.git();
    let first = git.resolve("refs/heads/main").unwrap();
    git.set_reference("refs/heads/old", &first);
    repository.commit("main", "Say more", &[("more.txt", "more\n")]);
}

/// Deletes `main`, and makes `old` the default branch.
fn loses_main(repository: &Repository) {
    repository.renames_default_branch("new").default_branch("old");
    repository.git().delete_reference("refs/heads/new");
}

/// Expects that the run failed for want of `main`, and that the next one begins from `old`.
async fn begins_anew_from_old(world: &World, issue: &Item, head: &str) {
    assert_eq!(issue.labels(), ["coding agent failed"], "{}", world.story());
    let said = issue.comments_of(world.github.bot()).pop().unwrap();
    let words = "The branch `main`, which the request was to be merged into, does not exist any more";
    assert!(said.contains(words), "{said}");
    assert!(world.github.pulls().is_empty(), "{}", world.story());

    greets(world.model.plans(plan()));
    issue.label("coding agent");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", world);
    let pulls = world.github.pulls();
    assert_eq!(pulls.len(), 1, "{}", world.story());
    assert_eq!((pulls[0].base().as_str(), pulls[0].head().as_str()), ("old", head));
    assert_eq!(pulls[0].files(), ["README.md"], "{}", world.story());
}

#[tokio::test]
async fn a_branch_that_is_gone_is_named_where_no_other_has_what_the_work_began_from() {
    let world = World::start().await;
    let repository = world.github.default_repository();
    has_an_old_branch(&repository);
    let issue = waiting(&world).await;
    loses_main(&repository);
    issue.comment("alice", "/agent approve");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: failed\n", &world);
    assert_eq!(repository.branches(), ["old"], "{}", world.story());
    begins_anew_from_old(&world, &issue, "coding-agent/1-greet-the-reader").await;
    world.finish().await;
}

#[tokio::test]
async fn work_that_began_from_a_branch_that_is_gone_is_not_carried_into_another() {
    let world = World::start().await;
    let repository = world.github.default_repository();
    has_an_old_branch(&repository);
    greets(world.model.plans(plan()));
    let issue = greeting(&world);
    // The program looks for an open request first.
    let losing = repository.clone();
    world.github.after("GET /repos/*/*/pulls", move || loses_main(&losing));

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: failed\n", &world);
    assert_eq!(repository.branches(), ["coding-agent/1-greet-the-reader", "old"]);
    begins_anew_from_old(&world, &issue, "coding-agent/1-greet-the-reader-2").await;
    world.finish().await;
}
