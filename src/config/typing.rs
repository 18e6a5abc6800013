//! Compares a configuration with its schema: unknown and missing keys, values of the wrong type,
//! and numbers beyond their bounds.
//!
//! Reading straight into the types would stop at the first mistake. Here all are collected, and
//! each is taken out, so that the rest can be read and checked further. Knows the few words of JSON
//! Schema that our own schema uses.

use serde_json::Map;
use serde_json::Value;

use super::fault::Faults;
use super::fault::KeyPath;
use super::rules::most;
use super::variable::Replaced;
use crate::spelling::nearest;

pub(super) fn check(schema: &Value, value: &mut Value, replaced: &Replaced, faults: &mut Faults) {
    let mut checker = Checker {
        schema,
        replaced,
        faults,
        path: Vec::new(),
    };
    checker.fits(schema, value);
}

struct Checker<'a> {
    schema: &'a Value,
    replaced: &'a Replaced,
    faults: &'a mut Faults,
    path: KeyPath,
}

impl<'a> Checker<'a> {
    /// Tells whether `value` fits `schema` and is kept. If not, a fault was added, or a variable
    /// was empty.
    fn fits(&mut self, schema: &'a Value, value: &mut Value) -> bool {
        let alternatives = self.alternatives(schema);
        let is_replaced = self.replaced.contains(&self.path);
        if is_replaced && !alternatives.iter().any(|alternative| accepts(alternative, value)) {
            if let Some(typed) = value.as_str().and_then(|text| typed(text, &alternatives)) {
                *value = typed;
            }
            if value.is_null() {
                // An empty variable leaves the key out.
                return false;
            }
        }
        let Some(chosen) = alternatives.iter().find(|alternative| accepts(alternative, value)) else {
            let found = if is_replaced {
                "what the variable holds"
            } else {
                &describe(value)
            };
            let wanted = names(&alternatives);
            let is_unquoted = wanted.contains("text") && (value.is_number() || value.is_boolean());
            let mend = if is_unquoted { "; put it in quotes" } else { "" };
            self.faults
                .add(self.path.clone(), format!("must be {wanted}, not {found}{mend}"));
            return false;
        };
        if let Some(most) = exceeded(chosen, value, &self.path) {
            self.faults.add(self.path.clone(), format!("must be at most {most}"));
            return false;
        }
        match value {
            Value::Object(map) => self.section_fits(chosen, map),
            Value::Array(items) => {
                self.items_fit(&chosen["items"], items);
                true
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        }
    }

    fn section_fits(&mut self, schema: &'a Value, map: &mut Map<String, Value>) -> bool {
        if schema["additionalProperties"] == true {
            // Somebody else reads it.
            return true;
        }
        let properties = schema["properties"].as_object();
        // A key without a value, its lines perhaps commented out, counts as left out.
        map.retain(|_, value| !value.is_null());
        map.retain(|key, value| {
            self.path.push(key.clone());
            let property = properties.and_then(|properties| properties.get(key));
            let any = || schema.get("additionalProperties").filter(|any| any.is_object());
            let fits = if let Some(property) = property.or_else(any) {
                self.fits(property, value)
            } else {
                self.faults.add(self.path.clone(), unknown(key, properties));
                false
            };
            self.path.pop();
            fits
        });
        let required = schema["required"].as_array();
        let is_missing = |key: &&str| !map.contains_key(*key);
        let missing: Vec<&str> = required
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .filter(is_missing)
            .collect();
        for key in &missing {
            self.path.push((*key).to_owned());
            self.faults.add(self.path.clone(), "is missing and must be given");
            self.path.pop();
        }
        missing.is_empty()
    }

    fn items_fit(&mut self, schema: &'a Value, items: &mut Vec<Value>) {
        let mut first_unfit = items.len();
        for (index, item) in items.iter_mut().enumerate() {
            self.path.push(index.to_string());
            if !self.fits(schema, item) {
                first_unfit = first_unfit.min(index);
            }
            self.path.pop();
        }
        // Removing single items would give the later ones wrong numbers.
        items.truncate(first_unfit);
    }

    /// Returns the schemas of which one must fit, references followed.
    fn alternatives(&self, schema: &'a Value) -> Vec<&'a Value> {
        if let Some(reference) = schema["$ref"].as_str() {
            let target = reference
                .strip_prefix('#')
                .and_then(|pointer| self.schema.pointer(pointer));
            return target.map_or_else(Vec::new, |target| self.alternatives(target));
        }
        let choices = ["anyOf", "oneOf"].iter().find_map(|word| schema[*word].as_array());
        choices.map_or_else(
            || vec![schema],
            |choices| choices.iter().flat_map(|choice| self.alternatives(choice)).collect(),
        )
    }
}

fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn accepts(schema: &Value, value: &Value) -> bool {
    if let Some(constant) = schema.get("const") {
        return constant == value;
    }
    if let Some(choices) = schema["enum"].as_array() {
        return choices.contains(value);
    }
    let types = types(schema);
    let is_type = |name: &&str| match *name {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => false,
    };
    let is_large_enough = match (schema["minimum"].as_f64(), value.as_f64()) {
        (Some(minimum), Some(number)) => number >= minimum,
        _ => true,
    };
    (types.is_empty() || types.iter().any(is_type)) && is_large_enough
}

/// Returns the bound that a whole number exceeds.
fn exceeded(schema: &Value, value: &Value, path: &[String]) -> Option<u64> {
    let number = value.as_u64().filter(|_| types(schema).contains(&"integer"))?;
    most(path).filter(|most| number > *most)
}

/// Converts the text of a variable to the wanted type; an empty one becomes null.
fn typed(text: &str, alternatives: &[&Value]) -> Option<Value> {
    let value = match text.trim() {
        "" => Value::Null,
        text => serde_json::from_str(text).ok()?,
    };
    (value.is_null() || alternatives.iter().any(|schema| accepts(schema, &value))).then_some(value)
}

/// Describes the accepted values, for people.
fn names(alternatives: &[&Value]) -> String {
    let mut constants = Vec::new();
    let mut names = Vec::new();
    for schema in alternatives {
        let choices = schema
            .get("const")
            .into_iter()
            .chain(schema["enum"].as_array().into_iter().flatten());
        let before = constants.len();
        constants.extend(choices.map(|choice| choice.as_str().map_or_else(|| choice.to_string(), str::to_owned)));
        if constants.len() == before {
            names.extend(types(schema).into_iter().filter_map(|name| match name {
                "integer" if schema["minimum"].as_f64() == Some(0.0) => Some("a whole number, zero or more".to_owned()),
                "integer" => Some("a whole number".to_owned()),
                "number" => Some("a number".to_owned()),
                "string" => Some("text".to_owned()),
                "boolean" => Some("true or false".to_owned()),
                "array" => Some("a list".to_owned()),
                "object" => Some("a section with keys".to_owned()),
                _ => None,
            }));
        }
    }
    match constants.as_slice() {
        [] => {}
        [one] => names.push(format!("`{one}`")),
        many => names.push(format!("one of {}", many.join(", "))),
    }
    names.join(", or ")
}

fn describe(value: &Value) -> String {
    match value {
        Value::Null => "empty".to_owned(),
        Value::Bool(_) => format!("the truth value {value}"),
        Value::Number(_) => format!("the number {value}"),
        // A long text may be a secret in the wrong place.
        Value::String(text) if text.chars().count() > 20 => "a text".to_owned(),
        Value::String(text) => format!("the text '{text}'"),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a section with keys".to_owned(),
    }
}

fn unknown(key: &str, properties: Option<&Map<String, Value>>) -> String {
    let known: Vec<&str> = properties
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect();
    match nearest(key, known.iter().copied()) {
        Some(nearest) => format!("unknown key; did you mean `{nearest}`?"),
        None if known.is_empty() => "unknown key; no keys are expected here".to_owned(),
        None => format!("unknown key; the keys here are {}", known.join(", ")),
    }
}
