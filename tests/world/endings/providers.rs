//! The same short story told through each provider and each way of calling tools.

use serde_json::{Value, json};

use super::{greeting, greets, plan, writes};
use crate::fake::model::{Protocol, Request, Said};
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

/// Returns how much the model is asked to think in each request.
fn efforts(requests: &[Request]) -> Vec<Value> {
    requests
        .iter()
        .map(|request| request.body["reasoning_effort"].clone())
        .collect()
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
async fn a_model_that_takes_tools_only_without_thinking_is_asked_not_to_think_beside_them() {
    let requests = requests_with(
        |world| openai(world, &json!("auto")),
        |world| world.model.thinks_only_without_tools(),
    )
    .await;
    assert_eq!(offers(&requests), [false, true, true, true]);
    let expected = [Value::Null, Value::Null, json!("none"), json!("none")];
    assert_eq!(efforts(&requests), expected);
}

#[tokio::test]
async fn a_configured_effort_is_kept_and_the_run_goes_on_in_json_where_tools_are_refused_beside_it() {
    let requests = requests_with(
        |world| {
            let mut llm = openai(world, &json!("auto"));
            llm["openai"]["reasoning_effort"] = json!("high");
            llm
        },
        |world| world.model.thinks_only_without_tools(),
    )
    .await;
    assert_eq!(offers(&requests), [false, true, false, false]);
    assert_eq!(
        efforts(&requests),
        [json!("high"), json!("high"), json!("high"), json!("high")]
    );
}

#[tokio::test]
async fn a_server_that_takes_no_tools_any_more_gets_json_and_the_model_is_told_how() {
    let mut world = World::start().await;
    let llm = openai(&world, &json!("auto"));
    world.configure(|config| config["llm"] = llm);
    let script = writes(world.model.plans(plan()), "README.md", "Hello\n");
    script
        .refuses("`tool calling` is not supported with this model")
        .done("The README greets its reader now.");
    // What were native calls are texts from then on, so nothing said before is repeated as it was.
    world.model.goes_on_for_another();
    world.model.allows_restarts();
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let requests = world.model.requests();
    assert_eq!(offers(&requests), [false, true, true, false]);
    let last = &requests[3];
    assert!(!requests[2].system().contains("\n- write_file {"));
    assert!(last.system().contains("\n- write_file {"), "{}", last.system());
    let told = last.last_user_message();
    assert!(told.contains("Native tool calls are not possible any more."), "{told}");
    assert!(
        matches!(&last.messages[2], Said::Assistant(text, calls) if calls.is_empty() && text.contains("write_file")),
        "{:?}",
        last.messages
    );
    world.finish().await;
}

#[tokio::test]
async fn a_failed_check_reaches_a_model_whose_server_wants_a_reply_behind_each_result() {
    let mut world = World::start().await;
    let llm = openai(&world, &json!("auto"));
    world.configure(|config| config["llm"] = llm);
    world
        .model
        .wants_replies_behind_results(400, "Unexpected role 'user' after role 'tool'");
    // What is written otherwise does not extend the request that was refused.
    world.model.allows_restarts();
    let checked = world.model.plans(plan().verified_by("grep Hello README.md"));
    greets(writes(checked, "README.md", "Goodbye\n").done("It is polite now."));
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let requests = world.model.requests();
    assert_eq!(requests.len(), 6);
    let [refused, sent] = [3, 4].map(|place: usize| requests[place].messages.as_slice());
    assert!(
        matches!(refused, [.., Said::Result(..), Said::User(text)] if text.contains("does not pass yet")),
        "{refused:?}"
    );
    assert!(
        matches!(sent, [.., Said::Result(..), Said::Assistant(_, calls), Said::User(_)] if calls.is_empty()),
        "{sent:?}"
    );
    world.finish().await;
}

#[tokio::test]
async fn an_error_that_only_mentions_tools_is_told_and_nothing_is_switched() {
    let mut world = World::start().await;
    let llm = openai(&world, &json!("auto"));
    world.configure(|config| config["llm"] = llm);
    writes(world.model.plans(plan()), "README.md", "Hello\n")
        .refuses("Function call is missing a thought_signature in functionCall parts.");
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
    let told = issue.comments_of(world.github.bot()).join("\n");
    assert!(told.contains("Function call is missing a thought"), "{told}");
    assert_eq!(offers(&world.model.requests()), [false, true, true]);
    world.finish().await;
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

/// LM Studio loads a model with 4096 tokens when the first request comes, whatever it can have.
#[tokio::test]
async fn lm_studio_that_loads_a_small_window_is_named_with_what_to_do() {
    const WORDS: &str = "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 10247>= n_ctx: \
        4096). Try to load the model with a larger context length, or provide a shorter input.";
    for (version, entry) in [
        ("v1", json!({ "key": "scripted", "loaded_instances": [] })),
        ("v0", json!({ "id": "scripted", "state": "not-loaded" })),
    ] {
        let mut world = World::start().await;
        let server = json!({ "base_url": world.model.address(), "model": "scripted", "context_length": 32_768 });
        world.configure(|config| {
            config["llm"] = json!({ "provider": "lmstudio", "function_calling": false, "lmstudio": server });
        });
        world.model.is_lm_studios(version, entry);
        world.model.refuses(WORDS);

        // Nobody can tell yet, and that is said.
        let examined = world.command(&["doctor"]).await;
        let line = examined.stdout.lines().find(|line| line.contains("  model  ")).unwrap();
        let expected =
            "ok model lmstudio at MODEL/v1 has scripted, not loaded; how large its window is shows when it is";
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!(world.settled(&words.join(" ")), expected);
        let issue = greeting(&world);
        let ended = world.run().await;

        assert_eq!(ended.code, Some(1), "{ended:?}\n{}", world.story());
        assert_eq!(issue.labels(), ["coding agent failed"]);
        let told = issue.comments_of(world.github.bot()).join("\n");
        let expected = "The conversation needs about 10247 tokens, and the server's window has 4096 although 32768 are configured; load the \
            model in LM Studio with a context length of 32768, or lower llm.lmstudio.context_length";
        assert!(told.contains(expected), "{told}");
        assert_eq!(world.model.requests().len(), 1);
        world.finish().await;
    }
}
