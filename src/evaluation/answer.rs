//! Answers to a client: structured content, and the same as a text for people.

use std::fmt::Write as _;

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, ErrorCode};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use crate::review::score::Score;
use crate::review::{Blocker, Review};
use crate::reviewer::NoReview;
use crate::secret::Redactor;

/// The evaluation of one document.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Evaluation {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    /// Whether it is ready, its score reaches the target, and nothing blocks it.
    pub(super) passed: bool,
    pub(super) target_score: Score,
    #[serde(flatten)]
    pub(super) review: Review,
    /// Blockers without evidence that can be checked. They do not count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) unproven_blockers: Vec<Blocker>,
    /// Why there is no review of it. It has not passed then, and its score is nobody's opinion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<Missing>,
}

/// The reason why there is no review of a document.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Missing {
    /// `EVAL_TIMEOUT`, `REVIEWER_NOT_FOUND`, `EVAL_UNREADABLE` or `EVAL_FAILED`.
    pub(super) code: String,
    pub(super) message: String,
}

/// The evaluations of several documents, in their order.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Evaluations {
    /// Whether all of them passed.
    pub(super) passed: bool,
    pub(super) evaluations: Vec<Evaluation>,
}

impl Evaluation {
    /// Returns the entry of a document that there is no review of.
    pub(super) fn missing(target_score: Score, error: &ErrorData) -> Self {
        let code = error.data.as_ref().and_then(|data| data["code"].as_str());
        Self {
            name: None,
            passed: false,
            target_score,
            review: Review::default(),
            unproven_blockers: Vec::new(),
            error: Some(Missing {
                code: code.unwrap_or("EVAL_FAILED").to_owned(),
                message: error.message.to_string(),
            }),
        }
    }
}

/// Returns the answer about one document.
pub(super) fn one(evaluation: &Evaluation, redactor: &Redactor) -> CallToolResult {
    result(evaluation, &text(evaluation), redactor)
}

/// Returns the answer about several documents.
///
/// # Errors
/// If there is a review of none of them.
pub(super) fn several(evaluations: Vec<Evaluation>, redactor: &Redactor) -> Result<CallToolResult, ErrorData> {
    let missing: Vec<&Missing> = evaluations.iter().filter_map(|one| one.error.as_ref()).collect();
    if let Some(first) = missing.first()
        && missing.len() == evaluations.len()
    {
        let message = match missing.len() {
            1 => first.message.clone(),
            number => format!(
                "none of the {number} documents could be evaluated; of the first it is known: {}",
                first.message
            ),
        };
        let data = json!({ "code": first.code, "evaluations": evaluations });
        return Err(ErrorData::internal_error(message, Some(cleaned(data, redactor))));
    }
    let texts: Vec<String> = evaluations.iter().map(text).collect();
    let all = Evaluations {
        passed: evaluations.iter().all(|evaluation| evaluation.passed),
        evaluations,
    };
    Ok(result(&all, &texts.join("\n\n"), redactor))
}

pub(super) fn result(structured: &impl Serialize, text: &str, redactor: &Redactor) -> CallToolResult {
    let text = redactor.clean(text).into_string();
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = serde_json::to_value(structured)
        .ok()
        .map(|value| cleaned(value, redactor));
    result
}

pub(super) fn cleaned(value: Value, redactor: &Redactor) -> Value {
    match value {
        Value::String(text) => Value::String(redactor.clean(&text).into_string()),
        Value::Array(list) => list.into_iter().map(|entry| cleaned(entry, redactor)).collect(),
        Value::Object(object) => {
            let fields = object.into_iter().map(|(key, value)| (key, cleaned(value, redactor)));
            Value::Object(fields.collect())
        }
        other => other,
    }
}

fn text(evaluation: &Evaluation) -> String {
    let review = &evaluation.review;
    let name = evaluation.name.as_ref();
    let name = name.map_or_else(String::new, |name| format!(": {name}"));
    if let Some(Missing { message, .. }) = &evaluation.error {
        return format!("# Evaluation failed{name}\n\n{}.\n", message.trim_end_matches('.'));
    }
    let mut text = format!(
        "# {}{name}\n\nScore {} of 10, target {}. {}\n",
        if evaluation.passed { "Passed" } else { "Not passed" },
        review.score,
        evaluation.target_score,
        if review.ready_for_implementation {
            "The reviewer calls it ready for implementation."
        } else {
            "The reviewer does not call it ready for implementation."
        }
    );
    for (heading, said) in [
        ("Conclusion", &review.conclusion),
        ("Rationale", &review.rationale),
        ("Technical notes", &review.technical_notes),
    ] {
        if !said.is_empty() {
            let _ = write!(text, "\n## {heading}\n\n{said}\n");
        }
    }
    let blockers = |list: &[Blocker]| list.iter().map(in_words).collect();
    for (heading, list) in [
        ("Blockers", blockers(&review.blockers)),
        (
            "Blockers without evidence, which do not count",
            blockers(&evaluation.unproven_blockers),
        ),
        ("Recommendations", review.recommendations.clone()),
        ("Strengths", review.analysis.strengths.clone()),
        ("Weaknesses", review.analysis.weaknesses.clone()),
    ] {
        if !list.is_empty() {
            let _ = write!(text, "\n## {heading}\n\n- {}\n", list.join("\n- "));
        }
    }
    text
}

fn in_words(blocker: &Blocker) -> String {
    let mut words = blocker.claim.clone();
    if !blocker.evidence.is_empty() {
        let _ = write!(words, " ({})", blocker.evidence.join(", "));
    }
    if !blocker.why.is_empty() {
        let _ = write!(words, ": {}", blocker.why);
    }
    words
}

/// Returns the error for a call that came to no review.
pub(super) fn no_review(error: &NoReview) -> ErrorData {
    let code = match error {
        NoReview::TimedOut(_) => "EVAL_TIMEOUT",
        NoReview::NotFound(_) => "REVIEWER_NOT_FOUND",
        NoReview::Unreadable(_) => "EVAL_UNREADABLE",
        NoReview::NotLocal(_)
        | NoReview::Later { .. }
        | NoReview::Failed(_)
        | NoReview::Away(_)
        | NoReview::Unanswered(_) => "EVAL_FAILED",
    };
    ErrorData::internal_error(error.to_string(), Some(json!({ "code": code })))
}

/// Returns the error with a text for people in its data.
pub(super) fn formatted(error: ErrorData) -> ErrorData {
    let mend = match error.code {
        ErrorCode::PARSE_ERROR => "Send one JSON-RPC message on each line.",
        ErrorCode::INVALID_REQUEST => "Send requests of JSON-RPC 2.0, as MCP has them.",
        ErrorCode::METHOD_NOT_FOUND => "This server has tools only: tools/list, tools/call.",
        ErrorCode::INVALID_PARAMS => "tools/list has the names of the tools, and their arguments.",
        _ => "`coding-agent doctor` says whether the reviewer can be reached.",
    };
    let text = format!(
        "# Evaluation failed\n\n{}.\n\n{mend}\n",
        error.message.trim_end_matches('.')
    );
    let mut data = match error.data {
        Some(Value::Object(data)) => data,
        Some(other) => [("details".to_owned(), other)].into_iter().collect(),
        None => serde_json::Map::new(),
    };
    data.entry("formatted").or_insert(Value::String(text));
    ErrorData {
        data: Some(Value::Object(data)),
        ..error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_without_any_review_is_an_error_that_names_its_documents() {
        let missing = |name: &str, error: NoReview| Evaluation {
            name: Some(name.to_owned()),
            ..Evaluation::missing(Score::EIGHT, &no_review(&error))
        };
        let evaluations = vec![
            missing("one", NoReview::TimedOut(5)),
            missing("two", NoReview::Failed("it is away".to_owned())),
        ];
        let error = several(evaluations, &Redactor::new(&[])).unwrap_err();
        assert!(error.message.starts_with("none of the 2 documents"), "{error:?}");
        let data = error.data.unwrap();
        assert_eq!(data["code"], "EVAL_TIMEOUT");
        let told = [0, 1].map(|number| {
            let one = &data["evaluations"][number];
            json!([one["name"], one["error"]["code"]])
        });
        assert_eq!(told, [json!(["one", "EVAL_TIMEOUT"]), json!(["two", "EVAL_FAILED"])]);
    }
}
