//! An issue and the pull request that was opened for it share a branch: their runs take turns. And
//! what is asked for anew is not lost with a process that is killed before the trigger is off.

use serde_json::Value;

use super::{paints, red_pull, world};
use crate::fake::github::Item;
use crate::world::World;

const TAKE_LABEL: &str = "DELETE /repos/*/*/issues/*/labels/*";

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

/// Has alice put the trigger on, and the program killed before it has taken it off.
async fn triggered_and_killed(world: &World, item: &Item) {
    world.github.hangs(TAKE_LABEL, 0, false);
    item.label("coding agent");
    let program = world.spawn(&["run"]);
    world.github.until_one_hangs().await;
    program.kill().await;
    world.github.cuts_off();
}

#[tokio::test]
async fn a_kill_before_the_trigger_is_off_leaves_no_run_behind_a_paused_round() {
    let world = world().await.attentive();
    world.model.allows_restarts();
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
    let run = world.spawn(&["run"]);
    world.model.until_held(1).await;
    pull.comment("alice", "/agent pause");
    assert_eq!(
        run.ended().await.stdout,
        "github:acme/widgets#2: paused\n",
        "{}",
        world.story()
    );

    issue.unlabel("coding agent done");
    triggered_and_killed(&world, &issue).await;
    // The round is let go on, and has the branch until it ends.
    world.model.done("It is blue.");
    paints(&world, "green");
    let ended = world.run().await;

    assert_eq!(
        ended.outcomes(),
        ["github:acme/widgets#1: done", "github:acme/widgets#2: done"],
        "{ended:?}\n{}",
        world.story()
    );
    assert_eq!(pull.file("color.txt").as_deref(), Some("green\n"));
    assert_eq!(world.github.pulls().len(), 1);
    world.finish().await;
}

#[tokio::test]
async fn a_kill_before_the_trigger_is_off_leaves_no_request_unfollowed() {
    let world = world().await;
    let pull = red_pull(&world).await;
    pull.comment("alice", "/agent stop");
    assert_eq!(world.run().await.stdout, "", "{}", world.story());

    triggered_and_killed(&world, &pull).await;
    paints(&world, "blue");
    assert_eq!(
        world.run().await.stdout,
        "github:acme/widgets#2: done\n",
        "{}",
        world.story()
    );
    paints(&world, "green");
    pull.comment("alice", "Green, after all.");
    assert_eq!(
        world.run().await.stdout,
        "github:acme/widgets#2: done\n",
        "{}",
        world.story()
    );
    assert_eq!(pull.file("color.txt").as_deref(), Some("green\n"));
    world.finish().await;
}
