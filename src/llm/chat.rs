//! One conversation with a model.
//!
//! Guaranteed, whatever the caller does: the history only grows; every native call is answered once
//! before anything else is said (with "not run" where the caller gives no answer); a reply that is
//! returned is in the history; a failed call leaves the history as it was, so it can simply be made
//! again.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use secrecy::SecretString;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::http::Http;
use super::nearby::Confidential;
use super::provider::{Answer, Prompt, Provider};
use super::refusal::Asked;
use super::turns::Turns;
use super::window::{self, Counted};
use super::{Config, FunctionCalling, LlmError, ProviderName, anthropic, names, ollama, openai, written};
use crate::conversation::compaction;
use crate::conversation::decode::{self, DONE};
use crate::conversation::{Message, Reply, ToolCall, ToolResult, ToolSpec, Usage, excerpt};
use crate::secret::Clean;

/// The configured model. Cheap to clone; one per process.
#[derive(Clone)]
pub struct Model {
    line: Arc<Line>,
    confidential: Arc<Confidential>,
}

struct Line {
    provider: Arc<dyn Provider>,
    http: Http,
    function_calling: FunctionCalling,
    constrains_replies: bool,
    turns: Turns,
}

/// Most native calls of one reply: each is compared with all others.
const MOST_CALLS: usize = 128;

impl Model {
    /// Returns the model that `config` names. Does not touch the network.
    pub fn new(config: &Config) -> Result<Self, LlmError> {
        let (url, key, provider): (Url, Option<SecretString>, Arc<dyn Provider>) = match config.provider {
            ProviderName::Ollama => {
                let (url, server) = ollama::server(&config.ollama)?;
                (url, None, Arc::new(server))
            }
            ProviderName::Lmstudio => {
                let (url, server) = openai::lmstudio(&config.lmstudio)?;
                (url, None, Arc::new(server))
            }
            ProviderName::Openai => {
                let (url, server) = openai::openai(&config.openai)?;
                (url, config.openai.api_key.clone(), Arc::new(server))
            }
            ProviderName::Anthropic => {
                let (url, server) = anthropic::server(&config.anthropic)?;
                (url, config.anthropic.api_key.clone(), Arc::new(server))
            }
        };
        let http = Http::new(&url, Duration::from_secs(config.timeout_seconds), key);
        let model = Self {
            line: Arc::new(Line {
                provider,
                http,
                function_calling: config.function_calling,
                constrains_replies: config.constrained_replies,
                turns: Turns::new(config.parallel_requests()),
            }),
            confidential: Arc::new(Confidential::new(config)),
        };
        Ok(match model.local_only_rule(None, &[]) {
            Some(rule) => model.kept_near(rule),
            None => model,
        })
    }

    /// Returns the rule that keeps work on this item of `repository` on local models, if any.
    pub fn local_only_rule(&self, repository: Option<&str>, labels: &[String]) -> Option<String> {
        self.confidential.rule(repository, labels)
    }

    /// Describes, for people, the part of the work that is kept on local models, if only a part is.
    pub fn confidential_part(&self) -> Option<String> {
        self.confidential.part()
    }

    /// Returns the same model, which refuses to send to a server that is not local, naming `rule`.
    #[must_use]
    pub fn kept_near(&self, rule: String) -> Self {
        let line = &self.line;
        Self {
            line: Arc::new(Line {
                provider: Arc::clone(&line.provider),
                http: line.http.walled_in(self.confidential.wall(rule)),
                function_calling: line.function_calling,
                constrains_replies: line.constrains_replies,
                turns: line.turns.clone(),
            }),
            confidential: Arc::clone(&self.confidential),
        }
    }

    /// Returns `provider model at address`, for people.
    pub fn describe(&self) -> String {
        let facts = self.line.provider.facts();
        format!("{} {} at {}", facts.name, facts.model, facts.address)
    }

    /// Returns the window in tokens.
    pub fn window(&self) -> u64 {
        self.line.provider.facts().window
    }

    /// Returns what to do if the server's window is smaller than the configured one.
    pub fn window_mend(&self) -> &str {
        &self.line.provider.facts().window_mend
    }

    /// Asks whether native tool calls are to be used: as configured, or in `auto` as the provider
    /// says of the model.
    pub async fn takes_native_calls(&self) -> bool {
        match self.line.function_calling {
            FunctionCalling::On => true,
            FunctionCalling::Off => false,
            FunctionCalling::Auto => self.line.provider.takes_native_calls(&self.line.http).await,
        }
    }

    /// Asks the server whether it has the model, for `doctor`; returns how it describes itself.
    pub async fn examine(&self) -> Result<String, LlmError> {
        self.line.provider.examine(&self.line.http).await
    }

    /// Starts an empty conversation. With `native` the tools are offered as native functions, and
    /// with them the pseudo tool `done`; otherwise the prompt has to describe them, and results are
    /// sent as JSON text.
    pub fn chat(&self, tools: Arc<[ToolSpec]>, native: bool, cancel: CancellationToken) -> Chat {
        Chat {
            line: Arc::clone(&self.line),
            tools,
            native,
            form: None,
            cancel,
            history: Vec::new(),
            saved: 0,
            counted: None,
        }
    }
}

/// One append-only conversation with its history; a clone can be asked something aside.
#[derive(Clone)]
pub struct Chat {
    line: Arc<Line>,
    tools: Arc<[ToolSpec]>,
    native: bool,
    form: Option<Arc<Value>>,
    cancel: CancellationToken,
    history: Vec<Message>,
    /// Number of messages that have been handed out for storing.
    saved: usize,
    counted: Option<Counted>,
}

impl Chat {
    /// Continues a stored conversation.
    pub fn resume(&mut self, stored: Vec<Message>) {
        self.history = compaction::folded(stored);
        self.saved = self.history.len();
        self.counted = None;
    }

    /// Makes the server hold later replies to `form`, a JSON Schema, if that is configured. Native
    /// calls are exempt: they have schemas of their own.
    pub fn hold_to(&mut self, form: Option<Value>) {
        self.form = form.map(Arc::new);
    }

    pub fn send_system_prompt(&mut self, text: &Clean) {
        self.history.push(Message::System {
            text: text.as_str().to_owned(),
        });
    }

    /// Adds a user message. Native calls that are still open are answered first, as not run.
    pub fn send_user_message(&mut self, text: &Clean) {
        self.answer_open_calls(&mut Vec::new());
        self.history.push(Message::User {
            text: text.as_str().to_owned(),
        });
    }

    /// Answers the calls of the last reply: native calls in a message of results, others in a user
    /// message `{"previous_output": [{"tool", "args", "output", "is_error"?}]}`.
    pub fn send_tool_results(&mut self, mut results: Vec<ToolResult>) {
        self.answer_open_calls(&mut results);
        if !results.is_empty() {
            self.history.push(Message::User {
                text: written::previous_output(&results),
            });
        }
    }

    /// Sends the conversation and returns the model's reply, which is appended to the history.
    pub async fn get_response(&mut self) -> Result<Reply, LlmError> {
        self.answer_open_calls(&mut Vec::new());
        let provider = &self.line.provider;
        let facts = provider.facts();
        let messages = if self.native {
            Cow::Borrowed(self.history.as_slice())
        } else {
            written::out(&self.history)
        };
        let messages = messages.as_ref();
        let tools = self.native.then_some(self.tools.as_ref());
        let needed = window::needed(messages, self.counted, tools.unwrap_or_default());
        if needed > facts.window {
            return Err(LlmError::TooLong {
                needed,
                window: facts.window,
            });
        }
        let is_held = self.line.constrains_replies && !self.native;
        let form = self.form.as_deref().filter(|_| is_held);
        let body = provider.body(&Prompt { messages, tools, form });
        let asked = Asked {
            with_tools: self.native,
            needed,
        };
        let _turn = self.line.turns.next(&self.cancel).await?;
        let answer = self
            .line
            .http
            .call(facts, &provider.chat_url(), &body, asked, &self.cancel, |answer| {
                provider.read(answer)
            })
            .await?;
        if let Some(counted) = answer.counted {
            if window::is_cut(messages, self.counted, counted.input) {
                return Err(LlmError::Truncated {
                    sent: needed,
                    counted: counted.input,
                    mend: facts.window_mend.clone(),
                });
            }
            self.counted = Some(Counted {
                tokens: counted.input,
                messages: messages.len(),
            });
        }
        let reply = self.reply(answer, needed);
        self.history.push(Message::Assistant {
            text: decode::without_thinking(&reply.text),
            calls: reply.calls.clone(),
        });
        Ok(reply)
    }

    /// Reads a server's answer without adding it to the history; the error says what is missing.
    pub fn read(&self, answer: &Value) -> Result<Reply, String> {
        let answer = self.line.provider.read(answer)?;
        Ok(self.reply(answer, 0))
    }

    /// Estimates the next request's share of the window in percent, from the server's last count.
    pub fn fullness(&self) -> u64 {
        let tools = if self.native { self.tools.as_ref() } else { &[] };
        let window = self.line.provider.facts().window.max(1);
        window::needed(&self.history, self.counted, tools) * 100 / window
    }

    /// Returns how many tokens the server counted for the last request, if it counts.
    pub fn counted(&self) -> Option<u64> {
        self.counted.map(|counted| counted.tokens)
    }

    /// Returns a copy that holds only the first `messages`, to be asked something aside.
    #[must_use]
    pub fn beginning(&self, messages: usize) -> Self {
        let mut beginning = self.clone();
        beginning.history.truncate(messages);
        beginning.saved = beginning.saved.min(messages);
        beginning.counted = beginning.counted.filter(|counted| counted.messages <= messages);
        beginning
    }

    /// Puts `summary`, a [`Message::Summary`], in the place of what it replaces. Everything before
    /// it must have been stored.
    pub fn compact(&mut self, summary: Message) {
        compaction::take_up(&mut self.history, summary);
        self.saved = self.history.len();
        self.counted = None;
    }

    /// Returns the messages that were added since the last call of this function.
    pub fn unsaved(&mut self) -> Vec<Message> {
        let unsaved = self.history[self.saved..].to_vec();
        self.saved = self.history.len();
        unsaved
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
                    None => unanswered(call),
                },
            )
            .collect();
        self.history.push(Message::Results { results: answers });
    }

    fn reply(&self, answer: Answer, needed: u64) -> Reply {
        let mut calls: Vec<ToolCall> = Vec::new();
        let mut broken_calls = Vec::new();
        if answer.calls.len() > MOST_CALLS {
            let given = answer.calls.len();
            broken_calls.push(format!("The reply holds {given} calls, and {MOST_CALLS} are the most"));
        }
        for (place, call) in answer.calls.into_iter().take(MOST_CALLS).enumerate() {
            if call.name.is_empty() {
                broken_calls.push(format!("Call {} names no tool", place + 1));
                continue;
            }
            let tool = names::ours(&self.tools, &call.name);
            let args = call.args.unwrap_or_else(|unreadable| {
                broken_calls.push(format!("In the call of {tool}, {unreadable}"));
                Map::new()
            });
            let id = if call.id.is_empty() || self.knows(&call.id) || calls.iter().any(|other| other.id == call.id) {
                format!("call_{}_{place}", self.history.len())
            } else {
                call.id
            };
            calls.push(ToolCall { id, tool, args });
        }
        let usage = match answer.counted {
            Some(counted) => Usage {
                input: counted.input,
                output: counted.output,
                cached: counted.cached,
            },
            None => Usage {
                input: needed,
                output: excerpt::estimated_tokens(&answer.text),
                cached: 0,
            },
        };
        Reply {
            text: answer.text,
            calls,
            broken_calls,
            cut: answer.cut,
            usage,
        }
    }

    /// Tells whether a call with this id is in the history: some servers number each reply anew.
    fn knows(&self, id: &str) -> bool {
        self.history.iter().any(|message| match message {
            Message::Assistant { calls, .. } => calls.iter().any(|call| call.id == id),
            Message::System { .. } | Message::User { .. } | Message::Summary { .. } | Message::Results { .. } => false,
        })
    }
}

fn unanswered(call: &ToolCall) -> ToolResult {
    let is_error = call.tool != DONE;
    ToolResult {
        call: call.clone(),
        output: if is_error { "not run" } else { "noted" }.to_owned(),
        is_error,
    }
}
