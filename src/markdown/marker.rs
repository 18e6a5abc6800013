//! Marks the bot's comments invisibly, so that they are found again, and shortens bodies to the
//! forge's limit.
//!
//! Both forges keep HTML comments in the text and do not show them. The mark is at the end, out of
//! reach of a cut in the middle.

use super::fence::Fence;
use crate::plain::one_line;

/// Characters reserved for the note about the omission and for closing and reopening a code block.
const ROOM_FOR_NOTE: usize = 120;

/// Returns `body` with the mark, cut in the middle to at most `limit` characters in all.
pub fn marked(body: &str, marker: &str, limit: usize) -> String {
    let mark = mark(marker);
    let room = limit.saturating_sub(length(&mark) + 2);
    format!("{}\n\n{mark}", shortened(body, room))
}

/// Returns true if `text` carries the mark.
pub fn is_marked(text: &str, marker: &str) -> bool {
    text.contains(&mark(marker))
}

fn mark(marker: &str) -> String {
    format!("<!-- coding-agent:{marker} -->")
}

/// Returns `body` in at most `limit` characters; the middle of a longer one is replaced by a note.
///
/// Sanitized text stays sanitized: a line is cut only where it has no code, since half a code span
/// would pair with another half and turn the text in between into live Markdown.
pub fn shortened(body: &str, limit: usize) -> String {
    let length = length(body);
    if length <= limit {
        return body.to_owned();
    }
    let keep = limit.saturating_sub(ROOM_FOR_NOTE);
    let head = without_half_a_span(first(body, keep / 3 * 2));
    let tail = last(body, keep / 3);
    let is_whole = body[..body.len() - tail.len()].ends_with('\n');
    let tail = if has_block_in_a_list(tail) { "" } else { tail };
    let (tail, ellipsis) = match tail.split_once('\n') {
        _ if is_whole => (tail, ""),
        Some((line, rest)) if line.contains('`') => (rest, ""),
        None if tail.contains('`') => ("", ""),
        // After the ellipsis the rest is not at the start of a line.
        Some(_) | None => (tail, "…"),
    };
    let before_tail = &body[..body.len() - tail.len()];
    let close = Fence::open_at_the_end_of(head).map_or_else(String::new, |fence| format!("\n{}", fence.signs()));
    let reopen =
        Fence::open_at_the_end_of(before_tail).map_or_else(String::new, |fence| format!("{}\n", fence.signs()));
    let left_out = length.saturating_sub(self::length(head) + self::length(tail));
    let note = format!("*({left_out} characters are left out here: the forge takes at most {limit})*");
    let whole = format!("{head}{close}\n\n{note}\n\n{reopen}{ellipsis}{tail}");
    if self::length(&whole) <= limit {
        return whole;
    }
    // The fences alone are too long.
    note
}

/// Returns true if a code fence follows a list or quote marker. Separated from its item, the block
/// would end elsewhere.
fn has_block_in_a_list(tail: &str) -> bool {
    tail.lines().any(|line| {
        let inner = line.trim_start_matches([
            ' ', '>', '-', '*', '.', ')', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9',
        ]);
        inner.len() < line.len() && inner.starts_with("```")
    })
}

/// Cuts `head` at the first backtick of its last line, unless a code block is open there.
fn without_half_a_span(head: &str) -> &str {
    let line = head.rfind('\n').map_or(0, |newline| newline + 1);
    let is_block = Fence::open_at_the_end_of(&head[..line]).is_some();
    let tick = head[line..].find('`').filter(|_| !is_block);
    tick.map_or(head, |tick| &head[..line + tick])
}

/// Returns a title in at most `limit` characters.
pub fn short_title(title: &str, limit: usize) -> String {
    let line = one_line(title);
    if length(&line) <= limit {
        return line;
    }
    format!("{}…", first(&line, limit.saturating_sub(1)))
}

/// Returns the length in UTF-16 units, the strictest of the usual ways to count.
fn length(text: &str) -> usize {
    text.encode_utf16().count()
}

fn first(text: &str, limit: usize) -> &str {
    let mut used = 0;
    let end = text.char_indices().find(|(_, character)| {
        used += character.len_utf16();
        used > limit
    });
    end.map_or(text, |(end, _)| &text[..end])
}

fn last(text: &str, limit: usize) -> &str {
    let mut used = 0;
    let start = text.char_indices().rev().find(|(_, character)| {
        used += character.len_utf16();
        used > limit
    });
    start.map_or(text, |(start, character)| &text[start + character.len_utf8()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marked_text_is_found_by_its_marker_only() {
        let text = marked("Done.", "run:final", 1000);
        assert_eq!(text, "Done.\n\n<!-- coding-agent:run:final -->");
        assert!(is_marked(&text, "run:final"));
        assert!(!is_marked(&text, "run:fin"));
    }

    #[test]
    fn a_long_body_fits_and_keeps_its_ends_and_the_mark() {
        for body in [
            "x".repeat(100_000),
            "日本語🎉".repeat(30_000),
            "a\n```\n".repeat(20_000),
        ] {
            let text = marked(&body, "m", 65_536);
            assert!(length(&text) <= 65_536, "{}", length(&text));
            assert!(text.chars().count() > 60_000 / 2);
            assert!(is_marked(&text, "m"));
            assert!(text.contains("characters are left out"));
            assert_eq!(text.chars().next(), body.chars().next());
        }
    }

    #[test]
    fn a_cut_inside_a_code_block_does_not_swallow_the_note() {
        let body = format!("log:\n```\n{}\n```\nend", "line\n".repeat(1000));
        let text = shortened(&body, 600);
        let fences = text.lines().filter(|line| line.starts_with("```")).count();
        assert_eq!(fences, 4);
        let note = text.find("*(").unwrap();
        assert_eq!(Fence::open_at_the_end_of(&text[..note]), None);
        assert!(text.ends_with("```\nend"));
    }

    #[test]
    fn a_cut_turns_no_code_into_text() {
        let block = format!("````\n{}````\nend", "```\n@all\n".repeat(100));
        let text = shortened(&block, 600);
        assert_eq!(
            text.lines().filter(|line| line.starts_with("````")).count(),
            4,
            "{text}"
        );
        // Cut inside a code span, and after a backslash.
        let spans = "`@all @all` ".repeat(100);
        for limit in 300..330 {
            let text = shortened(&format!("{spans}\n{spans}"), limit);
            assert!(!text.contains('`'), "{text}");
        }
        let commands = "\\/close ".repeat(100);
        for limit in 300..330 {
            let text = shortened(&commands, limit);
            assert!(text.lines().all(|line| !line.starts_with('/')), "{text}");
        }
    }

    #[test]
    fn a_title_is_one_line_within_the_limit() {
        assert_eq!(short_title("a\nb", 10), "a b");
        assert_eq!(short_title("abcdef", 4), "abc…");
    }
}
