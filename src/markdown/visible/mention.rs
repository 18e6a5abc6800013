//! Tells whether a text speaks to an account: `@name` where a reader of the page sees it as the
//! writer's own words, and not in code, in a quote or in the address of a link.

use pulldown_cmark::{Event, Tag, TagEnd};

use super::markdown::parser;

/// Tells whether `seen`, the visible part of a Markdown text, mentions `account`.
pub(super) fn is_in(seen: &str, account: &str) -> bool {
    let mut own_words = String::new();
    // Open quotes, blocks of code and pictures.
    let mut apart = 0_u32;
    for event in parser(seen) {
        match event {
            Event::Start(tag) if is_apart(&tag) => apart += 1,
            Event::End(TagEnd::BlockQuote(_) | TagEnd::CodeBlock | TagEnd::Image) => apart = apart.saturating_sub(1),
            // The parser cuts a word at each character that might have been markup.
            Event::Text(text) if apart == 0 => own_words.push_str(&text),
            // Whatever stands between two texts ends a name.
            _ => own_words.push('\n'),
        }
    }
    names(&own_words, account)
}

fn is_apart(tag: &Tag<'_>) -> bool {
    matches!(tag, Tag::BlockQuote(_) | Tag::CodeBlock(_) | Tag::Image { .. })
}

/// Tells whether `@account` stands in a plain text as a word of its own. Accounts are compared
/// without regard to case, as the forges do; `@name/team` names a team.
fn names(text: &str, account: &str) -> bool {
    let (text, account) = (text.to_lowercase(), account.to_lowercase());
    let sign = format!("@{account}");
    !account.is_empty()
        && text.match_indices(&sign).any(|(start, _)| {
            let before = text[..start].chars().next_back();
            let mut after = text[start + sign.len()..].chars();
            let next = after.next();
            let is_followed = match next {
                // The end of a sentence, unless the name goes on behind it.
                Some('.') => after.next().is_some_and(char::is_alphanumeric),
                Some(next) => is_of_name(next) || next == '/',
                None => false,
            };
            !before.is_some_and(|before| is_of_name(before) || "/.@`".contains(before)) && !is_followed
        })
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || matches!(character, '-' | '_')
}
