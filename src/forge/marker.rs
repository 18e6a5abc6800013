//! The invisible mark by which a comment of the bot's own is found again, and bodies that fit the forge's limit.
//!
//! Both forges keep HTML comments in the text and do not show them. The mark stands at the end, where cutting a long
//! body in the middle does not touch it.

/// For the note about what was left out, and for closing and reopening a code block around it.
const ROOM_FOR_NOTE: usize = 120;

/// Returns `body` with the mark, cut in the middle to at most `limit` characters in all.
pub(super) fn marked(body: &str, marker: &str, limit: usize) -> String {
    let mark = mark(marker);
    let room = limit.saturating_sub(length(&mark) + 2);
    format!("{}\n\n{mark}", shortened(body, room))
}

/// Tells whether a text carries the mark.
pub(super) fn is_marked(text: &str, marker: &str) -> bool {
    text.contains(&mark(marker))
}

fn mark(marker: &str) -> String {
    format!("<!-- coding-agent:{marker} -->")
}

/// Returns `body` in at most `limit` characters: of a longer one the middle is left out, with a note in its place.
pub(super) fn shortened(body: &str, limit: usize) -> String {
    let length = length(body);
    if length <= limit {
        return body.to_owned();
    }
    let keep = limit.saturating_sub(ROOM_FOR_NOTE);
    let head = first(body, keep / 3 * 2);
    let tail = last(body, keep / 3);
    let before_tail = &body[..body.len() - tail.len()];
    let close = if is_in_code(head) { "\n```" } else { "" };
    let reopen = if is_in_code(before_tail) { "```\n" } else { "" };
    let left_out = length.saturating_sub(self::length(head) + self::length(tail));
    let note = format!("*({left_out} characters are left out here: the forge takes at most {limit})*");
    format!("{head}{close}\n\n{note}\n\n{reopen}{tail}")
}

/// Returns a title in at most `limit` characters.
pub(super) fn short_title(title: &str, limit: usize) -> String {
    let line = title.split_whitespace().collect::<Vec<_>>().join(" ");
    if length(&line) <= limit {
        return line;
    }
    format!("{}…", first(&line, limit.saturating_sub(1)))
}

/// Counts as the stricter of the usual ways to count: UTF-16 units, never fewer than code points.
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

fn is_in_code(text: &str) -> bool {
    text.lines().filter(|line| line.trim_start().starts_with("```")).count() % 2 == 1
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
        assert!(!is_in_code(&text[..note]));
        assert!(text.ends_with("```\nend"));
    }

    #[test]
    fn a_title_is_one_line_within_the_limit() {
        assert_eq!(short_title("a\nb", 10), "a b");
        assert_eq!(short_title("abcdef", 4), "abc…");
    }
}
