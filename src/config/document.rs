//! Reads the file and parses its YAML text into a tree, without knowing what it should hold.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::path::Path;

use serde::Deserialize;
use serde::Deserializer;
use serde::de::DeserializeSeed;
use serde::de::Error;
use serde::de::MapAccess;
use serde::de::SeqAccess;
use serde::de::Visitor;
use serde_json::Map;
use serde_json::Value;

use super::fault::{self, Place};

const LARGEST_FILE: u64 = 1024 * 1024;
const CLOSED: &str =
    "is in a folder that this user may not enter; call the program in another one, or name a file with --config";

/// Returns the text of the file, or why it cannot be read.
pub(super) fn read(path: &Path) -> Result<String, String> {
    let found = path.metadata().map_err(|error| {
        if error.kind() == io::ErrorKind::PermissionDenied {
            CLOSED.to_owned()
        } else {
            fault::unreadable(&error)
        }
    })?;
    if found.len() > LARGEST_FILE {
        return Err("is larger than 1 MiB; this is not a configuration file".to_owned());
    }
    std::fs::read_to_string(path).map_err(|error| fault::unreadable(&error))
}

/// Parses the text; an empty one is an empty mapping.
pub(super) fn parse(text: &str) -> Result<Value, (Option<Place>, String)> {
    let tree: Tree = serde_yaml::from_str(text).map_err(|error| told(text, &error))?;
    match tree.0 {
        Value::Null => Ok(Value::Object(Map::new())),
        value @ Value::Object(_) => Ok(value),
        _ => Err((None, "must be a mapping: lines of the form `key: value`".to_owned())),
    }
}

pub(super) fn place(error: &serde_yaml::Error) -> Option<Place> {
    error.location().map(|location| Place {
        line: location.line(),
        column: location.column(),
    })
}

/// Returns the place and the sentence of an error: the library's message without the position,
/// which is printed in front of it, and what to do about it, where that shows.
fn told(text: &str, error: &serde_yaml::Error) -> (Option<Place>, String) {
    let (place, message) = (place(error), error.to_string());
    if message.contains("more than one document") {
        let reason = "a second document begins here, and a configuration is one; take this `---` out";
        return (second_document(text), reason.to_owned());
    }
    let end = message.find(" at line ").unwrap_or(message.len());
    let mend = place.map_or("", |place| mend(text, place));
    (place, format!("is not readable YAML: {}{mend}", &message[..end]))
}

/// Finds the mark that begins a second document. The library does not tell where it is.
fn second_document(text: &str) -> Option<Place> {
    let mut has_begun = false;
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.trim_end();
        let is_mark = content == "---" || content.starts_with("--- ");
        if is_mark && has_begun {
            return Some(Place { line, column: 1 });
        }
        has_begun |= is_mark || !(content.is_empty() || content.trim_start().starts_with(['#', '%']));
    }
    None
}

/// Says what to do about two usual mistakes, if one of them is what the library stopped at.
fn mend(text: &str, place: Place) -> &'static str {
    let line = text.lines().nth(place.line.saturating_sub(1)).unwrap_or_default();
    let mut indentation = line.chars().take_while(|letter| letter.is_whitespace());
    if indentation.any(|letter| letter == '\t') {
        return ": a tab; indent with blanks";
    }
    let mut letters = line.chars().skip(place.column.saturating_sub(2));
    if place.column > 1 && letters.next() == Some('$') && letters.next() == Some('{') {
        return "; put `${...}` in quotes inside of braces and brackets";
    }
    ""
}

/// A JSON value that refuses a duplicate key; `Value`'s own reader accepts it.
struct Tree(Value);

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor).map(Tree)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("text, a number, true, false, a list or a mapping")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        if value.is_finite() {
            Ok(value.into())
        } else {
            Err(E::custom("a number must be finite"))
        }
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u128<E: Error>(self, value: u128) -> Result<Value, E> {
        Err(E::custom(format!("the number {value} is too large")))
    }

    fn visit_i128<E: Error>(self, value: i128) -> Result<Value, E> {
        Err(E::custom(format!("the number {value} is too small")))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    /// Returns an empty mapping; the library calls this for an empty file.
    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Tree(item)) = list.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut keys = BTreeSet::new();
        let mut values = Map::new();
        while let Some(key) = map.next_key_seed(NewKey { seen: &keys })? {
            let Tree(value) = map.next_value()?;
            keys.insert(key.clone());
            values.insert(key, value);
        }
        Ok(Value::Object(values))
    }
}

/// Reads a key and refuses one of `seen` while it is read, so that the error points at the key.
struct NewKey<'a> {
    seen: &'a BTreeSet<String>,
}

impl<'de> DeserializeSeed<'de> for NewKey<'_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for NewKey<'_> {
    type Value = String;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a key of text")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<String, E> {
        if self.seen.contains(key) {
            return Err(E::custom(format!(
                "the key '{key}' is given twice; leave one of them out"
            )));
        }
        Ok(key.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_yaml_is_told_with_its_place() {
        let (place, reason) = parse("a: 1\nb: [1, 2\nc: 3\n").unwrap_err();
        assert_eq!(place.map(|place| place.line), Some(3), "{reason}");
        let (place, reason) = parse("a: 1\nb: 2\na: 3\n").unwrap_err();
        assert_eq!(place, Some(Place { line: 3, column: 1 }));
        assert_eq!(
            reason,
            "is not readable YAML: the key 'a' is given twice; leave one of them out"
        );
        assert!(parse("- a\n- b\n").is_err());
        assert!(parse("a: .inf\n").is_err());
    }

    #[test]
    fn an_empty_file_is_an_empty_mapping() {
        assert_eq!(parse("# nothing\n"), Ok(serde_json::json!({})));
    }
}
