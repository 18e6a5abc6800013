//! The form of a conversation on the wire, and the replies that come back.

use coding_agent::conversation::{Message, ToolCall, ToolResult, decode};
use coding_agent::llm::config::ProviderName;
use coding_agent::llm::config::function_calling::FunctionCalling;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::fake::model::{Answer, Model, Said};
use crate::{KEY, PROVIDERS, chat, clean, config, llm, model_of, result};

#[tokio::test]
async fn native_calls_are_made_answered_and_ended_with_every_provider() {
    for provider in PROVIDERS {
        let model = Model::start().await;
        model.forbids(KEY);
        model
            .calls("workspace/write_file", json!({ "path": "README.md" }))
            .calls_all([
                ("odd.server/a tool", json!({})),
                ("workspace/write_file", json!({ "path": "b" })),
            ])
            .done("Greeted.");
        // The name with a dot has another form on the wire; the fake finds it by what was offered.
        let llm = llm(&model, provider);
        assert!(llm.takes_native_calls().await);
        let mut chat = chat(&llm, true);
        let first = chat.get_response().await.unwrap();
        let turn = decode::turn(&first).unwrap();
        assert_eq!(turn.comment, "Calling workspace/write_file");
        assert_eq!(
            Value::Object(turn.calls[0].args.clone()),
            json!({ "path": "README.md" })
        );
        assert!(first.usage.input > 0 && first.usage.output > 0, "{:?}", first.usage);
        chat.send_tool_results(vec![result(&turn.calls[0])]);

        let second = decode::turn(&chat.get_response().await.unwrap()).unwrap();
        assert_eq!(second.calls.len(), 2);
        // Only one of the two is answered, and something is said: the other is answered as not run.
        chat.send_tool_results(vec![result(&second.calls[1])]);
        chat.send_user_message(&clean("Go on."));

        let last = decode::turn(&chat.get_response().await.unwrap()).unwrap();
        assert!(last.done && last.calls.is_empty());
        assert_eq!(last.comment, "Greeted.");
        // The call of `done` is open still; a message closes it.
        chat.send_user_message(&clean("Not yet: the check failed."));
        model.done("Now.");
        assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);

        let request = model.requests().pop().unwrap();
        assert!(
            request.user_agent.starts_with("coding-agent/"),
            "{}",
            request.user_agent
        );
        assert!(
            request
                .messages
                .iter()
                .any(|said| matches!(said, Said::Result(_, text) if text == "not run"))
        );
        model.finish();
    }
}

/// The words of llama.cpp for an order of messages that the template of Devstral refuses.
const REFUSED_BY_TEMPLATE: &str = "\n------------\nWhile executing CallExpression at line 189, column 32 in source:\n\
    ...== 0) %}\u{21b5}            {{- raise_exception('After the optional system message, con...\n    ^\nError: Jinja \
    Exception: After the optional system message, conversation roles must alternate user and assistant roles except for \
    tool calls and results.";

#[tokio::test]
async fn a_server_that_wants_a_reply_behind_each_result_gets_one_from_its_first_refusal_on() {
    for (provider, status, words) in [
        (ProviderName::Openai, 400, "Unexpected role 'user' after role 'tool'"),
        (ProviderName::Openai, 500, REFUSED_BY_TEMPLATE),
        (ProviderName::Lmstudio, 400, REFUSED_BY_TEMPLATE),
        (ProviderName::Ollama, 500, REFUSED_BY_TEMPLATE),
    ] {
        let model = Model::start().await;
        // What is written otherwise does not extend the request that was refused.
        model.allows_restarts();
        // Each thought and each signature has to come back with its own call.
        model.thinks();
        model.wants_replies_behind_results(status, words);
        model
            .calls("workspace/write_file", json!({ "path": "a" }))
            .calls("workspace/write_file", json!({ "path": "b" }))
            .done("Greeted.");
        let mut chat = chat(&llm(&model, provider), true);
        for remark in ["Be kind.", "Be short."] {
            let calls = chat.get_response().await.unwrap().calls;
            chat.send_tool_results(calls.iter().map(result).collect());
            chat.send_user_message(&clean(remark));
        }
        assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);
        let requests = model.requests();
        let replies_between = |messages: &[Said]| {
            let reply = Said::Assistant("(no text)".to_owned(), Vec::new());
            let is_parted =
                |three: &&[Said]| matches!(three, [Said::Result(..), between, Said::User(_)] if *between == reply);
            messages.windows(3).filter(is_parted).count()
        };
        let between: Vec<usize> = requests
            .iter()
            .map(|request| replies_between(&request.messages))
            .collect();
        assert_eq!(between, [0, 0, 1, 2], "{provider:?}, {status}");
        // The conversation itself has no such replies.
        assert_eq!(chat.messages().len(), 9);
        model.finish();
    }
}

#[tokio::test]
async fn commands_are_written_as_json_where_native_calls_are_not_wanted() {
    for provider in PROVIDERS {
        let model = Model::start().await;
        model
            .calls("workspace/write_file", json!({ "path": "README.md" }))
            .says("<think>{\"done\":true}</think>Hm.")
            .done("Greeted.");
        let mut config = config(&model, provider);
        config.function_calling = FunctionCalling::Off;
        let llm = model_of(&config).unwrap();
        assert!(!llm.takes_native_calls().await);
        let mut chat = chat(&llm, false);
        let turn = decode::turn(&chat.get_response().await.unwrap()).unwrap();
        assert_eq!(turn.calls[0].id, "");
        chat.send_tool_results(vec![result(&turn.calls[0])]);
        let unreadable = decode::turn(&chat.get_response().await.unwrap()).unwrap_err();
        chat.send_user_message(&clean(&unreadable.to_string()));
        assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);

        let request = model.requests().pop().unwrap();
        assert!(request.offered.is_empty());
        let Said::User(text) = &request.messages[3] else {
            panic!("{:?}", request.messages)
        };
        assert_eq!(
            serde_json::from_str::<Value>(text).unwrap(),
            json!({ "output": "written" })
        );
        assert_eq!(request.messages[4], Said::Assistant("Hm.".to_owned(), vec![]));
        model.finish();
    }
}

#[tokio::test]
async fn a_stored_conversation_goes_on_natively_or_written_out() {
    for native in [true, false] {
        let model = Model::start().await;
        model.allows_restarts();
        model.calls("workspace/write_file", json!({ "path": "a" }));
        let llm = llm(&model, ProviderName::Openai);
        let mut first = chat(&llm, true);
        let reply = first.get_response().await.unwrap();
        let stored = first.unsaved().to_vec();
        assert_eq!(stored, first.messages());
        assert_eq!(
            first.unsaved(),
            stored,
            "they are not stored because somebody asked for them"
        );
        first.note_saved();
        assert_eq!(first.unsaved(), []);
        assert_eq!(first.stored(), stored.len());
        let stored: Vec<Message> = serde_json::from_str(&serde_json::to_string(&stored).unwrap()).unwrap();

        // The same model: calls of another would be written out in any case.
        model.done("Greeted.");
        let mut second = chat(&llm, native);
        second.resume(stored);
        second.send_tool_results(vec![result(&reply.calls[0])]);
        assert!(decode::turn(&second.get_response().await.unwrap()).unwrap().done);
        assert_eq!(second.unsaved().len(), 2);
        let request = model.requests().pop().unwrap();
        let is_native = |said: &Said| match said {
            Said::Assistant(_, calls) => !calls.is_empty(),
            Said::Result(..) => true,
            _ => false,
        };
        assert_eq!(request.messages.iter().any(is_native), native);
        model.finish();
    }
}

#[tokio::test]
async fn native_arguments_that_cannot_be_read_are_asked_for_again() {
    let model = Model::start().await;
    let call = json!({ "id": "1", "type": "function", "function": { "name": "workspace__write_file", "arguments": "{\"path\": \"a\" oops" } });
    let body = json!({ "choices": [{ "message": { "role": "assistant", "content": null, "tool_calls": [call] }, "finish_reason": "length" }] });
    model.script().sends(&body.to_string()).done("Greeted.");
    let mut chat = chat(&llm(&model, ProviderName::Openai), true);
    let reply = chat.get_response().await.unwrap();
    // Without a count of the server's the estimate stands in.
    assert!(reply.usage.input > 0);
    let unreadable = decode::turn(&reply).unwrap_err().to_string();
    assert_eq!(
        unreadable,
        "In the call of workspace/write_file, the arguments are broken at line 1, column 14: expected ',' or '}' after \
         the value, found 'o'. The reply was cut at the length limit: write large files in several calls. Nothing of \
         this reply was run; send the calls again."
    );
    chat.send_user_message(&clean(&unreadable));
    assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);
    model.finish();
}

#[tokio::test]
async fn a_call_that_the_length_limit_cut_before_its_arguments_is_not_run() {
    let called = json!({ "id": "1", "type": "function", "function": { "name": "done", "arguments": "" } });
    let message = json!({ "role": "assistant", "content": null, "tool_calls": [called] });
    let completion = json!({ "choices": [{ "message": message, "finish_reason": "length" }] });
    let block = json!({ "type": "tool_use", "id": "1", "name": "done", "input": {} });
    let blocks = json!({ "content": [block], "stop_reason": "max_tokens" });
    for (provider, body) in [(ProviderName::Openai, completion), (ProviderName::Anthropic, blocks)] {
        let model = Model::start().await;
        model.script().sends(&body.to_string()).done("Greeted.");
        let mut chat = chat(&llm(&model, provider), true);
        let unreadable = decode::turn(&chat.get_response().await.unwrap())
            .unwrap_err()
            .to_string();
        assert!(
            unreadable
                .starts_with("In the call of done, the arguments are missing. The reply was cut at the length limit"),
            "{provider:?}: {unreadable}"
        );
        chat.send_user_message(&clean(&unreadable));
        assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);
        model.finish();
    }
}

#[tokio::test]
async fn a_tool_that_fails_without_words_ends_no_conversation() {
    for provider in PROVIDERS {
        let model = Model::start().await;
        let call = ("workspace/write_file", json!({}));
        model.script().calls_all([call.clone(), call]).done("Greeted.");
        let mut chat = chat(&llm(&model, provider), true);
        let calls = chat.get_response().await.unwrap().calls;
        let wordless = |(call, is_error): (&ToolCall, bool)| ToolResult {
            output: String::new(),
            is_error,
            ..result(call)
        };
        chat.send_tool_results(calls.iter().zip([true, false]).map(wordless).collect());
        assert!(decode::turn(&chat.get_response().await.unwrap()).unwrap().done);
        let request = model.requests().pop().unwrap();
        let outputs: Vec<&str> = request
            .messages
            .iter()
            .filter_map(|said| match said {
                Said::Result(_, output) => Some(output.as_str()),
                _ => None,
            })
            .collect();
        let of_error = if provider == ProviderName::Anthropic {
            "(no text)"
        } else {
            ""
        };
        assert_eq!(outputs, [of_error, ""], "{provider:?}");
        model.finish();
    }
}

#[tokio::test]
async fn what_anthropic_reads_from_its_cache_and_writes_into_it_is_told_apart() {
    let model = Model::start().await;
    model.done("Greeted.").counts(4_000);
    let mut chat = chat(&llm(&model, ProviderName::Anthropic), true);
    let usage = chat.get_response().await.unwrap().usage;
    let parts = [usage.input, usage.cached, usage.cache_written];
    assert_eq!(parts, [4_000, 2_000, 1_000]);
    model.finish();
}

#[tokio::test]
async fn what_a_call_writes_counts_where_the_server_counts_nothing() {
    for provider in PROVIDERS {
        let model = Model::start().await;
        model.counts_nothing();
        let content = "Hello, reader. ".repeat(500);
        model.calls("workspace/write_file", json!({ "path": "a", "content": content }));
        let reply = chat(&llm(&model, provider), true).get_response().await.unwrap();
        assert!(
            (2_000..3_000).contains(&reply.usage.output),
            "{provider:?}: {:?}",
            reply.usage
        );
        model.finish();
    }
}

#[tokio::test]
async fn a_server_says_what_it_is_and_has() {
    let model = Model::start().await;
    let at = model.address();
    for (provider, said) in [
        (
            ProviderName::Ollama,
            format!("ollama 0.32.9 at {at} has scripted, window 131072, 32768 used"),
        ),
        (
            ProviderName::Lmstudio,
            format!("lmstudio at {at}/v1 has scripted, window 65536, 32768 used"),
        ),
        (
            ProviderName::Openai,
            format!("openai at {at}/v1 has scripted, window 128000 as configured (the server does not tell)"),
        ),
        (
            ProviderName::Anthropic,
            format!("anthropic at {at} has scripted (scripted), window 200000 as configured"),
        ),
    ] {
        assert_eq!(llm(&model, provider).examine().await.unwrap(), said);
    }
    let mut small = config(&model, ProviderName::Lmstudio);
    small.lmstudio.context_length = 100_000;
    let error = model_of(&small).unwrap().examine().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "lmstudio at {at}/v1 has scripted with a window of 65536 tokens, and 100000 are configured; load the model in \
             LM Studio with a context length of 100000, or lower llm.lmstudio.context_length"
        )
    );
    model.takes_no_tools();
    assert!(!llm(&model, ProviderName::Ollama).takes_native_calls().await);
}

#[tokio::test]
async fn several_conversations_follow_their_own_scripts() {
    let model = Model::answering(|request| match request.first_user_message().as_str() {
        "Greet the reader." => Answer::done("Greeted."),
        _ => Answer::says("What?"),
    })
    .await;
    let llm = llm(&model, ProviderName::Ollama);
    let mut one = chat(&llm, true);
    let mut other = llm.chat([].into(), true, CancellationToken::new());
    other.send_system_prompt(&clean("You are a coding agent."));
    other.send_user_message(&clean("Something else."));
    let (one, other) = tokio::join!(one.get_response(), other.get_response());
    assert!(decode::turn(&one.unwrap()).unwrap().done);
    assert_eq!(other.unwrap().text, "What?");
    model.finish();
}

#[tokio::test]
async fn the_window_of_a_server_with_one_model_is_told() {
    let model = Model::start().await;
    model.is_alone_with_window(4_096);
    let at = model.address();
    let has = format!(
        "the openai server at {at}/v1 does not list the model 'scripted' (it has: small.gguf); servers of a single model take any name"
    );
    let mut config = config(&model, ProviderName::Openai);
    config.openai.context_length = 4_096;
    let examined = model_of(&config).unwrap().examine().await.unwrap();
    assert_eq!(examined, format!("{has}, window 4096, 4096 used"));
    config.openai.context_length = 8_192;
    let error = model_of(&config).unwrap().examine().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{has} with a window of 4096 tokens, and 8192 are configured; start the server with a larger window, or lower \
             llm.openai.context_length to the one it has"
        )
    );
}

#[tokio::test]
async fn a_reply_is_held_to_its_form_where_it_is_wanted_and_written_as_text() {
    let form =
        json!({ "type": "object", "properties": { "command": {}, "comment": {} }, "required": ["comment", "command"] });
    let sent = |provider, constrained: bool, native: bool| {
        let form = form.clone();
        async move {
            let model = Model::start().await;
            model.done("Greeted.");
            let mut config = config(&model, provider);
            config.constrained_replies = constrained;
            let mut chat = chat(&model_of(&config).unwrap(), native);
            chat.hold_to(Some(form));
            chat.get_response().await.unwrap();
            model.finish();
            let body = model.requests().pop().unwrap().body;
            [body["response_format"].clone(), body["format"].clone()]
        }
    };
    let none = [Value::Null, Value::Null];
    let of_openai = json!({ "type": "json_schema", "json_schema": { "name": "reply", "schema": form } });
    for (provider, expected) in [
        (ProviderName::Ollama, [Value::Null, form.clone()]),
        (ProviderName::Lmstudio, [of_openai.clone(), Value::Null]),
        (ProviderName::Openai, [of_openai, Value::Null]),
        (ProviderName::Anthropic, none.clone()),
    ] {
        assert_eq!(sent(provider, true, false).await, expected, "{provider:?}");
        assert_eq!(sent(provider, true, true).await, none, "{provider:?}, native");
        assert_eq!(sent(provider, false, false).await, none, "{provider:?}, not wanted");
    }
}

#[tokio::test]
async fn a_form_is_missed_only_where_the_configuration_could_have_a_reply_held_to_it() {
    let model = Model::start().await;
    let could_be_held = |provider, constrained: bool, native: bool| {
        let mut config = config(&model, provider);
        config.constrained_replies = constrained;
        let mut chat = chat(&model_of(&config).unwrap(), native);
        assert!(!chat.could_be_held(), "there is no form");
        chat.hold_to(Some(json!({ "type": "object" })));
        chat.could_be_held()
    };
    assert!(could_be_held(ProviderName::Openai, false, false));
    assert!(could_be_held(ProviderName::Ollama, false, false));
    assert!(!could_be_held(ProviderName::Openai, true, false));
    assert!(!could_be_held(ProviderName::Openai, false, true));
    assert!(!could_be_held(ProviderName::Anthropic, false, false));
    model.finish();
}

#[tokio::test]
async fn ollama_is_told_how_much_to_think_in_a_word_or_whether_to() {
    for (effort, sent) in [("low", json!("low")), ("false", json!(false)), ("true", json!(true))] {
        let model = Model::start().await;
        model.done("Greeted.");
        let mut config = config(&model, ProviderName::Ollama);
        config.ollama.options.reasoning_effort = Some(effort.to_owned());
        chat(&model_of(&config).unwrap(), true).get_response().await.unwrap();
        assert_eq!(model.requests().pop().unwrap().body["think"], sent);
        model.finish();
    }
}

/// Returns the blocks that make up a prompt, in the order in which Anthropic caches them, each with
/// whether a mark stands on it.
fn blocks(body: &Value) -> Vec<(String, bool)> {
    let listed = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let messages = listed(&body["messages"]);
    let said = messages.iter().flat_map(|message| {
        let role = message["role"].clone();
        listed(&message["content"])
            .into_iter()
            .map(move |block| json!([role, block]))
    });
    let all = listed(&body["tools"])
        .into_iter()
        .chain(listed(&body["system"]))
        .chain(said);
    all.map(|mut block| {
        let within = if block.is_array() { &mut block[1] } else { &mut block };
        let is_marked = within.as_object_mut().unwrap().remove("cache_control");
        assert!(
            is_marked.is_none() || within["text"] != "",
            "an empty text cannot be cached"
        );
        (block.to_string(), is_marked.is_some())
    })
    .collect()
}

#[tokio::test]
async fn each_request_to_anthropic_finds_what_the_one_before_has_cached() {
    for native in [true, false] {
        let model = Model::start().await;
        for turn in 0..5 {
            let path = format!("file-{turn}");
            // Many results in one turn: a cache is only looked for twenty blocks back from a mark.
            let calls = (0..25)
                .map(|_| ("workspace/write_file".to_owned(), json!({ "path": path })))
                .collect();
            model.script().answers(Answer {
                comment: format!("Turn {turn}"),
                calls,
                ..Answer::default()
            });
        }
        let mut chat = chat(&llm(&model, ProviderName::Anthropic), native);
        for turn in 0..5 {
            let calls = decode::turn(&chat.get_response().await.unwrap()).unwrap().calls;
            chat.send_tool_results(calls.iter().map(result).collect());
            if turn == 2 {
                chat.send_user_message(&clean("And be kind."));
            }
        }
        let requests: Vec<_> = model.requests().iter().map(|request| blocks(&request.body)).collect();
        assert_eq!(requests.len(), 5);
        for request in &requests {
            let marks = request.iter().filter(|(_, is_marked)| *is_marked).count();
            assert!(marks <= 4, "{marks} marks");
            assert!(request.last().unwrap().1, "the end of the request is not cached");
        }
        for pair in requests.windows(2) {
            let [before, after] = pair else { unreachable!() };
            let same = |(one, other): (&(String, bool), &(String, bool))| one.0 == other.0;
            assert!(
                before.len() < after.len() && before.iter().zip(after).all(same),
                "the beginning changed"
            );
            assert!(
                after[before.len() - 1].1,
                "nothing is looked for where the last request ended"
            );
        }
        // Tools come before the system prompt, so its mark keeps both for other runs.
        let end_of_system = requests[0].len() - 2;
        assert!(requests[0][end_of_system].0.contains("You are a coding agent."));
        assert!(requests[0][end_of_system].1);
        model.finish();
    }
}
