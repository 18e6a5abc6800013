//! Verdicts in JSON objects.

use serde_json::{Map, Value};

use super::labels::{self, Label, List, Text};
use super::{Statements, shortened, words};
use crate::conversation::decode;
use crate::review::Blocker;
use crate::review::score::Score;

/// Distance before and behind an object, in bytes, in which words are searched for that make it a
/// quotation.
const LOOKED_BACK: usize = 600;
/// Deepest nesting in which a verdict is looked for.
const DEEPEST: usize = 8;

/// Reads the one object that `text` is.
pub(super) fn strict(text: &str) -> Result<Statements, String> {
    let text = text.trim();
    // One of the readers refuses a key that stands twice, the other one what JSON does not allow.
    let object = decode::arguments(text).map_err(|_| "The answer is not one JSON object".to_owned())?;
    serde_json::from_str::<Value>(text).map_err(|error| format!("The answer is not one JSON object: {error}"))?;
    let field = |names: &[&str]| names.iter().find_map(|name| object.get(*name)).cloned();
    let ready = field(&["ready_for_implementation", "pass"]);
    if !matches!(ready, Some(Value::Bool(_))) {
        return Err("`ready_for_implementation` is not true or false".to_owned());
    }
    if object.contains_key("ready_for_implementation") && !object.get("score").is_some_and(Value::is_number) {
        return Err("`score` is not a number".to_owned());
    }
    let mut statements = Statements::default();
    take(&object, false, &mut statements);
    Ok(statements)
}

/// Takes the statements of the objects in `said`, and returns the text around them.
pub(super) fn take_objects(said: &str, statements: &mut Statements) -> String {
    let mut prose = String::new();
    let mut end = 0;
    for (place, object) in decode::objects_with_places(said) {
        prose.push_str(&said[end..place.start]);
        take(&object, is_quoted(&prose, &said[place.end..]), statements);
        end = place.end;
    }
    prose.push_str(&said[end..]);
    prose
}

/// Tells whether an object between these texts is an example or a quotation: it stands in a block
/// quote or as code in a sentence, or the words before it say so.
fn is_quoted(before: &str, after: &str) -> bool {
    // No more is looked at, or a line with a million objects would be read a million times.
    let before = &before[before.ceil_char_boundary(before.len().saturating_sub(LOOKED_BACK))..];
    let after = &after[..after.floor_char_boundary(LOOKED_BACK)];
    let line = before.rsplit('\n').next().unwrap_or("");
    if line.trim_start().starts_with('>') {
        return true;
    }
    let has_words = |text: &str| text.chars().any(char::is_alphanumeric);
    let is_code = line.ends_with('`') && after.starts_with('`');
    if is_code && (has_words(line) || after.lines().next().is_some_and(has_words)) {
        return true;
    }
    let is_fence = |line: &str| line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
    let said = before.lines().rev().find(|line| !is_fence(line) && has_words(line));
    words::quotes(said.unwrap_or(""))
}

fn take(object: &Map<String, Value>, is_quoted: bool, statements: &mut Statements) {
    if is_quoted {
        statements.is_vetoed |= has_no(object, 0);
        return;
    }
    statements.is_vetoed |= object.values().any(|value| value_says_no(value, 1));
    for (key, value) in object {
        match labels::of(key) {
            Some(Label::Ready) => statements.ready.push(answer(value).unwrap_or(false)),
            Some(Label::Verdict) => statements.ready.extend(answer(value)),
            Some(Label::Confidence) => statements.confidences.extend(value.as_str().map(str::to_lowercase)),
            Some(Label::Text(field)) => take_text(field, value, statements),
            Some(Label::List(List::Blockers)) => take_blockers(value, statements),
            Some(Label::List(list)) => flat(value).iter().for_each(|entry| statements.add_entry(list, entry)),
            Some(label @ (Label::Overall | Label::Score | Label::Analysis | Label::Wrapper)) => match value {
                Value::Object(inner) => take(inner, false, statements),
                Value::Array(several) => several
                    .iter()
                    .filter_map(Value::as_object)
                    .for_each(|inner| take(inner, false, statements)),
                Value::Null => {}
                _ if matches!(label, Label::Overall | Label::Score) => statements.scores.push(score(value)),
                Value::String(text) => {
                    statements.ready.extend(words::answer(text));
                    statements.add_text(Text::Rationale, &shortened(text));
                }
                Value::Bool(_) | Value::Number(_) => {}
            },
            None => {}
        }
    }
}

/// Takes a text. In the newer form of an answer the field `context` has a text with headings of its
/// own.
fn take_text(field: Text, value: &Value, statements: &mut Statements) {
    let text = flat(value).join("\n");
    statements.add_text(field, &shortened(&text));
    if field == Text::Conclusion && text.contains('\n') {
        super::text::take(&text, statements);
    }
}

fn answer(value: &Value) -> Option<bool> {
    match value {
        Value::Bool(answer) => Some(*answer),
        Value::String(text) => words::answer(text),
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn score(value: &Value) -> Option<Score> {
    match value {
        Value::Number(number) => Score::try_from(number.as_f64()?).ok(),
        Value::String(text) => Score::read(text).ok(),
        _ => None,
    }
}

/// Tells whether the object or one inside it says that the document is not ready. A word that also
/// announces other things, such as `status`, counts in the object itself; further inside only
/// `false` does, since blockers and tests have a status of their own.
fn has_no(object: &Map<String, Value>, depth: usize) -> bool {
    object.iter().any(|(key, value)| {
        let is_no = match labels::of(key) {
            Some(Label::Ready) => answer(value) == Some(false),
            Some(Label::Verdict) if depth == 0 => answer(value) == Some(false),
            Some(Label::Verdict) => *value == Value::Bool(false),
            _ => false,
        };
        is_no || value_says_no(value, depth + 1)
    })
}

fn value_says_no(value: &Value, depth: usize) -> bool {
    match value {
        _ if depth > DEEPEST => false,
        Value::Object(inner) => has_no(inner, depth),
        Value::Array(list) => list.iter().any(|entry| value_says_no(entry, depth + 1)),
        _ => false,
    }
}

fn take_blockers(value: &Value, statements: &mut Statements) {
    let list = match value {
        Value::Null | Value::Bool(false) => return,
        Value::Array(list) => list.as_slice(),
        one => std::slice::from_ref(one),
    };
    for entry in list {
        match entry {
            Value::Object(object) => {
                let texts = |names: &[&str]| -> Vec<String> {
                    let found = names.iter().find_map(|name| object.get(*name));
                    found.map(flat).unwrap_or_default()
                };
                let claim = texts(&[
                    "claim",
                    "issue",
                    "description",
                    "title",
                    "blocker",
                    "message",
                    "problem",
                    "text",
                    "内容",
                    "問題",
                ]);
                let mut evidence = texts(&["evidence", "location", "where", "path", "file", "place", "根拠", "場所"]);
                if let (Some(place), Some(line)) = (evidence.first_mut(), object.get("line").and_then(Value::as_u64)) {
                    *place = format!("{place}:{line}");
                }
                let why = texts(&["why", "reason", "impact", "rationale", "理由"]).join("\n");
                let claim = if claim.is_empty() { flat(entry) } else { claim };
                statements.add_blocker(Blocker {
                    claim: shortened(&claim.join("\n")),
                    evidence: evidence
                        .iter()
                        .take(super::MOST_ENTRIES)
                        .map(|text| shortened(text))
                        .collect(),
                    why: shortened(&why),
                });
            }
            other => flat(other)
                .iter()
                .for_each(|text| statements.add_entry(List::Blockers, text)),
        }
    }
}

/// Returns the texts in a value, in order; fields of objects with their names.
fn flat(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text.trim().to_owned()],
        Value::Bool(_) | Value::Number(_) => vec![value.to_string()],
        Value::Array(list) => list.iter().map(|entry| flat(entry).join("\n")).collect(),
        Value::Object(object) => {
            let fields = object
                .iter()
                .map(|(key, value)| format!("{key}: {}", flat(value).join(", ")));
            vec![fields.collect::<Vec<_>>().join("; ")]
        }
    }
}
