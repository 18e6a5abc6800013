//! The conversation between the program and a model, free of any provider's format.

pub mod excerpt;
pub mod breaker;
pub mod circling;
pub mod repetition;
pub mod compaction;
pub mod decode;
pub mod tool_name;
pub mod form;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::conversation::repetition::Repetition;
use crate::picture::Picture;

/// One entry of the append-only conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    System {
        text: String,
    },
    User {
        text: String,
        /// Pictures that belong to the text.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pictures: Vec<Picture>,
    },
    Assistant {
        text: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<ToolCall>,
        /// `None` for a reply without native calls and thoughts, such as one in JSON, and where an
        /// earlier version stored it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<ReplyOrigin>,
    },
    /// Replaces a number of messages behind the system prompt and the task (see [`compaction`]).
    Summary {
        replaces: usize,
        text: String,
    },
    /// The answers to the calls of the assistant message before it, in the calls' order.
    Results {
        results: Vec<ToolResult>,
    },
}

/// Who gave a reply with native calls, and what of it is for that model alone: its thoughts, and
/// signatures of them and of calls. Models that think refuse their own calls without.
///
/// The values are opaque: the protocol that read them out of a reply writes them back. Nobody else
/// is sent or shown them, since they are no words of the reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplyOrigin {
    /// Provider, model and address; empty where what the model wants back could not be kept. What
    /// others said and called reaches it as text.
    pub model: String,
    /// The part that belongs to the message; null if there is none.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub carried: Value,
    /// The parts that belong to its calls, by their ids.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub of_calls: BTreeMap<String, Value>,
}

impl ReplyOrigin {
    /// Returns true if one of the opaque values would be another behind `change`: the model would
    /// refuse it then.
    pub fn is_changed_by(&self, change: impl Fn(&Value) -> Value) -> bool {
        self.values().any(|value| change(value) != *value)
    }

    fn values(&self) -> impl Iterator<Item = &Value> {
        self.of_calls.values().chain([&self.carried])
    }

    /// Returns about how many tokens the opaque values have, at most.
    pub fn estimated_tokens(&self) -> u64 {
        let values = self.values().filter(|value| !value.is_null());
        values.map(|value| excerpt::estimated_tokens(&value.to_string())).sum()
    }
}

/// A tool call that the model asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id of a native call; empty where the call was written as JSON text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub id: String,
    /// The name, in the form `server/tool`.
    pub tool: String,
    pub args: Map<String, Value>,
}

/// The result of a [`ToolCall`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    pub call: ToolCall,
    pub output: String,
    pub is_error: bool,
}

impl ToolResult {
    /// Returns the answer to a call that was not carried out.
    #[must_use]
    pub fn not_run(call: &ToolCall) -> Self {
        let is_error = call.tool != decode::DONE;
        Self {
            call: call.clone(),
            output: if is_error { "not run" } else { "noted" }.to_owned(),
            is_error,
        }
    }
}

/// A tool as it is described to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name, in the form `server/tool`.
    pub name: String,
    pub description: String,
    /// JSON Schema of the arguments, an object.
    pub schema: Value,
}

/// One working reply: its reason, the calls, and whether the work is done.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Turn {
    pub comment: String,
    pub calls: Vec<ToolCall>,
    pub done: bool,
}

/// Tokens of one call, as the provider counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    /// The part of `input` that came from the provider's cache.
    pub cached: u64,
    /// The part of `input` that was written into the provider's cache, where it tells.
    #[serde(default)]
    pub cache_written: u64,
}

impl Usage {
    /// Returns the usage since `before`.
    #[must_use]
    pub fn less(&self, before: &Self) -> Self {
        Self {
            input: self.input.saturating_sub(before.input),
            output: self.output.saturating_sub(before.output),
            cached: self.cached.saturating_sub(before.cached),
            cache_written: self.cache_written.saturating_sub(before.cache_written),
        }
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.output += other.output;
        self.cached += other.cached;
        self.cache_written += other.cache_written;
    }
}

/// A model's reply as it came, before it is decoded.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Reply {
    pub text: String,
    /// Native tool calls, names already in the form `server/tool`.
    pub calls: Vec<ToolCall>,
    /// One sentence for each native call whose arguments could not be read. If there is any, no
    /// call of the reply may be run.
    pub broken_calls: Vec<String>,
    /// Whether the reply was ended before its end: by the provider at its length limit, or because
    /// of a repetition.
    pub cut: bool,
    /// The repetition that the reply was ended for, and that is cut down to one occurrence.
    pub repetition: Option<Repetition>,
    /// Whether the model thought before the reply, as far as its server tells thoughts from words.
    pub thought: bool,
    pub usage: Usage,
}

impl Reply {
    /// Tells whether all that came of the reply is what the model thought before it.
    pub fn is_only_thought(&self) -> bool {
        self.thought && self.calls.is_empty() && self.broken_calls.is_empty() && self.text.trim().is_empty()
    }
}
