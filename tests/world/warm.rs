//! Containers that wait for runs: taken when there is work, renewed when they do not fit, and gone
//! with the service.

use serde_json::json;

use crate::fake::github::Item;
use crate::fake::model::{Plan, Request, Script};
use crate::fake::site::Site;
use crate::world::facts::facts;
use crate::world::scripts::COMMAND;
use crate::world::{IMAGE, Program, World, executor};

/// A world whose service keeps one container waiting.
async fn world() -> World {
    world_with(1).await
}

async fn world_with(waiting: usize) -> World {
    let mut world = World::start().await;
    world.configure(|config| config["command_executor"]["warm"] = json!({ "python": waiting }));
    world
}

/// Has the model run `command`, and say that it is done.
fn script<'a>(world: &'a World, command: &str) -> Script<'a> {
    world
        .model
        .plans(Plan::of(&["look"]).in_environment("python"))
        .calls(COMMAND, json!({ "command": command }))
        .done("Looked.")
}

/// Waits until `count` containers were started to wait.
async fn until_warmed(world: &World, count: usize) {
    let is_so = || facts(world, "environment_warmed").len() == count;
    world.until("a container to wait", is_so).await;
}

async fn until_done(world: &World, issue: &Item) {
    let is_so = || issue.labels() == ["coding agent done"];
    world.until("the issue to be done", is_so).await;
    // Then its container is removed, and the run put down.
    let is_so = || facts(world, "put_down").len() == facts(world, "claimed").len();
    world.until("the run to be put down", is_so).await;
}

/// Returns of each container that a run worked in whether it had waited.
fn have_waited(world: &World) -> Vec<bool> {
    let started = facts(world, "environment_started");
    started.iter().map(|line| line["has_waited"] == true).collect()
}

async fn ends(world: World, service: Program) {
    service.signal("TERM");
    let ended = service.ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_run_takes_the_one_that_waits_and_another_takes_its_place() {
    let site = Site::start();
    let mut world = world().await;
    world.configure(|config| {
        config["command_executor"]["network"] = json!({ "allow_private": [site.address()] });
        config["command_executor"]["services"] = json!({
            "web": {
                "image": IMAGE,
                "entrypoint": ["python3", "-m", "http.server", "-d", "/etc", "8080"],
                "ready": "curl -sf http://127.0.0.1:8080/hostname",
            },
        });
    });
    let address = site.address();
    script(
        &world,
        &format!(
            "git status --porcelain --branch; curl -sS -o /dev/null -w 'out %{{http_code}}\\n' http://{address}/; curl -sS http://web:8080/hostname"
        ),
    )
    .holds();
    let service = world.spawn(&["serve"]);
    until_warmed(&world, 1).await;
    let waiting = world.containers().await;
    assert!(waiting[0].starts_with("/coding-agent-warm-"), "{waiting:?}");
    // One for cron beside it leaves it alone.
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(world.containers().await, waiting);

    let issue = world.github.open_issue("Look around").label("coding agent");
    world.model.until_held(1).await;
    // The run's own, its service, and the one that took its place.
    until_warmed(&world, 2).await;
    let run = facts(&world, "environment_started")[0]["run"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut containers = world.containers().await;
    containers.sort();
    assert_eq!(containers.len(), 3, "{containers:?}");
    assert_eq!(
        containers[..2],
        [format!("/coding-agent-{run}"), format!("/coding-agent-{run}-web")]
    );
    assert!(containers[2].starts_with("/coding-agent-warm-"), "{containers:?}");
    world.model.release();
    until_done(&world, &issue).await;

    assert_eq!(have_waited(&world), [true], "{}", world.story());
    let warmed = facts(&world, "environment_warmed");
    assert_eq!(
        facts(&world, "environment_started")[0]["container"],
        warmed[0]["container"]
    );
    let said = world
        .model
        .requests()
        .iter()
        .map(Request::last_user_message)
        .nth(2)
        .unwrap();
    for expected in ["## coding-agent/", "out 200", "\\n[exit code 0"] {
        assert!(said.contains(expected), "{said}");
    }
    ends(world, service).await;
}

#[tokio::test]
async fn one_that_broke_while_it_waited_costs_no_run() {
    let world = world_with(2).await;
    let service = world.spawn(&["serve"]);
    for round in 1..=3 {
        // Where one is found broken, the other is not trusted either.
        until_warmed(&world, 2 * round).await;
        match round {
            1 => world.kill_containers().await,
            2 => world.remove_containers().await,
            _ => {}
        }
        script(&world, "ls");
        let issue = world.github.open_issue("Look around").label("coding agent");
        until_done(&world, &issue).await;
    }
    assert_eq!(have_waited(&world), [false, false, true], "{}", world.story());
    ends(world, service).await;
}

#[tokio::test]
async fn one_with_another_executor_in_it_is_not_taken() {
    let mut world = world().await;
    let own = world.folder().join("executor");
    std::fs::copy(executor(), &own).unwrap();
    world.configure(|config| config["command_executor"]["executor_path"] = json!(own));
    let service = world.spawn(&["serve"]);
    until_warmed(&world, 1).await;
    let first = world.containers().await;
    // As an update does it: another file in its place.
    let mut program = std::fs::read(&own).unwrap();
    program.extend_from_slice(own.as_os_str().as_encoded_bytes());
    let newer = world.folder().join("newer");
    std::fs::write(&newer, program).unwrap();
    std::fs::set_permissions(&newer, std::fs::metadata(&own).unwrap().permissions()).unwrap();
    std::fs::rename(&newer, &own).unwrap();

    for (round, waited) in [(1, false), (2, true)] {
        script(&world, "ls");
        let issue = world.github.open_issue("Look around").label("coding agent");
        until_done(&world, &issue).await;
        until_warmed(&world, round + 1).await;
        assert_eq!(have_waited(&world).last(), Some(&waited), "{}", world.story());
    }
    assert!(!world.containers().await.contains(&first[0]));
    ends(world, service).await;
}

#[tokio::test]
async fn those_of_a_killed_service_are_swept_and_a_run_finds_its_own() {
    let world = world().await;
    world.model.allows_restarts();
    script(&world, "touch /tmp/mark; echo more > more.txt").holds();
    let service = world.spawn(&["serve"]);
    until_warmed(&world, 1).await;
    let issue = world.github.open_issue("Look around").label("coding agent");
    world.model.until_held(1).await;
    until_warmed(&world, 2).await;
    service.kill().await;
    assert_eq!(world.containers().await.len(), 2);

    world
        .model
        .calls(COMMAND, json!({ "command": "ls /tmp/mark" }))
        .done("Looked.");
    world.model.release();
    let ended = world.run().await;
    assert_eq!(
        ended.outcomes(),
        ["github:acme/widgets#1: done"],
        "{ended:?}\n{}",
        world.story()
    );
    assert_eq!(issue.labels(), ["coding agent done"]);
    // The run went on in the container that had waited for it.
    assert_eq!(have_waited(&world), [true], "{}", world.story());
    world.finish().await;
}
