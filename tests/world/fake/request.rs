//! Reading what a client asks: query, page, and a body that is JSON or a form.

use axum::Json;
use axum::body::Bytes;
use axum::extract::FromRequest;
use axum::extract::FromRequestParts;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header;
use axum::http::request::Parts;
use axum::response::IntoResponse;
use axum::response::Response;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;
use url::form_urlencoded;

/// The query of a request, and the path it belongs to.
#[derive(Clone, Debug)]
pub struct Query {
    pub path: String,
    pairs: Vec<(String, String)>,
}

/// The body of a request, as a JSON object.
#[derive(Clone, Debug, Default)]
pub struct Fields(pub Map<String, Value>);

/// A page of a list.
#[derive(Clone, Debug)]
pub struct Page {
    pub items: Vec<Value>,
    pub number: usize,
    pub size: usize,
    pub last: usize,
    pub total: usize,
}

impl Query {
    pub fn value(&self, name: &str) -> Option<&str> {
        let found = self.pairs.iter().find(|(key, value)| key == name && !value.is_empty());
        found.map(|(_, value)| value.as_str())
    }

    /// Says whether a switch is on. Clients write it in many ways.
    pub fn is_on(&self, name: &str) -> Option<bool> {
        self.value(name)
            .map(|value| matches!(value.to_lowercase().as_str(), "true" | "1" | "t" | "on" | "yes"))
    }

    /// Returns the values of a list: `labels=a,b`, `labels[]=a&labels[]=b`.
    pub fn list(&self, name: &str) -> Vec<&str> {
        let listed = format!("{name}[]");
        let values = self.pairs.iter().filter(|(key, _)| *key == name || *key == listed);
        values
            .flat_map(|(_, value)| value.split(','))
            .filter(|value| !value.is_empty())
            .collect()
    }

    /// Cuts one page out of a list, in the manner of both forges: at most 100 items.
    pub fn page(&self, items: Vec<Value>, usual_size: usize) -> Page {
        let number = |name, usual| self.value(name).and_then(|text| text.parse().ok()).unwrap_or(usual);
        let size = number("per_page", usual_size).clamp(1, 100);
        let page = number("page", 1).max(1);
        let total = items.len();
        let last = total.div_ceil(size).max(1);
        let items = items.into_iter().skip((page - 1) * size).take(size).collect();
        Page {
            items,
            number: page,
            size,
            last,
            total,
        }
    }

    /// Returns the address of another page of the same list.
    pub fn address(&self, base: &str, page: usize) -> String {
        let others = self.pairs.iter().filter(|(key, _)| key != "page");
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(others).append_pair("page", &page.to_string());
        format!("{base}{}?{}", self.path, query.finish())
    }

    /// Returns the `Link` header of a page, if it has neighbours.
    pub fn links(&self, base: &str, page: &Page) -> Option<String> {
        let mut links = Vec::new();
        let mut link = |name, number| links.push(format!("<{}>; rel=\"{name}\"", self.address(base, number)));
        if page.number > 1 {
            link("prev", page.number - 1);
        }
        if page.number < page.last {
            link("next", page.number + 1);
            link("last", page.last);
        }
        if page.number > 1 {
            link("first", 1);
        }
        (!links.is_empty()).then(|| links.join(", "))
    }
}

impl<S: Sync> FromRequestParts<S> for Query {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let query = parts.uri.query().unwrap_or_default();
        let pairs = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        Ok(Self {
            path: parts.uri.path().to_owned(),
            pairs,
        })
    }
}

impl Fields {
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).and_then(Value::as_str)
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.0.get(name)? {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) => text.to_lowercase().parse().ok(),
            _ => None,
        }
    }

    /// Returns a list of texts: an array, or one text with commas.
    pub fn list(&self, name: &str) -> Option<Vec<String>> {
        match self.0.get(name)? {
            Value::Array(items) => Some(items.iter().map(plain).collect()),
            Value::String(text) if text.is_empty() => Some(Vec::new()),
            Value::String(text) => Some(text.split(',').map(|item| item.trim().to_owned()).collect()),
            other => Some(vec![plain(other)]),
        }
    }
}

impl<S: Send + Sync> FromRequest<S> for Fields {
    type Rejection = Response;

    async fn from_request(request: Request, state: &S) -> Result<Self, Response> {
        let query = request.uri().query().unwrap_or_default().to_owned();
        let kind = request.headers().get(header::CONTENT_TYPE).cloned();
        let is_form = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/x-www-form-urlencoded"));
        let body = Bytes::from_request(request, state)
            .await
            .map_err(IntoResponse::into_response)?;
        let mut fields = form(query.as_bytes());
        if is_form {
            fields.extend(form(&body));
        } else if !body.is_empty() {
            match serde_json::from_slice(&body) {
                Ok(Value::Object(object)) => fields.extend(object),
                Ok(other) => fields.extend([("labels".to_owned(), other)]),
                Err(_) => return Err(unreadable()),
            }
        }
        Ok(Self(fields))
    }
}

fn form(text: &[u8]) -> Map<String, Value> {
    let mut fields = Map::new();
    for (name, value) in form_urlencoded::parse(text) {
        let value = Value::String(value.into_owned());
        match name.strip_suffix("[]") {
            None => _ = fields.insert(name.into_owned(), value),
            Some(list) => {
                let list = fields.entry(list).or_insert_with(|| Value::Array(Vec::new()));
                if let Some(list) = list.as_array_mut() {
                    list.push(value);
                }
            }
        }
    }
    fields
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn unreadable() -> Response {
    (
        StatusCode::BAD_REQUEST,
        Json(json!({"message": "Problems parsing JSON"})),
    )
        .into_response()
}
