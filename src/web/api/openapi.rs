//! The OpenAPI document, made of the table of endpoints and of the types that they take and give.

use axum::Json;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::{Answers, ENDPOINTS, Endpoint};
use crate::web::acting::ACTIONS;

pub(super) async fn show() -> Json<Value> {
    Json(document())
}

/// Returns the document (OpenAPI 3.1).
fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.meta_schema = None;
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for endpoint in &ENDPOINTS {
        let mut operation = json!({
            "summary": endpoint.summary,
            "operationId": operation_id(endpoint),
            "parameters": parameters(endpoint),
            "responses": responses(endpoint.answer, &mut generator),
        });
        if let Some(described) = endpoint.body {
            let schema = described(&mut generator);
            operation["requestBody"] = json!({ "content": { "application/json": { "schema": schema } } });
        }
        let method = if endpoint.is_post { "post" } else { "get" };
        paths.insert(endpoint.path.to_owned(), json!({ method: operation }));
    }
    for (path, summary) in [
        ("/health", "Whether the process answers; wants no token"),
        ("/ready", "Whether the store answers; wants no token"),
    ] {
        let answer = json!({ "summary": summary, "operationId": path[1..], "security": [],
            "responses": { "200": { "description": "It does" }, "503": { "description": "It does not" } } });
        paths.insert(path.to_owned(), json!({ "get": answer }));
    }
    let mut schemas = generator.take_definitions(true);
    schemas.insert("Problem".to_owned(), problem());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "coding-agent",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What is worked on, what happened, and what to do about it.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
        },
        "security": [{ "token": [] }],
    })
}

fn responses(answer: Answers, generator: &mut SchemaGenerator) -> Value {
    let content = match answer {
        Answers::Json(described) | Answers::Created(described) => {
            json!({ "application/json": { "schema": described(generator) } })
        }
        Answers::Text(kind) => json!({ kind: { "schema": { "type": "string" } } }),
    };
    let mut responses = json!({
        "200": { "description": "What was asked for", "content": content },
        "default": {
            "description": "Why not, as a problem document (RFC 9457)",
            "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
        },
    });
    if let Answers::Created(_) = answer {
        let location = json!({ "description": "Its address", "schema": { "type": "string" } });
        for (status, description) in [
            ("200", "It was made for an earlier request"),
            ("201", "It was made for this request"),
        ] {
            responses[status] = json!({
                "description": description,
                "headers": { "Location": location },
                "content": content,
            });
        }
    }
    responses
}

fn parameters(endpoint: &Endpoint) -> Vec<Value> {
    let in_path = endpoint
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = in_path.map(|name| {
        let schema = if name == "action" {
            json!({ "type": "string", "enum": ACTIONS })
        } else {
            json!({ "type": "string" })
        };
        json!({ "name": name, "in": "path", "required": true, "schema": schema })
    });
    let in_query = endpoint.parameters.iter().map(|(name, description, is_number)| {
        let kind = if *is_number { "integer" } else { "string" };
        json!({ "name": name, "in": "query", "description": description, "schema": { "type": kind } })
    });
    let in_header = (endpoint.path == "/api/tasks").then(|| {
        json!({ "name": "Idempotency-Key", "in": "header", "schema": { "type": "string" },
            "description": "Up to 200 characters; the same key opens one issue." })
    });
    in_path.chain(in_query).chain(in_header).collect()
}

fn operation_id(endpoint: &Endpoint) -> String {
    let words = endpoint.path.split(|sign: char| !sign.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty() && *word != "api").collect();
    let verb = if endpoint.is_post { "do" } else { "get" };
    format!("{verb}_{}", words.join("_"))
}

fn problem() -> Value {
    json!({
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "properties": {
            "type": { "type": "string" },
            "title": { "type": "string" },
            "status": { "type": "integer" },
            "detail": { "type": "string", "description": "What is wrong, and how to mend it." },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_is_in_the_document_and_every_reference_leads_somewhere() {
        let document = document();
        for endpoint in &ENDPOINTS {
            let method = if endpoint.is_post { "post" } else { "get" };
            assert!(
                document["paths"][endpoint.path][method].is_object(),
                "{}",
                endpoint.path
            );
        }
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#").skip(1) {
            let pointer = reference.split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer}");
        }
    }
}
