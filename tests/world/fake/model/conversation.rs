//! A request in one form, whichever protocol it came in.

use axum::http::HeaderMap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The protocols the model speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    ChatCompletions,
    Ollama,
    Messages,
}

/// A request for a reply.
#[derive(Clone, Debug)]
pub struct Request {
    pub protocol: Protocol,
    pub model: String,
    pub messages: Vec<Said>,
    /// The part that the model gets to read: the end of what was said, where the server cuts.
    pub seen: String,
    /// The names of the native tools, as the request lists them.
    pub offered: Vec<String>,
    pub user_agent: String,
    pub headers: HeaderMap,
    pub body: Value,
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    System(String),
    User(String),
    Assistant(String, Vec<Call>),
    /// The answer to the native call with this id.
    Result(String, String),
    /// Something else, described.
    Unknown(String),
}

/// A native call in the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub id: String,
    pub name: String,
    pub arguments: Value,
}

impl Protocol {
    pub fn of(path: &str) -> Option<Self> {
        match path {
            "/v1/chat/completions" => Some(Self::ChatCompletions),
            "/api/chat" => Some(Self::Ollama),
            "/v1/messages" => Some(Self::Messages),
            _ => None,
        }
    }
}

impl Request {
    pub fn read(protocol: Protocol, headers: &HeaderMap, body: Value) -> Self {
        let messages = match protocol {
            Protocol::Messages => blocks(&body),
            Protocol::ChatCompletions | Protocol::Ollama => roles(&body),
        };
        let tools = body["tools"].as_array().into_iter().flatten();
        let offered = tools
            .filter_map(|tool| match protocol {
                Protocol::Messages => tool["name"].as_str(),
                Protocol::ChatCompletions | Protocol::Ollama => tool["function"]["name"].as_str(),
            })
            .map(str::to_owned)
            .collect();
        let agent = headers.get("user-agent").and_then(|agent| agent.to_str().ok());
        let request = Self {
            protocol,
            model: text(&body["model"]),
            messages,
            seen: String::new(),
            offered,
            user_agent: agent.unwrap_or_default().to_owned(),
            headers: headers.clone(),
            body,
        };
        Self {
            seen: request.text(),
            ..request
        }
    }

    pub fn system(&self) -> String {
        self.messages
            .iter()
            .find_map(|said| match said {
                Said::System(text) => Some(text.clone()),
                _ => None,
            })
            .unwrap_or_default()
    }

    pub fn first_user_message(&self) -> String {
        self.user_messages().next().unwrap_or_default().to_owned()
    }

    pub fn last_user_message(&self) -> String {
        self.user_messages().last().unwrap_or_default().to_owned()
    }

    fn user_messages(&self) -> impl Iterator<Item = &str> {
        self.messages.iter().filter_map(|said| match said {
            Said::User(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Returns everything that was said, as one text.
    pub fn text(&self) -> String {
        let texts: Vec<_> = self
            .messages
            .iter()
            .map(|said| match said {
                Said::System(text) | Said::User(text) | Said::Result(_, text) | Said::Unknown(text) => text.clone(),
                Said::Assistant(text, calls) => {
                    let calls: Vec<_> = calls
                        .iter()
                        .map(|call| format!("{} {}", call.name, call.arguments))
                        .collect();
                    format!("{text}\n{}", calls.join("\n"))
                }
            })
            .collect();
        texts.join("\n")
    }

    /// Returns the pictures of the request, in their order: media type, where the protocol names it,
    /// and bytes.
    pub fn pictures(&self) -> Vec<(String, Vec<u8>)> {
        let messages = self.body["messages"].as_array().into_iter().flatten();
        let mut found = Vec::new();
        for message in messages {
            let parts = message["content"].as_array().into_iter().flatten();
            for part in parts {
                match part["type"].as_str() {
                    Some("image_url") => {
                        let url = text(&part["image_url"]["url"]);
                        let (kind, data) = url
                            .strip_prefix("data:")
                            .and_then(|url| url.split_once(";base64,"))
                            .unwrap_or_default();
                        found.push((kind.to_owned(), decoded(data)));
                    }
                    Some("image") => {
                        let source = &part["source"];
                        found.push((text(&source["media_type"]), decoded(&text(&source["data"]))));
                    }
                    _ => {}
                }
            }
            let images = message["images"].as_array().into_iter().flatten();
            found.extend(images.map(|image| (String::new(), decoded(&text(image)))));
        }
        found
    }

    /// Returns the name under which the request offers `server/tool`: with the odd signs replaced,
    /// and perhaps with a check sum at its end.
    pub fn offered_name(&self, tool: &str) -> Option<&str> {
        let wanted = words(tool);
        let fits = |name: &&str| match words(name).strip_prefix(&wanted) {
            Some("") => true,
            Some(rest) => rest.len() == 9 && rest[1..].bytes().all(|byte| byte.is_ascii_hexdigit()),
            None => false,
        };
        let offered = || self.offered.iter().map(String::as_str);
        // The program's own tools go without their server's name, and the shell has a short one.
        let alone = match tool.split_once('/') {
            Some(("workspace", "execute_command")) => Some("bash"),
            Some(("workspace" | "agent" | "repository", alone)) => Some(alone),
            _ => None,
        };
        offered()
            .find(fits)
            .or_else(|| offered().find(|name| Some(*name) == alone))
    }

    pub fn can_call(&self, tool: &str) -> bool {
        self.offered.is_empty() || self.offered_name(tool).is_some()
    }
}

fn decoded(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap_or_default()
}

fn words(name: &str) -> String {
    let words: Vec<_> = name
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    words.join("_")
}

fn roles(body: &Value) -> Vec<Said> {
    let messages = body["messages"].as_array().into_iter().flatten();
    messages
        .map(|message| match message["role"].as_str() {
            Some("system") => Said::System(text(&message["content"])),
            Some("user") => Said::User(text(&message["content"])),
            Some("tool") => Said::Result(text(&message["tool_call_id"]), text(&message["content"])),
            Some("assistant") => {
                let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| Call {
                    id: text(&call["id"]),
                    name: text(&call["function"]["name"]),
                    arguments: match &call["function"]["arguments"] {
                        // Chat completions write them as a text, Ollama as an object.
                        Value::String(text) => serde_json::from_str(text).unwrap_or_default(),
                        other => other.clone(),
                    },
                });
                Said::Assistant(text(&message["content"]), calls.collect())
            }
            _ => Said::Unknown(message.to_string()),
        })
        .collect()
}

fn blocks(body: &Value) -> Vec<Said> {
    let mut said = Vec::new();
    if !body["system"].is_null() {
        said.push(Said::System(text(&body["system"])));
    }
    for message in body["messages"].as_array().into_iter().flatten() {
        let own = [message["content"].clone()];
        let blocks = message["content"].as_array().map_or(own.as_slice(), Vec::as_slice);
        let words: Vec<_> = blocks
            .iter()
            .filter(|block| block.is_string() || block["type"] == "text")
            .map(text)
            .collect();
        let words = words.join("\n\n");
        if message["role"] == "assistant" {
            let calls = blocks
                .iter()
                .filter(|block| block["type"] == "tool_use")
                .map(|block| Call {
                    id: text(&block["id"]),
                    name: text(&block["name"]),
                    arguments: block["input"].clone(),
                });
            said.push(Said::Assistant(words, calls.collect()));
            continue;
        }
        let results = blocks.iter().filter(|block| block["type"] == "tool_result");
        said.extend(results.map(|block| Said::Result(text(&block["tool_use_id"]), text(&block["content"]))));
        if !words.is_empty() {
            said.push(Said::User(words));
        }
    }
    said
}

/// Returns the text of a string, or of text blocks.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks
                .iter()
                .filter(|block| block.is_string() || block.get("text").is_some());
            texts.map(text).collect::<Vec<_>>().join("\n\n")
        }
        Value::Object(block) => block.get("text").map(text).unwrap_or_default(),
        _ => String::new(),
    }
}
