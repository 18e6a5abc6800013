//! Edits as pure functions from text to text. Line ends are kept: a file of CRLF lines is edited,
//! and shown, as if it had LF lines. So is a byte order mark, which is not shown.

use std::path::Path;

use crate::plain::printable;

/// Tells whether every line ends in CR LF.
pub(super) fn is_crlf(text: &str) -> bool {
    let line_feeds = text.matches('\n').count();
    line_feeds > 0 && text.matches("\r\n").count() == line_feeds
}

/// Returns a text's byte order mark, which is empty if it has none, and what stands behind it.
pub(super) fn split_mark(text: &str) -> (&str, &str) {
    let rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.split_at(text.len() - rest.len())
}

/// Returns `text` without a byte order mark, and with LF line ends if all its lines end in CR LF.
pub(super) fn shown(text: &str) -> String {
    let (_, text) = split_mark(text);
    if is_crlf(text) {
        return text.replace("\r\n", "\n");
    }
    text.to_owned()
}

/// Returns `path` as one line: control characters and bytes that are no UTF-8 become `�`.
pub(super) fn shown_path(path: &Path) -> String {
    printable(&path.to_string_lossy())
}

/// Returns `text` with the line ends of the text `model`.
pub(super) fn with_line_ends_of(model: &str, text: &str) -> String {
    if is_crlf(model) {
        return text.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    text.to_owned()
}

/// Returns `text` in the place of all that a file held `before`: with its line ends, and with its
/// byte order mark, which no model that read the file has seen.
pub(super) fn in_place_of(before: &str, text: &str) -> String {
    let (mark, _) = split_mark(before);
    let text = if mark.is_empty() { text } else { split_mark(text).1 };
    format!("{mark}{}", with_line_ends_of(before, text))
}

/// The result of a replacement.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Replaced {
    Once {
        text: String,
        line: usize,
    },
    Nowhere,
    /// The lines of all occurrences.
    Several(Vec<usize>),
}

/// Replaces the only occurrence of `old`.
pub(super) fn replace_once(text: &str, old: &str, new: &str) -> Replaced {
    let old = with_line_ends_of(text, old);
    let lines: Vec<usize> = text.match_indices(&old).map(|(at, _)| line_of(text, at)).collect();
    match lines.as_slice() {
        [] => Replaced::Nowhere,
        [line] => Replaced::Once {
            text: text.replacen(&old, &with_line_ends_of(text, new), 1),
            line: *line,
        },
        _ => Replaced::Several(lines),
    }
}

/// Inserts `added` as lines of its own after `line`, 0 being the top; `None` if there is no such
/// line. A byte order mark stays before all lines.
pub(super) fn insert_after(text: &str, line: usize, added: &str) -> Option<String> {
    let (mark, text) = split_mark(text);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let (before, after) = lines.split_at_checked(line)?;
    let mut result = before.concat();
    let line_end = if is_crlf(text) { "\r\n" } else { "\n" };
    if !result.is_empty() && !result.ends_with('\n') {
        result.push_str(line_end);
    }
    result.push_str(&with_line_ends_of(text, added));
    if !result.ends_with('\n') {
        result.push_str(line_end);
    }
    result.push_str(&after.concat());
    Some(format!("{mark}{result}"))
}

/// A part of a text, in whole lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct View {
    pub(super) text: String,
    /// First and last line shown, from 1.
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) of: usize,
}

/// Returns the lines `first` to `last` (from 1, both included), as many as fit into `max_bytes`,
/// but at least one; `None` if there are no such lines.
pub(super) fn view(text: &str, first: usize, last: usize, max_bytes: usize) -> Option<View> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let wanted = lines.get(first.checked_sub(1)?..last.min(lines.len()))?;
    let mut view = View {
        text: String::new(),
        first,
        last: first - 1,
        of: lines.len(),
    };
    for line in wanted {
        if !view.text.is_empty() && view.text.len() + line.len() > max_bytes {
            break;
        }
        view.text.push_str(line);
        view.last += 1;
    }
    (view.last >= first).then_some(view)
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn once(text: &str, line: usize) -> Replaced {
        Replaced::Once {
            text: text.to_owned(),
            line,
        }
    }

    #[test]
    fn a_unique_text_is_replaced() {
        assert_eq!(replace_once("a\nb\nc\n", "b", "x\ny"), once("a\nx\ny\nc\n", 2));
        assert_eq!(replace_once("a\nb\na\n", "a", "x"), Replaced::Several(vec![1, 3]));
        assert_eq!(replace_once("a\n", "z", "x"), Replaced::Nowhere);
    }

    #[test]
    fn crlf_stays_crlf() {
        assert_eq!(
            replace_once("a\r\nb\r\nc\r\n", "b\nc", "x\ny"),
            once("a\r\nx\r\ny\r\n", 2)
        );
        assert_eq!(insert_after("a\r\nb\r\n", 1, "x\ny").unwrap(), "a\r\nx\r\ny\r\nb\r\n");
        assert_eq!(with_line_ends_of("a\r\n", "x\r\ny\n"), "x\r\ny\r\n");
        assert_eq!(shown("a\r\nb\r\n"), "a\nb\n");
    }

    #[test]
    fn mixed_line_ends_are_left_as_they_are() {
        assert_eq!(replace_once("a\r\nb\nc", "b\nc", "x\n"), once("a\r\nx\n", 2));
        assert_eq!(shown("a\r\nb\n"), "a\r\nb\n");
    }

    #[test]
    fn a_byte_order_mark_is_not_shown_and_stays_first() {
        let before = "\u{feff}a\r\nb\r\n";
        assert_eq!(shown(before), "a\nb\n");
        assert_eq!(shown("a\u{feff}b"), "a\u{feff}b");
        assert_eq!(insert_after(before, 0, "x").unwrap(), "\u{feff}x\r\na\r\nb\r\n");
        assert_eq!(insert_after("\u{feff}", 0, "x").unwrap(), "\u{feff}x\n");
        assert_eq!(insert_after("\u{feff}", 1, "x"), None);
        assert_eq!(in_place_of(before, "x\n"), "\u{feff}x\r\n");
        assert_eq!(in_place_of("\u{feff}a", "\u{feff}x"), "\u{feff}x");
        // One that the file does not have may be wanted.
        assert_eq!(in_place_of("a", "\u{feff}x"), "\u{feff}x");
        assert_eq!(replace_once(before, "a", "x"), once("\u{feff}x\r\nb\r\n", 1));
    }

    #[test]
    fn lines_are_inserted_anywhere() {
        assert_eq!(insert_after("", 0, "x").unwrap(), "x\n");
        assert_eq!(insert_after("a\n", 0, "x\n").unwrap(), "x\na\n");
        assert_eq!(insert_after("a\nb", 2, "x").unwrap(), "a\nb\nx\n");
        assert_eq!(insert_after("a\n", 2, "x"), None);
    }

    #[test]
    fn a_view_is_whole_lines() {
        let shown = |first, last, max| view("aa\nbb\ncc\n", first, last, max).map(|view| (view.text, view.last));
        assert_eq!(shown(1, usize::MAX, 100), Some(("aa\nbb\ncc\n".to_owned(), 3)));
        assert_eq!(shown(2, 2, 100), Some(("bb\n".to_owned(), 2)));
        assert_eq!(shown(1, 3, 7), Some(("aa\nbb\n".to_owned(), 2)));
        assert_eq!(shown(1, 3, 1), Some(("aa\n".to_owned(), 1)));
        assert_eq!(shown(4, 9, 100), None);
        assert_eq!(shown(0, 1, 100), None);
        assert_eq!(shown(3, 2, 100), None);
    }
}
