//! A conversation with a model about one message of a person.
//!
//! Guaranteed: it goes on in JSON where the model's server takes no native calls, and what each
//! reply used is counted, whoever asks.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::record::usage::ModelCall;
use crate::chat::services::ChatServices;
use crate::conversation::decode;
use crate::conversation::{Message, Reply, ToolResult, ToolSpec, Usage};
use crate::llm::chat::{Chat, PaidReply};
use crate::llm::error::LlmError;
use crate::llm::model::Model;
use crate::picture::Picture;
use crate::secret::Clean;

/// The beginning of a conversation, before its first message to the model.
#[derive(Default)]
pub(super) struct Beginning {
    pub(super) system: String,
    /// Earlier messages.
    pub(super) said: Vec<Message>,
    pub(super) tools: Tools,
}

/// The tools that the model may call.
#[derive(Default)]
pub(super) struct Tools {
    pub(super) specs: Arc<[ToolSpec]>,
    /// Follows the system prompt where they are not called natively: which there are, and how a
    /// reply calls one.
    pub(super) in_json: String,
}

/// The conversation.
pub(super) struct Dialogue<'a> {
    services: &'a ChatServices,
    model: Model,
    system: String,
    tools: Tools,
    is_native: bool,
    chat: Chat,
}

impl<'a> Dialogue<'a> {
    /// Begins a conversation; nothing is sent to the model yet.
    pub(super) async fn begin(services: &'a ChatServices, model: Model, beginning: Beginning) -> Self {
        let Beginning { system, said, tools } = beginning;
        let is_native = !tools.specs.is_empty() && model.takes_native_calls().await;
        let chat = model.chat(Arc::clone(&tools.specs), is_native, services.stop.asked.clone());
        let mut dialogue = Self {
            services,
            model,
            system,
            tools,
            is_native,
            chat,
        };
        let system = Message::System {
            text: dialogue.system_prompt().into_string(),
        };
        dialogue.chat.resume(std::iter::once(system).chain(said).collect());
        dialogue
    }

    /// Adds a message to the model.
    pub(super) fn say(&mut self, text: &str) {
        self.show(text, Vec::new());
    }

    /// Adds a message with pictures.
    pub(super) fn show(&mut self, text: &str, pictures: Vec<Picture>) {
        let text = self.services.service.clean(text);
        self.chat.send_pictures(&text, pictures);
    }

    /// Answers the calls of the last reply.
    pub(super) fn answer(&mut self, results: Vec<ToolResult>) {
        self.chat.send_tool_results(results);
    }

    /// Returns the model's next reply; the error says why there is none.
    pub(super) async fn reply(&mut self) -> Result<Reply, String> {
        loop {
            match self.ask().await {
                Err(LlmError::ToolsUnsupported(reason)) if self.is_native => {
                    tracing::info!("a conversation goes on with JSON replies: {reason}");
                    self.go_on_in_json();
                }
                reply => return reply.map_err(|error| error.to_string()),
            }
        }
    }

    /// Returns the model's next reply that says or calls something. One that is empty, or holds
    /// nothing but thoughts, is asked for once more: a person would hear nothing.
    pub(super) async fn reply_in_words(&mut self) -> Result<Reply, String> {
        let is_empty = |reply: &Reply| reply.calls.is_empty() && decode::without_thinking(&reply.text).is_empty();
        let reply = self.reply().await?;
        if !is_empty(&reply) {
            return Ok(reply);
        }
        self.say("Your reply was empty. Say what you mean outside of your thoughts.");
        let reply = self.reply().await?;
        if is_empty(&reply) {
            return Err("the model's replies are empty".to_owned());
        }
        Ok(reply)
    }

    /// Returns the model's window in tokens.
    pub(super) fn window(&self) -> u64 {
        self.model.window()
    }

    /// Returns the share of the window that the conversation takes, in percent.
    pub(super) fn fullness(&self) -> u64 {
        self.chat.fullness()
    }

    /// Asks once, and counts what was answered, of use or not.
    async fn ask(&mut self) -> Result<Reply, LlmError> {
        let mut paid = Vec::new();
        let reply = self.chat.get_counted_response(&mut paid).await;
        for PaidReply { model, usage, took } in paid {
            self.count(&model, usage, took).await;
        }
        reply
    }

    /// Counts what a reply used. An answer is not withheld because that cannot be written down.
    async fn count(&self, model: &str, usage: Usage, took: Duration) {
        let call = ModelCall {
            model,
            role: self.chat.role(),
            usage,
            took,
        };
        if let Err(error) = self.services.service.count(&call).await {
            tracing::warn!("what a reply used is not in the sum of the day: {error}");
        }
    }

    /// Gives native calls up. Those that were made are sent as JSON text from now on.
    fn go_on_in_json(&mut self) {
        self.is_native = false;
        let said = self.chat.messages().to_vec();
        let specs = Arc::clone(&self.tools.specs);
        self.chat = self.model.chat(specs, false, self.services.stop.asked.clone());
        self.chat.resume(said);
        let system = self.system_prompt();
        self.chat.replace_system_prompt(&system);
    }

    fn system_prompt(&self) -> Clean {
        let in_json = if self.is_native { "" } else { &self.tools.in_json };
        self.services.service.clean(&format!("{}{in_json}", self.system))
    }
}
