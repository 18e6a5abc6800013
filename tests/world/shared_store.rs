//! Several machines share a store on a server: each has a state folder, mirrors and logs of its own.

use serde_json::json;

use crate::fake::model::Plan;
use crate::world::World;
use crate::world::databases::Database;

const COMMAND: &str = "workspace/execute_command";

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
    assert_eq!(
        ended.stdout,
        "github:acme/widgets#1: done\n",
        "{ended:?}\n{}",
        world.story()
    );
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
    assert_eq!(world.command(&["pause", "--all"]).await.code, Some(0));
    world.moves_to("second");
    let ended = world.run().await;
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), ""), "{ended:?}");
    let status = world.command(&["status"]).await;
    assert!(status.stdout.contains("github:acme/widgets#1"), "{status:?}");

    assert_eq!(world.command(&["resume", "--all"]).await.code, Some(0));
    world.comes_back();
    world
        .model
        .plans(plan())
        .calls(COMMAND, json!({ "command": "echo wet > state.txt" }))
        .done("Painted.");
    let ended = world.run().await;
    assert_eq!(
        ended.stdout,
        "github:acme/widgets#1: done\n",
        "{ended:?}\n{}",
        world.story()
    );

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
    assert_eq!(world.command(&["pause", "--all"]).await.code, Some(0));
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
    assert_eq!(world.command(&["resume", "--all"]).await.code, Some(0));
    paints(&world);
    let ended = world.run().await;
    assert_eq!(
        ended.stdout,
        "github:acme/widgets#3: done\n",
        "{ended:?}\n{}",
        world.story()
    );
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
