//! An issue and the pull request that was opened for it share a branch: their runs take turns.

use serde_json::Value;

use super::{paints, world};
use crate::world::World;

/// Returns who took a run in hand and who let it go, in order.
fn turns(world: &World) -> Vec<String> {
    let is_turn = |entry: &Value| ["claimed", "put_down"].contains(&entry["fact"].as_str().unwrap());
    let mut turns: Vec<_> = world.journal().into_iter().filter(is_turn).collect();
    turns.drain(..2);
    let told = |entry: Value| {
        format!(
            "{} {}",
            entry["fact"].as_str().unwrap(),
            entry["task"].as_str().unwrap()
        )
    };
    turns.into_iter().map(told).collect()
}

#[tokio::test]
async fn an_issue_that_is_triggered_again_waits_for_the_round_on_its_pull_request() {
    let world = world().await;
    paints(&world, "red");
    let issue = world.github.open_issue("Paint it").label("coding agent");
    assert_eq!(
        world.run().await.stdout,
        "github:acme/widgets#1: done\n",
        "{}",
        world.story()
    );
    let pull = world.github.pulls().remove(0);
    paints(&world, "blue").holds();
    pull.comment("alice", "Blue, please.");

    let service = world.spawn(&["serve"]);
    world.model.until_held(1).await;
    paints(&world, "green");
    issue.unlabel("coding agent done").label("coding agent");
    issue.until(|issue| issue.labels() == ["coding agent processing"]).await;
    world.model.release();
    issue.until(|issue| issue.labels() == ["coding agent done"]).await;
    service.signal("TERM");
    service.ended().await;

    assert_eq!(
        turns(&world),
        [
            "claimed github:acme/widgets#2",
            "put_down github:acme/widgets#2",
            "claimed github:acme/widgets#1",
            "put_down github:acme/widgets#1",
        ]
    );
    let subjects: Vec<_> = pull.commits().into_iter().map(|commit| commit.message).collect();
    assert_eq!(subjects.len(), 3, "{subjects:?}");
    assert_eq!(pull.file("color.txt").as_deref(), Some("green\n"));
    assert_eq!(world.github.pulls().len(), 1);
    world.finish().await;
}
