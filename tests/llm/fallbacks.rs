//! Models that take the place of another, and those that cannot.

use coding_agent::conversation::decode;
use coding_agent::llm::chat::Chat;
use coding_agent::llm::config::{Config, ProviderName};
use coding_agent::llm::error::LlmError;
use serde_json::{Value, json};

use crate::fake::model::Model;
use crate::{KEY, chat, clean, config, model_of};

/// Adds a model under a name, with some of its keys.
fn add(config: &mut Config, name: &str, model: &Model, keys: &Value) {
    let mut section = json!({
        "provider": "openai", "base_url": model.openai_address(), "model": "scripted", "api_key": KEY,
    });
    for (key, value) in keys.as_object().unwrap() {
        section[key] = value.clone();
    }
    let section = serde_json::from_value(section).unwrap();
    config.models.insert(name.to_owned(), section);
}

/// Returns a conversation with a model that `near` follows, a model with these keys.
fn beside(model: &Model, near: &Model, keys: &Value) -> Chat {
    let mut config = config(model, ProviderName::Openai);
    config.openai.options.fallback = Some("near".to_owned());
    add(&mut config, "near", near, keys);
    let mut chat = chat(&model_of(&config).unwrap(), true);
    chat.send_user_message(&clean(&"A line of the file that matters.\n".repeat(1_000)));
    chat
}

#[tokio::test]
async fn what_a_fallback_cannot_do_does_not_take_the_place_of_the_models_own_error() {
    let large = json!({});
    for (keys, refusal, asked) in [
        // Too small: it is not asked at all.
        (json!({ "context_length": 4_096 }), None, 0),
        (json!({ "model": "missing:7b" }), None, 0),
        (
            large.clone(),
            Some("This model's maximum context length is 4096 tokens."),
            1,
        ),
        (large.clone(), Some("temperature is wrong"), 1),
    ] {
        let (model, near) = (Model::start().await, Model::start().await);
        model.rate_limited(Some(7_200));
        if let Some(refusal) = refusal {
            near.refuses(refusal);
        }
        let error = beside(&model, &near, &keys).get_response().await.unwrap_err();
        assert!(
            matches!(error, LlmError::RateLimited { .. }),
            "{keys}, {refusal:?}: {error}"
        );
        assert_eq!(
            (model.requests().len(), near.requests().len()),
            (1, asked),
            "{keys}, {refusal:?}"
        );
        model.finish();
        near.finish();
    }
}

#[tokio::test]
async fn a_fallback_that_fails_while_the_model_is_out_of_order_has_the_model_asked_again() {
    let (model, near) = (Model::start().await, Model::start().await);
    model.rate_limited(Some(7_200)).done("Greeted again.");
    near.done("Greeted.").refuses("temperature is wrong");
    let mut chat = beside(&model, &near, &json!({}));
    assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);
    assert_eq!(chat.answered_by(), "near");
    chat.send_user_message(&clean("Again."));
    // The limit is over earlier than was said.
    assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);
    assert_eq!(chat.answered_by(), "llm");
    assert_eq!((model.requests().len(), near.requests().len()), (2, 2));
    model.finish();
    near.finish();
}

#[tokio::test]
async fn a_fallback_that_fell_short_is_not_asked_again_in_the_same_call() {
    let (model, near) = (Model::start().await, Model::start().await);
    model.rate_limited(Some(7_200)).rate_limited(Some(7_200));
    near.done("Greeted.").refuses("temperature is wrong");
    let mut chat = beside(&model, &near, &json!({}));
    assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);
    chat.send_user_message(&clean("Again."));
    let error = chat.get_response().await.unwrap_err();
    assert!(matches!(error, LlmError::RateLimited { .. }), "{error}");
    assert_eq!((model.requests().len(), near.requests().len()), (2, 2));
    model.finish();
    near.finish();
}

#[tokio::test]
async fn a_fallback_without_native_calls_has_the_conversation_go_on_in_json() {
    let (model, near) = (Model::start().await, Model::start().await);
    model.rate_limited(Some(7_200));
    near.refuses("scripted does not support tools");
    let error = beside(&model, &near, &json!({})).get_response().await.unwrap_err();
    assert!(matches!(error, LlmError::ToolsUnsupported(_)), "{error}");
    model.finish();
    near.finish();
}

#[tokio::test]
async fn a_fallback_without_room_is_passed_over_for_the_next_one() {
    let (model, small, large) = (Model::start().await, Model::start().await, Model::start().await);
    model.rate_limited(Some(7_200));
    large.done("Greeted.").done("Greeted again.");
    let mut config = config(&model, ProviderName::Openai);
    config.openai.options.fallback = Some("small".to_owned());
    add(
        &mut config,
        "small",
        &small,
        &json!({ "context_length": 4_096, "fallback": "large" }),
    );
    add(&mut config, "large", &large, &json!({}));
    let mut chat = chat(&model_of(&config).unwrap(), true);
    chat.send_user_message(&clean(&"A line of the file that matters.\n".repeat(1_000)));
    for _ in 0..2 {
        assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);
        assert_eq!(chat.answered_by(), "large");
        chat.send_user_message(&clean("Again."));
    }
    assert_eq!(small.requests().len(), 0);
    model.finish();
    large.finish();
}
