//! The form of a plan as a JSON Schema, for servers that can enforce one. It says what
//! [`read`](super::read) reads and the prompt shows; optional sections are left out, so that small
//! models get to the end of it.

use serde_json::{Value, json};

use crate::conversation::ToolSpec;
use crate::conversation::form::{call, object, short_text};

/// Returns the form of a planner's reply: a call of one of `tools`, or a plan. There are no tools
/// once it may explore no further.
pub fn step(tools: &[ToolSpec], environments: &[&str], most_subtasks: usize) -> Value {
    let mut fields = plan_fields(most_subtasks);
    let environment = object(&[("name", json!({ "enum": environments })), ("setup_commands", texts())]);
    let before_verification = fields.len() - 3;
    fields.insert(before_verification, ("selected_environment", environment));
    if tools.is_empty() {
        return object(&fields);
    }
    json!({ "anyOf": [call(tools), object(&fields)] })
}

/// Returns the form of a plan that replaces another.
pub fn revision(most_subtasks: usize) -> Value {
    object(&plan_fields(most_subtasks))
}

fn plan_fields(most_subtasks: usize) -> Vec<(&'static str, Value)> {
    let others = json!({ "type": "array", "items": short_text(), "maxItems": most_subtasks.saturating_sub(1) });
    let subtask = object(&[
        ("id", short_text()),
        ("description", short_text()),
        ("dependencies", others),
    ]);
    let subtasks = json!({ "type": "array", "items": subtask, "minItems": 1, "maxItems": most_subtasks });
    let check = object(&[("command", short_text()), ("expect_exit", json!({ "type": "integer" }))]);
    vec![
        ("phase", json!({ "const": "planning" })),
        (
            "goal_understanding",
            object(&[
                ("main_objective", short_text()),
                ("success_criteria", texts()),
                ("constraints", texts()),
            ]),
        ),
        ("task_decomposition", object(&[("subtasks", subtasks)])),
        (
            "verification",
            json!({ "type": "array", "items": check, "maxItems": 8 }),
        ),
        ("test_command", short_text()),
        ("comment", short_text()),
    ]
}

fn texts() -> Value {
    json!({ "type": "array", "items": short_text(), "maxItems": 6 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::Reply;
    use crate::plan;

    /// Writes the smallest value that fits a form.
    fn least(form: &Value) -> Value {
        if let Some(fixed) = form.get("const") {
            return fixed.clone();
        }
        if let Some(values) = form["enum"].as_array() {
            return values[0].clone();
        }
        match form["type"].as_str() {
            Some("object") => {
                let fields = form["properties"].as_object().unwrap();
                fields.iter().map(|(name, form)| (name.clone(), least(form))).collect()
            }
            Some("array") => {
                let items = form["minItems"].as_u64().unwrap_or_default();
                (0..items).map(|_| least(&form["items"])).collect()
            }
            Some("integer") => json!(0),
            _ => json!("words"),
        }
    }

    #[test]
    fn the_least_that_fits_the_form_is_a_valid_plan() {
        for form in [step(&[], &["python"], 3), revision(3)] {
            let text = least(&form).to_string();
            let plan = plan::read(&Reply {
                text,
                ..Reply::default()
            })
            .unwrap();
            assert_eq!(plan.task_decomposition.subtasks[0].description, "words");
            plan.validate(3).unwrap();
        }
    }
}
