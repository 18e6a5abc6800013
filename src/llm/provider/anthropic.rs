//! Anthropic's messages API, with cache marks on the system prompt and the last two user turns: the
//! older of the two finds what the call before has cached, the newer caches what this call adds.

use async_trait::async_trait;
use reqwest::Url;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::conversation::{Message, ReplyOrigin, ToolCall, ToolResult, excerpt};
use crate::llm::config::model_config::ModelConfig;
use crate::llm::error::LlmError;
use crate::llm::provider::{
    Answer, NO_TEXT, NativeCall, Prompt, Provider, SamplingOptions, TokenCount, arguments, set, tokens,
};
use crate::llm::provider::{chunks, endpoint, tool_names};
use crate::llm::transport::Transport;
use crate::llm::transport::event_stream::Framing;
use crate::llm::transport::server_info::ServerInfo;
use crate::picture::Picture;

const VERSION: &str = "2023-06-01";
/// The API refuses a request that does not limit the reply.
const MAX_TOKENS: u64 = 8_192;
/// Most blocks of one streamed reply: looking for one among them takes time.
const MOST_BLOCKS: usize = 1_024;

/// Anthropic's API.
pub(crate) struct AnthropicServer {
    info: ServerInfo,
    max_tokens: u64,
    options: SamplingOptions,
}

/// Returns the configured server.
pub(crate) fn server(config: &ModelConfig) -> Result<(Url, AnthropicServer), LlmError> {
    let section = &config.section;
    let (url, written) = endpoint::parse(config)?;
    let address = written.strip_suffix("/v1").unwrap_or(&written).to_owned();
    let key_name = HeaderName::from_static("x-api-key");
    let mut headers = endpoint::key_header(key_name, "", config)?;
    headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
    headers.extend(endpoint::headers(config)?);
    let max_tokens = config.max_tokens.unwrap_or(MAX_TOKENS);
    let server = AnthropicServer {
        info: ServerInfo {
            name: "anthropic",
            section: section.clone(),
            model: endpoint::model_name(config)?,
            window: config.context_length,
            longest_reply: max_tokens,
            headers,
            key_hint: format!("check {section}.api_key and what the key may do"),
            address_hint: format!("check {section}.base_url ({address})"),
            start_hint: config.start_hint(),
            model_hint: format!("choose a model of your account in {section}.model ({address}/v1/models lists them)"),
            window_hint: format!("lower {section}.context_length to the model's window"),
            address,
        },
        max_tokens,
        options: SamplingOptions::of(config),
    };
    Ok((url, server))
}

#[async_trait]
impl Provider for AnthropicServer {
    fn info(&self) -> &ServerInfo {
        &self.info
    }

    fn chat_url(&self) -> String {
        format!("{}/v1/messages", self.info.address)
    }

    fn body(&self, prompt: &Prompt<'_>) -> Value {
        let system: Vec<_> = prompt
            .messages
            .iter()
            .filter_map(|message| match message {
                Message::System { text } if !text.trim().is_empty() => Some(text.as_str()),
                _ => None,
            })
            .collect();
        let mut body = json!({
            "model": self.info.model,
            "max_tokens": self.max_tokens,
            "messages": messages(prompt),
        });
        if !system.is_empty() {
            let mut block = text_block(&system.join("\n\n"));
            mark(&mut block);
            body["system"] = json!([block]);
        }
        if self.options.stream {
            body["stream"] = json!(true);
        }
        let functions = prompt.functions();
        if !functions.is_empty() {
            let listed = functions
                .iter()
                .map(|tool| json!({ "name": tool.name, "description": tool.description, "input_schema": tool.schema }));
            body["tools"] = listed.collect();
        }
        set(&mut body, "temperature", self.options.temperature_for(prompt).as_ref());
        if let Some(effort) = &self.options.reasoning_effort {
            body["output_config"] = json!({ "effort": effort });
        }
        body
    }

    fn read(&self, answer: &Value) -> Result<Answer, String> {
        let blocks = answer["content"].as_array().ok_or("the answer holds no content")?;
        let mut text = Vec::new();
        let mut calls = Vec::new();
        let mut thoughts = Vec::new();
        for block in blocks {
            match block["type"].as_str() {
                Some("text") => text.extend(block["text"].as_str()),
                Some("tool_use") => calls.push(NativeCall {
                    id: block["id"].as_str().unwrap_or_default().to_owned(),
                    name: block["name"].as_str().unwrap_or_default().to_owned(),
                    args: arguments(block.get("input")),
                    carried: Value::Null,
                }),
                Some("thinking" | "redacted_thinking") => {
                    let place = if text.is_empty() && calls.is_empty() {
                        0
                    } else {
                        1 + calls.len()
                    };
                    thoughts.push(json!({ "place": place, "block": block }));
                }
                // Blocks of later versions are not used.
                _ => {}
            }
        }
        let usage = &answer["usage"];
        let count = |key: &str| tokens(&usage[key]).unwrap_or_default();
        let cached = count("cache_read_input_tokens");
        let cache_written = count("cache_creation_input_tokens");
        let is_thought = !thoughts.is_empty();
        let texts = thoughts
            .iter()
            .filter_map(|thought| thought["block"]["thinking"].as_str());
        let thought_tokens: u64 = texts.map(excerpt::estimated_tokens).sum();
        // Only beside calls they are wanted back; of a reply that was cut while the model thought,
        // the last one is not signed and would be refused.
        let carried = if is_thought && !calls.is_empty() {
            Value::Array(thoughts)
        } else {
            Value::Null
        };
        let text = text.join("\n");
        let explanation = answer["stop_details"]["explanation"].as_str();
        let is_refused = answer["stop_reason"] == "refusal";
        Ok(Answer {
            refusal: is_refused.then(|| explanation.unwrap_or(&text).to_owned()),
            text,
            calls,
            cut: answer["stop_reason"] == "max_tokens" || answer["stop_reason"] == "model_context_window_exceeded",
            repetition: None,
            carried,
            thoughts: is_thought.then_some(thought_tokens),
            unread: None,
            counted: tokens(&usage["input_tokens"])
                .map(|fresh| TokenCount {
                    input: fresh + cached + cache_written,
                    output: count("output_tokens"),
                    cached,
                    cache_written,
                })
                .filter(TokenCount::is_real),
        })
    }

    fn framing(&self) -> Framing {
        Framing::ServerSentEvents
    }

    fn add(&self, answer: &mut Value, mut event: Value) -> Result<bool, String> {
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                *answer = Some(chunks::taken(&mut event, "message"))
                    .filter(Value::is_object)
                    .unwrap_or_default();
            }
            "content_block_start" => {
                let block = chunks::taken(&mut event, "content_block");
                match answer["content"].as_array_mut() {
                    Some(blocks) if blocks.len() >= MOST_BLOCKS => {
                        return Err(format!("the reply holds more than {MOST_BLOCKS} blocks"));
                    }
                    Some(blocks) => blocks.push(json!({ "index": event["index"], "block": block })),
                    None => answer["content"] = json!([{ "index": event["index"], "block": block }]),
                }
            }
            "content_block_delta" => {
                let blocks = answer["content"].as_array_mut();
                let is_it = |entry: &&mut Value| entry["index"] == event["index"];
                let entry = blocks.and_then(|blocks| blocks.iter_mut().rev().find(is_it));
                let entry = entry.ok_or("a piece of a block that was not begun")?;
                add_piece(chunks::field(entry, "block"), &event["delta"]);
            }
            "message_delta" => {
                if let Value::Object(delta) = chunks::taken(&mut event, "delta") {
                    for (key, value) in delta {
                        answer[&key] = value;
                    }
                }
                if let Value::Object(usage) = chunks::taken(&mut event, "usage") {
                    for (key, value) in usage.into_iter().filter(|(_, value)| !value.is_null()) {
                        *chunks::field(&mut answer["usage"], &key) = value;
                    }
                }
            }
            "message_stop" => {
                take_blocks_out(answer);
                return Ok(true);
            }
            // Signs of life, and events of later versions.
            _ => {}
        }
        Ok(false)
    }

    fn written_on<'answer>(&self, answer: &'answer mut Value) -> Option<&'answer mut String> {
        let block = answer
            .get_mut("content")?
            .as_array_mut()?
            .last_mut()?
            .get_mut("block")?;
        let key = match block["type"].as_str() {
            Some("tool_use") => "input",
            Some("thinking") => "thinking",
            _ => "text",
        };
        chunks::text(block.get_mut(key)?)
    }

    fn end_at_limit(&self, answer: &mut Value) {
        take_blocks_out(answer);
        *chunks::field(answer, "stop_reason") = json!("max_tokens");
    }

    fn holds_to_forms(&self) -> bool {
        false
    }

    async fn takes_native_calls(&self, _transport: &Transport) -> bool {
        true
    }

    async fn examine(&self, transport: &Transport) -> Result<String, LlmError> {
        let info = &self.info;
        let url = format!("{}/v1/models/{}", info.address, info.model);
        let model = transport.ask(info, &url, None).await?;
        let name = model["display_name"].as_str().unwrap_or(&info.model);
        Ok(format!(
            "anthropic at {} has {name} ({}), window {} as configured",
            info.address, info.model, info.window
        ))
    }
}

/// Takes the blocks out of the entries by which their pieces were gathered.
fn take_blocks_out(answer: &mut Value) {
    let entries = answer.get_mut("content").and_then(Value::as_array_mut);
    for entry in entries.into_iter().flatten() {
        *entry = chunks::taken(entry, "block");
    }
}

/// Adds a piece to a block. The arguments of a call come as pieces of a text; one without any has
/// them in its beginning.
fn add_piece(block: &mut Value, delta: &Value) {
    for key in ["text", "thinking", "signature"] {
        if let Some(text) = delta[key].as_str() {
            chunks::append(chunks::field(block, key), text);
        }
    }
    if let Some(json) = delta["partial_json"].as_str().filter(|json| !json.is_empty()) {
        chunks::append(chunks::field(block, "input"), json);
    }
}

/// Returns the turns, which must alternate; the results of calls come first in a turn.
fn messages(prompt: &Prompt<'_>) -> Vec<Value> {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in prompt.messages {
        let (role, blocks) = match message {
            Message::System { .. } => continue,
            Message::User { text, pictures } => {
                let mut blocks: Vec<Value> = pictures.iter().map(picture_block).collect();
                blocks.push(text_block(text));
                ("user", blocks)
            }
            Message::Summary { text, .. } => ("user", vec![text_block(text)]),
            Message::Assistant { text, calls, origin } => ("assistant", said(text, calls, origin.as_ref())),
            Message::Results { results } => ("user", results.iter().map(result_block).collect()),
        };
        match turns.last_mut() {
            Some((last, gathered)) if *last == role => gathered.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    let last_blocks = turns.iter_mut().rev().filter(|(role, _)| *role == "user").take(2);
    for block in last_blocks.filter_map(|(_, blocks)| blocks.last_mut()) {
        mark(block);
    }
    turns
        .into_iter()
        .map(|(role, content)| json!({ "role": role, "content": content }))
        .collect()
}

/// Returns the blocks of a reply, with its thoughts unchanged and where they stood: before the
/// words, behind them, or behind a call. Anything else the API refuses.
fn said(text: &str, calls: &[ToolCall], origin: Option<&ReplyOrigin>) -> Vec<Value> {
    let thoughts = origin.and_then(|origin| origin.carried.as_array());
    let at = |place: usize| {
        let thoughts = thoughts.into_iter().flatten();
        let here = thoughts.filter(move |thought| thought["place"] == place);
        here.map(|thought| thought["block"].clone())
    };
    let mut blocks: Vec<Value> = at(0).collect();
    if calls.is_empty() || !text.trim().is_empty() {
        blocks.push(text_block(text));
    }
    blocks.extend(at(1));
    for (number, call) in calls.iter().enumerate() {
        let name = tool_names::on_the_wire(&call.tool);
        blocks.push(json!({ "type": "tool_use", "id": call.id, "name": name, "input": call.args }));
        blocks.extend(at(number + 2));
    }
    blocks
}

fn text_block(text: &str) -> Value {
    let text = if text.trim().is_empty() { NO_TEXT } else { text };
    json!({ "type": "text", "text": text })
}

/// Returns the result of a call. The API refuses an error without words.
fn result_block(result: &ToolResult) -> Value {
    let is_wordless = result.is_error && result.output.trim().is_empty();
    let output = if is_wordless { NO_TEXT } else { &result.output };
    json!({
        "type": "tool_result",
        "tool_use_id": result.call.id,
        "content": output,
        "is_error": result.is_error,
    })
}

fn picture_block(picture: &Picture) -> Value {
    let source = json!({ "type": "base64", "media_type": picture.kind.as_str(), "data": picture.base64() });
    json!({ "type": "image", "source": source })
}

fn mark(block: &mut Value) {
    block["cache_control"] = json!({ "type": "ephemeral" });
}
