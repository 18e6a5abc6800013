//! Finds the JSON objects in a reply, and tells them from what the model only thought.
//!
//! One pass from left to right. A brace that does not begin JSON is skipped; an object that begins
//! as JSON and breaks is skipped as a whole, so that nothing inside its strings is ever taken for
//! an object. The time is linear in the length of the text, whatever it holds.

use std::ops::Range;

use serde_json::{Map, Value};

use super::lenient::{self, Fault};

/// Maximum number of searches for the end of a broken object that may fail before the rest of the
/// text gets none: each of them reads to the end, and a hostile text could cause a million.
const MAX_VAIN_LOOKS: usize = 16;

/// The marks that models write around their thoughts where the server does not take them out: most,
/// Gemini and EXAONE, Seed-OSS, Mistral's and Cohere's.
const TAGS: [(&str, &str); 6] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<seed:think>", "</seed:think>"),
    ("[THINK]", "[/THINK]"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
];

/// The content of a text.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Each object with its place, braces included.
    pub(super) objects: Vec<(Range<usize>, Map<String, Value>)>,
    /// The places of the comments in these objects.
    pub(super) comments: Vec<Range<usize>>,
    /// The last object that began as JSON and could not be read: the offset of its `{`, and the
    /// fault.
    pub(super) broken: Option<(usize, Fault)>,
    /// Whether the text ends while the model still thinks.
    pub(super) ends_in_thought: bool,
    /// The text without the model's thinking.
    pub(super) said: String,
}

/// Finds the objects in `text`, and what was said around them.
pub(super) fn search(text: &str) -> Found {
    let mut found = Found::default();
    let mut vain_looks = 0;
    let mut at = 0;
    while let Some(step) = text[at..].find(['{', '<', '[']) {
        let start = at + step;
        found.said.push_str(&text[at..start]);
        if text.as_bytes()[start] != b'{' {
            at = pass_tag(text, start, &mut found);
            continue;
        }
        at = match lenient::object(text, start) {
            Ok(object) => {
                found.objects.push((start..object.end, object.content));
                found.comments.extend(object.comments);
                object.end
            }
            Err(fault) if !fault.meant_as_json => start + 1,
            Err(fault) => {
                let mut end = None;
                if vain_looks < MAX_VAIN_LOOKS {
                    end = end_of_broken(text, start);
                    vain_looks += usize::from(end.is_none());
                }
                let behind = end.unwrap_or(0).max(fault.at);
                found.broken = Some((start, fault));
                behind
            }
        };
        found.said.push_str(&text[start..at]);
    }
    found.said.push_str(&text[at..]);
    found
}

/// Returns the offset behind the tag at `start`, and behind the thinking that it may open or close.
fn pass_tag(text: &str, start: usize, found: &mut Found) -> usize {
    for (open, close) in TAGS {
        if text[start..].starts_with(open) {
            let Some(length) = text[start..].find(close) else {
                found.ends_in_thought = true;
                return text.len();
            };
            return start + length + close.len();
        }
        if text[start..].starts_with(close) {
            // Some chat templates open the thought in the prompt: then all text before this tag was
            // thought.
            *found = Found::default();
            return start + close.len();
        }
    }
    found.said.push_str(&text[start..=start]);
    start + 1
}

/// Returns the offset behind the brace that closes the broken object at `start`, by counting braces
/// outside strings.
fn end_of_broken(text: &str, start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    for (offset, byte) in text.bytes().enumerate().skip(start) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => depth += 1,
            b'}' if !in_string => {
                depth -= 1;
                if depth == 0 {
                    return Some(offset + 1);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::{Duration, Instant};

    fn objects(text: &str) -> String {
        let found = search(text);
        let list: Vec<_> = found.objects.into_iter().map(|(_, object)| object).collect();
        serde_json::to_string(&list).unwrap()
    }

    #[test]
    fn objects_are_found_in_fences_and_prose_and_after_thinking() {
        for (text, expected) in [
            ("```json\n{\"a\": 1}\n```", r#"[{"a":1}]"#),
            (
                "fn main() { x } gives {\"a\": {\"b\": 2}} and {'c': 3}",
                r#"[{"a":{"b":2}},{"c":3}]"#,
            ),
            ("<think>{\"a\": 1}</think>{\"b\": 2}", r#"[{"b":2}]"#),
            ("perhaps {\"a\": 1}\n</think>\n{\"b\": 2}", r#"[{"b":2}]"#),
            ("<think>{\"a\": 1}", "[]"),
            ("<thought>{\"a\": 1}</thought>{\"b\": 2}", r#"[{"b":2}]"#),
            ("<seed:think>{\"a\": 1}</seed:think>{\"b\": 2}", r#"[{"b":2}]"#),
            ("[THINK]{\"a\": 1}[/THINK]{\"b\": [2]}", r#"[{"b":[2]}]"#),
            ("{\"a\": 1}<|END_THINKING|>[{\"b\": 2}]", r#"[{"b":2}]"#),
            (
                "{\"html\": \"<think>{'a': 1}</think>\"}",
                r#"[{"html":"<think>{'a': 1}</think>"}]"#,
            ),
            ("{{\"a\": 1}}", r#"[{"a":1}]"#),
            ("{\"a\": oops\n\n{\"b\": 2}", r#"[{"b":2}]"#),
        ] {
            assert_eq!(objects(text), expected, "{text}");
        }
    }

    #[test]
    fn the_strings_of_a_broken_object_are_not_searched() {
        let found = search(r#"{"comment": "x" "content": "{'done': true}"} {"a": 1}"#);
        assert_eq!(found.objects.len(), 1);
        assert_eq!(found.broken.map(|(start, fault)| (start, fault.at)), Some((0, 16)));
    }

    #[test]
    fn hostile_text_is_read_in_linear_time() {
        for piece in [
            "{",
            "{\"",
            "{'",
            "{\"a\":",
            "{\"a\":[",
            "{\"a\":x",
            "{\"a\":\"",
            "<think>",
            "<",
            "[",
            "\\",
            "{\"\\",
            "{ ",
            "{\"a\":{'b':x}",
            "{\"a\":'{\"b\":\"",
            "}{\"a\":1,",
            "{//",
            "{//\n",
            "{\"a\"://",
            "//\n{\"a\":",
        ] {
            let text = piece.repeat(1_000_000 / piece.len());
            let begin = Instant::now();
            let _ = search(&text);
            assert!(
                begin.elapsed() < Duration::from_secs(30),
                "{piece}: {:?}",
                begin.elapsed()
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in r#"([{}\[\]"',:\\<>/u0-9a\n あ😀]|think|true|"a":|\{"){0,200}"#) {
            let _ = search(&text);
        }

        #[test]
        fn an_object_is_found_whatever_prose_is_around_it(before in "[a-zA-Z .,:;!?'あ\n]{0,80}", after in "[a-zA-Z .,}'\n]{0,80}") {
            let text = format!("{before}{{\"key\": [1, {{}}]}}{after}");
            prop_assert_eq!(objects(&text), r#"[{"key":[1,{}]}]"#);
        }
    }
}
