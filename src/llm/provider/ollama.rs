//! Ollama's native API: its OpenAI endpoint ignores the window and how long the model stays loaded.

use async_trait::async_trait;
use reqwest::Url;
use serde_json::{Value, json};

use crate::conversation::{ToolCall, ToolResult};
use crate::llm::config::model_config::ModelConfig;
use crate::llm::error::LlmError;
use crate::llm::provider::adaptations::Adaptations;
use crate::llm::provider::{Answer, NativeCall, Prompt, Provider, SamplingOptions, TokenCount, arguments, set, tokens};
use crate::llm::provider::{carried, chunks, endpoint, role_messages, tool_names};
use crate::llm::transport::Transport;
use crate::llm::transport::event_stream::Framing;
use crate::llm::transport::server_info::ServerInfo;
use crate::picture::Picture;

/// An Ollama server.
pub(crate) struct OllamaServer {
    info: ServerInfo,
    keep_alive: Value,
    options: SamplingOptions,
    adaptations: Adaptations,
}

/// Returns the configured server.
pub(crate) fn server(config: &ModelConfig) -> Result<(Url, OllamaServer), LlmError> {
    let section = &config.section;
    let (url, address) = endpoint::parse(config)?;
    let model = endpoint::model_name(config)?;
    let server = OllamaServer {
        info: ServerInfo {
            name: "ollama",
            section: section.clone(),
            window: config.context_length,
            longest_reply: 0,
            headers: endpoint::headers(config)?,
            key_hint: "this server wants a key; reach Ollama directly, or configure it as provider `openai`".to_owned(),
            address_hint: format!("check {section}.endpoint ({address}): it is the address without /api or /v1"),
            start_hint: config.start_hint(),
            model_hint: format!("run `ollama pull {model}`, or choose another model in {section}.model"),
            window_hint: format!(
                "lower {section}.context_length to what the model and the memory allow, or raise the limit on \
                the server (OLLAMA_CONTEXT_LENGTH; `ollama ps` shows the window in use)"
            ),
            model,
            address,
        },
        keep_alive: config.keep_alive.for_server(),
        options: SamplingOptions::of(config),
        adaptations: Adaptations::default(),
    };
    Ok((url, server))
}

/// Converts the setting: some models think as much as a word says, others only do so or not, and
/// these take no text.
fn think(effort: &str) -> Value {
    effort
        .parse::<bool>()
        .map_or_else(|_| json!(effort), |is_wanted| json!(is_wanted))
}

/// Adds pictures to a message of the user.
fn show(message: &mut Value, pictures: &[&Picture]) {
    message["images"] = pictures.iter().map(|picture| picture.base64()).collect();
}

#[async_trait]
impl Provider for OllamaServer {
    fn info(&self) -> &ServerInfo {
        &self.info
    }

    fn chat_url(&self) -> String {
        format!("{}/api/chat", self.info.address)
    }

    fn embeddings_url(&self) -> Option<String> {
        Some(format!("{}/v1/embeddings", self.info.address))
    }

    fn body(&self, prompt: &Prompt<'_>) -> Value {
        let call = |call: &ToolCall| json!({ "id": call.id, "function": { "name": tool_names::on_the_wire(&call.tool), "arguments": call.args } });
        let result = |result: &ToolResult| {
            json!({
                "role": "tool",
                "tool_name": tool_names::on_the_wire(&result.call.tool),
                "tool_call_id": result.call.id,
                "content": result.output,
            })
        };
        let mut messages = role_messages::messages(prompt, call, result, show);
        carried::write_thinking(&mut messages, prompt.messages);
        if self.adaptations.wants_reply_behind_results() {
            messages = role_messages::with_reply_behind_results(messages);
        }
        let mut body = json!({
            "model": self.info.model,
            "messages": messages,
            "stream": self.options.stream,
            "keep_alive": self.keep_alive,
            "options": { "num_ctx": self.info.window },
            // Newer servers then report that the prompt does not fit, instead of cutting it; older
            // ones ignore both.
            "truncate": false,
            "shift": false,
        });
        if let Some(tools) = role_messages::functions(prompt) {
            body["tools"] = tools;
        }
        if let Some(form) = prompt.form {
            body["format"] = form.clone();
        }
        set(
            &mut body["options"],
            "temperature",
            self.options.temperature_for(prompt).as_ref(),
        );
        set(&mut body["options"], "seed", self.options.seed_for(prompt).as_ref());
        let effort = self.options.reasoning_effort.as_deref().map(think);
        set(&mut body, "think", effort.as_ref());
        body
    }

    fn read(&self, answer: &Value) -> Result<Answer, String> {
        let message = answer.get("message").ok_or("the answer holds no message")?;
        let calls = message["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|call| NativeCall {
                id: call["id"].as_str().unwrap_or_default().to_owned(),
                name: call["function"]["name"].as_str().unwrap_or_default().to_owned(),
                args: arguments(call["function"].get("arguments")),
                carried: Value::Null,
            });
        let carried = carried::of_ollamas_message(message);
        Ok(Answer {
            text: message["content"].as_str().unwrap_or_default().to_owned(),
            calls: calls.collect(),
            cut: answer["done_reason"] == "length",
            repetition: None,
            refusal: None,
            thoughts: carried::estimated_tokens(&carried),
            carried,
            unread: None,
            // Older servers omit the count when the whole prompt was cached.
            counted: tokens(&answer["prompt_eval_count"])
                .map(|input| TokenCount {
                    input,
                    output: tokens(&answer["eval_count"]).unwrap_or_default(),
                    cached: tokens(&answer["prompt_eval_cached_count"]).unwrap_or_default(),
                    cache_written: 0,
                })
                .filter(TokenCount::is_real),
        })
    }

    fn framing(&self) -> Framing {
        Framing::Lines
    }

    fn add(&self, answer: &mut Value, event: Value) -> Result<bool, String> {
        let Value::Object(mut event) = event else {
            return Err("a line of the reply is not an object".to_owned());
        };
        let mut message = event.remove("message").unwrap_or_default();
        let gathered = &mut answer["message"];
        for field in ["content", "thinking"] {
            if let Some(text) = message[field].as_str() {
                chunks::append(&mut gathered[field], text);
            }
        }
        if let Value::Array(calls) = chunks::taken(&mut message, "tool_calls") {
            match &mut gathered["tool_calls"] {
                Value::Array(gathered) => gathered.extend(calls),
                place => *place = Value::Array(calls),
            }
        }
        // The counts stand in the last line.
        for (key, value) in event {
            answer[&key] = value;
        }
        Ok(answer["done"] == true)
    }

    /// Calls come whole: only the text grows, and the thoughts before it.
    fn written_on<'answer>(&self, answer: &'answer mut Value) -> Option<&'answer mut String> {
        let message = answer.get_mut("message")?;
        let is_begun = message["content"].as_str().is_some_and(|text| !text.is_empty());
        chunks::text(message.get_mut(if is_begun { "content" } else { "thinking" })?)
    }

    fn end_at_limit(&self, answer: &mut Value) {
        *chunks::field(answer, "done") = json!(true);
        *chunks::field(answer, "done_reason") = json!("length");
    }

    fn adapt(&self, refusal: &str, body: &Value) -> bool {
        self.adaptations.learn(refusal, body)
    }

    /// The templates of its models write those behind the last words of the user.
    fn takes_old_thoughts(&self) -> bool {
        false
    }

    async fn takes_native_calls(&self, transport: &Transport) -> bool {
        match self
            .show(transport)
            .await
            .ok()
            .as_ref()
            .and_then(|shown| shown["capabilities"].as_array())
        {
            Some(capabilities) => capabilities.iter().any(|capability| capability == "tools"),
            None => true,
        }
    }

    /// A request without a prompt only loads the model.
    async fn load(&self, transport: &Transport) -> Result<Option<u64>, LlmError> {
        let info = &self.info;
        let request = json!({
            "model": info.model,
            "stream": false,
            "keep_alive": self.keep_alive,
            "options": { "num_ctx": info.window },
        });
        let url = format!("{}/api/generate", info.address);
        transport.ask_patiently(info, &url, &request).await?;
        let loaded = transport.ask(info, &format!("{}/api/ps", info.address), None).await?;
        let mut models = loaded["models"].as_array().into_iter().flatten();
        let own = models.find(|entry| {
            [&entry["name"], &entry["model"]]
                .into_iter()
                .any(|name| self.is_called(name))
        });
        // Older servers do not tell the window.
        Ok(own.and_then(|entry| tokens(&entry["context_length"])))
    }

    async fn examine(&self, transport: &Transport) -> Result<String, LlmError> {
        let info = &self.info;
        let version = transport
            .ask(info, &format!("{}/api/version", info.address), None)
            .await?;
        let shown = self.show(transport).await?;
        let window = shown["model_info"].as_object().and_then(|info| {
            let mut entries = info.iter();
            entries.find_map(|(key, value)| value.as_u64().filter(|_| key.ends_with(".context_length")))
        });
        let has = format!(
            "ollama {} at {} has {}",
            version["version"].as_str().unwrap_or("of an unknown version"),
            info.address,
            info.model
        );
        match window {
            Some(window) if window < info.window => Err(LlmError::Refused {
                what: format!(
                    "{has}, whose window is {window} tokens, and {} are configured",
                    info.window
                ),
                hint: format!("set {}.context_length to {window} or less", info.section),
            }),
            Some(window) => Ok(format!("{has}, window {window}, {} used", info.window)),
            None => Ok(format!(
                "{has}, window {} as configured (the server does not tell)",
                info.window
            )),
        }
    }
}

impl OllamaServer {
    /// Tells whether the server calls the model by this name: a name without a tag is that of
    /// `latest`.
    fn is_called(&self, name: &Value) -> bool {
        let own = self.info.model.as_str();
        name.as_str()
            .is_some_and(|name| name == own || name.strip_suffix(":latest") == Some(own))
    }

    async fn show(&self, transport: &Transport) -> Result<Value, LlmError> {
        let url = format!("{}/api/show", self.info.address);
        transport
            .ask(&self.info, &url, Some(&json!({ "model": self.info.model })))
            .await
    }
}
