//! Servers of local models that are down, or have loaded the model with another window.

use serde_json::{Value, json};

use crate::fake::model::Model;
use crate::reviews::judged;
use crate::world::World;
use crate::world::databases::Database;
use crate::world::facts::{count, facts};
use crate::world::scripts::{greets, plan};

/// The world with Ollama on this machine, whose health is watched in this way. The command writes a
/// line to a file, by which a test knows how often it was run.
async fn watched(health: Value) -> World {
    let mut world = World::start().await;
    let endpoint = world.model.address();
    let log = world.folder().join("restarts");
    world.configure(|config| {
        config["llm"]["provider"] = json!("ollama");
        config["llm"]["ollama"] =
            json!({"endpoint": endpoint, "model": "scripted", "context_length": 16_384, "keep_alive": "1h"});
        config["llm"]["health"] = json!({"restart_command": ["sh", "-c", format!("echo again >> {}", log.display())]});
        for (key, value) in health.as_object().unwrap() {
            config["llm"]["health"][key] = value.clone();
        }
    });
    world
}

/// The same, with a reviewer of plans on another such server.
async fn reviewed(health: Value) -> (World, Model) {
    let mut world = watched(health).await;
    let reviewer = Model::start().await;
    let critic =
        json!({"provider": "ollama", "endpoint": reviewer.address(), "model": "scripted", "context_length": 16_384});
    world.configure(|config| {
        config["llm"]["models"] = json!({ "critic": critic });
        config["llm"]["roles"] = json!({ "reviewer": "critic" });
        config["review"] = json!({ "plan": { "enabled": true, "on_unready": "fail" } });
    });
    (world, reviewer)
}

fn restarts(world: &World) -> usize {
    let log = std::fs::read_to_string(world.folder().join("restarts"));
    log.unwrap_or_default().lines().count()
}

fn greets_once(world: &World) {
    greets(world.model.plans(plan().verified_by("grep -q Hello README.md")));
}

#[tokio::test]
async fn the_model_is_loaded_before_a_run_with_its_window() {
    let world = watched(json!({})).await;
    greets_once(&world);
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(world.model.loaded(), [("scripted".to_owned(), 16_384)].into());
    assert_eq!(restarts(&world), 0);
    world.finish().await;
}

#[tokio::test]
async fn a_server_that_is_down_is_restarted_once_and_the_run_waits() {
    let world = watched(json!({"cool_down_seconds": 3_600, "restart_seconds": 5})).await;
    world.model.is_down(true);
    let issue = world.github.open_issue("Greet the reader").label("coding agent");
    let other = world.github.open_issue("Greet them again").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert_eq!(restarts(&world), 1, "{}", world.story());
    for issue in [&issue, &other] {
        assert_eq!(issue.labels(), ["coding agent paused"], "{}", world.story());
        let told = issue.comments_of(world.github.bot()).join("\n");
        assert!(
            told.contains("Waiting until") && told.contains("was restarted"),
            "{told}"
        );
    }
    assert!(world.model.requests().is_empty());

    // The command is not run again before the cool-down is over, nor by another process.
    issue.label("coding agent");
    world.run().await;
    assert_eq!(restarts(&world), 1, "{}", world.story());

    world.model.is_down(false);
    greets(
        world
            .model
            .for_task("Greet the reader")
            .plans(plan().verified_by("grep -q Hello README.md")),
    );
    // Whenever it is due again.
    _ = other.close();
    issue.label("coding agent");
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    assert_eq!(restarts(&world), 1);
    world.finish().await;
}

#[tokio::test]
async fn each_machine_restarts_the_server_at_its_own_loopback_address() {
    let database = Database::start();
    let mut world = watched(json!({"cool_down_seconds": 3_600, "restart_seconds": 5})).await;
    let address = database.schema();
    world.configure(|config| config["store"] = json!({ "url": address }));
    world.model.is_down(true);
    let issue = world.github.open_issue("Greet the reader").label("coding agent");
    world.run().await;
    assert_eq!(issue.labels(), ["coding agent paused"], "{}", world.story());
    assert_eq!(restarts(&world), 1, "{}", world.story());

    world.moves_to("second");
    for _ in 0..2 {
        issue.label("coding agent");
        world.run().await;
        assert_eq!(restarts(&world), 2, "{}", world.story());
    }
    world.comes_back();
    world.finish().await;
}

#[tokio::test]
async fn a_server_that_its_restart_brings_back_works_on_at_once() {
    let world = watched(json!({"cool_down_seconds": 1, "restart_seconds": 30})).await;
    world.model.is_down(true);
    greets_once(&world);
    let issue = world.github.open_issue("Greet the reader").label("coding agent");
    let mut program = world.spawn(&["serve"]);
    let restarted = world.until("the restart", || restarts(&world) > 0);
    program.until(&world, restarted).await;
    world.model.is_down(false);

    let done = issue.until(|issue| issue.labels() == ["coding agent done"]);
    program.until(&world, done).await;

    program.signal("TERM");
    let ended = program.ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn the_reviewers_server_is_made_ready_before_the_work_too() {
    let (world, reviewer) = reviewed(json!({"cool_down_seconds": 1, "restart_seconds": 30})).await;
    reviewer.is_down(true);
    reviewer.says(&judged(true, 9.0, "Good."));
    greets_once(&world);
    let issue = world.github.open_issue("Greet the reader").label("coding agent");
    let mut program = world.spawn(&["serve"]);
    let restarted = world.until("the restart", || restarts(&world) > 0);
    program.until(&world, restarted).await;
    assert!(world.model.requests().is_empty(), "{}", world.story());
    reviewer.is_down(false);

    let done = issue.until(|issue| issue.labels() == ["coding agent done"]);
    program.until(&world, done).await;

    program.signal("TERM");
    let ended = program.ended().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(reviewer.loaded(), [("scripted".to_owned(), 16_384)].into());
    reviewer.finish();
    world.finish().await;
}

#[tokio::test]
async fn a_run_whose_reviewer_goes_down_waits_for_it_and_has_it_restarted() {
    let (mut world, reviewer) = reviewed(json!({"before_each_run": false, "cool_down_seconds": 3_600})).await;
    world.configure(|config| config["llm"]["models"]["critic"]["endpoint"] = json!("http://127.0.0.1:9"));
    world.model.plans(plan().verified_by("grep -q Hello README.md"));
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert!(
        ended.stdout.starts_with("github:acme/widgets#1: put back until "),
        "{ended:?}\n{}",
        world.story()
    );
    assert_eq!(issue.labels(), ["coding agent paused"], "{}", world.story());
    assert_eq!(restarts(&world), 1, "{}", world.story());

    let address = reviewer.address();
    world.configure(|config| config["llm"]["models"]["critic"]["endpoint"] = json!(address));
    reviewer.says(&judged(true, 9.0, "Good."));
    greets(world.model.script());
    issue.label("coding agent");
    let ended = world.run().await;
    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    assert_eq!((restarts(&world), count(&world, "review_missing")), (1, 0));
    reviewer.finish();
    world.finish().await;
}

#[tokio::test]
async fn a_reviewer_whose_server_only_fails_is_restarted_and_not_waited_for() {
    let (world, reviewer) = reviewed(json!({"before_each_run": false, "cool_down_seconds": 3_600})).await;
    reviewer.is_down(true);
    world.model.plans(plan().verified_by("grep -q Hello README.md"));
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: failed\n", &world);
    assert_eq!((restarts(&world), count(&world, "review_missing")), (1, 1));
    let told = issue.comments_of(world.github.bot()).join("\n");
    assert!(
        told.contains("there is no review of it: the reviewer failed") && told.contains("nobody answers here"),
        "{told}"
    );
    reviewer.finish();
    world.finish().await;
}

#[tokio::test]
async fn a_reviewer_without_its_model_ends_no_run_that_may_do_without_it() {
    let (mut world, reviewer) = reviewed(json!({"restart_command": []})).await;
    world.configure(|config| {
        config["llm"]["models"]["critic"]["model"] = json!("missing-model");
        config["review"]["plan"]["on_unready"] = json!("proceed");
    });
    greets_once(&world);
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    let warned: Vec<String> = facts(&world, "warned")
        .iter()
        .map(|fact| fact["text"].to_string())
        .collect();
    let is_told =
        |text: &String| text.contains("the reviewer is not ready") && text.contains("ollama pull missing-model");
    assert!(warned.iter().any(is_told), "{warned:?}");
    let told = issue.comments_of(world.github.bot()).join("\n");
    assert!(told.contains("there is no review of it"), "{told}");
    assert_eq!(count(&world, "review_missing"), 1);
    reviewer.finish();
    world.finish().await;
}

#[tokio::test]
async fn a_reviewer_that_is_no_longer_needed_holds_no_run_up() {
    let (mut world, reviewer) = reviewed(json!({"restart_seconds": 5})).await;
    reviewer.says(&judged(true, 9.0, "Good."));
    let script = world.model.plans(plan().verified_by("grep -q Hello README.md"));
    script.rate_limited(Some(7_200));
    let issue = world.github.open_issue("Greet the reader").label("coding agent");
    let ended = world.run().await;
    assert!(
        ended.stdout.starts_with("github:acme/widgets#1: put back until "),
        "{ended:?}\n{}",
        world.story()
    );

    world.configure(|config| config["llm"]["models"]["critic"]["endpoint"] = json!("http://127.0.0.1:9"));
    greets(world.model.script());
    issue.label("coding agent");
    let ended = world.run().await;

    ended.prints("github:acme/widgets#1: done\n", &world);
    assert_eq!((restarts(&world), count(&world, "review_given")), (0, 1));
    reviewer.finish();
    world.finish().await;
}

#[tokio::test]
async fn a_server_that_has_lost_its_model_is_restarted_and_without_a_command_the_mend_is_told() {
    let mut world = watched(json!({"restart_seconds": 5})).await;
    world.configure(|config| config["llm"]["ollama"]["model"] = json!("missing-model"));
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent paused"]);
    let told = issue.comments_of(world.github.bot()).join("\n");
    assert!(
        told.contains("ollama pull missing-model") && told.contains("was restarted"),
        "{told}"
    );
    assert_eq!(restarts(&world), 1);

    world.configure(|config| config["llm"]["health"]["restart_command"] = json!([]));
    issue.label("coding agent");
    world.run().await;
    assert_eq!(issue.labels(), ["coding agent failed"], "{}", world.story());
    assert_eq!(restarts(&world), 1);
    world.finish().await;
}

#[tokio::test]
async fn a_window_outside_the_bounds_is_refused_with_the_mend() {
    let world = watched(json!({"min_context": 16_384, "max_context": 32_768, "restart_seconds": 5})).await;
    world.model.loads_with(Some(4_096));
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent failed"]);
    let told = issue.comments_of(world.github.bot()).join("\n");
    assert!(
        told.contains("with a window of 4096 tokens, and llm.health.min_context is 16384"),
        "{told}"
    );
    assert!(told.contains("OLLAMA_CONTEXT_LENGTH"), "{told}");
    assert_eq!(restarts(&world), 1);
    assert!(world.model.requests().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_restart_that_fails_or_never_ends_is_told_and_leaves_nothing_behind() {
    let hangs = json!({"restart_command": ["sh", "-c", "sleep 600 & yes"], "restart_seconds": 2});
    let world = watched(hangs).await;
    world.model.is_down(true);
    let issue = world.github.open_issue("Greet the reader").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent paused"]);
    let told = issue.comments_of(world.github.bot()).join("\n");
    assert!(told.contains("and was ended"), "{told}");
    world.finish().await;
}
