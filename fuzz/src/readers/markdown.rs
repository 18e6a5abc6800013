//! Markdown that goes in, and Markdown that goes out.

use coding_agent::markdown::compose::{Line, Page};
use coding_agent::markdown::visible;

use super::comments::judged;
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

/// Reads a stranger's text: only what a page shows of it is left, and nothing is added.
pub fn visible(bytes: &[u8]) {
    let text = text(bytes);
    let seen = visible::markdown(&text);
    assert!(!seen.contains(HIDDEN), "{seen:?}");
    assert!(!visible::plain(&text).contains(HIDDEN));
    assert!(visible::plain(&text).len() <= text.len());
    assert!(!visible::mentions(&text, "bot") || seen.to_lowercase().contains("@bot"));
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

/// Makes a model's text fit to stand under the bot's name. Readers of Markdown that others wrote
/// judge what it is then.
pub fn harmless(bytes: &[u8]) {
    let text = text(bytes);
    let mut page = Page::default();
    page.said(&text);
    let shown = judged(&page);
    // Written once more it says the same; signs without width are taken out first, and what they
    // kept apart would meet.
    if !shown.markdown.contains('\u{200b}') {
        let mut again = Page::default();
        again.said(&shown.markdown);
        assert_eq!(shown.words(), judged(&again).words(), "{:?}", shown.markdown);
    }
    let mut line = Page::default();
    line.paragraph(Line::said(&text, 80));
    assert!(!judged(&line).markdown.contains(['\n', '\r']));
}
