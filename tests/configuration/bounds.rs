//! No number of the configuration can be so large that the program breaks off when it computes with
//! it.

use coding_agent::config::Config;
use serde_json::{Map, Value, json};

use crate::Given;

/// Puts a value into a document, at a place of the schema.
type Around<'a> = &'a dyn Fn(Value) -> Value;

/// Collects the places of all whole numbers, each with a document that has a huge one there.
fn numbers(root: &Value, schema: &Value, around: Around<'_>, path: &str, found: &mut Vec<(String, Value)>) {
    if let Some(reference) = schema["$ref"].as_str() {
        numbers(root, root.pointer(&reference[1..]).unwrap(), around, path, found);
    }
    for alternatives in ["anyOf", "oneOf"] {
        for choice in schema[alternatives].as_array().into_iter().flatten() {
            numbers(root, choice, around, path, found);
        }
    }
    let types = &schema["type"];
    if types == "integer" || types.as_array().is_some_and(|types| types.contains(&json!("integer"))) {
        found.push((path.to_owned(), around(json!(u64::MAX))));
    }
    let keyed = |key: &str, value: Value| around(Value::Object(Map::from_iter([(key.to_owned(), value)])));
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        let inside = |value: Value| keyed(key, value);
        numbers(root, property, &inside, &format!("{path}.{key}"), found);
    }
    let named = &schema["additionalProperties"];
    if named.is_object() {
        let inside = |value: Value| keyed("name", value);
        numbers(root, named, &inside, &format!("{path}.name"), found);
    }
    if schema["items"].is_object() {
        let inside = |value: Value| around(json!([value]));
        numbers(root, &schema["items"], &inside, &format!("{path}[]"), found);
    }
}

#[test]
fn every_number_has_a_bound_but_for_seeds() {
    let schema = Config::schema();
    let mut found = Vec::new();
    numbers(&schema, &schema, &|value| value, "", &mut found);
    assert!(found.len() > 80, "{found:?}");
    let is_bounded = |document: &Value| {
        let loaded = Given::file(&document.to_string()).load();
        loaded.is_err_and(|faults| faults.iter().any(|fault| fault.contains("must be at most ")))
    };
    found.retain(|(path, document)| path.rsplit('.').next() != Some("seed") && !is_bounded(document));
    assert!(found.is_empty(), "{found:?}");
}
