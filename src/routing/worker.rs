//! The answer of a worker, and the proposal of the chat model: one JSON object each.
//!
//! Fields that are missing or of another kind make the answer unreadable. Texts that are too long
//! are cut.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Route;
use super::classifier::percent;
use crate::conversation::decode;

/// Most entries of `next_actions` and `questions_for_user`.
const MOST: usize = 3;
/// Most places that are read.
const MOST_PLACES: usize = 20;
/// Most characters of an entry.
const LONGEST_ENTRY: usize = 500;
/// Most characters of a result.
const LONGEST_RESULT: usize = 20_000;

/// How much harm could come of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Risk {
    Low,
    Medium,
    High,
}

impl Risk {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// The answer of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerOutput {
    pub result: String,
    pub needs_next_loop: bool,
    pub why: String,
    pub next_actions: Vec<String>,
    pub questions_for_user: Vec<String>,
    /// Confidence, in percent.
    pub confidence: u8,
    pub risk: Risk,
    /// Whether the route was the right one, where it says.
    pub fit: Option<bool>,
    pub suggested_route: Option<Route>,
    /// Places of the repository, such as `src/main.rs:3`, as it cites them.
    pub evidence: Vec<String>,
}

/// The chat model's wish that a message goes on, on another route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    pub route: Route,
    pub reason: String,
    /// Confidence, in percent.
    pub confidence: u8,
}

/// Why an answer cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    #[error("there is no JSON object with `result` in it")]
    NoObject,
    #[error("there are several different answers in it")]
    Several,
    #[error("`{0}` is missing or of another kind")]
    Field(&'static str),
}

/// Reads a worker's answer.
pub fn read(answer: &str) -> Result<WorkerOutput, Unreadable> {
    let mut found = decode::objects(answer).into_iter().filter_map(|object| match object {
        Value::Object(object) if object.contains_key("result") => Some(object),
        _ => None,
    });
    let object = found.next().ok_or(Unreadable::NoObject)?;
    if found.any(|other| other != object) {
        return Err(Unreadable::Several);
    }
    let text = |key: &'static str| object.get(key).and_then(Value::as_str).ok_or(Unreadable::Field(key));
    let risk = match text("risk")? {
        "low" => Risk::Low,
        "medium" => Risk::Medium,
        "high" => Risk::High,
        _ => return Err(Unreadable::Field("risk")),
    };
    let confidence = object.get("confidence").and_then(Value::as_f64).and_then(percent);
    let needs_next_loop = object.get("needs_next_loop").and_then(Value::as_bool);
    Ok(WorkerOutput {
        result: text("result")?.chars().take(LONGEST_RESULT).collect(),
        needs_next_loop: needs_next_loop.ok_or(Unreadable::Field("needs_next_loop"))?,
        why: text("why")?.chars().take(LONGEST_ENTRY).collect(),
        next_actions: list(&object, "next_actions")?,
        questions_for_user: list(&object, "questions_for_user")?,
        confidence: confidence.ok_or(Unreadable::Field("confidence"))?,
        risk,
        fit: object.get("fit").and_then(Value::as_bool),
        // A route that does not exist suggests none.
        suggested_route: text("suggested_route").ok().and_then(|route| route.parse().ok()),
        evidence: places(object.get("evidence")),
    })
}

/// Reads cited places, as texts or as objects with `path` and `lines`. What is none is left out: an
/// answer can be read without.
fn places(cited: Option<&Value>) -> Vec<String> {
    let cited = cited.and_then(Value::as_array).into_iter().flatten();
    let place = |one: &Value| match one {
        Value::String(place) => Some(place.clone()),
        Value::Object(object) => {
            let path = object.get("path")?.as_str()?;
            let lines = match object.get("lines") {
                Some(Value::String(lines)) => lines.clone(),
                Some(Value::Number(line)) => line.to_string(),
                _ => return Some(path.to_owned()),
            };
            Some(format!("{path}:{lines}"))
        }
        _ => None,
    };
    let places = cited.filter_map(place).take(MOST_PLACES);
    places.map(|text| text.chars().take(LONGEST_ENTRY).collect()).collect()
}

fn list(object: &Map<String, Value>, key: &'static str) -> Result<Vec<String>, Unreadable> {
    let entries = object
        .get(key)
        .and_then(Value::as_array)
        .ok_or(Unreadable::Field(key))?;
    let texts = entries.iter().map(|entry| entry.as_str().ok_or(Unreadable::Field(key)));
    let texts: Vec<&str> = texts.collect::<Result<_, _>>()?;
    let cut = texts.into_iter().take(MOST);
    Ok(cut.map(|text| text.chars().take(LONGEST_ENTRY).collect()).collect())
}

/// Returns the proposal in what the chat model said, if it makes one, and the text without it.
pub fn proposal(said: &str) -> (Option<Proposal>, String) {
    for (place, object) in decode::objects_with_places(said) {
        if !object.contains_key("propose_next_loop") {
            continue;
        }
        let mut rest = said.to_owned();
        rest.replace_range(place, "");
        let rest = rest.trim().trim_end_matches("```json\n```").trim().to_owned();
        let is_wished = object.get("propose_next_loop").and_then(Value::as_bool) == Some(true);
        let route = object
            .get("route")
            .and_then(Value::as_str)
            .and_then(|route| route.parse().ok());
        let confidence = object.get("confidence").and_then(Value::as_f64).and_then(percent);
        let reason = object.get("reason").and_then(Value::as_str).unwrap_or_default();
        let proposal = match (is_wished, route, confidence) {
            (true, Some(route), Some(confidence)) => Some(Proposal {
                route,
                reason: reason.chars().take(LONGEST_ENTRY).collect(),
                confidence,
            }),
            _ => None,
        };
        return (proposal, rest);
    }
    (None, said.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"result":"It is.","needs_next_loop":false,"why":"seen","next_actions":["a","b","c","d"],
        "questions_for_user":[],"confidence":0.9,"risk":"low","fit":false,"suggested_route":"CODE"}"#;

    #[test]
    fn an_answer_is_read_whole_or_not_at_all() {
        let output = read(&format!("Here:\n```json\n{GOOD}\n```")).unwrap();
        assert_eq!(
            (output.confidence, output.risk, output.suggested_route),
            (90, Risk::Low, Some(Route::Code))
        );
        assert_eq!(output.next_actions, ["a", "b", "c"], "three at most");
        assert_eq!(read("no"), Err(Unreadable::NoObject));
        let other = GOOD.replace("It is.", "It is not.");
        assert_eq!(read(&format!("{GOOD}\n{other}")), Err(Unreadable::Several));
        for (from, to, field) in [
            ("\"risk\":\"low\"", "\"risk\":\"none\"", "risk"),
            ("0.9", "9", "confidence"),
            (
                "\"needs_next_loop\":false",
                "\"needs_next_loop\":\"no\"",
                "needs_next_loop",
            ),
            (
                "\"questions_for_user\":[]",
                "\"questions_for_user\":[5]",
                "questions_for_user",
            ),
            ("\"why\"", "\"because\"", "why"),
        ] {
            assert_eq!(read(&GOOD.replace(from, to)), Err(Unreadable::Field(field)));
        }
        assert_eq!(read(&GOOD.replace("CODE", "CODE9")).unwrap().suggested_route, None);
        let evidence = r#""risk":"low","evidence":["a.rs:3",{"path":"b.rs","lines":"4-5"},{"path":"c.rs"},7]"#;
        let output = read(&GOOD.replace(r#""risk":"low""#, evidence)).unwrap();
        assert_eq!(output.evidence, ["a.rs:3", "b.rs:4-5", "c.rs"]);
    }

    #[test]
    fn a_proposal_is_taken_out_of_what_is_said() {
        let said = r#"Let me look. {"propose_next_loop":true,"route":"PLAN","reason":"r","confidence":0.8}"#;
        let (made, rest) = proposal(said);
        assert_eq!(made.map(|made| (made.route, made.confidence)), Some((Route::Plan, 80)));
        assert_eq!(rest, "Let me look.");
        assert_eq!(
            proposal(&said.replace("true", "false")),
            (None, "Let me look.".to_owned())
        );
        assert_eq!(proposal("Hello"), (None, "Hello".to_owned()));
    }
}
