//! The question to the classifier, and how its answer is read.
//!
//! One fixed prompt, asked once for a message. The answer is one JSON object, alone but for a fence
//! and the model's thinking; everything else is a fault, and the message goes to CHAT.

use serde_json::Value;

use super::Route;
use super::rules::Rules;
use super::text;
use crate::conversation::decode;

/// The classifier's system prompt. It changes only with the routes.
pub const PROMPT: &str = include_str!("classifier.txt");

/// Most passages that are taken as evidence.
const MOST_EVIDENCE: usize = 5;
/// Most characters of a reason.
const LONGEST_REASON: usize = 300;

/// The confidence that the classifier must have, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    pub least: u8,
    pub least_for_code: u8,
}

/// An answer that could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classified {
    pub route: Route,
    /// Confidence, in percent.
    pub confidence: u8,
    pub reason: String,
    pub evidence: Vec<String>,
}

/// Why an answer does not decide.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the classifier did not answer: {0}")]
    NoAnswer(String),
    #[error("the answer is not one JSON object")]
    NotJson,
    #[error("`{0}` is missing")]
    Missing(&'static str),
    #[error("{0}")]
    NoRoute(String),
    #[error("`confidence` is no number from 0 to 1")]
    OutOfRange,
}

/// Why an answer that could be read is not followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Weak {
    #[error("{0} % is less than the {1} % that are needed")]
    Unsure(u8, u8),
    #[error("CODE needs strong evidence in the message's own words")]
    NoEvidence,
}

/// Reads an answer.
pub fn read(answer: &str) -> Result<Classified, Fault> {
    let said = decode::without_thinking(answer);
    let object = alone(&said).ok_or(Fault::NotJson)?;
    let text = |key: &'static str| object.get(key).and_then(Value::as_str).ok_or(Fault::Missing(key));
    let route = text("route")?;
    let route = route
        .parse::<Route>()
        .map_err(|error| Fault::NoRoute(error.to_string()))?;
    let confidence = object.get("confidence").ok_or(Fault::Missing("confidence"))?;
    let confidence = confidence.as_f64().and_then(percent).ok_or(Fault::OutOfRange)?;
    let reason = text("reason")?.chars().take(LONGEST_REASON).collect();
    let evidence = match object.get("evidence").ok_or(Fault::Missing("evidence"))? {
        Value::String(passage) => vec![passage.clone()],
        Value::Array(passages) => passages
            .iter()
            .filter_map(|one| one.as_str().map(str::to_owned))
            .collect(),
        _ => return Err(Fault::Missing("evidence")),
    };
    Ok(Classified {
        route,
        confidence,
        reason,
        evidence: evidence.into_iter().take(MOST_EVIDENCE).collect(),
    })
}

/// Returns the object that is all of a text, or all of the one fence in it.
fn alone(said: &str) -> Option<serde_json::Map<String, Value>> {
    let inner = said.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let inner = inner.map_or(said, |rest| rest.strip_prefix("json").unwrap_or(rest));
    match serde_json::from_str(inner.trim()) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}

/// Returns a share of 1 in percent.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range was checked"
)]
pub fn percent(share: f64) -> Option<u8> {
    (0.0..=1.0).contains(&share).then(|| (share * 100.0).round() as u8)
}

impl Classified {
    /// Tells whether the answer is followed for `message`. Evidence for CODE must stand in the
    /// message word for word, and not in what that only quotes: what a model claims, or somebody
    /// else wants, is none.
    pub fn judge(&self, message: &str, rules: &Rules, thresholds: Thresholds) -> Result<(), Weak> {
        let least = match self.route {
            Route::Code => thresholds.least_for_code,
            _ => thresholds.least,
        };
        if self.confidence < least {
            return Err(Weak::Unsure(self.confidence, least));
        }
        let own = text::own_text(message);
        let stands = |passage: &&String| passage.trim().chars().count() > 1 && own.contains(passage.trim());
        let is_strong = |passage: &String| rules.is_strong(passage);
        if self.route == Route::Code && !self.evidence.iter().filter(stands).any(is_strong) {
            return Err(Weak::NoEvidence);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_json_alone() {
        let good = r#"{"route":"PLAN","confidence":0.7,"reason":"steps","evidence":["steps"]}"#;
        let expected = Classified {
            route: Route::Plan,
            confidence: 70,
            reason: "steps".to_owned(),
            evidence: vec!["steps".to_owned()],
        };
        for text in [
            good.to_owned(),
            format!("```json\n{good}\n```"),
            format!("<think>hm</think>\n{good}"),
        ] {
            assert_eq!(read(&text), Ok(expected.clone()), "{text}");
        }
        let (confidence, fault) = ("0.7", Fault::NotJson);
        for (text, fault) in [
            (format!("Sure! {good}"), fault.clone()),
            (format!("{good}{good}"), fault.clone()),
            (String::new(), fault.clone()),
            ("[]".to_owned(), fault),
            (good.replace("\"route\":\"PLAN\",", ""), Fault::Missing("route")),
            (good.replace(confidence, "\"high\""), Fault::OutOfRange),
            (good.replace(confidence, "1.01"), Fault::OutOfRange),
            (good.replace(confidence, "-0.1"), Fault::OutOfRange),
            (good.replace("\"evidence\"", "\"proof\""), Fault::Missing("evidence")),
        ] {
            assert_eq!(read(&text), Err(fault), "{text}");
        }
        assert!(matches!(read(&good.replace("PLAN", "CODE3")), Err(Fault::NoRoute(_))));
    }

    #[test]
    fn code_needs_more_and_its_evidence_must_stand_in_the_message() {
        let rules = Rules::shipped();
        let thresholds = Thresholds {
            least: 60,
            least_for_code: 80,
        };
        let judged = |route, confidence, evidence: &str| {
            let classified = Classified {
                route,
                confidence,
                reason: String::new(),
                evidence: vec![evidence.to_owned()],
            };
            classified.judge("the parser dies; fix that in parse.py", rules, thresholds)
        };
        assert_eq!(judged(Route::Plan, 60, ""), Ok(()));
        assert_eq!(judged(Route::Plan, 59, ""), Err(Weak::Unsure(59, 60)));
        assert_eq!(judged(Route::Code, 79, "fix that"), Err(Weak::Unsure(79, 80)));
        assert_eq!(judged(Route::Code, 80, "fix that"), Ok(()));
        assert_eq!(judged(Route::Code, 100, "fix this"), Err(Weak::NoEvidence));
        assert_eq!(judged(Route::Code, 100, "the parser"), Err(Weak::NoEvidence));
        assert_eq!(judged(Route::Code, 100, "parse.py"), Ok(()));
    }

    #[test]
    fn what_a_message_quotes_is_no_evidence() {
        let thresholds = Thresholds {
            least: 60,
            least_for_code: 80,
        };
        for (message, expected) in [
            ("hm:\n> please fix that", Err(Weak::NoEvidence)),
            ("hm:\n```\nplease fix that\n```", Err(Weak::NoEvidence)),
            ("hm, please fix that:\n> it fails", Ok(())),
            ("please fix that in `parse.py`", Ok(())),
        ] {
            let classified = Classified {
                route: Route::Code,
                confidence: 100,
                reason: String::new(),
                evidence: vec!["please fix that".to_owned()],
            };
            assert_eq!(
                classified.judge(message, Rules::shipped(), thresholds),
                expected,
                "{message}"
            );
        }
    }
}
