//! Docker engines as they are found in the world: the oldest one that is supported, a new one, one
//! that is too old, none.

use insta::assert_snapshot;

use super::{greeting, greets, plan, told};
use crate::fake::engine::{Engine, Version};
use crate::fake::github::Item;
use crate::world::World;

#[tokio::test]
async fn the_oldest_supported_engine_is_worked_with() {
    is_worked_with(Version {
        engine: "20.10.0",
        api: (12, 41),
    })
    .await;
}

#[tokio::test]
async fn an_engine_newer_than_this_program_is_worked_with() {
    is_worked_with(Version {
        engine: "29.1.0",
        api: (44, 54),
    })
    .await;
}

/// A whole run, and `doctor`, through that engine alone.
async fn is_worked_with(version: Version) {
    let mut world = World::start().await;
    let engine = Engine::start(version).await;
    world.sets("DOCKER_HOST", engine.address());
    greets(world.model.plans(plan()));
    let issue = greeting(&world);

    let ended = world.run().await;
    let doctor = world.command(&["doctor"]).await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(world.github.pulls()[0].file("README.md").as_deref(), Some("Hello\n"));
    let named = format!("Engine {}, API 1.{}", version.engine, version.api.1);
    assert!(doctor.stdout.contains(&named), "{doctor:?}");
    let asked = engine.asked();
    let is_stream = |request: &String| request.starts_with("POST /exec/") && request.ends_with("/start");
    assert!(asked.contains(&"POST /containers/create".to_owned()), "{asked:?}");
    assert!(asked.iter().any(is_stream), "{asked:?}");
    world.finish().await;
}

#[tokio::test]
async fn an_engine_that_is_too_old_keeps_the_task_until_there_is_a_newer_one() {
    let engine = Engine::start(Version {
        engine: "19.03.15",
        api: (12, 40),
    })
    .await;
    let mut world = World::start().await;
    world.sets("DOCKER_HOST", engine.address());
    world.model.plans(plan());
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 1
    labels: coding agent paused
    -----
    ### ⏳ Waiting until <time>

    The Docker engine at `tcp://<address>` is too old: it is Engine 19.03.15, API 1.40, and Engine 20.10 (API 1.41) is the oldest that works; install a newer one, or set DOCKER_HOST.

    Then it goes on by itself, and reads what was written here meanwhile. Put the label `coding agent` on to have it go on at once.

    Planned.

    - [ ] greet the reader

    <sub>Environment `python` · 1 model turn · <tokens> · <time> · run `<run>`</sub>

    <!-- coding-agent:<run>:progress -->
    ");
    let doctor = world.command(&["doctor"]).await;
    assert!(doctor.stdout.contains("-> install a newer one"), "{doctor:?}");
    let asked = engine.asked();
    assert!(!asked.iter().any(|request| request.starts_with("POST")), "{asked:?}");
    is_worked_on_with_the_usual_engine(world, &issue).await;
}

#[tokio::test]
async fn without_an_engine_the_task_is_kept_until_there_is_one() {
    let mut world = World::start().await;
    world.sets("DOCKER_HOST", "unix:///nowhere/docker.sock");
    world.model.plans(plan());
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 1
    labels: coding agent paused
    -----
    ### ⏳ Waiting until <time>

    The Docker engine at `unix:///nowhere/docker.sock` cannot be used: Socket not found: /nowhere/docker.sock; start it, or set DOCKER_HOST.

    Then it goes on by itself, and reads what was written here meanwhile. Put the label `coding agent` on to have it go on at once.

    Planned.

    - [ ] greet the reader

    <sub>Environment `python` · 1 model turn · <tokens> · <time> · run `<run>`</sub>

    <!-- coding-agent:<run>:progress -->
    ");
    is_worked_on_with_the_usual_engine(world, &issue).await;
}

/// The engine is mended, and a person does not want to wait for the clock.
async fn is_worked_on_with_the_usual_engine(mut world: World, issue: &Item) {
    let usual = std::env::var("DOCKER_HOST").unwrap_or_default();
    world.sets("DOCKER_HOST", &usual);
    greets(world.model.script());
    issue.label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(world.github.pulls().len(), 1);
    world.finish().await;
}
