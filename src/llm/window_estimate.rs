//! Estimates a conversation's size, and checks whether the server read all of it.
//!
//! Servers of local models silently cut a prompt that does not fit, and the model then works blind.
//! The only trace is the number of prompt tokens they report. This module computes the least that
//! this number can be.

use crate::conversation::{Message, ReplyOrigin, ToolSpec, excerpt};
use crate::picture::Picture;

/// Least number of tokens that is judged: chat templates and ways of counting differ by some, and
/// no window is that small.
const TOO_FEW_TO_JUDGE: u64 = 400;
/// Tokens that a template writes only into the last turn, so that a longer conversation may lack
/// them.
const TEMPLATE_MARKS: u64 = 32;

/// The size of a conversation by the server's last count, and how many messages it had.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastCount {
    pub(crate) tokens: u64,
    pub(crate) messages: usize,
}

/// Returns a cautious estimate of the tokens of `messages` and the offered tools, based on the last
/// count if there is one.
pub(crate) fn needed(messages: &[Message], before: Option<LastCount>, tools: &[ToolSpec]) -> u64 {
    let (known, new) = split(messages, before);
    let new = sum(new, excerpt::estimated_tokens) + of_pictures(new) + of_thoughts(new);
    if known > 0 {
        return known + new;
    }
    let tools = tools
        .iter()
        .map(|tool| excerpt::estimated_tokens(&tool.description) + excerpt::estimated_tokens(&tool.schema.to_string()));
    new + tools.sum::<u64>()
}

/// Returns the size of a conversation of which a server counted so many tokens; `None` if it cannot
/// have read all `messages`, as which `history` was sent.
///
/// The bound is half of the fewest tokens that the text can have, on top of the last count: the
/// conversation only grows, so the count must, too. Thoughts that a server gets back it may leave
/// out, those of earlier turns one turn later, so they only lower the bound. One smaller count is
/// believed: some servers count only what was not in their cache, and then the count is within the
/// bounds of the new messages alone. It is added to the last one.
pub(crate) fn size(
    messages: &[Message],
    history: &[Message],
    before: Option<LastCount>,
    counted: u64,
) -> Option<LastCount> {
    let (known, new) = split(messages, before);
    let of = |tokens: u64| LastCount {
        tokens,
        messages: messages.len(),
    };
    let least_new = sum(new, least_tokens) / 2;
    // Thoughts that were sent then may be left out now.
    let counted_before = history.get(..messages.len() - new.len()).unwrap_or_default();
    let least = known.saturating_sub(of_thoughts(counted_before)) + least_new;
    if counted + TEMPLATE_MARKS >= least {
        return Some(of(counted));
    }
    let most_new = sum(new, excerpt::estimated_tokens) + of_pictures(new) + of_thoughts(new) + 64;
    if known > 0 && (least_new..=most_new).contains(&counted) {
        return Some(of(known + counted));
    }
    (least < TOO_FEW_TO_JUDGE).then(|| of(counted))
}

fn split(messages: &[Message], before: Option<LastCount>) -> (u64, &[Message]) {
    match before {
        Some(last) if last.messages <= messages.len() => (last.tokens, &messages[last.messages..]),
        _ => (0, messages),
    }
}

/// Returns the fewest tokens that `text` can have. Tokenizers do not merge across words, so each
/// word is one at least, however long (runs of spaces or other characters may all be in one token);
/// of Chinese and Japanese at most four characters are one.
fn least_tokens(text: &str) -> u64 {
    let mut words = 0;
    let mut others = 0_u64;
    let mut inside = false;
    for character in text.chars() {
        let is_word = character.is_ascii_alphanumeric();
        words += u64::from(is_word && !inside);
        inside = is_word;
        others += u64::from(character.is_alphabetic() && !character.is_ascii());
    }
    words + others / 4
}

/// Returns the tokens of pictures, which no text tells: some servers count few for each.
fn of_pictures(messages: &[Message]) -> u64 {
    let pictures = messages.iter().map(|message| match message {
        Message::User { pictures, .. } => pictures.as_slice(),
        Message::System { .. } | Message::Summary { .. } | Message::Assistant { .. } | Message::Results { .. } => &[],
    });
    pictures.flatten().map(Picture::estimated_tokens).sum()
}

/// Returns the tokens of what models want back with their replies, which not every server counts.
fn of_thoughts(messages: &[Message]) -> u64 {
    let origins = messages.iter().filter_map(|message| match message {
        Message::Assistant { origin, .. } => origin.as_ref(),
        Message::System { .. } | Message::User { .. } | Message::Summary { .. } | Message::Results { .. } => None,
    });
    origins.map(ReplyOrigin::estimated_tokens).sum()
}

fn sum(messages: &[Message], count: fn(&str) -> u64) -> u64 {
    messages
        .iter()
        .map(|message| match message {
            Message::System { text } | Message::User { text, .. } | Message::Summary { text, .. } => count(text),
            Message::Assistant { text, calls, .. } => {
                let calls = calls.iter().map(|call| {
                    let args = serde_json::to_string(&call.args).unwrap_or_default();
                    count(&call.tool) + count(&args)
                });
                count(text) + calls.sum::<u64>()
            }
            Message::Results { results } => results.iter().map(|result| count(&result.output)).sum(),
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_cut(messages: &[Message], before: Option<LastCount>, counted: u64) -> bool {
        size(messages, messages, before, counted).is_none()
    }

    fn user(text: &str) -> Message {
        Message::User {
            text: text.to_owned(),
            pictures: Vec::new(),
        }
    }

    fn prose(words: usize) -> String {
        "It was a bright cold day in April and the clocks were striking. ".repeat(words / 13 + 1)
    }

    fn code(lines: usize) -> String {
        "        let value = reader.next().unwrap_or_default();\n".repeat(lines)
    }

    #[test]
    fn a_first_prompt_cut_to_the_servers_window_is_noticed() {
        assert!(is_cut(&[user(&prose(12_000))], None, 4_096));
        assert!(is_cut(&[user(&"日本語の文章です。".repeat(4_000))], None, 2_048));
    }

    #[test]
    fn honest_counts_raise_no_alarm() {
        // Counts of a vocabulary with 4.6 bytes of prose, or five of indented code, in a token.
        let long = prose(12_000);
        assert!(!is_cut(&[user(&long)], None, long.len() as u64 * 10 / 46));
        let long = code(1_000);
        assert!(!is_cut(&[user(&long)], None, long.len() as u64 / 5));
        assert!(!is_cut(&[user(&" ".repeat(100_000))], None, 1_300));
        assert!(!is_cut(&[user(&"=".repeat(100_000))], None, 1_600));
        assert!(!is_cut(&[user(&"ab12".repeat(10_000))], None, 9_000));
        assert!(!is_cut(&[user("hi")], None, 0));
    }

    #[test]
    fn a_count_that_shrinks_while_the_conversation_grows_is_noticed() {
        let last = Some(LastCount {
            tokens: 4_050,
            messages: 1,
        });
        let conversation = [user(&prose(3_000)), user("and now?")];
        assert!(is_cut(&conversation, last, 3_900));
        assert!(!is_cut(&conversation, last, 4_056));
    }

    #[test]
    fn a_server_that_counts_only_what_it_had_not_cached_is_believed_and_its_counts_add_up() {
        let last = Some(LastCount {
            tokens: 4_050,
            messages: 1,
        });
        let mut conversation = vec![user(&prose(3_000)), user(&prose(100))];
        let grown = size(&conversation, &conversation, last, 130);
        assert_eq!(grown.map(|size| (size.tokens, size.messages)), Some((4_180, 2)));
        conversation.push(user(&prose(100)));
        let of = |counted| size(&conversation, &conversation, grown, counted).map(|size| size.tokens);
        assert_eq!(of(130), Some(4_310));
        // With an empty cache it counts all again.
        assert_eq!(of(4_300), Some(4_300));
        // What was cut is neither of the two.
        assert_eq!(of(2_048), None);
    }

    #[test]
    fn thoughts_that_are_sent_back_take_room_and_may_be_left_out_by_the_server() {
        let reply = |thoughts: &str| Message::Assistant {
            text: String::new(),
            calls: Vec::new(),
            origin: Some(ReplyOrigin {
                model: "m".to_owned(),
                carried: thoughts.into(),
                ..ReplyOrigin::default()
            }),
        };
        let before = [user(&prose(3_000)), reply("")];
        let after = [user(&prose(3_000)), reply(&prose(2_000))];
        assert!(needed(&after, None, &[]) > needed(&before, None, &[]) + 2_000);
        // They were counted once, and not the next time.
        let conversation = [after.as_slice(), &[user("and now?")]].concat();
        let last = Some(LastCount {
            tokens: 5_500,
            messages: 2,
        });
        assert!(!is_cut(&conversation, last, 3_400));
        assert!(is_cut(&conversation, last, 1_500));
        // Nor are they sent the next time.
        let sent = [before.as_slice(), &[user("and now?")]].concat();
        assert!(size(&sent, &conversation, last, 3_400).is_some());
        assert!(size(&sent, &conversation, last, 1_500).is_none());
    }

    #[test]
    fn the_last_count_makes_the_estimate_better() {
        let conversation = [user(&prose(3_000)), user("and now?")];
        let last = Some(LastCount {
            tokens: 3_100,
            messages: 1,
        });
        assert_eq!(needed(&conversation, last, &[]), 3_103);
        assert!(needed(&conversation, None, &[]) > 3_500);
    }
}
