//! One conversation with a model.
//!
//! Guaranteed, whatever the caller does: behind the system prompt the history only grows, but for
//! summaries in the place of messages and where a caller goes on from a [`Chat::beginning`]; every
//! native call is answered once before anything else is said (with "not run" where the caller gives
//! no answer); a reply that is returned is in the history; a failed call leaves the history as it
//! was, so it can simply be made again.

mod asking; // the request to the model, or to one in its place

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::conversation::compaction;
use crate::conversation::{Message, Reply, ToolResult, ToolSpec, Usage};
use crate::llm::calls_as_json::WrittenResults;
use crate::llm::config::role::Role;
use crate::llm::connection::Connection;
use crate::llm::transport::streaming::StreamedAnswer;
use crate::llm::window_estimate::{self, LastCount};
use crate::picture::Picture;
use crate::secret::Clean;

/// An append-only conversation with its history. A clone can be asked something that does not
/// become part of it.
#[derive(Clone)]
pub struct Chat {
    connection: Arc<Connection>,
    role: Role,
    /// Name of the model that gave the last reply.
    answered_by: String,
    tools: Arc<[ToolSpec]>,
    native: bool,
    form: Option<Arc<Value>>,
    results: WrittenResults,
    variation: Option<usize>,
    /// How long a reply may take.
    limit: Option<Duration>,
    cancel: CancellationToken,
    history: Vec<Message>,
    /// Number of messages of the history that are stored.
    saved: usize,
    /// Number of all stored messages: also those that summaries have replaced since.
    stored: usize,
    counted: Option<LastCount>,
    /// Replies that came to nothing, see [`Chat::take_unused`].
    unused: Vec<PaidReply>,
    /// Number of pieces of a streamed reply that have arrived.
    arrived: watch::Sender<u64>,
}

/// The model, tokens and time that one reply was paid with, whether it was of use or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaidReply {
    /// The name of the model that gave it.
    pub model: String,
    pub usage: Usage,
    pub took: Duration,
}

impl Chat {
    pub(super) fn new(
        connection: Arc<Connection>,
        role: Role,
        tools: Arc<[ToolSpec]>,
        native: bool,
        cancel: CancellationToken,
    ) -> Self {
        let answered_by = connection.name.clone();
        Self {
            connection,
            role,
            answered_by,
            tools,
            native,
            form: None,
            results: WrittenResults::Json,
            variation: None,
            limit: None,
            cancel,
            history: Vec::new(),
            saved: 0,
            stored: 0,
            counted: None,
            unused: Vec::new(),
            arrived: watch::Sender::new(0),
        }
    }

    /// Returns the number of pieces of the current reply that have arrived, each about a token; 0
    /// if it is not streamed.
    pub fn arrived(&self) -> watch::Receiver<u64> {
        self.arrived.subscribe()
    }

    /// Returns a copy that asks another model, if `connection` is to one, in another role.
    pub(super) fn aside(&self, connection: &Arc<Connection>, role: Role) -> Self {
        let is_same = connection.name == self.connection.name;
        Self {
            connection: Arc::clone(connection),
            role,
            native: self.native && is_same,
            ..self.clone()
        }
    }

    /// Returns the name of the model that the conversation is with.
    pub fn model(&self) -> &str {
        &self.connection.name
    }

    /// Tells whether the model is shown pictures.
    pub fn takes_pictures(&self) -> bool {
        self.connection.takes_pictures
    }

    /// Returns the role in which the model is asked.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns the name of the model that gave the last reply.
    pub fn answered_by(&self) -> &str {
        &self.answered_by
    }

    /// Continues a stored conversation.
    pub fn resume(&mut self, stored: Vec<Message>) {
        self.stored = stored.len();
        self.history = compaction::folded(stored);
        self.saved = self.history.len();
        self.counted = None;
    }

    /// Returns the replies since the last call of this function that came to nothing, so that they
    /// are counted: the model refused, or its server had cut the prompt.
    pub fn take_unused(&mut self) -> Vec<PaidReply> {
        std::mem::take(&mut self.unused)
    }

    /// Makes the server hold later replies to `form`, a JSON Schema, if that is configured. Native
    /// calls are exempt: they have schemas of their own.
    pub fn hold_to(&mut self, form: Option<Value>) {
        self.form = form.map(Arc::new);
    }

    /// Tells whether the configuration could have the server hold the replies to a form, and does
    /// not: they are JSON in text.
    pub fn could_be_held(&self) -> bool {
        let connection = &self.connection;
        let is_held = connection.constrains_replies || !connection.provider.holds_to_forms();
        self.form.is_some() && !self.native && !is_held
    }

    /// Returns what gives the model that replied last more room for its replies, by keys that its
    /// provider has.
    pub fn room_hint(&self) -> String {
        let mut models = std::iter::successors(Some(&self.connection), |connection| connection.fallback.as_ref());
        let answering = models.find(|connection| connection.name == self.answered_by);
        let info = answering.unwrap_or(&self.connection).provider.info();
        let section = &info.section;
        let limit = if matches!(info.name, "openai" | "anthropic") {
            format!("{section}.max_tokens or ")
        } else {
            String::new()
        };
        format!("raise {limit}{section}.context_length, or lower {section}.reasoning_effort")
    }

    /// Asks for replies that differ from earlier ones; `number` is another one for each beginning.
    pub fn ask_for_another(&mut self, number: usize) {
        self.variation = Some(number);
    }

    /// Gives later replies up that have not come within `limit`. A wait for a turn at the model is
    /// no part of it.
    pub fn give_up_after(&mut self, limit: Duration) {
        self.limit = Some(limit);
    }

    /// Writes later results as text and not as JSON. Native calls are exempt.
    pub fn write_results_plainly(&mut self) {
        self.results = WrittenResults::Text;
    }

    pub fn send_system_prompt(&mut self, text: &Clean) {
        self.history.push(Message::System {
            text: text.as_str().to_owned(),
        });
    }

    /// Puts another system prompt in the place of the first message, for what is sent from now on.
    /// What is stored keeps the one that the conversation was begun with.
    pub fn replace_system_prompt(&mut self, text: &Clean) {
        if let Some(Message::System { text: first }) = self.history.first_mut() {
            text.as_str().clone_into(first);
            self.counted = None;
        }
    }

    /// Adds a user message. Native calls that are still open are answered first, as not run.
    pub fn send_user_message(&mut self, text: &Clean) {
        self.send_pictures(text, Vec::new());
    }

    /// Adds a user message with pictures. A model that takes none gets a sentence that names them.
    pub fn send_pictures(&mut self, text: &Clean, pictures: Vec<Picture>) {
        self.answer_open_calls(&mut Vec::new());
        self.history.push(Message::User {
            text: text.as_str().to_owned(),
            pictures,
        });
    }

    /// Answers the calls of the last reply: native calls in a message of results, others as JSON or
    /// text in a user message.
    pub fn send_tool_results(&mut self, mut results: Vec<ToolResult>) {
        self.answer_open_calls(&mut results);
        if !results.is_empty() {
            self.history.push(Message::User {
                text: self.results.text(&results),
                pictures: Vec::new(),
            });
        }
    }

    /// Reads a server's answer without adding it to the history; the error says what is missing.
    pub fn read(&self, answer: &Value) -> Result<Reply, String> {
        let answer = self.connection.provider.read(answer)?;
        Ok(self.reply(&self.connection, answer, 0).0)
    }

    /// Reads a server's streamed answer, which came in these pieces, as [`Chat::read`] reads a
    /// whole one.
    pub fn read_stream<'piece>(&self, pieces: impl IntoIterator<Item = &'piece [u8]>) -> Result<Reply, String> {
        let provider = &self.connection.provider;
        let mut streamed = StreamedAnswer::new(provider.framing());
        for piece in pieces.into_iter().map(Some).chain([None]) {
            streamed.take(piece, |answer, event| provider.add(answer, event))?;
        }
        self.read(&streamed.whole()?)
    }

    /// Estimates, in percent, how much of what a prompt may have of the window the next one takes,
    /// from the server's last count.
    pub fn fullness(&self) -> u64 {
        let tools = if self.native { self.tools.as_ref() } else { &[] };
        let room = self.connection.provider.info().room().max(1);
        let messages = self
            .connection
            .with_thoughts_in_use(Cow::Borrowed(self.history.as_slice()));
        window_estimate::needed(&messages, self.counted_by(&self.connection), tools) * 100 / room
    }

    /// Returns how many tokens the last request had as the server counts them, if it counts.
    pub fn counted(&self) -> Option<u64> {
        self.counted.map(|counted| counted.tokens)
    }

    /// Returns a copy with only the first `messages`: for a question that does not become part of
    /// the conversation, or to go on without a reply that is not stored. All else is the same, the
    /// size that was counted included, as far as it is that of these messages.
    #[must_use]
    pub fn beginning(&self, messages: usize) -> Self {
        let mut beginning = self.clone();
        beginning.history.truncate(messages);
        beginning.saved = beginning.saved.min(messages);
        beginning.counted = beginning.counted.filter(|counted| counted.messages <= messages);
        beginning
    }

    /// Replaces messages by `summary`, a [`Message::Summary`] of them, and goes on with `kept`. All
    /// of it must have been stored.
    pub fn compact(&mut self, summary: Message, kept: Vec<Message>) {
        self.stored += 1 + kept.len();
        compaction::take_up(&mut self.history, summary);
        self.history.extend(kept);
        self.saved = self.history.len();
        self.counted = None;
    }

    /// Returns how many messages are known to be stored: the place of the next one in the store.
    pub fn stored(&self) -> usize {
        self.stored
    }

    /// Returns the messages that are not stored yet.
    pub fn unsaved(&self) -> &[Message] {
        &self.history[self.saved..]
    }

    /// Counts all messages as stored, once they are. After a failed save they are handed out again.
    pub fn note_saved(&mut self) {
        self.stored += self.unsaved().len();
        self.saved = self.history.len();
    }

    pub fn messages(&self) -> &[Message] {
        &self.history
    }
}

impl Chat {
    /// Answers the open native calls: from `results`, from which the answers are taken, or as not
    /// run. Providers refuse a conversation in which a call has no answer, so a turn that could not
    /// be read would otherwise end the run.
    fn answer_open_calls(&mut self, results: &mut Vec<ToolResult>) {
        let Some(Message::Assistant { calls, .. }) = self.history.last() else {
            return;
        };
        if calls.is_empty() {
            return;
        }
        let answers = calls
            .iter()
            .map(
                |call| match results.iter().position(|result| result.call.id == call.id) {
                    Some(place) => results.remove(place),
                    None => ToolResult::not_run(call),
                },
            )
            .collect();
        self.history.push(Message::Results { results: answers });
    }
}
