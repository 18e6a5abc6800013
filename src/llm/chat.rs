//! One conversation with a model.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::{Config, LlmError};
use crate::conversation::{Message, Reply, ToolResult, ToolSpec};
use crate::secret::Clean;

/// The configured model. Cheap to clone; one per process.
#[derive(Clone)]
pub struct Model {}

impl Model {
    /// Returns the model that `config` names. Does not touch the network.
    pub fn new(_config: &Config) -> Result<Self, LlmError> {
        todo!()
    }

    /// Returns `provider model at address`, for people.
    pub fn describe(&self) -> String {
        todo!()
    }

    /// Returns the window in tokens.
    pub fn window(&self) -> u64 {
        todo!()
    }

    /// Asks whether native tool calls are to be used: the configuration's word, or in `auto` what the provider says of the model.
    pub async fn takes_native_calls(&self) -> bool {
        todo!()
    }

    /// Asks the server whether it answers and has the model, for `doctor`; returns what it said of itself.
    pub async fn examine(&self) -> Result<String, LlmError> {
        todo!()
    }

    /// Starts an empty conversation. With `native` the tools go along as native functions, otherwise the prompt has
    /// to describe them and results go back as JSON text.
    pub fn chat(&self, _tools: Arc<[ToolSpec]>, _native: bool, _cancel: CancellationToken) -> Chat {
        todo!()
    }
}

/// One append-only conversation. The history lives here; [`Chat::unsaved`] hands out what has not been stored yet.
pub struct Chat {}

impl Chat {
    /// Takes up a stored conversation where it ended.
    pub fn resume(&mut self, _history: Vec<Message>) {
        todo!()
    }

    pub fn send_system_prompt(&mut self, _text: &Clean) {
        todo!()
    }

    pub fn send_user_message(&mut self, _text: &Clean) {
        todo!()
    }

    /// Answers the calls of the last reply. Part of `send_user_message` in the sources: without native calls it becomes a user
    /// message `{"previous_output": [{"tool", "args", "output", "is_error"?}]}`, else one message for each call.
    pub fn send_tool_results(&mut self, _results: Vec<ToolResult>) {
        todo!()
    }

    /// Sends the conversation and returns the model's reply, which is appended to the history.
    pub async fn get_response(&mut self) -> Result<Reply, LlmError> {
        todo!()
    }

    /// Returns the messages that came since the last call of this function.
    pub fn unsaved(&mut self) -> Vec<Message> {
        todo!()
    }

    pub fn messages(&self) -> &[Message] {
        todo!()
    }
}
