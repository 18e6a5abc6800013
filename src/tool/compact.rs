//! Removes from a schema what tells a model nothing: generators write the dialect on top, and over
//! each field its own name as a title.

use serde_json::Value;

/// Annotations of a schema that neither allow nor forbid anything, and that no model needs.
const NOTES: [&str; 4] = ["$schema", "$id", "$comment", "title"];
/// Keywords whose values are schemas: one, several in a list, several by name.
const ONE: [&str; 4] = ["items", "additionalProperties", "not", "contains"];
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
const BY_NAME: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// Returns `schema` without these annotations. Other values, such as a default, stay unchanged.
pub(super) fn compact(mut schema: Value) -> Value {
    strip(&mut schema);
    schema
}

fn strip(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    for note in NOTES {
        // A value of another type is not the annotation of this name.
        if fields.get(note).is_some_and(Value::is_string) {
            fields.remove(note);
        }
    }
    for name in ONE {
        fields.get_mut(name).map(strip);
    }
    for name in LISTS {
        let list = fields.get_mut(name).and_then(Value::as_array_mut);
        list.into_iter().flatten().for_each(strip);
    }
    for name in BY_NAME {
        let named = fields.get_mut(name).and_then(Value::as_object_mut);
        named.into_iter().flat_map(|named| named.values_mut()).for_each(strip);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn titles_go_and_fields_that_are_called_so_stay() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "OpenTicket",
            "type": "object",
            "properties": {
                "title": { "title": "Title", "type": "string", "description": "What it is about." },
                "labels": { "anyOf": [{ "title": "Labels", "type": "array", "items": { "title": "Label" } }, { "type": "null" }] },
                "with": { "default": { "title": "kept" } },
            },
            "required": ["title"],
            "$defs": { "Label": { "title": "Label", "enum": ["bug"] } },
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "title": { "type": "string", "description": "What it is about." },
                "labels": { "anyOf": [{ "type": "array", "items": {} }, { "type": "null" }] },
                "with": { "default": { "title": "kept" } },
            },
            "required": ["title"],
            "$defs": { "Label": { "enum": ["bug"] } },
        });
        assert_eq!(compact(schema), expected);
    }
}
