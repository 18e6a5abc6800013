//! A run goes on on a machine whose mirror does not have its unfinished work.

use std::fs;

use serde_json::json;

use super::{COMMAND, HALF_OF_THE_WORK, pauses, plan, world};
use crate::fake::github::Item;
use crate::world::World;
use crate::world::normalized::last_on_github;

/// Resumes the run, has it execute `command`, and pauses it again.
async fn goes_on_for_a_while(world: &World, issue: &Item, command: &str) {
    let then = json!({ "id": "task-1" });
    world
        .model
        .calls(COMMAND, json!({ "command": command }))
        .calls("agent/finish_subtask", then)
        .holds();
    issue.comment("alice", "/agent resume");
    let program = world.spawn(&["run"]);
    world.model.until_held(2).await;
    pauses(world, issue, program).await;
}

/// Lists what the store has of unfinished work: runs, and parts of it.
async fn stored(world: &World) -> (i64, i64) {
    let file = world.state_dir().join("coding-agent.db");
    let pool = sqlx::SqlitePool::connect(&format!("sqlite://{}", file.display()))
        .await
        .unwrap();
    let count = "SELECT (SELECT COUNT(*) FROM unfinished_work), (SELECT COUNT(*) FROM unfinished_parts)";
    let counts = sqlx::query_as(count).fetch_one(&pool).await.unwrap();
    pool.close().await;
    counts
}

#[tokio::test]
async fn the_work_comes_from_the_store_where_the_mirror_lacks_it_or_is_behind() {
    let world = world().await;
    world
        .model
        .plans(plan())
        .calls(COMMAND, json!({ "command": HALF_OF_THE_WORK }))
        .calls("agent/finish_subtask", json!({ "id": "task-1" }))
        .holds();
    let issue = world.github.open_issue("Paint it").label("coding agent");
    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    pauses(&world, &issue, program).await;
    assert_eq!(stored(&world).await, (1, 1));

    // Another machine shares the store and has mirrors of its own.
    let (mirrors, first) = (world.state_dir().join("mirrors"), world.folder().join("first"));
    fs::rename(&mirrors, &first).unwrap();
    goes_on_for_a_while(&world, &issue, "cat state.txt color.txt && echo dry > state.txt").await;
    let seen = world.model.requests().last().unwrap().text();
    assert!(seen.contains("wet\\nred") || seen.contains("wet\nred"), "{seen}");
    assert_eq!(stored(&world).await, (1, 1));

    // Back on the first one, whose mirror is behind now.
    fs::remove_dir_all(&mirrors).unwrap();
    fs::rename(&first, &mirrors).unwrap();
    world
        .model
        .calls(COMMAND, json!({ "command": "cat state.txt && git status --porcelain" }))
        .done("It is dry.");
    issue.comment("alice", "/agent resume");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let seen = world.model.requests().last().unwrap().text();
    assert!(
        seen.contains("dry\\n?? state.txt") || seen.contains("dry\n?? state.txt"),
        "{seen}"
    );
    assert_eq!(world.github.pulls()[0].file("state.txt").as_deref(), Some("dry\n"));
    assert_eq!(stored(&world).await, (0, 0), "it goes with the end of the run");
    world.finish().await;
}

#[tokio::test]
async fn a_damaged_copy_is_never_taken_for_the_work() {
    let world = world().await;
    let issue = super::paused(&world).await;
    fs::remove_dir_all(world.state_dir().join("mirrors")).unwrap();
    let file = world.state_dir().join("coding-agent.db");
    let pool = sqlx::SqlitePool::connect(&format!("sqlite://{}", file.display()))
        .await
        .unwrap();
    // The last bytes of a pack are its own checksum; the digest covers them too.
    sqlx::query("UPDATE unfinished_parts SET content = CAST(content || x'00' AS BLOB)")
        .execute(&pool)
        .await
        .unwrap();
    pool.close().await;

    issue.comment("alice", "/agent resume");
    let ended = world.run().await;

    assert_eq!(ended.stdout, "github:acme/widgets#1: failed\n", "{}", world.story());
    let told = last_on_github(&world, &issue);
    assert!(
        told.contains("could not be taken back from the store: the copy is damaged"),
        "{told}"
    );
    assert_eq!(world.github.pulls().len(), 0);
    world.finish().await;
}
