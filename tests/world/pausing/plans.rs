//! The plan gives way to a better one while the work goes on.

use serde_json::json;

use super::{COMMAND, count, plan, world};
use crate::fake::model::Plan;
use crate::world::normalized::told;

#[tokio::test]
async fn a_plan_is_revised_when_the_model_asks_and_an_unreadable_one_changes_nothing() {
    let world = world().await;
    world
        .model
        .plans(plan())
        .calls("agent/revise_plan", json!({ "reason": "there is no brush" }))
        .says("no plan")
        .says("still none")
        .says("none at all")
        .calls("agent/revise_plan", json!({ "reason": "there is no brush" }))
        // Who wants another plan is not done.
        .and_done()
        .plans(Plan::of(&["paint it", "buy a brush"]).verified_by("test -f brush.txt"))
        .calls(COMMAND, json!({ "command": "touch brush.txt color.txt" }))
        .done("Bought and painted.");
    let issue = world.github.open_issue("Paint it").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let comments = issue.comments_of(world.github.bot());
    insta::assert_snapshot!(told(&world, &comments[0]), @"
    <details><summary>🛠️ Done: how it went</summary>

    Planned.

    - [x] paint it
    - [x] buy a brush

    <details><summary>The previous plan</summary>

    - [ ] paint it
    - [ ] dry it

    </details>

    <sub>Environment `python` · 9 model turns · TOKENS · TIME · run `RUN`</sub>

    </details>

    <!-- coding-agent:RUN:progress -->
    ");
    assert_eq!(count(&world, "replanned"), 1);
    let checked: Vec<_> = world
        .journal()
        .into_iter()
        .filter(|entry| entry["fact"] == "verified")
        .map(|entry| entry["command"].clone())
        .collect();
    assert_eq!(checked, ["test -f brush.txt"]);
    world.finish().await;
}

#[tokio::test]
async fn a_plan_is_revised_when_the_same_fails_again_and_again_and_only_so_often() {
    let mut world = world().await;
    world.configure(|config| config["planning"] = json!({ "replanning": { "max_revisions": 1 } }));
    let fails = || json!({ "command": "cat missing.txt" });
    world
        .model
        .plans(plan())
        .calls(COMMAND, fails())
        .calls(COMMAND, fails())
        .calls(COMMAND, fails())
        .plans(Plan::of(&["paint it without the list"]).verified_by("test -f color.txt"))
        .calls("agent/revise_plan", json!({ "reason": "I changed my mind" }))
        .calls(COMMAND, json!({ "command": "echo red > color.txt" }))
        .done("It is red.");
    world.github.open_issue("Paint it").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(count(&world, "replanned"), 1);
    let requests = world.model.requests();
    let asked = requests[4].last_user_message();
    assert!(asked.contains("plan"), "{asked}");
    let told = requests[6].last_user_message();
    assert!(told.contains("The plan cannot be revised any more"), "{told}");
    world.finish().await;
}
