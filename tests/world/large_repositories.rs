//! Repositories so large, and forges so busy, that fetching takes minutes.

use serde_json::json;

use crate::world::World;
use crate::world::scripts::{greets, plan};

/// Seconds in the place of minutes: a stall is declared before the pack begins.
const STALL: u64 = 3;
const LATE: u32 = 7;

#[tokio::test]
async fn a_pack_that_begins_late_is_waited_for() {
    let mut world = World::start().await;
    world.configure(|config| config["git"] = json!({ "stall_seconds": STALL }));
    world.github.packs_late(LATE);
    greets(world.model.plans(plan()));
    let issue = world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    assert_eq!(
        ended.stdout,
        "github:acme/widgets#1: done\n",
        "{ended:?}\n{}",
        world.story()
    );
    assert_eq!(issue.labels(), ["coding agent done"]);
    // The first fetch, and none that was given up and begun anew.
    assert!(!ended.stderr.contains("tried again"), "{}", ended.stderr);
    world.finish().await;
}
