//! Models that think, and refuse their own calls without what they thought.

use coding_agent::conversation::{Message, decode};
use coding_agent::llm::chat::Chat;
use coding_agent::llm::config::{Config, ProviderName};
use coding_agent::llm::error::LlmError;
use serde_json::json;

use crate::fake::model::{Model, Said};
use crate::{KEY, chat, config, llm, model_of, result};

/// Those that send thoughts in a form that has to come back.
const PROVIDERS: [ProviderName; 3] = [ProviderName::Lmstudio, ProviderName::Openai, ProviderName::Anthropic];

/// Lets the model call, and answers it.
async fn call(chat: &mut Chat) -> Result<(), LlmError> {
    let reply = chat.get_response().await?;
    assert!(
        !reply.text.contains("Thought"),
        "a thought is no word of the reply: {reply:?}"
    );
    chat.send_tool_results(reply.calls.iter().map(result).collect());
    Ok(())
}

#[tokio::test]
async fn a_model_gets_its_thoughts_back_with_every_provider_also_when_they_were_stored() {
    for provider in PROVIDERS {
        for is_streamed in [true, false] {
            let model = Model::start().await;
            model.thinks();
            if !is_streamed {
                model.streams_nothing();
            }
            model
                .calls("workspace/write_file", json!({ "path": "a" }))
                .calls_all([
                    ("odd.server/a tool", json!({})),
                    ("workspace/write_file", json!({ "path": "b" })),
                ])
                .calls("workspace/write_file", json!({ "path": "c" }))
                .done("Greeted.");
            let llm = llm(&model, provider);
            let mut first = chat(&llm, true);
            call(&mut first).await.unwrap();
            call(&mut first).await.unwrap();
            let stored = serde_json::to_string(&first.unsaved()).unwrap();

            let mut second = chat(&llm, true);
            second.resume(serde_json::from_str(&stored).unwrap());
            call(&mut second).await.unwrap();
            let last = second.get_response().await.unwrap();
            assert!(decode::turn(&last).unwrap().done, "{provider:?}");
            assert_eq!(model.requests().len(), 4, "{provider:?}");
            model.finish();
        }
    }
}

#[tokio::test]
async fn what_was_stored_before_thoughts_were_is_still_read() {
    let stored = json!([
        { "role": "system", "text": "You are a coding agent." },
        { "role": "user", "text": "Greet the reader." },
        { "role": "assistant", "text": "", "calls": [{ "id": "a", "tool": "workspace/write_file", "args": {} }] },
        { "role": "results", "results": [
            { "call": { "id": "a", "tool": "workspace/write_file", "args": {} }, "output": "written", "is_error": false },
        ] },
    ]);
    let stored: Vec<Message> = serde_json::from_value(stored).unwrap();
    let model = Model::start().await;
    model.goes_on_for_another();
    model.done("Greeted.");
    let mut chat = chat(&llm(&model, ProviderName::Openai), true);
    chat.resume(stored);
    assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);
    let request = model.requests().pop().unwrap();
    assert!(matches!(&request.messages[2], Said::Assistant(_, calls) if calls[0].id == "a"));
    assert_eq!(request.body["messages"][2].get("reasoning_content"), None);
    model.finish();
}

#[tokio::test]
async fn a_server_that_refuses_thoughts_is_asked_without_from_then_on() {
    let model = Model::start().await;
    let called = json!({ "id": "a", "type": "function", "function": { "name": "write_file", "arguments": "{}" } });
    let message =
        json!({ "role": "assistant", "content": "", "reasoning_content": "Thought.", "tool_calls": [called] });
    let body = json!({ "choices": [{ "message": message, "finish_reason": "tool_calls" }] });
    model
        .script()
        .sends(&body.to_string())
        .refuses("Extra inputs are not permitted: messages.2.reasoning_content")
        .done("Greeted.");
    let mut chat = chat(&llm(&model, ProviderName::Openai), true);
    call(&mut chat).await.unwrap();
    assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);
    let has_thoughts = |body: &serde_json::Value| body.to_string().contains("Thought");
    let sent: Vec<bool> = model
        .requests()
        .iter()
        .map(|request| has_thoughts(&request.body))
        .collect();
    assert_eq!(sent, [false, true, false]);
    model.finish();
}

/// Returns a configuration in which `fallback`, behind Anthropic's protocol, takes the place of
/// `model`.
fn with_fallback(model: &Model, provider: ProviderName, fallback: &Model) -> Config {
    let mut config = config(model, provider);
    let near = json!({
        "provider": "anthropic", "base_url": fallback.address(), "model": "scripted", "api_key": KEY,
    });
    config
        .models
        .insert("near".to_owned(), serde_json::from_value(near).unwrap());
    config.openai.options.fallback = Some("near".to_owned());
    config.lmstudio.options.fallback = Some("near".to_owned());
    config.anthropic.options.fallback = Some("near".to_owned());
    config
}

#[tokio::test]
async fn a_fallback_gets_neither_thoughts_nor_ids_of_calls_and_the_model_goes_on_after_it() {
    for provider in PROVIDERS {
        let (model, near) = (Model::start().await, Model::start().await);
        model.thinks();
        near.thinks();
        model
            .calls("workspace/write_file", json!({ "path": "a" }))
            .rate_limited(Some(7_200));
        near.goes_on_for_another();
        near.calls("workspace/write_file", json!({ "path": "b" }));
        let config = with_fallback(&model, provider, &near);
        let mut chat = chat(&model_of(&config).unwrap(), true);
        call(&mut chat).await.unwrap();
        call(&mut chat).await.unwrap();
        assert_eq!(chat.answered_by(), "near", "{provider:?}");
        let request = near.requests().pop().unwrap();
        let sent = request.body["messages"].to_string();
        for foreign in ["Thought", "signature", "tool_use", "call_"] {
            assert!(!sent.contains(foreign), "{provider:?}, {foreign}: {sent}");
        }
        assert!(sent.contains("write_file"), "what was called is told: {sent}");

        // In another process nobody knows of the limit.
        let stored = serde_json::to_string(&chat.unsaved()).unwrap();
        let mut later = crate::chat(&model_of(&config).unwrap(), true);
        later.resume(serde_json::from_str(&stored).unwrap());
        model.done("Greeted.");
        let last = later.get_response().await.unwrap();
        assert!(decode::turn(&last).unwrap().done, "{provider:?}");
        assert_eq!(later.answered_by(), "llm", "{provider:?}");
        let sent = model.requests().pop().unwrap().body["messages"].to_string();
        assert!(sent.contains("Thought"), "{sent}");
        model.finish();
        near.finish();
    }
}
