//! The way to one model: its protocol, its server and the settings that all conversations share.

use std::borrow::Cow;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::Url;
use serde_json::{Map, Value};
use tokio::sync::watch;

use crate::conversation::Message;
use crate::llm::config::function_calling::FunctionCalling;
use crate::llm::config::model_config::ModelConfig;
use crate::llm::config::{Config, ProviderName};
use crate::llm::error::LlmError;
use crate::llm::local_only::LocalOnlyRules;
use crate::llm::local_only::private_network::PrivateNetworkResolver;
use crate::llm::provider::{
    Answer, LoadedWindow, Prompt, Provider, anthropic, masked_messages, ollama, openai, pictures_as_words,
};
use crate::llm::transport::concurrency_limit::ConcurrencyLimit;
use crate::llm::transport::event_stream::Framing;
use crate::llm::transport::streaming::Received;
use crate::llm::transport::{ReplyRequest, Transport};

/// Time for which a server that could not be reached is not asked, if another model can be.
const OUT_OF_ORDER: Duration = Duration::from_mins(1);

/// The way to one model.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says one thing of the model, in any combination"
)]
pub(super) struct Connection {
    /// The model's name in the configuration.
    pub(super) name: String,
    /// The time-out of the model's own section.
    pub(super) own_timeout: Option<Duration>,
    pub(super) provider: Arc<dyn Provider>,
    pub(super) transport: Transport,
    pub(super) function_calling: FunctionCalling,
    pub(super) constrains_replies: bool,
    pub(super) limit: ConcurrencyLimit,
    /// Whether its server is on this machine or in a private network, as far as the configured
    /// address tells.
    pub(super) is_near: bool,
    /// Whether personal data is masked in what is sent.
    pub(super) masks_personal_data: bool,
    /// Whether pictures are sent. Nobody can mask personal data in them.
    pub(super) takes_pictures: bool,
    /// All settings that decide on the replies besides the prompt; `None` where the same prompt may
    /// give another reply each time.
    pub(super) reproducible: Option<String>,
    /// Fields that are merged into each request for a reply.
    extra_body: Arc<Map<String, Value>>,
    /// The connection that is used while this one cannot be.
    pub(super) fallback: Option<Arc<Self>>,
    failed_at: Arc<Mutex<Option<Instant>>>,
    is_window_known: Arc<AtomicBool>,
}

/// A request for a reply to `prompt`.
pub(super) struct PromptRequest<'chat> {
    pub(super) connection: &'chat Connection,
    pub(super) prompt: Prompt<'chat>,
    /// Counts what has arrived of the reply.
    pub(super) arrived: &'chat watch::Sender<u64>,
}

impl ReplyRequest for PromptRequest<'_> {
    type Reply = Answer;

    fn body(&self) -> Value {
        // What came of an attempt before does not count.
        self.arrived.send_replace(0);
        let mut body = self.connection.provider.body(&self.prompt);
        merge(&mut body, &self.connection.extra_body);
        body
    }

    fn broken_off(&self, answer: &Value) -> Option<String> {
        self.connection.provider.broken_off(answer)
    }

    fn read(&self, received: Received) -> Result<Answer, String> {
        let answer = self.connection.provider.read(&received.answer)?;
        Ok(Answer {
            repetition: received.repetition,
            ..answer
        })
    }

    fn unread(&self, reason: String) -> Answer {
        Answer {
            unread: Some(reason),
            ..Answer::default()
        }
    }

    fn framing(&self) -> Framing {
        self.connection.provider.framing()
    }

    fn add(&self, answer: &mut Value, event: Value) -> Result<bool, String> {
        self.connection.provider.add(answer, event)
    }

    fn written_on<'answer>(&self, answer: &'answer mut Value) -> Option<&'answer mut String> {
        self.connection.provider.written_on(answer)
    }

    fn end_at_limit(&self, answer: &mut Value) {
        self.connection.provider.end_at_limit(answer);
    }

    fn adapt(&self, refusal: &str, body: &Value) -> bool {
        // What the operator adds is sent whatever the server refuses.
        self.connection.provider.adapt(refusal, body) && self.body() != *body
    }

    fn arrived(&self) {
        self.arrived.send_modify(|count| *count += 1);
    }
}

impl Connection {
    /// Returns the connection to `model`, which `fallback` replaces when it cannot be reached. Does
    /// not touch the network.
    pub(super) fn new(config: &Config, model: &ModelConfig, fallback: Option<Arc<Self>>) -> Result<Self, LlmError> {
        let (url, provider): (Url, Arc<dyn Provider>) = match model.provider {
            ProviderName::Ollama => {
                let (url, server) = ollama::server(model)?;
                (url, Arc::new(server))
            }
            ProviderName::Lmstudio => {
                let (url, server) = openai::lmstudio(model)?;
                (url, Arc::new(server))
            }
            ProviderName::Openai => {
                let (url, server) = openai::openai(model)?;
                (url, Arc::new(server))
            }
            ProviderName::Anthropic => {
                let (url, server) = anthropic::server(model)?;
                (url, Arc::new(server))
            }
        };
        let is_near = LocalOnlyRules::new(config).is_near(&url);
        let headers = model.options.headers.values();
        let secrets = model.api_key.iter().chain(headers).cloned().collect();
        Ok(Self {
            name: model.name.clone(),
            own_timeout: model.options.timeout_seconds.map(Duration::from_secs),
            provider,
            transport: Transport::new(
                &url,
                (model.timeout, Duration::from_secs(config.reply_seconds)),
                secrets,
                model.options.trust.clone(),
            ),
            function_calling: config.function_calling,
            constrains_replies: config.constrained_replies,
            limit: ConcurrencyLimit::new(model.parallel_requests),
            is_near,
            masks_personal_data: config.masks_personal_data && !is_near,
            takes_pictures: model.options.pictures && (is_near || !config.masks_personal_data),
            reproducible: reproducible(model, config.constrained_replies),
            extra_body: Arc::new(model.options.extra_body.clone()),
            fallback,
            failed_at: Arc::default(),
            is_window_known: Arc::default(),
        })
    }

    /// Returns the same connection, restricted to the servers that `resolver` allows, and its
    /// fallback likewise.
    pub(super) fn in_private_network(&self, resolver: PrivateNetworkResolver) -> Self {
        let fallback = self.fallback.as_ref();
        Self {
            name: self.name.clone(),
            own_timeout: self.own_timeout,
            provider: Arc::clone(&self.provider),
            fallback: fallback.map(|fallback| Arc::new(fallback.in_private_network(resolver.clone()))),
            transport: self.transport.in_private_network(resolver),
            function_calling: self.function_calling,
            constrains_replies: self.constrains_replies,
            limit: self.limit.clone(),
            is_near: self.is_near,
            masks_personal_data: self.masks_personal_data,
            takes_pictures: self.takes_pictures,
            reproducible: self.reproducible.clone(),
            extra_body: Arc::clone(&self.extra_body),
            failed_at: Arc::clone(&self.failed_at),
            is_window_known: Arc::clone(&self.is_window_known),
        }
    }

    /// Returns messages as the model may get them: without pictures where it takes none, without
    /// thoughts that its server would leave out, and with personal data masked where that is
    /// wanted.
    pub(super) fn fitted<'chat>(&self, messages: Cow<'chat, [Message]>) -> Cow<'chat, [Message]> {
        let messages = if self.takes_pictures {
            messages
        } else {
            pictures_as_words::render(messages)
        };
        let messages = self.with_thoughts_in_use(messages);
        if self.masks_personal_data {
            Cow::Owned(masked_messages::mask(&messages))
        } else {
            messages
        }
    }

    /// Returns messages without thoughts that the server would leave out: what is not sent takes no
    /// room.
    pub(super) fn with_thoughts_in_use<'chat>(&self, messages: Cow<'chat, [Message]>) -> Cow<'chat, [Message]> {
        if self.provider.takes_old_thoughts() {
            messages
        } else {
            without_old_thoughts(messages)
        }
    }

    /// Refuses a model that its server has loaded with a smaller window than the configured one.
    /// The server is asked until it knows the window, which it does when the model is loaded.
    pub(super) async fn check_window(&self) -> Result<(), LlmError> {
        if self.is_window_known.load(Relaxed) {
            return Ok(());
        }
        let info = self.provider.info();
        let loaded = self.provider.loaded_window(&self.transport).await;
        match loaded {
            LoadedWindow::Loaded(window) if window < info.window => {
                return Err(LlmError::Refused {
                    what: format!(
                        "{} at {} has loaded {} with a window of {window} tokens, and {} are configured",
                        info.name, info.address, info.model, info.window
                    ),
                    hint: info.window_hint.clone(),
                });
            }
            LoadedWindow::Loaded(_) | LoadedWindow::Unknown => self.is_window_known.store(true, Relaxed),
            LoadedWindow::NotLoaded => {}
        }
        Ok(())
    }

    /// Returns the connection to use in place of this one after `error`: one that has room for the
    /// conversation, as `has_room` tells.
    pub(super) fn instead_after(&self, error: &LlmError, has_room: impl Fn(&Self) -> bool) -> Option<&Arc<Self>> {
        // A connection without fallback is never marked out of order.
        self.fallback.as_ref()?;
        match error {
            LlmError::Unreachable { .. } | LlmError::RateLimited { .. } => {
                *self.failed_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                self.replacement(has_room)
            }
            LlmError::Refused { .. }
            | LlmError::Truncated { .. }
            | LlmError::TooLong { .. }
            | LlmError::SmallWindow { .. }
            | LlmError::ToolsUnsupported(_)
            | LlmError::TimedOut { .. }
            | LlmError::NotLocal { .. }
            | LlmError::Cancelled => None,
        }
    }

    /// Returns the connection to use: this one, or, while it is known to be out of order, the one
    /// in its place that has room for the conversation. Without such a one this one is asked again:
    /// its error says when to go on.
    pub(super) fn in_order(self: &Arc<Self>, has_room: impl Fn(&Self) -> bool) -> &Arc<Self> {
        if self.is_out_of_order() {
            self.replacement(has_room).unwrap_or(self)
        } else {
            self
        }
    }

    /// Returns the first of the connections that take this one's place, one after the other, which
    /// is in order and has room.
    fn replacement(&self, has_room: impl Fn(&Self) -> bool) -> Option<&Arc<Self>> {
        let mut others = std::iter::successors(self.fallback.as_ref(), |other| other.fallback.as_ref());
        others.find(|other| !other.is_out_of_order() && has_room(other))
    }

    fn is_out_of_order(&self) -> bool {
        let failed_at = *self.failed_at.lock().unwrap_or_else(PoisonError::into_inner);
        failed_at.is_some_and(|at| at.elapsed() < OUT_OF_ORDER)
    }
}

/// Returns what decides on a model's replies besides the prompt; `None` where the same prompt may
/// give another reply each time.
fn reproducible(model: &ModelConfig, is_held: bool) -> Option<String> {
    let options = &model.options;
    let seed = options.seed.filter(|_| options.temperature == Some(0.0))?;
    let parts = [
        model.provider.as_str(),
        &model.address,
        &model.model,
        &model.context_length.to_string(),
        &format!("{:?}", model.max_tokens),
        &seed.to_string(),
        options.reasoning_effort.as_deref().unwrap_or_default(),
        &Value::Object(options.extra_body.clone()).to_string(),
        &is_held.to_string(),
    ];
    Some(parts.join("\n"))
}

/// Returns messages without what was thought before the last words of the user.
fn without_old_thoughts(messages: Cow<'_, [Message]>) -> Cow<'_, [Message]> {
    let is_said = |message: &Message| matches!(message, Message::User { .. } | Message::Summary { .. });
    let last_said = messages.iter().rposition(is_said).unwrap_or_default();
    let has_thoughts = |message: &Message| match message {
        Message::Assistant { origin, .. } => origin.as_ref().is_some_and(|origin| !origin.carried.is_null()),
        Message::System { .. } | Message::User { .. } | Message::Summary { .. } | Message::Results { .. } => false,
    };
    if !messages[..last_said].iter().any(has_thoughts) {
        return messages;
    }
    let mut messages = messages.into_owned();
    for message in &mut messages[..last_said] {
        if let Message::Assistant {
            origin: Some(origin), ..
        } = message
        {
            origin.carried = Value::Null;
        }
    }
    Cow::Owned(messages)
}

/// Adds fields to a request; sections that both have are merged in the same way.
fn merge(body: &mut Value, fields: &Map<String, Value>) {
    for (key, value) in fields {
        match (&mut body[key], value) {
            (place @ Value::Object(_), Value::Object(fields)) => merge(place, fields),
            (place, value) => value.clone_into(place),
        }
    }
}
