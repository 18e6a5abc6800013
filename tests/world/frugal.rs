//! What a model at home is spared: it is asked one thing at a time, stays loaded, and finds the
//! beginning of each request in its cache.

use std::collections::BTreeSet;

use serde_json::json;

use crate::fake::model::Plan;
use crate::world::World;

/// Two tasks, and a model behind this provider that holds its first reply back.
async fn two_tasks(provider: &str) -> World {
    let mut world = World::start().await;
    let (root, name) = (world.model.address(), "scripted");
    world.configure(|config| {
        config["llm"]["provider"] = json!(provider);
        config["llm"]["ollama"] = json!({ "endpoint": root, "model": name });
        config["logs"]["level"] = json!("debug");
    });
    for title in ["Greet", "Part"] {
        world
            .model
            .for_task(title)
            .plans(Plan::of(&["look at it"]))
            .holds()
            .done("Nothing to do.");
        world.github.open_issue(title).label("coding agent");
    }
    world
}

#[tokio::test]
async fn ollama_is_asked_one_thing_at_a_time() {
    let world = two_tasks("ollama").await;
    let mut program = world.spawn(&["run"]);
    let both = async {
        world.model.until_held(1).await;
        world.until_logged("a request waits for its turn at the model").await;
        world.model.release();
        world.model.release();
    };
    program.until(&world, both).await;

    let ended = program.ended().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(world.model.most_at_once(), 1, "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_server_without_a_limit_is_asked_by_all_at_once() {
    let world = two_tasks("openai").await;
    let mut program = world.spawn(&["run"]);
    let both = async {
        world.model.until_held(2).await;
        world.model.release();
        world.model.release();
    };
    program.until(&world, both).await;

    let ended = program.ended().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(world.model.most_at_once(), 2, "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_task_that_waits_for_its_turn_is_stopped_at_once() {
    let world = two_tasks("ollama").await;
    let mut program = world.spawn(&["run"]);
    let waiting = async {
        world.model.until_held(1).await;
        world.until_logged("a request waits for its turn at the model").await;
    };
    program.until(&world, waiting).await;

    program.signal("TERM");
    let ended = program.ended().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(
        ended.outcomes(),
        [
            "github:acme/widgets#1: interrupted",
            "github:acme/widgets#2: interrupted"
        ]
    );
    assert_eq!(world.model.counts().0, 1, "{}", world.story());
}

/// Every request of a run is for the same model with the same window, or the server would load it
/// anew and begin with an empty cache.
#[tokio::test]
async fn nothing_changes_between_the_requests_of_a_run_but_what_was_said() {
    let mut world = World::start().await;
    let root = world.model.address();
    world.configure(|config| {
        config["llm"]["provider"] = json!("ollama");
        config["llm"]["function_calling"] = json!(true);
        config["llm"]["ollama"] = json!({
            "endpoint": root, "model": "scripted", "context_length": 16_384, "keep_alive": "-1",
        });
    });
    world
        .model
        .plans(Plan::of(&["look at it"]))
        .calls("workspace/read_file", json!({ "path": "README.md" }))
        .calls("workspace/execute_command", json!({ "command": "ls" }))
        .done("Nothing to do.");
    world.github.open_issue("Greet").label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    let requests = world.model.requests();
    let settings: BTreeSet<String> = requests
        .iter()
        .map(|request| {
            let mut body = request.body.clone();
            for key in ["messages", "tools"] {
                body.as_object_mut().unwrap().remove(key);
            }
            body.to_string()
        })
        .collect();
    insta::assert_snapshot!(settings.into_iter().collect::<Vec<_>>().join("\n"), @r#"{"keep_alive":-1,"model":"scripted","options":{"num_ctx":16384},"shift":false,"stream":true,"truncate":false}"#);
    let tools: BTreeSet<String> = requests[1..]
        .iter()
        .map(|request| request.body["tools"].to_string())
        .collect();
    assert_eq!((requests.len(), tools.len()), (4, 1));
    // Each description is paid for in every request.
    let offered = &requests[1].offered;
    assert!(
        offered.contains(&"bash".to_owned()) && !offered.contains(&"list_files".to_owned()),
        "{offered:?}"
    );
    world.finish().await;
}
