//! Removes secrets from everything that the store keeps, and from excerpts.
//!
//! Tool outputs are redacted before anybody sees them. Text by people and by the model is used
//! unchanged during the run, since a command must run exactly as written; but the copy in the store
//! lies on the disk for months and may be sent to another provider later, so it is redacted.

use serde_json::Value;

use crate::conversation::{Message, ReplyOrigin, ToolCall, ToolResult, excerpt};
use crate::plan::Plan;
use crate::review::{Blocker, Review};
use crate::secret::Redactor;

/// Fields of the record that contain text by people or the model. The others are redacted where
/// they are made, or are names by which something is looked up.
const WORDS: [&str; 10] = [
    "/request/title",
    "/planned/task_text",
    "/planned/plan",
    "/planned/former_plans",
    "/prepared/setup",
    "/worked/installed",
    "/worked/added_set_up",
    "/verified/checks",
    "/verified/before",
    "/verified/repair",
];

/// Returns `text` without secrets, cut in the middle to `max_bytes` at most. It is redacted first:
/// nobody recognises the half of a secret that a cut leaves.
pub(crate) fn clean_cut(redactor: &Redactor, text: &str, max_bytes: usize) -> String {
    excerpt::middle_cut(redactor.clean(text).as_str(), max_bytes, None)
}

/// Makes excerpts of texts by others, each without secrets and of at most `max_bytes`. Whoever is
/// given it cannot cut first and redact then.
#[derive(Clone, Copy)]
pub(crate) struct CleanExcerpts<'a> {
    pub(crate) redactor: &'a Redactor,
    pub(crate) max_bytes: usize,
}

impl CleanExcerpts<'_> {
    /// Returns the maker of excerpts that share the room of one: each is one of `parts`.
    pub(crate) fn shared_by(self, parts: usize) -> Self {
        Self {
            max_bytes: self.max_bytes / parts.max(1),
            ..self
        }
    }

    /// Returns an excerpt of `text`, cut in the middle.
    pub(crate) fn of(self, text: &str) -> String {
        clean_cut(self.redactor, text, self.max_bytes)
    }

    /// Returns the end of `text`.
    pub(crate) fn of_end(self, text: &str) -> String {
        let text = self.redactor.clean(text).into_string();
        let start = text.ceil_char_boundary(text.len().saturating_sub(self.max_bytes));
        text[start..].to_owned()
    }
}

/// Redacts a record before it is saved.
pub(crate) fn clean_record(redactor: &Redactor, record: &mut Value) {
    for part in WORDS {
        if let Some(words) = record.pointer_mut(part) {
            clean_words(redactor, words);
        }
    }
}

/// Redacts the parts of a plan that are shown to people.
pub(crate) fn clean_plan(mut plan: Plan, redactor: &Redactor) -> Plan {
    plan.comment = redactor.clean(&plan.comment).into_string();
    for subtask in &mut plan.task_decomposition.subtasks {
        subtask.description = redactor.clean(&subtask.description).into_string();
    }
    for citation in &mut plan.evidence {
        citation.why = redactor.clean(&citation.why).into_string();
    }
    plan
}

/// Tells whether a plan holds something that redaction takes out.
pub(crate) fn is_changed(plan: &Plan, redactor: &Redactor) -> bool {
    let Ok(whole) = serde_json::to_value(plan) else {
        return true;
    };
    let mut cleaned = whole.clone();
    clean_words(redactor, &mut cleaned);
    cleaned != whole
}

/// Redacts a review before it is saved and shown.
pub(crate) fn clean_review(review: &Review, redactor: &Redactor) -> Review {
    let cleaned = serde_json::to_value(review).and_then(|mut words| {
        clean_words(redactor, &mut words);
        serde_json::from_value(words)
    });
    // Strings stay strings, so there is nothing that could fail; without words it says nothing.
    cleaned.unwrap_or_else(|_| Review {
        ready_for_implementation: review.ready_for_implementation,
        score: review.score,
        blockers: vec![Blocker::default(); review.blockers.len()],
        ..Review::default()
    })
}

/// Redacts a message before it is saved.
pub(crate) fn clean_message(redactor: &Redactor, message: &mut Message) {
    match message {
        Message::System { text } | Message::Summary { text, .. } => clean_text(redactor, text),
        Message::User { text, pictures } => {
            clean_text(redactor, text);
            for picture in pictures {
                clean_text(redactor, &mut picture.name);
            }
        }
        Message::Assistant { text, calls, origin } => {
            clean_text(redactor, text);
            for call in calls {
                clean_call(redactor, call);
            }
            // The model would refuse what was changed. So nobody gets it back, and the calls are
            // sent as text.
            let cleaned = |value: &Value| {
                let mut value = value.clone();
                clean_words(redactor, &mut value);
                value
            };
            if let Some(origin) = origin
                && origin.is_changed_by(cleaned)
            {
                *origin = ReplyOrigin::default();
            }
        }
        Message::Results { results } => {
            for ToolResult { call, output, .. } in results {
                clean_call(redactor, call);
                clean_text(redactor, output);
            }
        }
    }
}

fn clean_call(redactor: &Redactor, call: &mut ToolCall) {
    clean_text(redactor, &mut call.tool);
    call.args.values_mut().for_each(|value| clean_words(redactor, value));
}

/// Redacts each string by itself, since redaction of the serialized JSON would cut through its
/// escapes.
pub(crate) fn clean_words(redactor: &Redactor, value: &mut Value) {
    match value {
        Value::String(text) => clean_text(redactor, text),
        Value::Array(values) => values.iter_mut().for_each(|value| clean_words(redactor, value)),
        Value::Object(fields) => fields.values_mut().for_each(|value| clean_words(redactor, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn clean_text(redactor: &Redactor, text: &mut String) {
    *text = redactor.clean(text).into_string();
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_are_cleaned_and_names_stay() {
        let redactor = Redactor::new(&["hunter2hunter2".into()]);
        let mut record = json!({
            "request": { "title": "Say hunter2hunter2" },
            "planned": {
                "plan": { "comment": "hunter2hunter2", "verification": [{ "command": "echo hunter2hunter2", "expect_exit": 0 }] },
            },
            "prepared": { "container": "hunter2hunter2" },
        });
        clean_record(&redactor, &mut record);
        let expected = json!({
            "request": { "title": "Say [redacted]" },
            "planned": {
                "plan": { "comment": "[redacted]", "verification": [{ "command": "echo [redacted]", "expect_exit": 0 }] },
            },
            "prepared": { "container": "hunter2hunter2" },
        });
        assert_eq!(record, expected);
    }

    #[test]
    fn every_redacted_part_is_a_part_of_the_record() {
        let record = crate::agent::record::Record::default().to_saved().unwrap();
        for part in WORDS {
            assert!(record.pointer(part).is_some(), "a record has no {part}");
        }
    }

    #[test]
    fn what_the_model_said_and_called_is_cleaned() {
        let redactor = Redactor::new(&["hunter2hunter2".into()]);
        let said = |word: &str, origin: ReplyOrigin| Message::Assistant {
            text: format!("{{\"comment\":\"{word}\"}}"),
            calls: vec![ToolCall {
                id: "1".to_owned(),
                tool: "workspace/execute_command".to_owned(),
                args: json!({ "command": word }).as_object().cloned().unwrap_or_default(),
            }],
            origin: Some(origin),
        };
        let thought = |of_message: &str, of_call: &str| ReplyOrigin {
            model: "m".to_owned(),
            carried: json!({ "reasoning_content": format!("It is {of_message}.") }),
            of_calls: [("1".to_owned(), json!({ "said": of_call }))].into(),
        };
        for (before, after) in [
            (thought("it", "so"), thought("it", "so")),
            (thought("hunter2hunter2", "so"), ReplyOrigin::default()),
            (thought("it", "hunter2hunter2"), ReplyOrigin::default()),
        ] {
            let mut message = said("hunter2hunter2", before);
            clean_message(&redactor, &mut message);
            assert_eq!(message, said("[redacted]", after));
        }
    }
}
