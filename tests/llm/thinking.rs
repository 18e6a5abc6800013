//! Models that think, and servers that want back what they thought, or refuse it.

use coding_agent::conversation::{Message, decode};
use coding_agent::llm::chat::Chat;
use coding_agent::llm::config::{Config, ProviderName};
use coding_agent::llm::error::LlmError;
use serde_json::json;

use crate::fake::model::{Model, Said};
use crate::{KEY, PROVIDERS, chat, clean, config, llm, model_of, result};

/// Those that refuse a call without what was thought before it.
const DEMANDING: [ProviderName; 3] = [ProviderName::Lmstudio, ProviderName::Openai, ProviderName::Anthropic];

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

/// Returns a conversation with a call, as an earlier version stored it.
fn stored_before() -> Vec<Message> {
    let stored = json!([
        { "role": "system", "text": "You are a coding agent." },
        { "role": "user", "text": "Greet the reader." },
        { "role": "assistant", "text": "", "calls": [{ "id": "a", "tool": "workspace/write_file", "args": {} }] },
        { "role": "results", "results": [
            { "call": { "id": "a", "tool": "workspace/write_file", "args": {} }, "output": "written", "is_error": false },
        ] },
    ]);
    serde_json::from_value(stored).unwrap()
}

#[tokio::test]
async fn what_was_stored_before_thoughts_were_is_still_read() {
    let model = Model::start().await;
    model.goes_on_for_another();
    model.done("Greeted.");
    let mut chat = chat(&llm(&model, ProviderName::Openai), true);
    chat.resume(stored_before());
    assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);
    let request = model.requests().pop().unwrap();
    assert!(matches!(&request.messages[2], Said::Assistant(_, calls) if calls[0].id == "a"));
    assert_eq!(request.body["messages"][2].get("reasoning_content"), None);
    model.finish();
}

#[tokio::test]
async fn what_was_stored_before_thoughts_were_goes_on_where_they_are_demanded() {
    let model = Model::start().await;
    model.thinks_as_deepseek();
    model.goes_on_for_another();
    model.done("Greeted.");
    let mut chat = chat(&llm(&model, ProviderName::Openai), true);
    chat.resume(stored_before());
    assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);
    let sent: Vec<_> = model
        .requests()
        .iter()
        .map(|request| request.body["messages"][2].get("reasoning_content").cloned())
        .collect();
    assert_eq!(sent, [None, Some(json!(""))]);
    model.finish();
}

#[tokio::test]
async fn each_server_gets_thoughts_back_in_its_own_field() {
    let servers = [
        (Model::thinks_as_deepseek as fn(&Model), "reasoning_content"),
        (Model::thinks_as_vllm, "reasoning"),
        (Model::thinks_as_openrouter, "reasoning_details"),
    ];
    for (thinks, field) in servers {
        for is_streamed in [true, false] {
            let model = Model::start().await;
            thinks(&model);
            if !is_streamed {
                model.streams_nothing();
            }
            model
                .calls("workspace/write_file", json!({ "path": "a" }))
                .calls_all([
                    ("odd.server/a tool", json!({})),
                    ("workspace/write_file", json!({ "path": "b" })),
                ])
                .done("Greeted.");
            let mut chat = chat(&llm(&model, ProviderName::Openai), true);
            call(&mut chat).await.unwrap();
            call(&mut chat).await.unwrap();
            assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);
            let requests = model.requests();
            assert_eq!(requests.len(), 3, "{field}");
            let messages = requests[2].body["messages"].as_array().unwrap();
            let replies = messages.iter().filter(|message| message["role"] == "assistant");
            for reply in replies {
                let fields = ["reasoning_content", "reasoning", "reasoning_details"].into_iter();
                let sent: Vec<&str> = fields.filter(|field| reply.get(field).is_some()).collect();
                assert_eq!(sent, [field], "{reply}");
                assert!(reply[field].to_string().contains("Thought "), "{reply}");
            }
            model.finish();
        }
    }
}

#[tokio::test]
async fn a_server_that_demands_thoughts_gets_an_empty_one_with_replies_that_had_none() {
    let (model, near) = (Model::start().await, Model::start().await);
    model.thinks_as_deepseek();
    model
        .says("I would rather talk about it.")
        .thinking_of("")
        .calls("workspace/write_file", json!({ "path": "a" }))
        .rate_limited(Some(7_200));
    near.goes_on_for_another();
    near.calls("workspace/write_file", json!({ "path": "b" }));
    let config = with_fallback(&model, ProviderName::Openai, &near);
    let mut chat = chat(&model_of(&config).unwrap(), true);
    call(&mut chat).await.unwrap();
    chat.send_user_message(&clean("Call a tool."));
    call(&mut chat).await.unwrap();
    // The second request was refused once.
    assert_eq!(model.requests().len(), 3);
    call(&mut chat).await.unwrap();
    assert_eq!(chat.answered_by(), "near");

    // In another process nobody knows of the demand: that the model thinks is enough.
    let stored = serde_json::to_string(&chat.unsaved()).unwrap();
    let mut later = crate::chat(&model_of(&config).unwrap(), true);
    later.resume(serde_json::from_str(&stored).unwrap());
    model.done("Greeted.");
    assert!(decode::turn(&later.get_response().await.unwrap()).unwrap().done);
    let requests = model.requests();
    assert_eq!(requests.len(), 5);
    let messages = requests[4].body["messages"].as_array().unwrap();
    let replies = messages.iter().filter(|message| message["role"] == "assistant");
    let sent: Vec<_> = replies.map(|reply| reply["reasoning_content"].clone()).collect();
    assert_eq!(sent, [json!(""), json!("Thought 4."), json!("")]);
    model.finish();
    near.finish();
}

#[tokio::test]
async fn a_demand_for_thoughts_that_were_all_sent_is_told_in_the_words_of_the_server() {
    let model = Model::start().await;
    let called = json!({ "id": "a", "type": "function", "function": { "name": "write_file", "arguments": "{}" } });
    let details = json!([{ "type": "reasoning.text", "text": "Thought." }]);
    let message = json!({ "role": "assistant", "content": "", "reasoning_details": details, "tool_calls": [called] });
    let body = json!({ "choices": [{ "message": message, "finish_reason": "tool_calls" }] });
    let words = "The `reasoning_content` in the thinking mode must be passed back to the API.";
    model.script().sends(&body.to_string()).refuses(words);
    let mut chat = chat(&llm(&model, ProviderName::Openai), true);
    call(&mut chat).await.unwrap();
    let error = chat.get_response().await.unwrap_err().to_string();
    assert!(error.contains(words.trim_end_matches('.')), "{error}");
    assert_eq!(model.requests().len(), 2);
    model.finish();
}

#[tokio::test]
async fn ollama_gets_no_thoughts_from_before_the_last_words_of_the_user() {
    let model = Model::start().await;
    model.thinks();
    model
        .calls("workspace/write_file", json!({ "path": "a" }))
        .says("That was a.")
        .calls("workspace/write_file", json!({ "path": "b" }))
        .done("Greeted.");
    let mut chat = chat(&llm(&model, ProviderName::Ollama), true);
    call(&mut chat).await.unwrap();
    call(&mut chat).await.unwrap();
    chat.send_user_message(&clean("Go on with b."));
    call(&mut chat).await.unwrap();
    assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);
    let request = model.requests().pop().unwrap();
    let messages = request.body["messages"].as_array().unwrap();
    let replies = messages.iter().filter(|message| message["role"] == "assistant");
    let sent: Vec<bool> = replies.map(|reply| reply.get("thinking").is_some()).collect();
    assert_eq!(sent, [false, false, true]);
    model.finish();
}

#[tokio::test]
async fn thoughts_that_are_not_sent_take_no_room() {
    let model = Model::start().await;
    model.thinks();
    model.says("That was it.").thinking_of(&"Is it? It is. ".repeat(10_000));
    let llm = llm(&model, ProviderName::Ollama);
    let mut first = chat(&llm, true);
    first.get_response().await.unwrap();
    first.send_user_message(&clean("Go on."));
    let stored = serde_json::to_string(&first.unsaved()).unwrap();

    // Nobody knows how the server counted.
    let mut second = chat(&llm, true);
    second.resume(serde_json::from_str(&stored).unwrap());
    assert!(second.fullness() < 10, "{} %", second.fullness());
    model.done("Greeted.");
    assert!(decode::turn(&second.get_response().await.unwrap()).unwrap().done);
    model.finish();
}

#[tokio::test]
async fn a_server_that_refuses_thoughts_is_asked_without_from_then_on() {
    for (field, words) in [
        (
            "reasoning_content",
            "Extra inputs are not permitted: messages.2.reasoning_content",
        ),
        (
            "reasoning",
            "'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : property 'reasoning' is \
             unsupported, did you mean 'role'?)]",
        ),
    ] {
        let model = Model::start().await;
        let called = json!({ "id": "a", "type": "function", "function": { "name": "write_file", "arguments": "{}" } });
        let message = json!({ "role": "assistant", "content": "", field: "Thought.", "tool_calls": [called] });
        let body = json!({ "choices": [{ "message": message, "finish_reason": "tool_calls" }] });
        model.script().sends(&body.to_string()).refuses(words).done("Greeted.");
        let mut chat = chat(&llm(&model, ProviderName::Openai), true);
        call(&mut chat).await.unwrap();
        assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);
        let has_thoughts = |body: &serde_json::Value| body.to_string().contains("Thought");
        let sent: Vec<bool> = model
            .requests()
            .iter()
            .map(|request| has_thoughts(&request.body))
            .collect();
        assert_eq!(sent, [false, true, false], "{field}");
        model.finish();
    }
}

#[tokio::test]
async fn a_reply_of_thoughts_alone_is_no_answer_with_any_provider() {
    for provider in PROVIDERS {
        for is_cut in [false, true] {
            let model = Model::start().await;
            model.thinks();
            let script = model
                .says("")
                .thinking_of("Perhaps {\"comment\": \"Greeted.\", \"done\": true}?");
            if is_cut {
                script.cut();
            }
            let mut chat = chat(&llm(&model, provider), true);
            let reply = chat.get_response().await.unwrap();
            assert!(reply.is_only_thought(), "{provider:?}: {reply:?}");
            let unreadable = decode::turn(&reply).unwrap_err().to_string();
            let expected = if is_cut {
                "The reply was cut at the length limit while it was still thought about"
            } else {
                "The reply holds thoughts alone"
            };
            assert!(unreadable.starts_with(expected), "{provider:?}: {unreadable}");

            chat.send_user_message(&clean(&unreadable));
            model.done("Greeted.");
            assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);
            let sent = model.requests().pop().unwrap().body["messages"].to_string();
            // A thought that led to nothing does not come back.
            assert!(!is_cut || !sent.contains("Perhaps"), "{provider:?}: {sent}");
            model.finish();
        }
    }
}

#[tokio::test]
async fn thoughts_that_only_repeat_themselves_are_ended_with_every_provider() {
    let line = "Wait, the next line is the same as this one, word for word.\n";
    for provider in PROVIDERS {
        let model = Model::start().await;
        model.thinks();
        // The rest would never come.
        model.says("Well.").thinking_of(&line.repeat(500)).halts();
        let reply = chat(&llm(&model, provider), false).get_response().await.unwrap();
        assert!(reply.cut && reply.is_only_thought(), "{provider:?}: {reply:?}");
        // They are paid, though nobody has counted them.
        assert!(reply.usage.output > 300, "{provider:?}: {:?}", reply.usage);
        assert_eq!(reply.repetition.unwrap().piece, line, "{provider:?}");
        model.until_hung_up(1).await;
        model.finish();
    }
}

#[tokio::test]
async fn thoughts_count_where_the_server_counts_nothing() {
    for provider in PROVIDERS {
        let model = Model::start().await;
        model.thinks();
        model.counts_nothing();
        model.done("Greeted.").thinking_of(&"Hello, reader. ".repeat(500));
        let reply = chat(&llm(&model, provider), true).get_response().await.unwrap();
        assert!(
            (2_000..3_000).contains(&reply.usage.output),
            "{provider:?}: {:?}",
            reply.usage
        );
        model.finish();
    }
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
    for provider in DEMANDING {
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

#[tokio::test]
async fn more_room_is_advised_by_keys_that_the_provider_has() {
    let model = Model::start().await;
    for (provider, raised, section) in [
        (ProviderName::Ollama, "llm.ollama.context_length", "llm.ollama"),
        (ProviderName::Lmstudio, "llm.lmstudio.context_length", "llm.lmstudio"),
        (
            ProviderName::Openai,
            "llm.openai.max_tokens or llm.openai.context_length",
            "llm.openai",
        ),
        (
            ProviderName::Anthropic,
            "llm.anthropic.max_tokens or llm.anthropic.context_length",
            "llm.anthropic",
        ),
    ] {
        let told = chat(&llm(&model, provider), true).room_hint();
        assert_eq!(told, format!("raise {raised}, or lower {section}.reasoning_effort"));
    }
    model.finish();
}
