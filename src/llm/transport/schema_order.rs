//! Writes a request so that the fields of a schema come in the order in which it requires them.
//!
//! Servers that hold a model to a schema make it write the fields in the schema's order. This
//! program sorts the fields of JSON objects by name, so the model would have to give the arguments
//! of a tool before it may name the tool, and its reason last.

use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::{Map, Value};

/// A value whose schemas are written in order; everything else is written unchanged.
pub(crate) struct OrderedSchemas<'value>(pub(crate) &'value Value);

/// The `properties` of a schema, to be written with the required ones first.
struct Properties<'value> {
    fields: &'value Map<String, Value>,
    required: &'value [Value],
}

impl Serialize for OrderedSchemas<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (name, value) in fields {
                    match (name.as_str(), value, fields.get("required")) {
                        ("properties", Value::Object(fields), Some(Value::Array(required))) => {
                            map.serialize_entry(name, &Properties { fields, required })?;
                        }
                        _ => map.serialize_entry(name, &OrderedSchemas(value))?,
                    }
                }
                map.end()
            }
            Value::Array(values) => {
                let mut list = serializer.serialize_seq(Some(values.len()))?;
                for value in values {
                    list.serialize_element(&OrderedSchemas(value))?;
                }
                list.end()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => self.0.serialize(serializer),
        }
    }
}

impl Serialize for Properties<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields: Vec<(&String, &Value)> = self.fields.iter().collect();
        let place = |name: &str| self.required.iter().position(|required| required == name);
        fields.sort_by_key(|(name, _)| place(name).unwrap_or(self.required.len()));
        let mut map = serializer.serialize_map(Some(fields.len()))?;
        for (name, value) in fields {
            map.serialize_entry(name, &OrderedSchemas(value))?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn required_fields_stand_first_and_nothing_is_lost() {
        let body = json!({ "b": [1, null, true], "a": { "anyOf": [{
            "type": "object",
            "properties": { "args": { "type": "object" }, "comment": {}, "odd": {}, "tool": { "properties": {} } },
            "required": ["comment", "tool", "args", "nowhere"],
        }] } });
        let written = serde_json::to_string(&OrderedSchemas(&body)).unwrap();
        assert_eq!(
            written,
            r#"{"a":{"anyOf":[{"properties":{"comment":{},"tool":{"properties":{}},"args":{"type":"object"},"odd":{}},"required":["comment","tool","args","nowhere"],"type":"object"}]},"b":[1,null,true]}"#
        );
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), body);
    }
}
