//! OpenAI's chat completions API, which LM Studio and most other servers offer as well.

use async_trait::async_trait;
use reqwest::Url;
use reqwest::header::AUTHORIZATION;
use serde_json::{Value, json};

use crate::conversation::{ToolCall, ToolResult};
use crate::llm::config::model_config::ModelConfig;
use crate::llm::error::LlmError;
use crate::llm::provider::adaptations::Adaptations;
use crate::llm::provider::{
    Answer, LoadedWindow, NativeCall, Prompt, Provider, SamplingOptions, TokenCount, arguments, set, tokens,
};
use crate::llm::provider::{carried, chunks, endpoint, role_messages, tool_names, windows};
use crate::llm::transport::Transport;
use crate::llm::transport::event_stream::Framing;
use crate::llm::transport::server_info::ServerInfo;
use crate::picture::Picture;

/// A server of this protocol.
pub(crate) struct OpenAiServer {
    info: ServerInfo,
    max_tokens: Option<u64>,
    options: SamplingOptions,
    kind: Kind,
    adaptations: Adaptations,
}

/// The maker of the server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    OpenAi,
    /// It lists models by other names than those under which they are deployed.
    Azure,
    LmStudio,
    Other,
}

/// Returns the provider for OpenAI, or for a server that speaks its protocol.
pub(crate) fn openai(config: &ModelConfig) -> Result<(Url, OpenAiServer), LlmError> {
    let section = &config.section;
    let (url, address) = endpoint::parse(config)?;
    let kind = match url.host_str().unwrap_or_default() {
        host if host == "api.openai.com" || host.ends_with(".api.openai.com") => Kind::OpenAi,
        host if host.ends_with(".azure.com") => Kind::Azure,
        _ => Kind::Other,
    };
    let mut headers = endpoint::key_header(AUTHORIZATION, "Bearer ", config)?;
    headers.extend(endpoint::headers(config)?);
    let server = OpenAiServer {
        info: ServerInfo {
            name: "openai",
            section: section.clone(),
            model: endpoint::model_name(config)?,
            window: config.context_length,
            longest_reply: config.max_tokens.unwrap_or_default(),
            headers,
            key_hint: format!("check {section}.api_key and what the key may do"),
            address_hint: format!("check {section}.base_url ({address}); most servers want /v1 at its end"),
            start_hint: config.start_hint(),
            model_hint: format!("choose a model the server has in {section}.model ({address}/models lists them)"),
            window_hint: format!(
                "start the server with a larger window, or lower {section}.context_length to the one it has"
            ),
            address,
        },
        max_tokens: config.max_tokens,
        options: SamplingOptions::of(config),
        kind,
        adaptations: Adaptations::default(),
    };
    Ok((url, server))
}

/// Returns the provider for LM Studio.
pub(crate) fn lmstudio(config: &ModelConfig) -> Result<(Url, OpenAiServer), LlmError> {
    let section = &config.section;
    let (url, mut address) = endpoint::parse(config)?;
    if !address.ends_with("/v1") {
        address.push_str("/v1");
    }
    let model = endpoint::model_name(config)?;
    let server = OpenAiServer {
        info: ServerInfo {
            name: "lmstudio",
            section: section.clone(),
            window: config.context_length,
            longest_reply: 0,
            headers: endpoint::headers(config)?,
            key_hint: "this server wants a key; configure it as provider `openai`".to_owned(),
            address_hint: format!("check {section}.base_url ({address}) and that LM Studio's server is started"),
            start_hint: config.start_hint(),
            model_hint: format!("load the model in LM Studio, or run `lms get {model}`"),
            window_hint: format!(
                "load the model in LM Studio with a context length of {}, or lower {section}.context_length",
                config.context_length
            ),
            model,
            address,
        },
        max_tokens: None,
        options: SamplingOptions::of(config),
        kind: Kind::LmStudio,
        adaptations: Adaptations::default(),
    };
    Ok((url, server))
}

#[async_trait]
impl Provider for OpenAiServer {
    fn info(&self) -> &ServerInfo {
        &self.info
    }

    fn chat_url(&self) -> String {
        format!("{}/chat/completions", self.info.address)
    }

    fn embeddings_url(&self) -> Option<String> {
        Some(format!("{}/embeddings", self.info.address))
    }

    fn body(&self, prompt: &Prompt<'_>) -> Value {
        let call = |call: &ToolCall| {
            let arguments = serde_json::to_string(&call.args).unwrap_or_default();
            json!({
                "id": call.id,
                "type": "function",
                "function": { "name": tool_names::on_the_wire(&call.tool), "arguments": arguments },
            })
        };
        let result =
            |result: &ToolResult| json!({ "role": "tool", "tool_call_id": result.call.id, "content": result.output });
        let mut messages = role_messages::messages(prompt, call, result, show);
        carried::write_signatures(&mut messages, prompt.messages);
        carried::write_thoughts(&mut messages, prompt.messages, self.adaptations.thoughts());
        if self.adaptations.wants_reply_behind_results() {
            messages = role_messages::with_reply_behind_results(messages);
        }
        let stream = self.options.stream && self.adaptations.may_stream();
        let mut body = json!({ "model": self.info.model, "messages": messages, "stream": stream });
        if stream && self.adaptations.takes_stream_options() {
            body["stream_options"] = json!({ "include_usage": true });
        }
        if let Some(tools) = role_messages::functions(prompt) {
            body["tools"] = tools;
        }
        if let Some(form) = prompt.form {
            body["response_format"] =
                json!({ "type": "json_schema", "json_schema": { "name": "reply", "schema": form } });
        }
        set(&mut body, self.adaptations.longest_reply(), self.max_tokens.as_ref());
        let SamplingOptions {
            temperature: _,
            seed: _,
            reasoning_effort,
            stream: _,
        } = &self.options;
        set(&mut body, "temperature", self.options.temperature_for(prompt).as_ref());
        set(&mut body, "seed", self.options.seed_for(prompt).as_ref());
        let effort = self
            .adaptations
            .effort(reasoning_effort.as_deref(), prompt.tools.is_some());
        set(&mut body, "reasoning_effort", effort.as_ref());
        body
    }

    fn broken_off(&self, answer: &Value) -> Option<String> {
        let choice = &answer["choices"][0];
        // Whoever could not read its calls is not asked the same again.
        chunks::failure(choice).filter(|_| chunks::unread(choice).is_none())
    }

    fn read(&self, answer: &Value) -> Result<Answer, String> {
        if let Some(error) = answer.get("error").filter(|error| !error.is_null()) {
            // Some routers report the failure of the server behind them inside a success.
            let said = error.get("message").unwrap_or(error);
            return Err(format!("it answered with an error inside a success: {said}"));
        }
        if let Some(reason) = self.broken_off(answer) {
            return Err(reason);
        }
        let choice = &answer["choices"][0];
        let unread = chunks::unread(choice);
        let message = choice.get("message").ok_or("the answer holds no choices[0].message")?;
        let refused = message["refusal"].as_str().filter(|words| !words.trim().is_empty());
        let said = chunks::text_of(&message["content"]);
        let has_calls = message["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty());
        let is_refused = chunks::is_filtered(choice) || (refused.is_some() && said.is_empty() && !has_calls);
        let refused = refused.unwrap_or_default();
        let calls = message["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|call| NativeCall {
                id: call["id"].as_str().unwrap_or_default().to_owned(),
                name: call["function"]["name"].as_str().unwrap_or_default().to_owned(),
                args: arguments(call["function"].get("arguments")),
                carried: carried::of_call(call),
            });
        let usage = &answer["usage"];
        let carried = carried::of_message(message);
        Ok(Answer {
            text: if said.is_empty() { refused.to_owned() } else { said },
            calls: calls.collect(),
            cut: chunks::is_cut(choice),
            repetition: None,
            refusal: is_refused.then(|| refused.to_owned()),
            thoughts: carried::estimated_tokens(&carried),
            carried,
            unread,
            counted: tokens(&usage["prompt_tokens"])
                .map(|input| TokenCount {
                    input,
                    output: written(usage, input),
                    cached: tokens(&usage["prompt_tokens_details"]["cached_tokens"]).unwrap_or_default(),
                    cache_written: 0,
                })
                .filter(TokenCount::is_real),
        })
    }

    fn framing(&self) -> Framing {
        Framing::ServerSentEvents
    }

    fn add(&self, answer: &mut Value, event: Value) -> Result<bool, String> {
        chunks::add(answer, event)
    }

    fn written_on<'answer>(&self, answer: &'answer mut Value) -> Option<&'answer mut String> {
        chunks::written_on(answer)
    }

    fn end_at_limit(&self, answer: &mut Value) {
        chunks::end_at_limit(answer);
    }

    fn adapt(&self, refusal: &str, body: &Value) -> bool {
        self.adaptations.learn(refusal, body)
    }

    async fn takes_native_calls(&self, _transport: &Transport) -> bool {
        true
    }

    async fn loaded_window(&self, transport: &Transport) -> LoadedWindow {
        match self.kind {
            Kind::LmStudio => self.window_of_lm_studio(transport).await,
            Kind::OpenAi | Kind::Azure | Kind::Other => LoadedWindow::Unknown,
        }
    }

    async fn load(&self, transport: &Transport) -> Result<Option<u64>, LlmError> {
        let info = &self.info;
        let list = transport.ask(info, &format!("{}/models", info.address), None).await?;
        let models: Vec<&Value> = list["data"].as_array().into_iter().flatten().collect();
        let found = models.iter().find(|entry| entry["id"] == info.model.as_str());
        let found = match found {
            Some(found) => found,
            None => self.without_the_model(&models)?.0,
        };
        Ok(match self.loaded_window(transport).await {
            LoadedWindow::Loaded(window) => Some(window),
            LoadedWindow::NotLoaded => None,
            LoadedWindow::Unknown => windows::told(found),
        })
    }

    async fn examine(&self, transport: &Transport) -> Result<String, LlmError> {
        let info = &self.info;
        let list = transport.ask(info, &format!("{}/models", info.address), None).await?;
        let models: Vec<&Value> = list["data"].as_array().into_iter().flatten().collect();
        let found = models.iter().find(|entry| entry["id"] == info.model.as_str());
        let (found, has) = match found {
            Some(found) => (*found, format!("{} at {} has {}", info.name, info.address, info.model)),
            None => self.without_the_model(&models)?,
        };
        let window = match self.loaded_window(transport).await {
            LoadedWindow::Loaded(window) => Some(window),
            LoadedWindow::NotLoaded => {
                return Ok(format!("{has}, not loaded; how large its window is shows when it is"));
            }
            LoadedWindow::Unknown => windows::told(found),
        };
        match window {
            Some(window) if window < info.window => Err(LlmError::Refused {
                what: format!(
                    "{has} with a window of {window} tokens, and {} are configured",
                    info.window
                ),
                hint: info.window_hint.clone(),
            }),
            Some(window) => Ok(format!("{has}, window {window}, {} used", info.window)),
            None => Ok(format!(
                "{has}, window {} as configured (the server does not tell)",
                info.window
            )),
        }
    }
}

impl OpenAiServer {
    /// Decides on a model that is not listed: a server with a single model (such as llama.cpp's)
    /// serves it under any name; others need the right one.
    fn without_the_model<'models>(&self, models: &[&'models Value]) -> Result<(&'models Value, String), LlmError> {
        let info = &self.info;
        let ids: Vec<_> = models.iter().filter_map(|entry| entry["id"].as_str()).take(8).collect();
        let what = format!(
            "the {} server at {} does not list the model '{}' (it has: {})",
            info.name,
            info.address,
            info.model,
            ids.join(", ")
        );
        match models {
            [only] if self.kind == Kind::Other => {
                Ok((*only, format!("{what}; servers of a single model take any name")))
            }
            [first, ..] if self.kind == Kind::Azure => {
                Ok((*first, format!("{what}; a deployment has a name of its own")))
            }
            _ => Err(LlmError::Refused {
                what,
                hint: info.model_hint.clone(),
            }),
        }
    }

    /// Asks LM Studio's own interface, the newer or the older one, for the window that the model is
    /// loaded with.
    async fn window_of_lm_studio(&self, transport: &Transport) -> LoadedWindow {
        let root = self.info.address.strip_suffix("/v1").unwrap_or(&self.info.address);
        for version in ["v1", "v0"] {
            let url = format!("{root}/api/{version}/models");
            let list = match transport.ask(&self.info, &url, None).await {
                Ok(list) => list,
                // An older version does not have it.
                Err(LlmError::Refused { .. }) => continue,
                // It may tell when it can be reached again.
                Err(_) => return LoadedWindow::NotLoaded,
            };
            let models = list["models"].as_array().or_else(|| list["data"].as_array());
            let is_it = |entry: &&Value| {
                let instances = entry["loaded_instances"].as_array().into_iter().flatten();
                let ids = instances.map(|instance| &instance["id"]);
                ids.chain([&entry["key"], &entry["id"]])
                    .any(|id| *id == self.info.model.as_str())
            };
            if let Some(entry) = models.into_iter().flatten().find(is_it) {
                return windows::of_lm_studio(entry, &self.info.model);
            }
        }
        LoadedWindow::Unknown
    }
}

/// Returns how many tokens the server counts for a reply to `input` of them. Gemini and xAI count
/// thoughts in the sum alone.
fn written(usage: &Value, input: u64) -> u64 {
    let said = tokens(&usage["completion_tokens"]).unwrap_or_default();
    let all = tokens(&usage["total_tokens"]).unwrap_or_default();
    said.max(all.saturating_sub(input))
}

/// Adds pictures to a message of the user, whose text becomes one of several parts.
fn show(message: &mut Value, pictures: &[&Picture]) {
    let text = json!({ "type": "text", "text": message["content"] });
    let shown = pictures.iter().map(|picture| {
        let url = format!("data:{};base64,{}", picture.kind.as_str(), picture.base64());
        json!({ "type": "image_url", "image_url": { "url": url } })
    });
    message["content"] = [text].into_iter().chain(shown).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::ToolSpec;
    use crate::llm::config::{Config, ProviderName};

    fn at(provider: ProviderName, address: &str) -> ModelConfig {
        let config = Config {
            provider,
            ..Config::default()
        };
        ModelConfig {
            address: address.to_owned(),
            ..config.own_model()
        }
    }

    #[test]
    fn the_longest_reply_is_named_as_the_server_wants_it_and_not_as_its_host_is_called() {
        let prompt = Prompt {
            messages: &[],
            tools: None,
            form: None,
            variation: None,
        };
        for base_url in ["https://api.openai.com/v1/", "http://127.0.0.1:8080/v1"] {
            let config = ModelConfig {
                max_tokens: Some(500),
                ..at(ProviderName::Openai, base_url)
            };
            let (_, server) = openai(&config).unwrap();
            let limit = || {
                let body = server.body(&prompt);
                ["max_tokens", "max_completion_tokens"].map(|key| body[key].as_u64())
            };
            let older = server.body(&prompt);
            assert_eq!(limit(), [Some(500), None]);
            for refused in [&older, &older] {
                assert!(server.adapt("Use 'max_completion_tokens' instead of 'max_tokens'.", refused));
                assert_eq!(limit(), [None, Some(500)]);
            }
            let newer = server.body(&prompt);
            assert!(server.adapt("Unrecognized request argument supplied: max_completion_tokens", &newer));
            assert_eq!(limit(), [Some(500), None]);
            assert!(!server.adapt("max_tokens is too large: 500", &older));
        }
    }

    #[test]
    fn a_model_that_calls_only_without_a_stream_is_asked_without() {
        let (_, server) = openai(&at(ProviderName::Openai, "http://127.0.0.1:8080/v1")).unwrap();
        let words = "This model doesn't support tool use in streaming mode.";
        assert!(server.adapt(words, &json!({ "stream": true, "tools": [] })));
        assert!(!server.adapt(words, &json!({ "stream": false, "tools": [] })));
    }

    #[test]
    fn an_effort_is_left_alone_that_is_configured_or_that_the_server_says_nothing_of() {
        let (_, server) = openai(&at(ProviderName::Openai, "http://127.0.0.1:8080/v1")).unwrap();
        let refused = "Function tools with reasoning_effort are not supported for gpt in /v1/chat/completions.";
        let elsewhere = format!("{refused} Please use /v1/responses instead.");
        let without = format!("{refused} To use function tools, use /v1/responses or set reasoning_effort to 'none'.");
        let tools = json!([{ "type": "function" }]);
        assert!(!server.adapt(&elsewhere, &json!({ "tools": tools })));
        assert!(!server.adapt(&without, &json!({ "tools": tools, "reasoning_effort": "high" })));
        assert!(!server.adapt(&without, &json!({ "messages": [] })));
        assert!(server.adapt(&without, &json!({ "tools": tools })));
        let effort = |tools: Option<&[ToolSpec]>| {
            let prompt = Prompt {
                messages: &[],
                tools,
                form: None,
                variation: None,
            };
            server.body(&prompt)["reasoning_effort"].clone()
        };
        assert_eq!([effort(Some(&[])), effort(None)], [json!("none"), Value::Null]);
    }

    #[test]
    fn lm_studio_is_found_with_and_without_the_version_in_its_address() {
        for base_url in ["http://127.0.0.1:1234", "http://127.0.0.1:1234/v1/"] {
            let (_, server) = lmstudio(&at(ProviderName::Lmstudio, base_url)).unwrap();
            assert_eq!(server.chat_url(), "http://127.0.0.1:1234/v1/chat/completions");
        }
    }

    #[test]
    fn a_model_that_is_not_listed_is_forgiven_only_where_the_name_does_not_matter() {
        let (_, server) = openai(&at(ProviderName::Openai, "http://127.0.0.1:8080/v1")).unwrap();
        let (one, other) = (json!({ "id": "a.gguf" }), json!({ "id": "b" }));
        assert_eq!(server.without_the_model(&[&one]).unwrap().0, &one);
        let error = server.without_the_model(&[&one, &other]).unwrap_err().to_string();
        assert!(
            error.contains("does not list the model 'gpt-5-mini' (it has: a.gguf, b); choose"),
            "{error}"
        );
    }

    #[test]
    fn azure_lists_models_by_other_names_than_their_deployments() {
        let address = "https://acme.openai.azure.com/openai/v1";
        let (_, server) = openai(&at(ProviderName::Openai, address)).unwrap();
        let (one, other) = (json!({ "id": "gpt-5-mini-2025-08-07" }), json!({ "id": "o4" }));
        let (found, told) = server.without_the_model(&[&one, &other]).unwrap();
        assert_eq!(found, &one);
        assert!(told.ends_with("; a deployment has a name of its own"), "{told}");
        // Where nothing is deployed, no name is right.
        let error = server.without_the_model(&[]).unwrap_err().to_string();
        assert!(
            error.contains("does not list the model 'gpt-5-mini' (it has: )"),
            "{error}"
        );
        // Other hosts that only end in a similar way are no part of Azure.
        let (_, other_server) = openai(&at(ProviderName::Openai, "https://notazure.com/openai/v1")).unwrap();
        assert!(other_server.without_the_model(&[&one, &other]).is_err());
    }

    #[test]
    fn thoughts_that_a_server_counts_in_the_sum_alone_are_part_of_the_reply() {
        let (_, server) = openai(&at(ProviderName::Openai, "https://api.openai.com/v1")).unwrap();
        let output = |usage: Value| {
            let answer = json!({ "choices": [{ "message": { "content": "Hello" } }], "usage": usage });
            server.read(&answer).unwrap().counted.unwrap().output
        };
        for (usage, expected) in [
            // Gemini, with thoughts.
            (
                json!({ "prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 105 }),
                96,
            ),
            (
                json!({ "prompt_tokens": 9, "completion_tokens": 96, "total_tokens": 105 }),
                96,
            ),
            (json!({ "prompt_tokens": 9, "completion_tokens": 3 }), 3),
            (
                json!({ "prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 0 }),
                3,
            ),
            (
                json!({ "prompt_tokens": 9, "completion_tokens": 3, "total_tokens": u64::MAX }),
                (1 << 40) - 9,
            ),
        ] {
            assert_eq!(output(usage.clone()), expected, "{usage}");
        }
    }

    #[test]
    fn a_refusal_and_reasoning_are_read_as_what_they_are() {
        let (_, server) = openai(&at(ProviderName::Openai, "https://api.openai.com/v1")).unwrap();
        let answer = json!({ "choices": [{ "message": {
            "role": "assistant", "content": null, "refusal": "I cannot.", "reasoning_content": "Hm.",
        } }] });
        let read = server.read(&answer).unwrap();
        assert_eq!(
            (read.text.as_str(), read.refusal.as_deref()),
            ("I cannot.", Some("I cannot."))
        );
        let filtered = json!({ "choices": [{ "message": { "content": "Hel" }, "finish_reason": "content_filter" }] });
        assert_eq!(server.read(&filtered).unwrap().refusal.as_deref(), Some(""));
        let said =
            json!({ "choices": [{ "message": { "content": "Hello", "refusal": "" }, "finish_reason": "stop" }] });
        assert_eq!(server.read(&said).unwrap().refusal, None);
        let parts = json!([
            { "type": "thinking", "thinking": [{ "type": "text", "text": "Hm." }] },
            { "type": "text", "text": "Hel" },
            { "type": "text", "text": "lo" },
        ]);
        let in_parts = json!({ "choices": [{ "message": { "role": "assistant", "content": parts } }] });
        assert_eq!(server.read(&in_parts).unwrap().text, "Hello");
        assert!(server.read(&json!({ "choices": [] })).is_err());
    }
}
