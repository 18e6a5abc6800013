//! The same short story told through each provider and each way of calling tools.

use serde_json::{Value, json};

use super::{greeting, greets, plan};
use crate::fake::model::{Protocol, Request};
use crate::world::World;

/// Plays the story with this section `llm` and returns what was asked of the model.
async fn requests_with(llm: impl Fn(&World) -> Value, prepare: impl Fn(&World)) -> Vec<Request> {
    let mut world = World::start().await;
    let llm = llm(&world);
    world.configure(|config| config["llm"] = llm);
    prepare(&world);
    greets(world.model.plans(plan().verified_by("grep Hello README.md")));
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(world.github.pulls()[0].file("README.md").as_deref(), Some("Hello\n"));
    let requests = world.model.requests();
    world.finish().await;
    requests
}

fn openai(world: &World, function_calling: &Value) -> Value {
    json!({
        "provider": "openai",
        "function_calling": function_calling,
        "openai": { "base_url": world.model.openai_address(), "model": "scripted" },
    })
}

/// Returns whether each request offered tools.
fn offers(requests: &[Request]) -> Vec<bool> {
    requests.iter().map(|request| !request.offered.is_empty()).collect()
}

#[tokio::test]
async fn openai_with_native_tool_calls() {
    let requests = requests_with(|world| openai(world, &json!(true)), |_| {}).await;
    // The plan is a document and needs none.
    assert_eq!(offers(&requests), [false, true, true]);
    assert!(requests[1].offered.contains(&"done".to_owned()));
}

#[tokio::test]
async fn a_model_that_refuses_tools_gets_json_when_that_is_left_to_the_program() {
    let requests = requests_with(
        |world| openai(world, &json!("auto")),
        |world| world.model.takes_no_tools(),
    )
    .await;
    assert_eq!(offers(&requests), [false, true, false, false]);
    assert!(requests[2].system().contains("\n- write_file {"));
}

#[tokio::test]
async fn ollama_through_its_own_protocol_with_the_window_set() {
    let requests = requests_with(
        |world| {
            json!({
                "provider": "ollama",
                "ollama": { "endpoint": world.model.address(), "model": "scripted", "context_length": 16384, "keep_alive": "5m" },
            })
        },
        |_| {},
    )
    .await;
    assert_eq!(offers(&requests), [false, true, true]);
    for request in &requests {
        assert_eq!(request.protocol, Protocol::Ollama);
        assert_eq!(
            (&request.body["options"]["num_ctx"], &request.body["keep_alive"]),
            (&json!(16_384), &json!("5m"))
        );
    }
}

#[tokio::test]
async fn an_ollama_model_without_tools_gets_json() {
    let requests = requests_with(
        |world| json!({ "provider": "ollama", "ollama": { "endpoint": world.model.address(), "model": "scripted" } }),
        |world| world.model.takes_no_tools(),
    )
    .await;
    // The server says so before anything is asked: no request is wasted.
    assert_eq!(offers(&requests), [false, false, false]);
}

#[tokio::test]
async fn lm_studio_with_the_missing_part_of_its_address_added() {
    let requests = requests_with(
        |world| json!({ "provider": "lmstudio", "lmstudio": { "base_url": world.model.address(), "model": "scripted" } }),
        |_| {},
    )
    .await;
    assert!(
        requests
            .iter()
            .all(|request| request.protocol == Protocol::ChatCompletions)
    );
}

#[tokio::test]
async fn anthropic_with_cache_marks() {
    let requests = requests_with(
        |world| {
            json!({
                "provider": "anthropic",
                "anthropic": { "base_url": world.model.address(), "api_key": "sk-ant-0123456789", "model": "scripted" },
            })
        },
        |world| world.model.wants_key("sk-ant-0123456789"),
    )
    .await;
    assert_eq!(offers(&requests), [false, true, true]);
    assert!(requests.iter().all(|request| request.protocol == Protocol::Messages));
}
