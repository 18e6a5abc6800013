//! What the store gets: no secrets, whoever wrote them down.
//!
//! Tools' outputs are cleaned before anybody sees them. What a person pasted into an item, and what
//! the model said by itself, is worked with as it is, since a command must run as it was said; but
//! what lies on the disk for months, and is read again by a later process that may speak to another
//! provider, is cleaned.

use serde_json::Value;

use crate::conversation::{Message, ToolCall, ToolResult};
use crate::plan::Plan;
use crate::secret::Redactor;

/// The parts of a record that people's and the model's own words stand in. The others are cleaned
/// where they are made, or are names by which something is found again.
const WORDS: [&str; 8] = [
    "title",
    "task_text",
    "plan",
    "former_plans",
    "setup",
    "checks",
    "before",
    "repair",
];

/// Takes secrets out of a record that is about to be saved.
pub(crate) fn clean_record(redactor: &Redactor, record: &mut Value) {
    for part in WORDS {
        if let Some(words) = record.get_mut(part) {
            clean_words(redactor, words);
        }
    }
}

/// Takes secrets out of what people are shown of the plan.
pub(crate) fn clean_plan(mut plan: Plan, redactor: &Redactor) -> Plan {
    plan.comment = redactor.clean(&plan.comment).into_string();
    for subtask in &mut plan.task_decomposition.subtasks {
        subtask.description = redactor.clean(&subtask.description).into_string();
    }
    plan
}

/// Takes secrets out of a message that is about to be saved.
pub(crate) fn clean_message(redactor: &Redactor, message: &mut Message) {
    match message {
        Message::System { text } | Message::User { text } | Message::Summary { text, .. } => clean_text(redactor, text),
        Message::Assistant { text, calls } => {
            clean_text(redactor, text);
            for call in calls {
                clean_call(redactor, call);
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

/// Cleans each text by itself: to clean the written JSON would cut through its escapes.
fn clean_words(redactor: &Redactor, value: &mut Value) {
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
            "title": "Say hunter2hunter2",
            "plan": { "comment": "hunter2hunter2", "verification": [{ "command": "echo hunter2hunter2", "expect_exit": 0 }] },
            "container": "hunter2hunter2",
        });
        clean_record(&redactor, &mut record);
        let expected = json!({
            "title": "Say [redacted]",
            "plan": { "comment": "[redacted]", "verification": [{ "command": "echo [redacted]", "expect_exit": 0 }] },
            "container": "hunter2hunter2",
        });
        assert_eq!(record, expected);
    }

    #[test]
    fn what_the_model_said_and_called_is_cleaned() {
        let redactor = Redactor::new(&["hunter2hunter2".into()]);
        let said = |word: &str| Message::Assistant {
            text: format!("{{\"comment\":\"{word}\"}}"),
            calls: vec![ToolCall {
                id: "1".to_owned(),
                tool: "workspace/execute_command".to_owned(),
                args: json!({ "command": word }).as_object().cloned().unwrap_or_default(),
            }],
        };
        let mut message = said("hunter2hunter2");
        clean_message(&redactor, &mut message);
        assert_eq!(message, said("[redacted]"));
    }
}
