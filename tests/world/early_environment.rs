//! The environment is opened while the model still plans, where the project's files show which one
//! it will be.

use std::time::Duration;

use serde_json::json;
use tokio::process::Command;

use crate::fake::model::Plan;
use crate::world::{IMAGE, PATIENCE, World};

/// Waits until the one container of this world runs, and returns its id.
async fn running_container(world: &World) -> String {
    let waiting = async {
        loop {
            if let [container] = world.containers().await.as_slice() {
                let container = container.trim_start_matches('/').to_owned();
                let inspect = ["inspect", "--format", "{{.Id}} {{.State.Running}}", &container];
                let said = Command::new("docker").args(inspect).output().await.unwrap().stdout;
                if let Some(id) = String::from_utf8_lossy(&said).trim().strip_suffix(" true") {
                    return id.to_owned();
                }
            }
            // The engine rings no bell.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting)
        .await
        .unwrap_or_else(|_| panic!("no container came\n{}", world.story()))
}

/// Returns the containers that the journal says runs worked in.
fn worked_in(world: &World) -> Vec<String> {
    let journal = world.journal();
    let started = journal.iter().filter(|line| line["fact"] == "environment_started");
    started
        .map(|line| line["container"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn it_is_there_before_the_plan_is() {
    let world = World::start().await;
    world
        .model
        .plans(Plan::of(&["write"]).in_environment("python"))
        .holds()
        .calls(
            "workspace/write_file",
            json!({ "path": "a.txt", "content": "A line.\n" }),
        )
        .done("Wrote it.");
    world.github.open_issue("Write a line").label("coding agent");

    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    let early = running_container(&world).await;
    world.model.release();
    let ended = program.ended().await;

    assert_eq!(
        ended.outcomes(),
        ["github:acme/widgets#1: done"],
        "{ended:?}\n{}",
        world.story()
    );
    assert_eq!(worked_in(&world), [early]);
    world.finish().await;
}

#[tokio::test]
async fn it_is_thrown_away_where_the_plan_wants_another() {
    let mut world = World::start().await;
    // The repository shows neither of them, and a person's word goes before it.
    world.configure(|config| {
        config["command_executor"]["environments"] = json!({
            "python": { "image": IMAGE, "project_files": ["README.md"] },
            "other": IMAGE,
        });
    });
    world
        .model
        .plans(Plan::of(&["write"]).in_environment("other"))
        .holds()
        .calls(
            "workspace/write_file",
            json!({ "path": "a.txt", "content": "A line.\n" }),
        )
        .done("Wrote it.");
    world.github.open_issue("Write a line").label("coding agent");

    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    let early = running_container(&world).await;
    world.model.release();
    let ended = program.ended().await;

    assert_eq!(
        ended.outcomes(),
        ["github:acme/widgets#1: done"],
        "{ended:?}\n{}",
        world.story()
    );
    let worked_in = worked_in(&world);
    assert_eq!(worked_in.len(), 1, "{worked_in:?}");
    assert_ne!(worked_in[0], early);
    world.finish().await;
}

#[tokio::test]
async fn it_goes_with_a_run_that_is_stopped_before_the_plan() {
    let world = World::start().await;
    world.model.plans(Plan::of(&["write"]).in_environment("python")).holds();
    world.github.open_issue("Write a line").label("coding agent");

    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    running_container(&world).await;
    program.signal("TERM");
    let ended = program.ended().await;

    assert_eq!(
        ended.outcomes(),
        ["github:acme/widgets#1: interrupted"],
        "{ended:?}\n{}",
        world.story()
    );
    assert_eq!(worked_in(&world), [""; 0]);
    world.finish().await;
}
