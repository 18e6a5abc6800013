//! Every write happens once, whatever becomes of its answer.

use super::{greeting, greets, left_on, plan};
use crate::fake::github::GitHub;
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

/// Lets every write go wrong in one way and returns what is left on the issue and how many of each
/// thing there are.
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
