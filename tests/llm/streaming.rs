//! Replies that come piece by piece, and what breaks them.

use std::time::{Duration, Instant};

use coding_agent::conversation::decode;
use coding_agent::llm::config::ProviderName;
use coding_agent::llm::error::LlmError;
use coding_agent::llm::model::Model as Llm;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::fake::model::{Model, Request};
use crate::{PROVIDERS, chat, clean, config, llm, model_of};

/// More than any piece holds, with characters of several bytes.
fn long_text() -> String {
    "Grüße, 世界 🙂. ".repeat(400)
}

#[tokio::test]
async fn a_streamed_reply_is_the_same_as_a_whole_one_with_every_provider() {
    for provider in PROVIDERS {
        let mut said = Vec::new();
        for is_streamed in [true, false] {
            let model = Model::start().await;
            let args = json!({ "path": "README.md", "content": long_text() });
            model
                .calls("workspace/write_file", args.clone())
                .calls_all([("workspace/write_file", args), ("odd.server/a tool", json!({}))])
                .says(&long_text())
                .cut();
            if !is_streamed {
                model.streams_nothing();
            }
            let mut chat = chat(&llm(&model, provider), true);
            for _ in 0..3 {
                let reply = chat.get_response().await.unwrap();
                said.push((reply.text, reply.calls, reply.cut, reply.usage));
                chat.send_user_message(&clean("Go on."));
            }
            let arrived = *chat.arrived().borrow();
            assert_eq!(arrived > 10, is_streamed, "{provider:?}: {arrived}");
            assert_eq!(model.requests().len(), 3);
            model.finish();
        }
        let whole = said.split_off(3);
        assert_eq!(said, whole, "{provider:?}");
        assert_eq!(said[1].1.len(), 2, "{provider:?}");
        assert!(said[2].2 && said[2].0.contains("世界"), "{provider:?}");
    }
}

#[tokio::test]
async fn a_reply_that_only_repeats_itself_is_ended_with_every_provider() {
    let line = "The next line is the same as this one, word for word.\n";
    for provider in PROVIDERS {
        let model = Model::start().await;
        // The rest would never come.
        model.says(&format!("Well.\n{}", line.repeat(500))).halts();
        let reply = chat(&llm(&model, provider), false).get_response().await.unwrap();
        assert_eq!(reply.text, format!("Well.\n{line}"), "{provider:?}");
        let repetition = reply.repetition.unwrap();
        assert_eq!((repetition.piece.as_str(), reply.cut), (line, true), "{provider:?}");
        assert!(
            (24..400).contains(&repetition.times),
            "{provider:?}: {}",
            repetition.times
        );
        // What was written is paid, though nobody has counted it.
        assert!(
            reply.usage.input > 0 && reply.usage.output > 300,
            "{provider:?}: {:?}",
            reply.usage
        );
        model.until_hung_up(1).await;
        model.finish();
    }
}

#[tokio::test]
async fn a_call_whose_arguments_only_repeat_themselves_is_ended_and_not_run() {
    // Ollama sends calls as a whole.
    for provider in PROVIDERS
        .into_iter()
        .filter(|provider| *provider != ProviderName::Ollama)
    {
        let model = Model::start().await;
        let content = "The next line is the same as this one, word for word.\n".repeat(500);
        model
            .calls(
                "workspace/write_file",
                json!({ "path": "README.md", "content": content }),
            )
            .halts();
        let reply = chat(&llm(&model, provider), true).get_response().await.unwrap();
        assert!(reply.cut && reply.usage.output > 300, "{provider:?}: {:?}", reply.usage);
        let unreadable = decode::turn(&reply).unwrap_err().to_string();
        assert!(
            unreadable.contains("The reply repeated itself over and over, and was ended there."),
            "{provider:?}: {unreadable}"
        );
        model.until_hung_up(1).await;
        model.finish();
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_or_fails_is_asked_for_again() {
    for provider in PROVIDERS {
        let model = Model::start().await;
        let error = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
        model
            .breaks_off()
            .says(&long_text())
            .fails_midway(error)
            .done("Greeted.");
        let mut chat = chat(&llm(&model, provider), true);
        let reply = chat.get_response().await.unwrap();
        assert!(decode::turn(&reply).unwrap().done, "{provider:?}");
        assert_eq!(model.requests().len(), 3, "{provider:?}");
        model.finish();
    }
}

#[tokio::test]
async fn an_empty_reason_in_each_chunk_is_not_taken_for_the_end() {
    let model = Model::start().await;
    model.writes_empty_reasons();
    let lines: Vec<String> = (0..200).map(|line| format!("Line {line} of the reply.\n")).collect();
    let text = lines.concat();
    model.says(&text).breaks_midway().says(&text);
    let reply = chat(&llm(&model, ProviderName::Openai), false)
        .get_response()
        .await
        .unwrap();
    assert_eq!(reply.text, text);
    assert_eq!(model.requests().len(), 2);
    model.finish();
}

#[tokio::test]
async fn a_reply_that_breaks_off_twice_is_not_asked_for_a_third_time() {
    for provider in PROVIDERS {
        let model = Model::start().await;
        model.breaks_off().breaks_off();
        let mut chat = chat(&llm(&model, provider), true);
        let error = chat.get_response().await.unwrap_err();
        assert!(
            matches!(error, LlmError::Unreachable { .. })
                && error
                    .to_string()
                    .contains("such as a proxy or gateway with a limit on how long a whole response may take"),
            "{provider:?}: {error}"
        );
        assert_eq!(model.requests().len(), 2, "{provider:?}");
        // Each call has a second attempt of its own.
        model.breaks_off().done("Greeted.");
        let reply = chat.get_response().await.unwrap();
        assert!(decode::turn(&reply).unwrap().done, "{provider:?}");
        assert_eq!(model.requests().len(), 4, "{provider:?}");
        model.finish();
    }
}

#[tokio::test]
async fn an_error_in_a_stream_means_what_it_means_before_one() {
    for provider in PROVIDERS {
        let model = Model::start().await;
        let message = "Trying to keep the first 10247 tokens when context the overflows. However, the model is loaded with context \
                       length of only 4096 tokens, which is not enough.";
        model
            .says(&long_text())
            .fails_midway(json!({ "error": { "message": message } }));
        let error = chat(&llm(&model, provider), false).get_response().await.unwrap_err();
        assert!(
            matches!(
                error,
                LlmError::SmallWindow {
                    needed: 10_247,
                    window: 4_096,
                    ..
                }
            ),
            "{provider:?}: {error}"
        );
        assert!(error.to_string().contains("has 4096 although"), "{error}");
        assert_eq!(model.requests().len(), 1);
        model.finish();
    }
}

#[tokio::test]
async fn a_stop_ends_a_reply_that_is_being_made() {
    for provider in PROVIDERS {
        let model = Model::start().await;
        model.says(&long_text()).halts();
        let cancel = CancellationToken::new();
        let mut chat = llm(&model, provider).chat([].into(), false, cancel.clone());
        chat.send_system_prompt(&clean("You are a coding agent."));
        chat.send_user_message(&clean("Greet the reader."));
        let mut arrived = chat.arrived();
        let asking = tokio::spawn(async move { chat.get_response().await });
        arrived.wait_for(|count| *count > 5).await.unwrap();
        let stopped = Instant::now();
        cancel.cancel();
        assert!(matches!(asking.await.unwrap(), Err(LlmError::Cancelled)));
        assert!(stopped.elapsed() < Duration::from_secs(1));
        model.finish();
    }
}

#[tokio::test]
async fn only_silence_counts_against_the_time_out_and_a_bound_holds_for_the_whole() {
    let model = Model::start().await;
    model.says(&long_text()).halts();
    let mut silent = config(&model, ProviderName::Openai);
    silent.timeout_seconds = 1;
    let error = chat(&model_of(&silent).unwrap(), false)
        .get_response()
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("said nothing for 1 s; raise llm.timeout_seconds"),
        "{error}"
    );
    assert_eq!(model.requests().len(), 1);
    model.finish();
}

#[tokio::test]
async fn a_reply_that_never_falls_silent_ends_at_its_bound() {
    for provider in PROVIDERS {
        let model = Model::start().await;
        model.says(&long_text()).trickles();
        let mut endless = config(&model, provider);
        endless.timeout_seconds = 2;
        endless.reply_seconds = 3;
        let begun = Instant::now();
        let mut chat = chat(&model_of(&endless).unwrap(), false);
        let error = chat.get_response().await.unwrap_err();
        assert!(
            matches!(error, LlmError::Unreachable { .. })
                && error
                    .to_string()
                    .ends_with("a reply took longer than 3 s; raise llm.reply_seconds"),
            "{provider:?}: {error}"
        );
        // Pieces came until then: nothing was silent for as long as is too long.
        assert!(
            begun.elapsed() >= Duration::from_secs(3) && *chat.arrived().borrow() > 3,
            "{provider:?}"
        );
        // It is not paid for once more.
        assert_eq!(model.requests().len(), 1, "{provider:?}");
        model.finish();
    }
}

#[tokio::test]
async fn a_field_that_a_server_refuses_is_left_out_or_named_otherwise_from_then_on() {
    for (field, words, has) in [
        (
            "stream_options",
            "Extra inputs are not permitted: stream_options",
            ("max_tokens", "stream_options"),
        ),
        ("max_tokens", NEWER_NAME, ("max_completion_tokens", "max_tokens")),
    ] {
        let model = Model::start().await;
        model.refuses_field(field, words);
        model.done("Greeted.").done("Greeted again.");
        let mut chat = chat(&bounded(&model), false);
        chat.get_response().await.unwrap();
        chat.send_user_message(&clean("Again."));
        chat.get_response().await.unwrap();
        // Refused once, and remembered.
        assert_eq!(model.requests().len(), 3, "{field}");
        let last = model.requests().pop().unwrap().body;
        assert!(
            last.get(has.0).is_some() && last.get(has.1).is_none(),
            "{field}: {last}"
        );
        model.finish();
    }
}

/// The words in which newer models of OpenAI refuse the older name of the longest reply.
const NEWER_NAME: &str =
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";

/// Returns the model with a bound on its replies.
fn bounded(model: &Model) -> Llm {
    let mut config = config(model, ProviderName::Openai);
    config.openai.max_tokens = Some(500);
    model_of(&config).unwrap()
}

/// Returns under which names each request so far had a bound on the reply.
fn bounds(model: &Model) -> Vec<Vec<&'static str>> {
    let named = |request: &Request| -> Vec<&'static str> {
        let names = ["max_tokens", "max_completion_tokens"].into_iter();
        names.filter(|name| request.body.get(name).is_some()).collect()
    };
    model.requests().iter().map(named).collect()
}

#[tokio::test]
async fn a_gateway_whose_servers_differ_is_asked_under_the_older_name_again() {
    let model = Model::start().await;
    model
        .refuses(NEWER_NAME)
        .done("Greeted.")
        .refuses("Unrecognized request argument supplied: max_completion_tokens")
        .done("Greeted again.");
    let mut chat = chat(&bounded(&model), false);
    chat.get_response().await.unwrap();
    chat.send_user_message(&clean("Again."));
    chat.get_response().await.unwrap();
    assert_eq!(
        bounds(&model),
        [
            ["max_tokens"],
            ["max_completion_tokens"],
            ["max_completion_tokens"],
            ["max_tokens"]
        ]
    );
    model.finish();
}

#[tokio::test]
async fn requests_that_are_refused_at_the_same_time_all_learn_from_it() {
    let model = Model::start().await;
    model
        .refuses(NEWER_NAME)
        .holds()
        .refuses(NEWER_NAME)
        .holds()
        .done("Greeted.")
        .done("Greeted.");
    let llm = bounded(&model);
    let (mut one, mut other) = (chat(&llm, false), chat(&llm, false));
    let (one, other, ()) = tokio::join!(one.get_response(), other.get_response(), async {
        model.until_held(2).await;
        model.release();
        model.release();
    });
    assert!(one.is_ok() && other.is_ok(), "{one:?} {other:?}");
    assert_eq!(
        bounds(&model),
        [
            ["max_tokens"],
            ["max_tokens"],
            ["max_completion_tokens"],
            ["max_completion_tokens"]
        ]
    );
    model.finish();
}

#[tokio::test]
async fn a_field_that_the_operator_adds_is_not_taken_back_and_the_servers_words_are_told() {
    let model = Model::start().await;
    model.refuses_field("max_tokens", NEWER_NAME);
    let mut config = config(&model, ProviderName::Openai);
    config
        .openai
        .options
        .extra_body
        .insert("max_tokens".to_owned(), json!(500));
    let error = chat(&model_of(&config).unwrap(), false)
        .get_response()
        .await
        .unwrap_err();
    assert!(matches!(error, LlmError::Refused { .. }), "{error}");
    assert!(error.to_string().contains(NEWER_NAME.trim_end_matches('.')), "{error}");
    assert_eq!(bounds(&model), [["max_tokens"]]);
    model.finish();
}

#[tokio::test]
async fn a_server_that_refuses_streams_is_asked_for_whole_replies_from_then_on() {
    for provider in [ProviderName::Lmstudio, ProviderName::Openai] {
        let model = Model::start().await;
        model
            .refuses("Unsupported value: 'stream' does not support true with this model.")
            .done("Greeted.")
            .done("Greeted again.");
        let mut chat = chat(&llm(&model, provider), false);
        chat.get_response().await.unwrap();
        chat.send_user_message(&clean("Again."));
        chat.get_response().await.unwrap();
        let requests = model.requests();
        let streamed: Vec<_> = requests.iter().map(|request| &request.body["stream"]).collect();
        assert_eq!(streamed, [true, false, false], "{provider:?}");
        model.finish();
    }
}

#[tokio::test]
async fn a_stream_without_counts_is_estimated() {
    for provider in PROVIDERS {
        let model = Model::start().await;
        model.counts_nothing();
        model.says("Hello, reader, this is a reply.");
        let reply = chat(&llm(&model, provider), false).get_response().await.unwrap();
        assert!(reply.usage.input > 0 && reply.usage.output > 0, "{provider:?}");
        model.finish();
    }
}

#[tokio::test]
async fn lm_studio_is_asked_for_its_window_before_it_gets_work() {
    let loaded = |length: u64| {
        [
            (
                "v1",
                json!({ "key": "scripted", "type": "llm", "max_context_length": 131_072,
                    "loaded_instances": [{ "id": "scripted", "config": { "context_length": length } }] }),
            ),
            (
                "v0",
                json!({ "id": "scripted", "state": "loaded", "max_context_length": 131_072, "loaded_context_length": length }),
            ),
        ]
    };
    for (version, entry) in loaded(4_096) {
        let model = Model::start().await;
        model.is_lm_studios(version, entry);
        let error = chat(&llm(&model, ProviderName::Lmstudio), false)
            .get_response()
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error
                .contains("has loaded scripted with a window of 4096 tokens, and 32768 are configured; load the model"),
            "{error}"
        );
        assert_eq!(model.requests().len(), 0);
    }
    for (version, entry) in loaded(32_768).into_iter().chain([
        ("v1", json!({ "key": "scripted", "loaded_instances": [] })),
        ("v0", json!({ "id": "scripted", "state": "not-loaded" })),
    ]) {
        let model = Model::start().await;
        model.is_lm_studios(version, entry);
        model.done("Greeted.");
        chat(&llm(&model, ProviderName::Lmstudio), false)
            .get_response()
            .await
            .unwrap();
        model.finish();
    }
}
