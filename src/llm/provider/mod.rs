//! The protocol of one provider: where requests go, what they contain and how answers are read.
//!
//! A provider makes and reads JSON; only `takes_native_calls`, `load` and `examine` ask the server,
//! and all requests go through [`Transport`]. So every rule about retries, refusals and limits
//! exists once.

mod endpoint; // address, model name and key as configured
mod chunks; // puts the chunks of a streamed chat completion together
mod carried; // what servers want back with a reply, besides its words
mod adaptations; // what a server has refused
mod role_messages; // the list of messages that OpenAI's and Ollama's protocols share
pub(crate) mod masked_messages; // messages without personal data
pub(crate) mod pictures_as_words; // messages for models that take no pictures
pub(crate) mod tool_names; // `server/tool` in the form of providers
mod windows; // the window of a model, as its server tells it
pub(crate) mod openai;
pub(crate) mod ollama;
pub(crate) mod anthropic;

use std::borrow::Cow;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::conversation::decode::{self, DONE};
use crate::conversation::repetition::Repetition;
use crate::conversation::{Message, ToolSpec, Usage, excerpt};
use crate::llm::config::model_config::ModelConfig;
use crate::llm::error::{LlmError, REFUSAL_HINT};
use crate::llm::transport::Transport;
use crate::llm::transport::event_stream::Framing;
use crate::llm::transport::server_info::ServerInfo;
use crate::plain::one_line;

/// A protocol of talking to a model.
#[async_trait]
pub(crate) trait Provider: Send + Sync {
    fn info(&self) -> &ServerInfo;
    /// Returns the address to which conversations are sent.
    fn chat_url(&self) -> String;
    /// Returns the address that turns texts into vectors, as OpenAI's protocol has it, if there is
    /// one.
    fn embeddings_url(&self) -> Option<String> {
        None
    }
    /// Returns the body of the request for `prompt`.
    fn body(&self, prompt: &Prompt<'_>) -> Value;
    /// Returns why the server broke its reply off, if it says so in a whole answer.
    fn broken_off(&self, _answer: &Value) -> Option<String> {
        None
    }
    /// Tells whether the server is asked to hold replies to the form of a prompt.
    fn holds_to_forms(&self) -> bool {
        true
    }
    /// Reads the server's answer; the error says what is missing.
    fn read(&self, answer: &Value) -> Result<Answer, String>;
    /// Returns how the events of a streamed reply are told apart.
    fn framing(&self) -> Framing;
    /// Adds an event of a streamed reply to the answer, which `read` then reads like a whole one;
    /// returns whether the reply is finished. The error says why no reply consists of it.
    fn add(&self, answer: &mut Value, event: Value) -> Result<bool, String>;
    /// Returns the text that the last events wrote on: that of the reply, or the arguments of a
    /// call.
    fn written_on<'answer>(&self, answer: &'answer mut Value) -> Option<&'answer mut String>;
    /// Ends an answer whose events are not all there, as the server does at the length limit.
    fn end_at_limit(&self, answer: &mut Value);
    /// Makes later requests omit what the server refused in `body`; returns whether there is
    /// something that can be left out or written otherwise.
    fn adapt(&self, _refusal: &str, _body: &Value) -> bool {
        false
    }
    /// Tells whether what the model thought before the last words of the user is of use to it.
    fn takes_old_thoughts(&self) -> bool {
        true
    }
    /// Asks whether the model takes native tool calls. If the server does not tell, they are tried.
    async fn takes_native_calls(&self, transport: &Transport) -> bool;
    /// Asks for the window that the model is loaded with, where only the server knows it.
    async fn loaded_window(&self, _transport: &Transport) -> LoadedWindow {
        LoadedWindow::Unknown
    }
    /// Has the server load the model, where it can be told to, and returns the window that the
    /// model is loaded with, where the server tells. Fails where the model cannot be used.
    async fn load(&self, transport: &Transport) -> Result<Option<u64>, LlmError> {
        self.examine(transport).await?;
        Ok(match self.loaded_window(transport).await {
            LoadedWindow::Loaded(window) => Some(window),
            LoadedWindow::NotLoaded | LoadedWindow::Unknown => None,
        })
    }
    /// Asks the server what it is and whether it has the model.
    async fn examine(&self, transport: &Transport) -> Result<String, LlmError>;
}

/// The window of a model that its server loaded as somebody else told it to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadedWindow {
    Loaded(u64),
    /// The first request loads the model.
    NotLoaded,
    Unknown,
}

/// A conversation to be sent.
pub(crate) struct Prompt<'chat> {
    pub(crate) messages: &'chat [Message],
    /// Tools to offer as native functions; `None` in JSON mode.
    pub(crate) tools: Option<&'chat [ToolSpec]>,
    /// JSON Schema that the server is to hold the reply to.
    pub(crate) form: Option<&'chat Value>,
    /// Set where the reply should differ from earlier ones: the last two were the same, or what
    /// came of them was thrown away. The number differs each time that the same messages are sent.
    pub(crate) variation: Option<usize>,
}

/// A tool as it is described to a provider.
pub(crate) struct NativeFunction<'chat> {
    /// The name in the form that providers accept.
    pub(crate) name: String,
    pub(crate) description: &'chat str,
    pub(crate) schema: Cow<'chat, Value>,
}

impl Prompt<'_> {
    /// Returns the functions to offer: the tools, and the pseudo tool by which the model says that
    /// it is done.
    pub(crate) fn functions(&self) -> Vec<NativeFunction<'_>> {
        let Some(tools) = self.tools else {
            return Vec::new();
        };
        let done = NativeFunction {
            name: DONE.to_owned(),
            description: "All of the work is finished.",
            schema: Cow::Owned(json!({
                "type": "object",
                "properties": { "comment": { "type": "string" } },
                "required": ["comment"],
            })),
        };
        let offered = tools.iter().map(|tool| NativeFunction {
            name: tool_names::on_the_wire(&tool.name),
            description: &tool.description,
            schema: Cow::Borrowed(&tool.schema),
        });
        offered.chain([done]).collect()
    }
}

/// A model's answer.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) calls: Vec<NativeCall>,
    /// Whether the reply ended at the length limit, or was ended for a repetition.
    pub(crate) cut: bool,
    pub(crate) repetition: Option<Repetition>,
    /// The words instead of a reply, where the model or a filter of its provider refused one;
    /// perhaps nothing.
    pub(crate) refusal: Option<String>,
    /// The part of the reply that the server wants back with it; null if there is none.
    pub(crate) carried: Value,
    /// About how many tokens the model thought before the reply, where the server shows thoughts.
    pub(crate) thoughts: Option<u64>,
    /// Why the server could not read the calls of the reply, of which nothing else is known then.
    pub(crate) unread: Option<String>,
    /// The server's count; not every server counts. It is never that of an empty prompt.
    pub(crate) counted: Option<TokenCount>,
}

/// Most characters of a refusal that people are told.
const LONGEST_REFUSAL: usize = 300;

impl Answer {
    /// Returns the answer, unless it is a refusal. That is final: asked the same, the model refuses
    /// again, and "your reply could not be read" would be a wrong account of it.
    pub(crate) fn unless_refused(self, info: &ServerInfo) -> Result<Self, LlmError> {
        let Some(refusal) = self.refusal else {
            return Ok(self);
        };
        let words: String = one_line(&refusal).chars().take(LONGEST_REFUSAL).collect();
        let words = words.trim_end_matches('.');
        let told = if words.is_empty() {
            String::new()
        } else {
            format!(": {words}")
        };
        Err(LlmError::Refused {
            what: format!(
                "the model '{}' at {} refused to reply, or a filter of its provider did{told}",
                info.model, info.address
            ),
            hint: REFUSAL_HINT.to_owned(),
        })
    }

    /// Returns what the answer to a prompt of about `needed` tokens has used: as the server counts,
    /// or else about that. A server counts at the end, and so not what it was kept from finishing.
    pub(crate) fn usage(&self, needed: u64) -> Usage {
        let repeated = self.repetition.as_ref().map_or(0, |repetition| {
            let times = u64::try_from(repetition.times).unwrap_or(u64::MAX);
            excerpt::estimated_tokens(&repetition.piece).saturating_mul(times)
        });
        let of_calls: u64 = self.calls.iter().map(NativeCall::estimated_tokens).sum();
        let once = excerpt::estimated_tokens(&self.text) + of_calls + self.thoughts.unwrap_or_default();
        let written = once.saturating_add(repeated);
        match self.counted {
            Some(counted) => Usage {
                input: counted.input,
                output: match self.repetition {
                    Some(_) => counted.output.max(written),
                    None => counted.output,
                },
                cached: counted.cached,
                cache_written: counted.cache_written,
            },
            None => Usage {
                input: needed,
                output: written,
                ..Usage::default()
            },
        }
    }
}

/// A native call as it came.
#[derive(Debug)]
pub(crate) struct NativeCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) args: Result<Map<String, Value>, String>,
    /// The part of the call that the server wants back with it; null if there is none.
    pub(crate) carried: Value,
}

impl NativeCall {
    /// Returns about how many tokens the call has. Arguments that could not be read are not known.
    fn estimated_tokens(&self) -> u64 {
        let args = match &self.args {
            Ok(args) => serde_json::to_string(args).unwrap_or_default(),
            Err(_) => String::new(),
        };
        excerpt::estimated_tokens(&self.name) + excerpt::estimated_tokens(&args)
    }
}

/// Tokens, as the server counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TokenCount {
    pub(crate) input: u64,
    pub(crate) output: u64,
    /// The part of `input` that came from the cache, and the part that was written into it.
    pub(crate) cached: u64,
    pub(crate) cache_written: u64,
}

impl TokenCount {
    /// Tells whether the server has counted: no prompt is empty, and some write zeros where they do
    /// not count.
    pub(crate) fn is_real(&self) -> bool {
        self.input > 0
    }
}

/// More than any model reads or writes at once: a server's count above it is cut to this, and sums
/// of counts never overflow.
const MOST_TOKENS: u64 = 1 << 40;

/// Returns the number of tokens in `value`, if there is one.
pub(crate) fn tokens(value: &Value) -> Option<u64> {
    value.as_u64().map(|tokens| tokens.min(MOST_TOKENS))
}

/// Settings of how a reply is made; what is not set is left to the server.
pub(crate) struct SamplingOptions {
    pub(crate) temperature: Option<f64>,
    pub(crate) seed: Option<u64>,
    pub(crate) reasoning_effort: Option<String>,
    /// Whether replies are streamed.
    pub(crate) stream: bool,
}

/// Lowest temperature for a reply that should differ from earlier ones.
const WARM: f64 = 0.8;

impl SamplingOptions {
    /// Returns the configured temperature, or a higher one where the reply should differ from
    /// earlier ones: at 0 it would be the same again. Where none is configured, none is sent: some
    /// models refuse it.
    pub(crate) fn temperature_for(&self, prompt: &Prompt<'_>) -> Option<f64> {
        let configured = self.temperature?;
        Some(if prompt.variation.is_some() {
            configured.max(WARM)
        } else {
            configured
        })
    }

    /// Returns the configured seed, or another one where the reply should differ from earlier ones:
    /// with the same seed it would be the same again at any temperature.
    pub(crate) fn seed_for(&self, prompt: &Prompt<'_>) -> Option<u64> {
        let variation = u64::try_from(prompt.variation.unwrap_or_default()).unwrap_or_default();
        self.seed.map(|seed| seed.saturating_add(variation))
    }

    pub(crate) fn of(config: &ModelConfig) -> Self {
        Self {
            temperature: config.options.temperature,
            seed: config.options.seed,
            reasoning_effort: config.options.reasoning_effort.clone(),
            stream: config.options.stream.unwrap_or(true),
        }
    }
}

/// Sets a field of a request, if there is a value for it.
pub(crate) fn set<T: Serialize>(body: &mut Value, key: &str, value: Option<&T>) {
    if let Some(value) = value {
        body[key] = json!(value);
    }
}

/// Sent where a provider requires some text and there is none.
pub(crate) const NO_TEXT: &str = "(no text)";

/// Returns the arguments as an object, whether the server wrote them as text or as JSON.
pub(crate) fn arguments(value: Option<&Value>) -> Result<Map<String, Value>, String> {
    match value {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(object)) => Ok(object.clone()),
        Some(Value::String(text)) => decode::arguments(text),
        Some(_) => Err("the arguments are not a JSON object".to_owned()),
    }
}
