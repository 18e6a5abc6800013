//! Readers of the replies of a model and of its server.

use std::sync::{Arc, LazyLock};

use coding_agent::conversation::{Reply, decode};
use coding_agent::llm::chat::Chat;
use coding_agent::llm::config::function_calling::FunctionCalling;
use coding_agent::llm::config::role::Role;
use coding_agent::llm::config::{Config, ProviderName};
use coding_agent::llm::models::Models;
use coding_agent::plan;
use coding_agent::review::rounds::{Next, ReviewLoop, Rules};
use coding_agent::review::score::Score;
use coding_agent::review::{Mode, Review, document::Document, evidence::Known, reading};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::text;

/// The most bytes that a model is told of what is wrong with its reply, besides what it wrote
/// itself.
const LONGEST_COMPLAINT: usize = 4096;

/// Reads a reply in which the JSON stands in a text.
pub fn reply(bytes: &[u8]) {
    let text = text(bytes);
    let reply = Reply {
        text: text.clone(),
        ..Reply::default()
    };
    turn(&reply);
    same_in_the_form_of_hermes(&reply);
    for object in decode::objects(&text) {
        // Whatever was mended, what came out is JSON.
        assert!(object.is_object() && serde_json::from_str::<serde_json::Value>(&object.to_string()).is_ok());
    }
    let _ = decode::arguments(&text);
    assert!(decode::without_thinking(&text).len() <= text.len());
}

/// Reads the JSON that a model's server answers with, in each of the protocols.
pub fn answer(bytes: &[u8]) {
    let Ok(json) = serde_json::from_slice(bytes) else {
        return;
    };
    for chat in CHATS.iter() {
        if let Ok(reply) = chat.read(&json) {
            turn(&reply);
            assert!(reply.calls.len() <= 128);
            // Sums of what servers count are made everywhere.
            let mut sum = reply.usage;
            for _ in 0..100 {
                sum += reply.usage;
            }
            let _ = sum.input + sum.output;
        }
    }
}

/// Reads the stream of events that a model's server answers with, in each of the protocols. Where
/// the network cuts it makes no difference.
pub fn stream(bytes: &[u8]) {
    for chat in CHATS.iter() {
        let whole = chat.read_stream([bytes]);
        let size = 1 + bytes.len() % 7;
        // Of several faults it tells the first that it comes to.
        assert_eq!(chat.read_stream(bytes.chunks(size)).ok(), whole.clone().ok());
        match whole {
            Ok(reply) => {
                turn(&reply);
                assert!(reply.calls.len() <= 128);
            }
            Err(reason) => assert!(!reason.is_empty() && reason.len() <= bytes.len() + LONGEST_COMPLAINT),
        }
    }
}

/// Reads a plan: it is valid or refused in words, and its order holds each subtask once.
pub fn plan(bytes: &[u8]) {
    let reply = Reply {
        text: text(bytes),
        ..Reply::default()
    };
    let plan = match plan::read(&reply) {
        Ok(plan) => plan,
        Err(unreadable) => return complaint(&unreadable, bytes.len()),
    };
    match plan.validate(20) {
        Ok(()) => {
            let ordered = plan.ordered();
            assert_eq!(ordered.len(), plan.task_decomposition.subtasks.len());
            for (place, subtask) in ordered.iter().enumerate() {
                let came = |id: &String| ordered[..place].iter().any(|before| before.id == *id);
                assert!(subtask.dependencies.iter().all(came), "{} comes too early", subtask.id);
            }
        }
        Err(unreadable) => complaint(&unreadable, 0),
    }
    let choice = plan::choose_environment(&plan, &["python", "node"], "python");
    assert!(["python", "node"].contains(&choice.name.as_str()));
}

/// Reads a reviewer's answer: what cannot be read does not pass, and no answer that says "not
/// ready" is read as ready, whatever else it says.
pub fn review(bytes: &[u8]) {
    let text = text(bytes);
    for mode in [Mode::Flexible, Mode::Strict] {
        let cut = read_review(&text, mode, true);
        assert!(cut.is_err(), "an answer that was cut is read");
        for refusal in [
            "{\"ready_for_implementation\": false, \"score\": 9.5}",
            "Ready for implementation: no",
            "The plan is not ready for implementation.",
            "判定：不合格",
        ] {
            for text in [format!("{text}\n\n{refusal}\n"), format!("{refusal}\n\n{text}")] {
                // What a model wrote before the end of its thinking it only thought.
                let ends = ["think>", "thinking>", "thought>", "THINK]", "THINKING|>"];
                let is_thought = ends.iter().any(|tag| text.contains(tag));
                let is_ready = read_review(&text, mode, false).is_ok_and(|review| review.ready_for_implementation);
                assert!(!is_ready || is_thought, "{mode:?}: {text}");
            }
        }
        let answer = read_review(&text, mode, false);
        if let Ok(review) = &answer {
            let stored = serde_json::to_string(review).expect("a review can be stored");
            assert_eq!(serde_json::from_str::<Review>(&stored).ok().as_ref(), Some(review));
        }
        let may_pass = answer.as_ref().is_ok_and(|review| review.ready_for_implementation);
        let rules = Rules {
            target_score: Score::EIGHT,
            max_rounds: 3,
        };
        let document = Document::of_lines("step\n");
        let mut rounds = ReviewLoop::default();
        rounds.record(
            &document,
            answer.map_err(|unreadable| unreadable.to_string()),
            &Known::default(),
        );
        assert!(may_pass || rounds.next(&document.digest(), rules) != Next::Pass);
    }
}

fn read_review(text: &str, mode: Mode, cut: bool) -> Result<Review, decode::Unreadable> {
    let reply = Reply {
        text: text.to_owned(),
        cut,
        ..Reply::default()
    };
    let read = reading::read(&reply, mode);
    if let Err(unreadable) = &read {
        complaint(unreadable, text.len());
    }
    read
}

fn turn(reply: &Reply) {
    match decode::turn(reply) {
        Ok(turn) => assert!(turn.done || !turn.calls.is_empty(), "a turn that does nothing"),
        Err(unreadable) => {
            let calls: usize = reply.broken_calls.iter().map(String::len).sum();
            complaint(&unreadable, reply.text.len() + 2 * calls);
        }
    }
}

/// Checks that a reply asks for the same in the other form.
fn same_in_the_form_of_hermes(reply: &Reply) {
    let Ok(turn) = decode::turn(reply) else {
        return;
    };
    let calls: Vec<Value> = turn
        .calls
        .iter()
        .map(|call| json!({ "name": call.tool, "parameters": call.args }))
        .collect();
    let answer = if turn.done { "Finished." } else { "" };
    let written = Reply {
        text: json!({ "thought": "", "tool_calls": calls, "final_answer": answer }).to_string(),
        ..Reply::default()
    };
    // Numbers of any length are JSON, and are rounded once.
    if let Ok(read) = decode::turn(&written) {
        assert_eq!((read.calls.len(), read.done), (turn.calls.len(), turn.done));
        for (one, other) in read.calls.iter().zip(&turn.calls) {
            assert_eq!(one.tool, other.tool);
        }
    }
}

fn complaint(unreadable: &decode::Unreadable, said: usize) {
    let complaint = unreadable.to_string();
    assert!(!complaint.is_empty());
    assert!(
        complaint.len() <= said + LONGEST_COMPLAINT,
        "{} bytes about {said}",
        complaint.len()
    );
}

static CHATS: LazyLock<Vec<Chat>> = LazyLock::new(|| {
    let providers = [
        ProviderName::Ollama,
        ProviderName::Lmstudio,
        ProviderName::Openai,
        ProviderName::Anthropic,
    ];
    let chats = providers.map(|provider| {
        let config = Config {
            provider,
            function_calling: FunctionCalling::On,
            ..config()
        };
        let models = Models::new(&config).expect("nothing is missing in this configuration");
        models
            .of(Role::Worker, None)
            .chat(Arc::new([]), true, CancellationToken::new())
    });
    chats.into()
});

fn config() -> Config {
    let mut config = Config::default();
    "m".clone_into(&mut config.ollama.model);
    "m".clone_into(&mut config.lmstudio.model);
    config.openai.api_key = Some("k".into());
    config.anthropic.api_key = Some("k".into());
    config
}
