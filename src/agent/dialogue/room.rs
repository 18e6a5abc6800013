//! Limits that keep a conversation within its model's window: the fullness from which on it is made
//! shorter, and the bytes that may still be added. Shares are percentages of the window.

use crate::agent::claim::Claim;
use crate::conversation::excerpt;
use crate::llm::chat::Chat;
use crate::llm::config::role::Role;

/// Fullness from which on the older part of a conversation is summarized, and a long reply that
/// cannot be read does not stay.
pub(crate) const NEARLY_FULL: u64 = 70;
/// Fullness above which the request for a summary no longer fits behind the whole.
pub(crate) const FULL: u64 = 90;

/// Share of the newest turns, which a summary leaves as they are.
const NEWEST: u64 = 30;
/// Share of what people write at once while the model works.
const WORDS: u64 = 25;
/// Share of a summary. A longer one would soon fill the window again.
const SUMMARY: u64 = 20;
/// Share of a reply that cannot be read.
const UNREAD: u64 = 5;
/// Most bytes of a reply that cannot be read, in any window.
const MOST_UNREAD: usize = 2 * 1024;

/// Returns `percent` of the model's window as bytes of text, at four bytes a token.
pub(crate) fn bytes_of_window(claim: &Claim, percent: u64) -> usize {
    excerpt::bytes_of_window(claim.window(), percent)
}

/// Returns the tokens of the newest turns that a summary leaves as they are.
pub(crate) fn tokens_of_newest(claim: &Claim) -> u64 {
    claim.model(Role::Worker).window() * NEWEST / 100
}

/// Returns the maximum bytes of what people write at once while the model works.
pub(crate) fn bytes_of_words(claim: &Claim) -> usize {
    bytes_of_window(claim, WORDS)
}

/// Returns the maximum bytes of a summary.
pub(crate) fn bytes_of_summary(claim: &Claim) -> usize {
    bytes_of_window(claim, SUMMARY)
}

/// Returns the maximum bytes of a reply that cannot be read: of a longer one a part is quoted.
pub(crate) fn bytes_of_unread(claim: &Claim) -> usize {
    bytes_of_window(claim, UNREAD).min(MOST_UNREAD)
}

/// Returns how many bytes the outputs of a look may add to a conversation.
pub(crate) fn bytes_of_look(claim: &Claim, chat: &Chat) -> usize {
    excerpt::bytes_of_look(claim.model(chat.role()).window(), chat.fullness())
}
