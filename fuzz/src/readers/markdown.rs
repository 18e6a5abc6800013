//! Markdown that goes in, and Markdown that goes out.

use coding_agent::markdown::{sanitize, visible};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use super::text;

/// Characters of each kind that no page shows.
const HIDDEN: [char; 12] = [
    '\0',
    '\r',
    '\u{1b}',
    '\u{ad}',
    '\u{200b}',
    '\u{202e}',
    '\u{2060}',
    '\u{2066}',
    '\u{3164}',
    '\u{fe0f}',
    '\u{feff}',
    '\u{e0041}',
];

/// What a stranger wrote: of it only what a page shows is left, and nothing is added.
pub fn visible(bytes: &[u8]) {
    let text = text(bytes);
    let seen = visible::markdown(&text);
    assert!(!seen.contains(HIDDEN), "{seen:?}");
    assert!(!visible::plain(&text).contains(HIDDEN));
    assert!(visible::plain(&text).len() <= text.len());
    let line = visible::line(&text);
    assert!(!line.contains(HIDDEN) && !line.contains('\n') && line.trim() == line);
    // Nothing that is looked at again has become a comment meanwhile.
    assert!(
        seen.len() <= 2 * text.len() + 64,
        "{} became {}",
        text.len(),
        seen.len()
    );
}

/// What a model wrote, made fit to stand under the bot's name. A reader of Markdown that others wrote judges what it is then.
pub fn harmless(bytes: &[u8]) {
    let text = text(bytes);
    let safe = sanitize::harmless(&text);
    judge(&safe);
    let line = sanitize::harmless_line(&text, 80);
    assert!(!line.contains(['\n', '\r']), "{line:?}");
    judge(&line);
}

const BELOW: &str = "WhatTheProgramSaysBelow";

fn judge(safe: &str) {
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS | Options::ENABLE_GFM;
    let page = format!("{safe}\n\n{BELOW}");
    let mut code = Vec::new();
    let mut is_code = false;
    let mut words = String::new();
    for (event, range) in Parser::new_ext(&page, options).into_offset_iter() {
        match event {
            Event::Html(html) | Event::InlineHtml(html) => panic!("{html:?} is no text in {safe:?}"),
            Event::Start(Tag::Image { .. }) => panic!("a picture is loaded by {safe:?}"),
            Event::Start(Tag::CodeBlock(_)) => {
                is_code = true;
                code.push(range);
            }
            Event::End(TagEnd::CodeBlock) => is_code = false,
            Event::Text(text) if !is_code => words.push_str(&text),
            Event::SoftBreak | Event::HardBreak => words.push('\n'),
            _ => words.push('\0'),
        }
    }
    assert!(words.contains(BELOW), "what stands below is hidden by {safe:?}");
    assert!(!calls_somebody(&words), "somebody is called by {safe:?}");
    let mut at = 0;
    let mut code = code.into_iter().peekable();
    for line in page.split_inclusive('\n') {
        while code.next_if(|range| range.end <= at).is_some() {}
        let is_code = code.peek().is_some_and(|range| range.start <= at);
        assert!(is_code || !is_command(line), "a bot is commanded by {safe:?}");
        at += line.len();
    }
}

fn calls_somebody(words: &str) -> bool {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    words.match_indices('@').any(|(at, _)| {
        let follows = words[at + 1..].starts_with(is_name);
        follows && !words[..at].ends_with(is_name)
    })
}

/// A slash and a word at the beginning of a line.
fn is_command(line: &str) -> bool {
    let word = line.trim_start_matches([' ', '\t', '>']).strip_prefix('/');
    let word = word.and_then(|rest| rest.split_whitespace().next().filter(|word| rest.starts_with(word)));
    word.is_some_and(|word| {
        word.starts_with(|first: char| first.is_ascii_alphabetic())
            && word
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter))
    })
}
