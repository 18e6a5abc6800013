//! Compaction of a conversation that outgrows the window: at a threshold a summary replaces its
//! older part.
//!
//! System prompt and task (the head) and the newest turns stay word for word, and no result is
//! separated from its call. What is stored is never rewritten: the summary is one more stored
//! message, and [`folded`] puts it in the place of what it replaces.

use super::{Message, ReplyOrigin, excerpt};
use crate::picture::Picture;

/// Number of messages at the beginning that always stay: the system prompt and the task.
pub const HEAD: usize = 2;
/// Fewest messages worth replacing: below this a summary costs more than it saves.
const FEWEST_REPLACED: usize = 4;

/// Returns how many messages behind the head a summary may replace, so that about `kept_tokens` of
/// the newest stay, and in any case the last reply. `None` where that would gain next to nothing.
pub fn older_part(messages: &[Message], kept_tokens: u64) -> Option<usize> {
    let mut tokens = 0;
    let mut cut = None;
    for (place, message) in messages.iter().enumerate().skip(HEAD).rev() {
        tokens += tokens_of(message);
        // The last reply stays with its results even if these alone exceed the limit: what comes
        // before them can still go.
        if tokens > kept_tokens && cut.is_some() {
            break;
        }
        // A cut is made only before a reply of the model, so that its calls and their results stay
        // together.
        if matches!(message, Message::Assistant { .. }) {
            cut = Some(place);
        }
    }
    cut.map(|place| place - HEAD)
        .filter(|replaced| *replaced >= FEWEST_REPLACED)
}

/// Replaces messages by the stored summaries of them.
pub fn folded(stored: Vec<Message>) -> Vec<Message> {
    let mut messages = Vec::with_capacity(stored.len());
    for message in stored {
        take_up(&mut messages, message);
    }
    messages
}

/// Appends `message`; a summary replaces the messages that it sums up.
pub fn take_up(messages: &mut Vec<Message>, message: Message) {
    match &message {
        Message::Summary { replaces, .. } if messages.len() >= HEAD + replaces => {
            messages.splice(HEAD..HEAD + replaces, [message]);
        }
        _ => messages.push(message),
    }
}

fn tokens_of(message: &Message) -> u64 {
    match message {
        Message::System { text } | Message::Summary { text, .. } => excerpt::estimated_tokens(text),
        Message::User { text, pictures } => {
            excerpt::estimated_tokens(text) + pictures.iter().map(Picture::estimated_tokens).sum::<u64>()
        }
        Message::Assistant { text, calls, origin } => {
            let calls = calls
                .iter()
                .map(|call| serde_json::to_string(&call.args).unwrap_or_default());
            let carried = origin.as_ref().map_or(0, ReplyOrigin::estimated_tokens);
            excerpt::estimated_tokens(text) + calls.map(|args| excerpt::estimated_tokens(&args)).sum::<u64>() + carried
        }
        Message::Results { results } => results
            .iter()
            .map(|result| excerpt::estimated_tokens(&result.output))
            .sum(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{ToolCall, ToolResult};
    use proptest::prelude::*;

    fn user(text: &str) -> Message {
        Message::User {
            text: text.to_owned(),
            pictures: Vec::new(),
        }
    }

    fn assistant(text: &str) -> Message {
        Message::Assistant {
            text: text.to_owned(),
            calls: Vec::new(),
            origin: None,
        }
    }

    /// System prompt, task, and `turns` replies with their results.
    fn conversation(turns: usize) -> Vec<Message> {
        let mut messages = vec![
            Message::System {
                text: "rules".to_owned(),
            },
            user("the task"),
        ];
        for turn in 0..turns {
            messages.push(assistant(&format!("reply {turn} {}", "word ".repeat(50))));
            messages.push(user(&format!("result {turn} {}", "word ".repeat(50))));
        }
        messages
    }

    #[test]
    fn a_short_conversation_is_left_alone() {
        assert_eq!(older_part(&conversation(2), 10_000), None);
        assert_eq!(older_part(&[], 10), None);
    }

    #[test]
    fn the_newest_turns_stay_together_with_their_results() {
        let messages = conversation(20);
        let replaced = older_part(&messages, 700).unwrap();
        assert!(matches!(&messages[HEAD + replaced], Message::Assistant { .. }));
        let kept: u64 = messages[HEAD + replaced..].iter().map(tokens_of).sum();
        assert!(kept <= 700 && replaced > 20, "{kept} tokens of {replaced} messages");
    }

    #[test]
    fn a_last_turn_that_is_larger_than_what_may_stay_does_not_keep_the_rest_from_going() {
        let mut messages = conversation(5);
        messages.push(assistant("reading"));
        messages.push(user(&"word ".repeat(10_000)));
        assert_eq!(older_part(&messages, 700), Some(10));
    }

    /// Native calls, some replies with several, and their results.
    fn with_calls(calls_of_turns: &[usize]) -> Vec<Message> {
        let mut messages = conversation(0);
        for (turn, calls) in calls_of_turns.iter().enumerate() {
            let calls: Vec<ToolCall> = (0..*calls)
                .map(|place| ToolCall {
                    id: format!("call_{turn}_{place}"),
                    tool: "workspace/read_file".to_owned(),
                    args: serde_json::Map::new(),
                })
                .collect();
            let results = calls.iter().map(|call| ToolResult {
                call: call.clone(),
                output: "word ".repeat(turn * 7 % 90),
                is_error: false,
            });
            let results: Vec<ToolResult> = results.collect();
            messages.push(Message::Assistant {
                text: String::new(),
                calls,
                origin: None,
            });
            messages.push(Message::Results { results });
        }
        messages
    }

    #[test]
    fn what_a_model_wants_back_counts_and_goes_with_its_message() {
        let mut messages = with_calls(&[1; 6]);
        let before = older_part(&messages, 300);
        for message in &mut messages {
            if let Message::Assistant { origin, .. } = message {
                *origin = Some(ReplyOrigin {
                    model: "m".to_owned(),
                    carried: "word ".repeat(100).into(),
                    ..ReplyOrigin::default()
                });
            }
        }
        // As much as before has no room for the thoughts.
        let replaces = older_part(&messages, 300).unwrap();
        assert!(before.is_none_or(|before| before < replaces), "{before:?} {replaces}");
        let text = "what was done".to_owned();
        take_up(&mut messages, Message::Summary { replaces, text });
        let carried = messages.iter().map(tokens_of).sum::<u64>();
        assert!(carried < 600, "{carried}");
    }

    #[test]
    fn a_summary_takes_the_place_of_what_it_replaces_again_and_again() {
        let mut stored = conversation(5);
        stored.push(Message::Summary {
            replaces: 6,
            text: "first".to_owned(),
        });
        stored.push(assistant("next"));
        stored.push(Message::Summary {
            replaces: 3,
            text: "second".to_owned(),
        });
        let messages = folded(stored);
        let whole = conversation(5);
        let expected = [
            &whole[..2],
            &[Message::Summary {
                replaces: 3,
                text: "second".to_owned(),
            }],
            &whole[10..],
            &[assistant("next")],
        ];
        assert_eq!(messages, expected.concat());
    }

    proptest! {
        #[test]
        fn no_result_is_parted_from_its_call(turns in proptest::collection::vec(1_usize..4, 0..30), kept in 0_u64..2_000) {
            let mut stored = with_calls(&turns);
            if let Some(replaces) = older_part(&stored, kept) {
                stored.push(Message::Summary { replaces, text: "what was done".to_owned() });
            }
            let messages = folded(stored);
            for (place, message) in messages.iter().enumerate() {
                if let Message::Results { results } = message {
                    let Message::Assistant { calls, .. } = &messages[place - 1] else {
                        return Err(TestCaseError::fail("results without their reply"));
                    };
                    prop_assert_eq!(calls.iter().collect::<Vec<_>>(), results.iter().map(|result| &result.call).collect::<Vec<_>>());
                }
                if matches!(message, Message::Assistant { .. }) {
                    let is_answered = matches!(messages.get(place + 1), Some(Message::Results { .. }));
                    prop_assert!(is_answered);
                }
            }
        }

        #[test]
        fn folding_never_loses_the_head_or_the_last_message(turns in 1_usize..30, kept in 0_u64..5_000) {
            let mut stored = conversation(turns);
            let (head, last) = (stored[..HEAD].to_vec(), stored.last().cloned());
            if let Some(replaces) = older_part(&stored, kept) {
                stored.push(Message::Summary { replaces, text: "what was done".to_owned() });
            }
            let messages = folded(stored);
            prop_assert_eq!(&messages[..HEAD], head.as_slice());
            prop_assert_eq!(messages.last().cloned(), last);
        }
    }
}
