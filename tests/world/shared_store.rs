//! Several machines share a store on a server: each has a state folder, mirrors and logs of its own.

use serde_json::json;

use crate::fake::model::Plan;
use crate::world::World;
use crate::world::databases::Database;
use crate::world::scripts::COMMAND;

/// Starts a world whose store is on the server; returns the store's address too.
async fn world_on(database: &Database) -> (World, String) {
    let mut world = World::start().await;
    let address = database.schema();
    world.configure(|config| config["store"] = json!({ "url": address }));
    (world, address)
}

fn plan() -> Plan {
    Plan::of(&["paint"])
        .in_environment("python")
        .verified_by("grep -q wet state.txt")
}

#[tokio::test]
async fn the_run_of_a_machine_that_died_goes_on_on_another_at_once() {
    let database = Database::start();
    let (mut world, address) = world_on(&database).await;
    world.model.allows_restarts();
    world
        .model
        .plans(plan())
        .calls(COMMAND, json!({ "command": "echo wet > state.txt" }))
        .holds();
    let issue = world.github.open_issue("Paint it").label("coding agent");
    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    program.kill().await;
    database.grows_old().await;
    assert_eq!(
        Database::ask(&address, "SELECT COUNT(*) FROM runs WHERE lease_token IS NOT NULL"),
        "1"
    );

    world.moves_to("second");
    world
        .model
        .calls(COMMAND, json!({ "command": "echo wet > state.txt" }))
        .done("Painted.");
    let ended = world.run().await;
    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(world.github.pulls().len(), 1);
    assert_eq!(issue.labels(), ["coding agent done"]);

    // The first machine is up again: it removes what was left there, and works on nothing.
    world.comes_back();
    let ended = world.run().await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{ended:?}");
    assert_eq!(world.github.pulls().len(), 1);
    assert!(!world.state_dir().join("coding-agent.db").exists());
    world.finish().await;
}

#[tokio::test]
async fn a_pause_on_one_machine_holds_on_all_and_each_shows_all_runs() {
    let database = Database::start();
    let (mut world, _) = world_on(&database).await;
    world.github.open_issue("Paint it").label("coding agent");
    world.all_runs("pause").await;
    world.moves_to("second");
    let ended = world.run().await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{ended:?}");
    let status = world.command(&["status"]).await;
    assert!(status.stdout.contains("github:acme/widgets#1"), "{status:?}");

    world.all_runs("resume").await;
    world.comes_back();
    world
        .model
        .plans(plan())
        .calls(COMMAND, json!({ "command": "echo wet > state.txt" }))
        .done("Painted.");
    let ended = world.run().await;
    ended.prints("github:acme/widgets#1: done\n", &world);

    // What happened is told on the machine that did nothing of it.
    world.moves_to("second");
    let logs = world.command(&["logs", "github:acme/widgets#1"]).await;
    assert!(
        logs.stdout.contains("claimed  machine: ") && logs.stdout.contains("put down"),
        "{logs:?}"
    );
    world.comes_back();
    world.finish().await;
}

#[tokio::test]
async fn doctor_tells_of_the_database_and_of_one_that_is_away() {
    let database = Database::start();
    let (mut world, _) = world_on(&database).await;
    let told = world.command(&["doctor"]).await;
    let line = told
        .stdout
        .lines()
        .find(|line| line.contains("store"))
        .unwrap_or_default()
        .to_owned();
    assert!(line.contains("answers in") && line.contains("PostgreSQL"), "{told:?}");

    world.configure(|config| config["store"] = json!({ "url": "postgres://agent@127.0.0.1:1/agent" }));
    let told = world.command(&["doctor"]).await;
    assert_eq!(told.code, Some(1));
    assert!(told.stdout.contains("store.url"), "{told:?}");
    world.finish().await;
}

#[tokio::test]
async fn a_store_that_was_moved_has_all_runs_and_works_on_each_once() {
    let database = Database::start();
    let mut world = World::start().await;
    world.configure(|config| {
        config.as_object_mut().unwrap().remove("store");
    });
    let paints = |world: &World| {
        world
            .model
            .plans(plan())
            .calls(COMMAND, json!({ "command": "echo wet > state.txt" }))
            .done("Painted.");
    };
    paints(&world);
    let done = world.github.open_issue("Paint it").label("coding agent");
    assert_eq!(world.run().await.stdout, "github:acme/widgets#1: done\n");
    world.all_runs("pause").await;
    let waiting = world.github.open_issue("Paint it again").label("coding agent");
    world.run().await;
    assert_eq!(waiting.labels(), ["coding agent processing"]);

    let address = database.schema();
    let moved = world.command(&["store", "migrate", "--to", &address]).await;
    assert_eq!(moved.code, Some(0), "{moved:?}");
    assert!(moved.stdout.contains("are the same in both"), "{moved:?}");
    let again = world.command(&["store", "migrate", "--to", &address]).await;
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.stderr.contains("has runs of its own"), "{again:?}");

    world.configure(|config| config["store"] = json!({ "url": address }));
    world.moves_to("second");
    let status = world.command(&["status"]).await;
    assert!(
        status.stdout.contains("widgets#1") && status.stdout.contains("widgets#3"),
        "{status:?}"
    );
    world.all_runs("resume").await;
    paints(&world);
    let ended = world.run().await;
    ended.prints("github:acme/widgets#3: done\n", &world);
    assert_eq!(world.github.pulls().len(), 2);
    assert_eq!(
        (done.labels(), waiting.labels()),
        (
            vec!["coding agent done".to_owned()],
            vec!["coding agent done".to_owned()]
        )
    );
    world.comes_back();
    world.finish().await;
}

/// Writes so many bytes that do not compress, and commits them.
fn brings(file: &str, kilobytes: u32) -> serde_json::Value {
    json!({ "command": format!(
        "head -c {kilobytes}k /dev/urandom > {file} && git add {file} && git commit -q -m 'Add {file}' && echo ok"
    ) })
}

#[tokio::test]
async fn work_too_large_for_the_store_is_on_a_branch_for_other_machines() {
    let database = Database::start();
    let (mut world, address) = world_on(&database).await;
    world.configure(|config| config["store"]["max_work_bytes"] = json!(300 * 1024));
    world.model.allows_restarts();
    let plan = Plan::of(&["paint"])
        .in_environment("python")
        .verified_by("test -f one.bin && test -f two.bin");
    world
        .model
        .plans(plan)
        .calls(COMMAND, brings("one.bin", 200))
        .calls("agent/finish_subtask", json!({ "id": "task-1" }))
        .holds();
    let issue = world.github.open_issue("Paint it").label("coding agent");
    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    program.signal("TERM");
    program.ended().await;
    let parts = "SELECT COUNT(*) FROM unfinished_parts";
    assert_eq!(Database::ask(&address, parts), "1");
    assert_eq!(world.github.default_repository().branches(), ["main"]);

    world
        .model
        .calls(COMMAND, brings("two.bin", 200))
        .calls("agent/finish_subtask", json!({ "id": "task-1" }))
        .holds();
    let program = world.spawn(&["run"]);
    world.model.until_held(2).await;
    program.signal("TERM");
    program.ended().await;
    assert_eq!(
        Database::ask(&address, parts),
        "0",
        "both together are more than it takes\n{}",
        world.story()
    );
    let branches = world.github.default_repository().branches();
    assert_eq!(branches.len(), 2, "{branches:?}\n{}", world.story());

    world.moves_to("second");
    world
        .model
        .calls(COMMAND, json!({ "command": "ls *.bin && git log --format=%s" }))
        .done("Both are there.");
    let ended = world.run().await;
    ended.prints("github:acme/widgets#1: done\n", &world);
    let seen = world.model.requests().last().unwrap().text();
    assert!(seen.contains("one.bin") && seen.contains("Add two.bin"), "{seen}");
    assert_eq!(world.github.pulls().len(), 1);
    assert!(world.github.pulls()[0].file("two.bin").is_some());
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.comes_back();
    world.finish().await;
}

#[tokio::test]
async fn a_database_that_is_away_for_longer_than_a_lease_costs_no_work() {
    let database = Database::own();
    let (world, _) = world_on(&database).await;
    world.model.allows_restarts();
    world
        .model
        .plans(plan())
        .calls(COMMAND, json!({ "command": "echo wet > state.txt" }))
        .holds();
    let issue = world.github.open_issue("Paint it").label("coding agent");
    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    database.crash();
    // It gives up by itself when it has not reached the store for so long that it may have lost the
    // run.
    let ended = program.ended().await;
    assert!(ended.stdout.contains("put down"), "{ended:?}");
    assert_eq!(issue.labels(), ["coding agent processing"]);
    assert_eq!(world.github.pulls().len(), 0);

    database.comes_back();
    database.grows_old().await;
    world
        .model
        .calls(COMMAND, json!({ "command": "cat state.txt || echo wet > state.txt" }))
        .done("Painted.");
    let ended = world.run().await;
    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(world.github.pulls().len(), 1);
    assert_eq!(issue.labels(), ["coding agent done"]);
    world.finish().await;
}

#[tokio::test]
async fn machines_are_updated_one_after_the_other() {
    let database = Database::start();
    let (world, address) = world_on(&database).await;
    world
        .model
        .plans(plan())
        .calls(COMMAND, json!({ "command": "echo wet > state.txt" }))
        .holds();
    let issue = world.github.open_issue("Paint it").label("coding agent");
    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    // Another machine has a newer version, which changes the tables and takes up a task.
    for step in [
        "ALTER TABLE runs ADD COLUMN newer TEXT",
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (9999, 'newer', TRUE, 'x', 0)",
        "INSERT INTO runs (id, task, title, state, record, created_at, updated_at, format)
         SELECT '01900000-0000-7000-8000-000000000000', 'github:acme/widgets#77', title, 'queued', '{\"newer\": true}', created_at, updated_at, 99
         FROM runs LIMIT 1",
    ] {
        Database::ask(&address, step);
    }
    world.model.done("Painted.");
    world.model.release();
    let ended = program.ended().await;
    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!(issue.labels(), ["coding agent done"]);
    let left = "SELECT COUNT(*) FROM runs WHERE id = '01900000-0000-7000-8000-000000000000' AND state = 'queued' AND lease_token IS NULL";
    assert_eq!(
        Database::ask(&address, left),
        "1",
        "what the newer one took up is left to it"
    );

    // Once it has ended, the older version does not start any more.
    let ended = world.run().await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("newer version of the program"), "{ended:?}");
    world.finish().await;
}

#[tokio::test]
async fn a_forge_is_searched_once_in_a_pause_however_many_machines_there_are() {
    const SEARCH: &str = "GET /repos/*/*/issues";
    let database = Database::start();
    let (mut world, _) = world_on(&database).await;
    world.configure(|config| config["producer"] = json!({ "interval_seconds": 3600 }));
    world
        .model
        .plans(plan())
        .calls(COMMAND, json!({ "command": "echo wet > state.txt" }))
        .done("Painted.");
    let issue = world.github.open_issue("Paint it").label("coding agent");
    let mut first = world.spawn(&["serve"]);
    let done = issue.until(|issue| issue.labels() == ["coding agent done"]);
    first.until(&world, done).await;
    let searches = world.github.count(SEARCH);

    world.moves_to("second");
    let mut second = world.spawn(&["serve"]);
    second.until_it_prints("at work").await;
    // Its first round is done whatever it is told meanwhile.
    second.signal("TERM");
    let ended = second.ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(world.github.count(SEARCH), searches, "{}", world.story());
    // Who asks for it is not put off.
    let ended = world.run().await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{ended:?}");
    assert!(world.github.count(SEARCH) > searches);

    first.signal("TERM");
    let ended = first.ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    world.comes_back();
    world.finish().await;
}

#[tokio::test]
async fn what_was_opened_is_followed_by_one_machine_at_a_time() {
    let database = Database::start();
    let (mut world, _) = world_on(&database).await;
    world.configure(|config| config["follow_up"] = json!({ "debounce_seconds": 0 }));
    world
        .model
        .plans(plan())
        .calls(COMMAND, json!({ "command": "echo wet > state.txt" }))
        .done("Painted.");
    world.github.open_issue("Paint it").label("coding agent");
    let ended = world.run().await;
    ended.prints("github:acme/widgets#1: done\n", &world);
    let pull = world.github.pulls().remove(0);
    assert_eq!(pull.comments_of(world.github.bot()).len(), 0, "{}", pull.timeline());
    pull.comment("alice", "/agent stop");

    // The first machine has found no answer to it, and is about to give one.
    world.github.hangs("POST /repos/*/*/issues/*/comments", 0, false);
    let first = world.spawn(&["run"]);
    world.github.until_one_hangs().await;
    world.moves_to("second");
    let second = world.run().await;
    assert_eq!((second.code, second.stdout.as_str()), (Some(0), ""), "{second:?}");
    world.github.cuts_off();
    let first = first.ended().await;
    assert_eq!((first.code, first.stdout.as_str()), (Some(0), ""), "{first:?}");

    assert_eq!(pull.comments_of(world.github.bot()).len(), 1, "{}", pull.timeline());
    world.comes_back();
    world.finish().await;
}
