//! The handling of a call that fails.

use std::time::{Duration, Instant};

use chrono::Utc;
use coding_agent::conversation::decode;
use coding_agent::llm::config::ProviderName;
use coding_agent::llm::error::LlmError;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::fake::model::Model;
use crate::{KEY, PROVIDERS, chat, clean, config, llm, model_of};

#[tokio::test]
async fn what_is_transient_is_tried_again_three_times() {
    let model = Model::start().await;
    model.fails(500, 1).breaks_off().rate_limited(Some(1)).done("Greeted.");
    let mut chat = chat(&llm(&model, ProviderName::Ollama), true);
    let reply = chat.get_response().await.unwrap();
    assert!(decode::turn(&reply).unwrap().done);
    assert_eq!(model.requests().len(), 4);
    assert_eq!(chat.messages().len(), 3);
    model.finish();
}

/// It cannot have waited for a reply.
#[tokio::test]
async fn a_gateway_that_gives_up_at_once_is_asked_again() {
    for status in [408, 504, 524] {
        let model = Model::start().await;
        model.fails(status, 1).done("Greeted.");
        let mut chat = chat(&llm(&model, ProviderName::Openai), true);
        let reply = chat.get_response().await.unwrap();
        assert!(decode::turn(&reply).unwrap().done, "{status}");
        assert_eq!(model.requests().len(), 2, "{status}");
        model.finish();
    }
}

#[tokio::test]
async fn a_model_that_lm_studio_could_not_load_is_asked_again() {
    let model = Model::start().await;
    model
        .refuses("Failed to load model \"scripted\". Error: Operation canceled.")
        .done("Greeted.");
    let mut chat = chat(&llm(&model, ProviderName::Lmstudio), true);
    assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);
    assert_eq!(model.requests().len(), 2);
    model.finish();
}

#[tokio::test]
async fn a_pause_that_a_server_asks_for_holds_for_all_conversations() {
    let model = Model::start().await;
    model.rate_limited(Some(3)).done("Greeted.");
    let llm = llm(&model, ProviderName::Openai);
    let mut one = chat(&llm, true);
    one.give_up_after(Duration::from_secs(1));
    let begun = Instant::now();
    let error = one.get_response().await.unwrap_err();
    assert!(matches!(error, LlmError::TimedOut { .. }), "{error}");
    chat(&llm, true).get_response().await.unwrap();
    assert!(begun.elapsed() >= Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!(model.requests().len(), 2);
    model.finish();
}

#[tokio::test]
async fn a_server_that_keeps_failing_is_unreachable_and_the_conversation_unharmed() {
    let model = Model::start().await;
    model
        .fails(503, 2)
        .sends("<html>")
        .sends(r#"{"error":{"message":"upstream is down; blame it"}}"#)
        .done("Greeted.");
    let mut chat = chat(&llm(&model, ProviderName::Openai), true);
    let error = chat.get_response().await.unwrap_err();
    assert!(matches!(error, LlmError::Unreachable { is_away: false, .. }), "{error}");
    assert_eq!(
        error.to_string(),
        format!(
            "the model at {} does not answer as it should: it answered 500 Internal Server Error: upstream is down; blame it (tried four times)",
            model.openai_address()
        )
    );
    assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);
    model.finish();
}

/// Returns an answer as a whole, and as the last event of a stream.
fn in_both_forms(answer: &Value) -> [String; 2] {
    let mut event = answer.clone();
    if let Some(choice) = event.pointer_mut("/choices/0").and_then(Value::as_object_mut) {
        let message = choice.remove("message").unwrap_or_default();
        choice.insert("delta".to_owned(), message);
    }
    let first = json!({ "choices": [{ "index": 0, "delta": { "role": "assistant", "content": "" } }] });
    [
        answer.to_string(),
        format!("data: {first}\n\ndata: {event}\n\ndata: [DONE]\n\n"),
    ]
}

#[tokio::test]
async fn an_error_inside_a_success_means_what_it_means_outside_of_one() {
    for (error, expected) in [
        (
            json!({ "code": 401, "message": "No auth credentials found" }),
            "No auth credentials found; check llm.openai.api_key",
        ),
        (
            json!({ "code": "400", "message": "This endpoint's maximum context length is 4096 tokens. However, you requested about 5000 tokens" }),
            "has 4096 although 128000 are configured",
        ),
        (
            json!({ "code": "insufficient_quota", "type": "insufficient_quota", "message": "You exceeded your current quota" }),
            "You exceeded your current quota; add credit to the account",
        ),
        (
            json!({ "code": "invalid_api_key", "type": "server_error", "message": "Incorrect API key provided: sk-***" }),
            "Incorrect API key provided: sk-***; check llm.openai.api_key",
        ),
        (
            json!({ "code": "content_filter", "type": null, "message": "The response was filtered" }),
            "The response was filtered; word the task otherwise",
        ),
    ] {
        for body in in_both_forms(&json!({ "error": error })) {
            let model = Model::start().await;
            model.script().sends(&body);
            let error = chat(&llm(&model, ProviderName::Openai), true)
                .get_response()
                .await
                .unwrap_err()
                .to_string();
            assert!(error.contains(expected), "{error}");
            assert_eq!(model.requests().len(), 1, "{error}");
            model.finish();
        }
    }
}

#[tokio::test]
async fn a_rate_limit_inside_a_success_is_no_outage() {
    let error = json!({ "code": "rate_limit_exceeded", "type": "tokens", "message": "Rate limit reached for gpt" });
    let [_, streamed] = in_both_forms(&json!({ "error": error }));
    let model = Model::start().await;
    model
        .script()
        .sends(&streamed)
        .sends(&streamed)
        .sends(&streamed)
        .sends(&streamed);
    let mut chat = chat(&llm(&model, ProviderName::Openai), true);
    let error = chat.get_response().await.unwrap_err();
    assert!(matches!(error, LlmError::RateLimited { .. }), "{error}");
    assert_eq!(model.requests().len(), 4);
    model.finish();
}

#[tokio::test]
async fn a_reply_that_the_server_broke_off_is_not_taken_for_a_whole_one() {
    for reason in ["error", "abort", "insufficient_system_resource"] {
        let message = json!({ "role": "assistant", "content": "The first ha" });
        let answer = json!({ "choices": [{ "index": 0, "message": message, "finish_reason": reason }] });
        for body in in_both_forms(&answer) {
            let model = Model::start().await;
            model.script().sends(&body).done("Greeted.");
            let mut chat = chat(&llm(&model, ProviderName::Openai), true);
            assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);
            assert_eq!(model.requests().len(), 2, "{reason}");
            model.finish();
        }
    }
}

#[tokio::test]
async fn a_reply_that_the_server_broke_off_twice_is_not_asked_for_a_third_time() {
    let message = json!({ "role": "assistant", "content": "The first ha" });
    let error = json!({ "code": 502, "message": "Provider disconnected; sorry" });
    let answer = json!({ "choices": [{ "index": 0, "message": message, "finish_reason": "error", "error": error }] });
    for body in in_both_forms(&answer) {
        let model = Model::start().await;
        model.script().sends(&body).sends(&body);
        let mut chat = chat(&llm(&model, ProviderName::Openai), true);
        let LlmError::Unreachable { reason, .. } = chat.get_response().await.unwrap_err() else {
            panic!("it is no outage")
        };
        assert_eq!(
            reason.what,
            "it broke its reply off (error): Provider disconnected; sorry, and the reply that was asked for before broke off, too"
        );
        let remedy = reason.remedy.unwrap();
        assert!(
            remedy.contains("set another model in llm.openai") && !remedy.contains("proxy"),
            "{remedy}"
        );
        assert_eq!(model.requests().len(), 2);
        // Each call has a second attempt of its own, whoever breaks the first one off.
        model.script().breaks_off().sends(&body);
        let error = chat.get_response().await.unwrap_err().to_string();
        assert!(error.contains("it broke its reply off (error)"), "{error}");
        assert_eq!(model.requests().len(), 4);
        model.finish();
    }
}

#[tokio::test]
async fn a_call_that_gemini_could_not_read_is_told_to_the_model() {
    for (reason, native) in [
        ("error", json!("MALFORMED_FUNCTION_CALL")),
        ("function_call_filter: MALFORMED_FUNCTION_CALL", json!(null)),
    ] {
        let message = json!({ "role": "assistant", "content": null });
        let choice = json!({ "index": 0, "message": message, "finish_reason": reason, "native_finish_reason": native });
        for body in in_both_forms(&json!({ "choices": [choice] })) {
            let model = Model::start().await;
            model.script().sends(&body).done("Greeted.");
            let mut chat = chat(&llm(&model, ProviderName::Openai), true);
            let reply = chat.get_response().await.unwrap();
            let unreadable = decode::turn(&reply).unwrap_err().to_string();
            assert!(
                unreadable.starts_with("The server could not read the calls of the reply: MALFORMED_FUNCTION_CALL"),
                "{unreadable}"
            );
            chat.send_user_message(&clean(&unreadable));
            assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);
            assert_eq!(model.requests().len(), 2, "{reason}");
            model.finish();
        }
    }
}

#[tokio::test]
async fn nobody_at_the_address_is_unreachable() {
    let model = Model::start().await;
    let mut config = config(&model, ProviderName::Ollama);
    config.ollama.endpoint = "http://127.0.0.1:1".to_owned();
    let mut chat = chat(&model_of(&config).unwrap(), true);
    let error = chat.get_response().await.unwrap_err();
    assert!(matches!(error, LlmError::Unreachable { is_away: true, .. }), "{error}");
    let error = error.to_string();
    assert!(
        error.starts_with("the model at http://127.0.0.1:1 cannot be reached: ")
            && error.contains("refused")
            && error.ends_with(" (tried four times); start its server, or check llm.ollama.endpoint"),
        "{error}"
    );
}

#[tokio::test]
async fn a_far_reset_of_the_rate_limit_is_not_waited_for() {
    for provider in PROVIDERS {
        let model = Model::start().await;
        model.rate_limited(Some(7_200));
        let error = chat(&llm(&model, provider), true).get_response().await.unwrap_err();
        let LlmError::RateLimited { until } = error else {
            panic!("{error}")
        };
        let wait = until - Utc::now();
        assert!((7_100..=7_200).contains(&wait.num_seconds()), "{wait}");
        model.finish();
    }
}

#[tokio::test]
async fn no_form_of_a_reset_parks_a_run_for_longer_than_a_day() {
    for (header, wait) in [
        ("retry-after", "18446744073709551615"),
        ("retry-after-ms", "9999999999999999"),
        ("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT"),
    ] {
        let model = Model::start().await;
        model.script().limited_by(header, wait);
        let mut chat = chat(&llm(&model, ProviderName::Openai), true);
        let error = chat.get_response().await.unwrap_err();
        let LlmError::RateLimited { until } = error else {
            panic!("{error}")
        };
        let wait = until - Utc::now();
        assert!((23..=24).contains(&wait.num_hours()), "{header}: {wait}");
        model.finish();
    }
}

#[tokio::test]
async fn a_prompt_that_does_not_fit_is_too_long_before_and_after_it_is_sent() {
    for provider in PROVIDERS {
        let model = Model::start().await;
        model.too_long();
        let mut chat = chat(&llm(&model, provider), true);
        let error = chat.get_response().await.unwrap_err();
        // The fake names its own window, which is smaller than the configured one.
        assert!(matches!(error, LlmError::SmallWindow { window: 4_096, .. }), "{error}");
        chat.send_user_message(&clean(&"word ".repeat(1_000_000)));
        let error = chat.get_response().await.unwrap_err();
        assert!(
            matches!(error, LlmError::TooLong { needed, .. } if needed > 1_000_000),
            "{error}"
        );
        assert_eq!(model.requests().len(), 1);
        model.finish();
    }
}

#[tokio::test]
async fn a_prompt_that_the_server_cut_stops_the_run() {
    for (provider, setting) in [
        (ProviderName::Ollama, "llm.ollama.context_length"),
        (
            ProviderName::Lmstudio,
            "load the model in LM Studio with a context length of 32768",
        ),
    ] {
        let model = Model::start().await;
        let nothing = json!({});
        model
            .calls("workspace/write_file", nothing)
            .counts(9_000)
            .done("Blind.")
            .counts(4_096);
        let mut chat = chat(&llm(&model, provider), true);
        chat.send_user_message(&clean(&"A line of the file that matters.\n".repeat(1_000)));
        chat.get_response().await.unwrap();
        chat.send_user_message(&clean("Go on."));
        let error = chat.get_response().await.unwrap_err().to_string();
        assert!(error.starts_with("the prompt was truncated: about 9"), "{error}");
        assert!(
            error.contains("the server counted 4096; ") && error.contains(setting),
            "{error}"
        );
        let paid: Vec<u64> = chat.take_unused().iter().map(|reply| reply.usage.input).collect();
        assert_eq!(paid, [4_096]);
        model.finish();
    }
}

#[tokio::test]
async fn a_missing_model_and_a_wrong_key_are_handed_to_the_operator() {
    let model = Model::start().await;
    let mut missing = config(&model, ProviderName::Ollama);
    missing.ollama.model = "missing:7b".to_owned();
    let llm = model_of(&missing).unwrap();
    let asked = llm.examine().await.unwrap_err().to_string();
    let called = chat(&llm, true).get_response().await.unwrap_err().to_string();
    for error in [asked, called] {
        assert_eq!(
            error,
            format!(
                "the ollama server at {} answered 404 Not Found to a request for 'missing:7b': model 'missing:7b' not \
                 found; run `ollama pull missing:7b`, or choose another model in llm.ollama.model",
                model.address()
            )
        );
    }
    model.wants_key("sk-another");
    for provider in [ProviderName::Openai, ProviderName::Anthropic] {
        let error = chat(&crate::llm(&model, provider), true)
            .get_response()
            .await
            .unwrap_err();
        let text = format!("{error} {error:?}");
        assert!(matches!(error, LlmError::Refused { .. }), "{text}");
        assert!(text.contains("api_key and what the key may do"), "{text}");
        assert!(!text.contains(KEY), "{text}");
    }
}

#[tokio::test]
async fn a_model_without_tools_is_told_from_a_bad_request() {
    for provider in PROVIDERS {
        let model = Model::start().await;
        model.takes_no_tools();
        let error = chat(&llm(&model, provider), true).get_response().await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the model does not take native tool calls: scripted does not support tools"
        );
        model.done("Greeted.");
        let reply = chat(&llm(&model, provider), false).get_response().await.unwrap();
        assert!(decode::turn(&reply).unwrap().done);
        model.finish();
    }
}

#[tokio::test]
async fn a_reply_whose_calls_the_server_could_not_read_is_handed_on_as_such() {
    for (status, body) in [
        (
            400,
            json!({ "error": {
                "message": "Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.",
                "type": "invalid_request_error", "code": "tool_use_failed", "failed_generation": "<function=bash{",
            }}),
        ),
        (
            500,
            json!({ "error": { "code": 500, "message": "Failed to parse tool call arguments as JSON: unexpected end of input", "type": "server_error" } }),
        ),
    ] {
        let model = Model::start().await;
        model.refuses_with(status, &body.to_string()).done("Greeted.");
        let mut chat = chat(&llm(&model, ProviderName::Openai), true);
        let reply = chat.get_response().await.unwrap();
        assert!(reply.usage.input > 0);
        let unreadable = decode::turn(&reply).unwrap_err().to_string();
        assert!(
            unreadable.starts_with("The server could not read the calls of the reply: Failed to"),
            "{unreadable}"
        );
        chat.send_user_message(&clean(&unreadable));
        assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);
        // Native calls are still offered, and the model was not asked the same again.
        let offered: Vec<bool> = model
            .requests()
            .iter()
            .map(|request| !request.offered.is_empty())
            .collect();
        assert_eq!(offered, [true, true]);
        model.finish();
    }
}

#[tokio::test]
async fn a_refusal_of_the_model_is_told_as_one_and_not_asked_for_again() {
    for provider in [ProviderName::Lmstudio, ProviderName::Openai, ProviderName::Anthropic] {
        for (words, told) in [
            ("I cannot help with that.", ": I cannot help with that; word"),
            ("", "; word"),
        ] {
            for is_streamed in [true, false] {
                let model = Model::start().await;
                model.declines(words);
                if !is_streamed {
                    model.streams_nothing();
                }
                let mut chat = chat(&llm(&model, provider), true);
                let error = chat.get_response().await.unwrap_err();
                assert!(matches!(error, LlmError::Refused { .. }), "{provider:?}: {error}");
                let expected = format!("refused to reply, or a filter of its provider did{told} the task otherwise");
                assert!(error.to_string().contains(&expected), "{provider:?}: {error}");
                assert_eq!((model.requests().len(), chat.messages().len()), (1, 2));
                // It is paid all the same.
                let unused = chat.take_unused();
                assert_eq!(unused.len(), 1, "{provider:?}");
                let usage = unused[0].usage;
                assert!(usage.input > 0 && usage.output > 0, "{provider:?}: {usage:?}");
                model.finish();
            }
        }
    }
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once() {
    let model = Model::start().await;
    model.done("Too late.").holds();
    let cancel = CancellationToken::new();
    let mut chat = llm(&model, ProviderName::Ollama).chat([].into(), true, cancel.clone());
    chat.send_system_prompt(&clean("You are a coding agent."));
    chat.send_user_message(&clean("Greet the reader."));
    let (reply, ()) = tokio::join!(chat.get_response(), async {
        model.until_held(1).await;
        cancel.cancel();
    });
    assert!(matches!(reply, Err(LlmError::Cancelled)));
    assert_eq!(chat.messages().len(), 2);
    model.finish();
}

#[tokio::test]
async fn a_reply_that_takes_too_long_is_not_asked_for_again() {
    let model = Model::start().await;
    model.done("Too late.").holds();
    let mut config = config(&model, ProviderName::Ollama);
    config.timeout_seconds = 1;
    let begin = Instant::now();
    let error = chat(&model_of(&config).unwrap(), true)
        .get_response()
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("no reply within 1 s; raise llm.timeout_seconds"),
        "{error}"
    );
    assert!(begin.elapsed() < Duration::from_secs(10));
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn a_wait_for_a_turn_is_no_part_of_the_time_that_a_reply_may_take() {
    let (model, silent) = (Model::start().await, Model::start().await);
    model.done("First.").holds().done("Second.");
    silent.done("Too late.").holds().done("Too late.").holds();
    // Ollama is asked for one reply at a time.
    let shared = llm(&model, ProviderName::Ollama);
    let (mut first, mut second) = (chat(&shared, true), chat(&shared, true));
    let mut clock = chat(&llm(&silent, ProviderName::Ollama), true);
    for chat in [&mut second, &mut clock] {
        chat.give_up_after(Duration::from_secs(2));
    }
    let (first, second, ()) = tokio::join!(
        first.get_response(),
        async {
            model.until_held(1).await;
            second.get_response().await
        },
        async {
            model.until_held(1).await;
            // Twice the time that the second one has, all of which it waits.
            for _ in 0..2 {
                let error = clock.get_response().await.unwrap_err();
                assert!(matches!(error, LlmError::TimedOut { seconds: 2, .. }), "{error}");
            }
            model.release();
        }
    );
    for reply in [first, second] {
        assert!(decode::turn(&reply.unwrap()).unwrap().done);
    }
    for model in [model, silent] {
        assert_eq!(model.requests().len(), 2);
        model.finish();
    }
}

#[test]
fn a_wrong_address_is_named_with_its_setting() {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut config = coding_agent::llm::config::Config::default();
    for address in ["localhost:11434", "", "ftp://host"] {
        config.ollama.endpoint = address.to_owned();
        let error = model_of(&config).err().unwrap().to_string();
        assert_eq!(
            error,
            format!(
                "llm.ollama.endpoint is '{address}', which is not an address; write it like http://127.0.0.1:11434"
            )
        );
    }
    config.ollama.endpoint = "http://user:secret@host".to_owned();
    let error = model_of(&config).err().unwrap().to_string();
    assert!(!error.contains("secret"), "{error}");
}

#[tokio::test]
async fn a_request_above_the_limit_per_minute_is_no_matter_of_waiting_or_of_the_window() {
    for (status, body) in [
        (
            429,
            json!({ "error": {
                "message": "Request too large for gpt-4o in organization org-AbCdEf0123456789 on tokens per min (TPM): Limit 30000, Requested 46238. The input or output tokens must be reduced in order to run successfully. Visit https://platform.openai.com/account/rate-limits to learn more.",
                "type": "tokens", "param": null, "code": "rate_limit_exceeded",
            }}),
        ),
        (
            413,
            json!({ "error": {
                "message": "Request too large for model `gpt` in organization `org_01` service tier `on_demand` on tokens per minute (TPM): Limit 30000, Requested 46238, please reduce your message size and try again.",
                "type": "tokens", "code": "rate_limit_exceeded",
            }}),
        ),
    ] {
        let model = Model::start().await;
        model.refuses_with(status, &body.to_string());
        let error = chat(&llm(&model, ProviderName::Openai), true)
            .get_response()
            .await
            .unwrap_err();
        assert!(matches!(error, LlmError::Refused { .. }), "{error}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(error, @"the provider's rate limit of 30000 tokens per minute for 'scripted' is below the request, which has about 46238 tokens, so it is refused however long one waits; have the limit raised (a higher tier of the account), or set llm.openai.context_length below 30000, so that conversations are shortened in time");
        }
        assert_eq!(model.requests().len(), 1);
        model.finish();
    }
}

#[tokio::test]
async fn a_limit_per_minute_that_others_used_up_is_waited_for() {
    let model = Model::start().await;
    let body = json!({ "error": {
        "message": "Rate limit reached for gpt-4o in organization org-AbCdEf0123456789 on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2ms.",
        "type": "tokens", "param": null, "code": "rate_limit_exceeded",
    }});
    model.refuses_with(429, &body.to_string()).done("Greeted.");
    let reply = chat(&llm(&model, ProviderName::Openai), true)
        .get_response()
        .await
        .unwrap();
    assert!(decode::turn(&reply).unwrap().done);
    model.finish();
}
