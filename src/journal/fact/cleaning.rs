//! Facts as they are written: without secrets, and with long texts cut.

use serde_json::Value;

use super::{Fact, LONGEST_DOCUMENT};
use crate::secret::Redactor;

/// The journal is an index; whole outputs are kept elsewhere.
const LONGEST_TEXT: usize = 4_000;

impl Fact {
    /// Returns the fact without secrets, long texts cut.
    ///
    /// Goes through the texts one by one: to clean the finished line would cut through JSON's
    /// escapes.
    pub(in crate::journal) fn cleaned(&self, redactor: &Redactor) -> Self {
        let cleaned = serde_json::to_value(self).and_then(|mut value| {
            for (name, field) in value.as_object_mut().into_iter().flatten() {
                match name.as_str() {
                    "fact" => {}
                    "difference" => clean(field, redactor, LONGEST_DOCUMENT),
                    _ => clean(field, redactor, LONGEST_TEXT),
                }
                if name == "plan" && field.to_string().len() > LONGEST_DOCUMENT {
                    *field = cut(field.to_string(), LONGEST_DOCUMENT).into();
                }
            }
            serde_json::from_value(value)
        });
        cleaned.unwrap_or_else(|_| Self::Warned {
            text: "a fact was left out, because a configured secret is one of the journal's own words".to_owned(),
        })
    }
}

/// Cleans and cuts every text in `value`.
fn clean(value: &mut Value, redactor: &Redactor, longest: usize) {
    match value {
        Value::String(text) => *text = cut(redactor.clean(text).into_string(), longest),
        Value::Array(values) => values.iter_mut().for_each(|value| clean(value, redactor, longest)),
        Value::Object(fields) => fields.values_mut().for_each(|value| clean(value, redactor, longest)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn cut(mut text: String, longest: usize) -> String {
    if text.len() > longest {
        text.truncate(text.floor_char_boundary(longest));
        text.push('…');
    }
    text
}
