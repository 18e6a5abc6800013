//! A JSON reader that repairs what models often get wrong and nothing else.
//!
//! Repaired: trailing commas, single quotes, raw line breaks inside strings, Python's `True`,
//! `False` and `None`, comments from `//` to the end of their line. Not repaired, because it would
//! be a guess: missing commas or quotes, unquoted keys, unknown escapes (`\d`: whoever forgot that
//! backslash also means something else by `\b`), duplicate keys (one of the two would be lost
//! silently). Depth is bounded, so hostile nesting cannot exhaust the stack.

use std::ops::Range;

use serde_json::{Map, Number, Value};

/// Maximum nesting; no tool takes deeper arguments.
const MAX_DEPTH: usize = 64;
/// Distance from the `{`, in bytes, within which comments before the first key end. Prose and code
/// have many braces, and each of them would read all that a hostile text has behind it.
const LONGEST_PREFACE: usize = 400;

/// An object that was read.
#[derive(Debug)]
pub(super) struct Object {
    pub(super) content: Map<String, Value>,
    /// The offset behind its `}`.
    pub(super) end: usize,
    /// The places of the comments in it.
    pub(super) comments: Vec<Range<usize>>,
}

/// The place and reason at which reading stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// Byte offset into the text.
    pub(super) at: usize,
    pub(super) what: String,
    /// Whether a key and its colon had been read: prose and code have many braces, and only few of
    /// them begin JSON.
    pub(super) meant_as_json: bool,
}

/// Reads the object whose `{` is at `start`.
pub(super) fn object(text: &str, start: usize) -> Result<Object, Fault> {
    let mut reader = Reader {
        text,
        start,
        at: start,
        key_read: false,
        comments: Vec::new(),
    };
    match reader.object(1) {
        Ok(content) => Ok(Object {
            content,
            end: reader.at,
            comments: reader.comments,
        }),
        Err(what) => Err(Fault {
            at: reader.at.min(text.len()),
            what,
            meant_as_json: reader.key_read,
        }),
    }
}

struct Reader<'text> {
    text: &'text str,
    /// Offset of the first `{`.
    start: usize,
    /// Offset of the next byte; always on a character boundary.
    at: usize,
    key_read: bool,
    comments: Vec<Range<usize>>,
}

impl Reader<'_> {
    fn object(&mut self, depth: usize) -> Result<Map<String, Value>, String> {
        if depth > MAX_DEPTH {
            return Err(format!("nested deeper than {MAX_DEPTH} levels"));
        }
        self.at += 1;
        let mut object = Map::new();
        loop {
            self.skip_blank();
            match self.peek() {
                Some(b'}') => {
                    self.at += 1;
                    return Ok(object);
                }
                Some(b'"' | b'\'') => {}
                _ => return Err(self.expected("a quoted key or '}'")),
            }
            let key_at = self.at;
            let key = self.string()?;
            self.skip_blank();
            if self.peek() != Some(b':') {
                return Err(self.expected("':' after the key"));
            }
            self.at += 1;
            self.key_read = true;
            let value = self.value(depth)?;
            if object.contains_key(&key) {
                self.at = key_at;
                return Err(format!("the key \"{key}\" stands twice in one object"));
            }
            object.insert(key, value);
            self.skip_blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {}
                _ => return Err(self.expected("',' or '}' after the value")),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Vec<Value>, String> {
        if depth > MAX_DEPTH {
            return Err(format!("nested deeper than {MAX_DEPTH} levels"));
        }
        self.at += 1;
        let mut array = Vec::new();
        loop {
            self.skip_blank();
            if self.peek() == Some(b']') {
                self.at += 1;
                return Ok(array);
            }
            array.push(self.value(depth)?);
            self.skip_blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {}
                _ => return Err(self.expected("',' or ']' after the value")),
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        self.skip_blank();
        match self.peek() {
            Some(b'{') => self.object(depth + 1).map(Value::Object),
            Some(b'[') => self.array(depth + 1).map(Value::Array),
            Some(b'"' | b'\'') => self.string().map(Value::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(byte) if byte.is_ascii_alphabetic() => self.word(),
            _ => Err(self.expected("a value")),
        }
    }

    fn number(&mut self) -> Result<Value, String> {
        let rest = &self.text[self.at..];
        let end = rest
            .find(|letter: char| !matches!(letter, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'))
            .unwrap_or(rest.len());
        let number: Number =
            serde_json::from_str(&rest[..end]).map_err(|_| format!("'{}' is not a number", shortened(&rest[..end])))?;
        self.at += end;
        Ok(Value::Number(number))
    }

    fn word(&mut self) -> Result<Value, String> {
        let rest = &self.text[self.at..];
        let end = rest
            .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .unwrap_or(rest.len());
        let value = match &rest[..end] {
            "true" | "True" => Value::Bool(true),
            "false" | "False" => Value::Bool(false),
            "null" | "None" => Value::Null,
            other => return Err(format!("'{}' is not a JSON value; quote it", shortened(other))),
        };
        self.at += end;
        Ok(value)
    }

    /// Reads a string in either kind of quotes. Raw line breaks are kept as they are.
    fn string(&mut self) -> Result<String, String> {
        let start = self.at;
        let quote = self.text.as_bytes()[start];
        self.at += 1;
        let mut string = String::new();
        loop {
            let rest = &self.text[self.at..];
            let Some(plain) = rest.bytes().position(|byte| byte == quote || byte == b'\\') else {
                self.at = self.text.len();
                return Err(format!(
                    "the reply ends inside the string that begins at {}",
                    super::position(self.text, start)
                ));
            };
            string.push_str(&rest[..plain]);
            self.at += plain;
            if self.text.as_bytes()[self.at] == quote {
                self.at += 1;
                return Ok(string);
            }
            string.push(self.escape()?);
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let Some(letter) = self.text[self.at + 1..].chars().next() else {
            self.at = self.text.len();
            return Err("the reply ends inside an escape".to_owned());
        };
        let character = match letter {
            '"' | '\'' | '\\' | '/' => letter,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => return self.unicode_escape(),
            _ => {
                return Err(format!(
                    "'\\{letter}' is not a JSON escape; write '\\\\{letter}' for a backslash"
                ));
            }
        };
        self.at += 2;
        Ok(character)
    }

    /// Reads `\uXXXX`, or two of them where they are the halves of a surrogate pair.
    fn unicode_escape(&mut self) -> Result<char, String> {
        let first = self.code_unit(self.at)?;
        if let Some(character) = char::from_u32(first) {
            self.at += 6;
            return Ok(character);
        }
        let second = self.code_unit(self.at + 6)?;
        let units = [first, second].map(|unit| u16::try_from(unit).unwrap_or_default());
        match char::decode_utf16(units).next() {
            Some(Ok(character)) => {
                self.at += 12;
                Ok(character)
            }
            _ => Err("a \\u escape is half of a character".to_owned()),
        }
    }

    fn code_unit(&self, at: usize) -> Result<u32, String> {
        self.text
            .get(at..at + 6)
            .and_then(|escape| escape.strip_prefix("\\u"))
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or_else(|| "a \\u escape needs four hexadecimal digits".to_owned())
    }

    /// Passes white space and comments.
    fn skip_blank(&mut self) {
        loop {
            let rest = &self.text.as_bytes()[self.at..];
            self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let rest = &self.text.as_bytes()[self.at..];
            if !rest.starts_with(b"//") {
                return;
            }
            let allowed = if self.key_read {
                rest.len()
            } else {
                (self.start + LONGEST_PREFACE).saturating_sub(self.at).min(rest.len())
            };
            let length = match rest[..allowed].iter().position(|byte| *byte == b'\n') {
                Some(length) => length,
                None if allowed == rest.len() => allowed,
                None => return,
            };
            self.comments.push(self.at..self.at + length);
            self.at += length;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn expected(&self, what: &str) -> String {
        match self.text[self.at..].chars().next() {
            Some(found) => format!("expected {what}, found '{}'", found.escape_debug()),
            None => format!("expected {what}, but the reply ends here"),
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Result<Value, String> {
        object(text, 0)
            .map(|object| Value::Object(object.content))
            .map_err(|fault| format!("{}: {}", fault.at, fault.what))
    }

    #[test]
    fn small_slips_are_mended() {
        for (text, value) in [
            (r#"{"a": [1, 2,], "b": -1.5e3,}"#, json!({"a": [1, 2], "b": -1500.0})),
            (
                r#"{'a': 'say "hi"', "b": "it's"}"#,
                json!({"a": "say \"hi\"", "b": "it's"}),
            ),
            (
                "{\"a\": \"line\nline\", 'b': True, 'c': None}",
                json!({"a": "line\nline", "b": true, "c": null}),
            ),
            (
                r#"{"a": "\u3042\ud83d\ude00\n\\"}"#,
                json!({"a": "\u{3042}\u{1f600}\n\\"}),
            ),
            (
                "{ // 点 {\n\"a\" // a key\n: [1, // one \"\n // }\n2], 'b': \"http://x\"// end\n}",
                json!({"a": [1, 2], "b": "http://x"}),
            ),
        ] {
            assert_eq!(read(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_would_be_a_guess_is_an_error_with_its_place() {
        for (text, error) in [
            (
                r#"{"a": "say "hi""}"#,
                "12: expected ',' or '}' after the value, found 'h'",
            ),
            (
                r#"{"a": "\d"}"#,
                r"7: '\d' is not a JSON escape; write '\\d' for a backslash",
            ),
            (r#"{"a": 1, "a": 2}"#, "9: the key \"a\" stands twice in one object"),
            (r#"{"a": yes}"#, "6: 'yes' is not a JSON value; quote it"),
            (
                r#"{"a": 1"#,
                "7: expected ',' or '}' after the value, but the reply ends here",
            ),
            (
                r#"{"a": "cut"#,
                "10: the reply ends inside the string that begins at line 1, column 7",
            ),
            (r"{a: 1}", "1: expected a quoted key or '}', found 'a'"),
            (r#"{"a": "\ud83d"}"#, "7: a \\u escape needs four hexadecimal digits"),
            (r#"{"a": 01}"#, "6: '01' is not a number"),
            (
                r#"{"a": 1 // }"#,
                "12: expected ',' or '}' after the value, but the reply ends here",
            ),
            (
                r#"{"a": 1 /* one */}"#,
                "8: expected ',' or '}' after the value, found '/'",
            ),
        ] {
            assert_eq!(read(text), Err(error.to_owned()), "{text}");
        }
    }
}
