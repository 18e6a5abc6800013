//! Servers whose window is smaller than the configured one: noticed in every conversation, and
//! measured when asked.

use coding_agent::llm::config::{Config, ProviderName};
use coding_agent::llm::error::LlmError;
use coding_agent::llm::model::Model as Llm;
use coding_agent::llm::window_measurement::WindowMeasurement;

use crate::fake::model::{Answer, Model};
use crate::{PROVIDERS, chat, clean, config, model_of};

const CONFIGURED: u64 = 16_384;

/// Returns the model with the window that these tests configure.
fn small(model: &Model, provider: ProviderName) -> Llm {
    let mut config: Config = config(model, provider);
    config.ollama.context_length = CONFIGURED;
    config.lmstudio.context_length = CONFIGURED;
    config.openai.context_length = CONFIGURED;
    config.anthropic.context_length = CONFIGURED;
    config.anthropic.max_tokens = 512;
    model_of(&config).unwrap()
}

#[tokio::test]
async fn a_prompt_that_is_cut_without_a_word_raises_the_alarm_with_every_provider() {
    for provider in PROVIDERS {
        let model = Model::repeating().await;
        model.cuts_prompts_at(2_048);
        let mut chat = chat(&small(&model, provider), false);
        chat.get_response().await.unwrap();
        chat.send_user_message(&clean(&"A line of the file that matters.\n".repeat(1_000)));
        let error = chat.get_response().await.unwrap_err().to_string();
        assert!(error.starts_with("the prompt was truncated: about "), "{error}");
        assert!(error.contains("the server counted 2048; "), "{error}");
        assert!(error.contains("context"), "{error}");
        // What was not read is not taken for said: the conversation is as it was.
        assert_eq!(chat.messages().len(), 4);
        model.finish();
    }
}

#[tokio::test]
async fn a_server_that_counts_only_what_is_new_fills_its_window_all_the_same() {
    let model = Model::answering(|_| crate::fake::model::Answer::says("Hm.")).await;
    model.counts_only_what_is_new();
    let mut chat = chat(&small(&model, ProviderName::Ollama), false);
    chat.get_response().await.unwrap();
    chat.send_user_message(&clean(&"A line of the file that matters.\n".repeat(800)));
    let large = chat.get_response().await.unwrap().usage;
    chat.send_user_message(&clean("Go on."));
    let small = chat.get_response().await.unwrap().usage;
    assert!(large.input > 6_000 && small.input < 20, "{large:?}, {small:?}");
    assert!(chat.counted() > Some(large.input), "{:?}", chat.counted());
    assert!(chat.fullness() >= 40, "{} %", chat.fullness());

    model.cuts_prompts_at(2_048);
    chat.send_user_message(&clean("And now?"));
    let error = chat.get_response().await.unwrap_err().to_string();
    assert!(error.starts_with("the prompt was truncated: about 6"), "{error}");
    assert!(error.contains("the server counted 2048; "), "{error}");
    model.finish();
}

#[tokio::test]
async fn a_server_that_counts_in_zeros_is_taken_for_one_that_does_not_count() {
    for provider in PROVIDERS {
        let model = Model::answering(|_| Answer {
            prompt_tokens: Some(0),
            ..Answer::says("Hm.")
        })
        .await;
        let llm = small(&model, provider);
        let file = clean(&"A line of the file that matters.\n".repeat(800));
        let mut long = chat(&llm, false);
        long.send_user_message(&file);
        let usage = long.get_response().await.unwrap().usage;
        assert!(usage.input > 6_000 && usage.output > 0, "{provider:?}: {usage:?}");

        let mut short = chat(&llm, false);
        short.get_response().await.unwrap();
        short.send_user_message(&file);
        assert!(short.fullness() >= 40, "{provider:?}: {} %", short.fullness());
        short.get_response().await.unwrap();
        assert_eq!(short.counted(), None, "{provider:?}");
        model.finish();
    }
}

#[tokio::test]
async fn a_prompt_leaves_room_for_the_longest_reply_that_is_asked_for() {
    for provider in [ProviderName::Openai, ProviderName::Anthropic] {
        let model = Model::answering(|_| crate::fake::model::Answer::says("Hm.")).await;
        model.has_window(CONFIGURED);
        let mut config: Config = config(&model, provider);
        config.openai.context_length = CONFIGURED;
        config.openai.max_tokens = Some(CONFIGURED / 2);
        config.anthropic.context_length = CONFIGURED;
        config.anthropic.max_tokens = CONFIGURED / 2;
        let mut chat = chat(&model_of(&config).unwrap(), false);
        let file = clean(&"A line of the file that matters.\n".repeat(750));
        chat.send_user_message(&file);
        chat.get_response().await.unwrap();
        assert!((70..80).contains(&chat.fullness()), "{} %", chat.fullness());

        chat.send_user_message(&file);
        let error = chat.get_response().await.unwrap_err();
        let LlmError::TooLong { needed, window } = error else {
            panic!("{error}")
        };
        assert!(
            window == CONFIGURED / 2 && (window..CONFIGURED).contains(&needed),
            "{needed}"
        );
        assert_eq!(model.requests().len(), 1);
        model.finish();
    }
}

#[tokio::test]
async fn a_whole_prompt_is_told_from_one_that_is_cut_with_every_provider() {
    for provider in PROVIDERS {
        let model = Model::repeating().await;
        let llm = small(&model, provider);
        let mut paid = Vec::new();
        let WindowMeasurement::Whole { tokens } = llm.measure_window(&mut paid).await.unwrap() else {
            panic!("{provider:?} reads everything")
        };
        assert!((12_000..CONFIGURED).contains(&tokens), "{tokens}");
        assert_eq!(model.requests().len(), 2);

        model.cuts_prompts_at(4_096);
        let measured = llm.measure_window(&mut paid).await.unwrap();
        let expected = WindowMeasurement::Cut {
            arrived: 4_096,
            is_silent: true,
        };
        assert_eq!(measured, expected, "{provider:?}");
        assert_eq!(model.requests().len(), 4);
        // The reply to the prompt that was cut is of no use, and paid.
        assert_eq!(paid.len(), 4, "{provider:?}");
        assert_eq!(paid[3].usage.input, 4_096, "{provider:?}");
        model.finish();
    }
}

#[tokio::test]
async fn where_the_server_does_not_count_the_place_of_the_cut_is_searched() {
    for provider in PROVIDERS {
        let model = Model::repeating().await;
        model.counts_nothing();
        model.cuts_prompts_at(4_096);
        let measured = small(&model, provider).measure_window(&mut Vec::new()).await.unwrap();
        let WindowMeasurement::Cut { arrived, is_silent } = measured else {
            panic!("{measured:?}")
        };
        // By an estimate that is a seventh above the fake's own count.
        assert!(is_silent && (4_000..=4_800).contains(&arrived), "{arrived}");
        assert_eq!(model.requests().len(), 7);
        model.finish();
    }
}

#[tokio::test]
async fn a_model_that_cannot_repeat_is_measured_by_what_the_server_counts() {
    let model = Model::answering(|_| crate::fake::model::Answer::says("What?")).await;
    let llm = small(&model, ProviderName::Openai);
    assert!(matches!(
        llm.measure_window(&mut Vec::new()).await.unwrap(),
        WindowMeasurement::Unsure { .. }
    ));
    model.cuts_prompts_at(8_000);
    let expected = WindowMeasurement::Cut {
        arrived: 8_000,
        is_silent: true,
    };
    assert_eq!(llm.measure_window(&mut Vec::new()).await.unwrap(), expected);
}

#[tokio::test]
async fn what_the_server_tells_of_itself_decides_where_the_model_cannot_repeat() {
    let model = Model::answering(|_| crate::fake::model::Answer::says("What?")).await;
    let llm = small(&model, ProviderName::Openai);
    model.is_alone_with_window(CONFIGURED);
    let measured = llm.measure_window(&mut Vec::new()).await.unwrap();
    let WindowMeasurement::Counted { tokens, window } = measured else {
        panic!("{measured:?}")
    };
    assert!((12_000..CONFIGURED).contains(&tokens), "{tokens}");
    assert_eq!(window, CONFIGURED);
    // It is not believed against its own count.
    model.cuts_prompts_at(8_000);
    let expected = WindowMeasurement::Cut {
        arrived: 8_000,
        is_silent: true,
    };
    assert_eq!(llm.measure_window(&mut Vec::new()).await.unwrap(), expected);
}
