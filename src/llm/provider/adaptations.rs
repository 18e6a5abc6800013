//! Changes to later requests, as a server's refusals demand them.
//!
//! They are learnt from its words, not from the name of its host, and forgotten when the process
//! ends.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::Value;

use crate::llm::provider::carried::{self, SentBack};
use crate::llm::transport::role_order;

/// The effort of a model that is not to think.
const NO_EFFORT: &str = "none";

/// What a server has refused so far.
#[derive(Default)]
pub(super) struct Adaptations {
    no_stream: AtomicBool,
    no_stream_options: AtomicBool,
    /// Newer models refuse `max_tokens`, older servers know nothing else.
    max_completion_tokens: AtomicBool,
    /// Some servers send thoughts and refuse to get them back, others refuse a reply without.
    no_thoughts: AtomicBool,
    all_thoughts: AtomicBool,
    /// Some models take tools only where they are asked not to think.
    no_effort_with_tools: AtomicBool,
    /// Mistral's models want a reply between the results of calls and the next words of the user.
    reply_behind_results: AtomicBool,
}

impl Adaptations {
    pub(super) fn may_stream(&self) -> bool {
        !self.no_stream.load(Relaxed)
    }

    pub(super) fn takes_stream_options(&self) -> bool {
        !self.no_stream_options.load(Relaxed)
    }

    /// Returns the field that bounds a reply.
    pub(super) fn longest_reply(&self) -> &'static str {
        if self.max_completion_tokens.load(Relaxed) {
            "max_completion_tokens"
        } else {
            "max_tokens"
        }
    }

    pub(super) fn thoughts(&self) -> SentBack {
        match (self.no_thoughts.load(Relaxed), self.all_thoughts.load(Relaxed)) {
            (true, _) => SentBack::Nothing,
            (false, true) => SentBack::All,
            (false, false) => SentBack::Known,
        }
    }

    /// Returns how much the model is to think: as it is configured, or else, with tools, not at all
    /// where it takes them only so.
    pub(super) fn effort<'effort>(&self, configured: Option<&'effort str>, has_tools: bool) -> Option<&'effort str> {
        let is_none = has_tools && self.no_effort_with_tools.load(Relaxed);
        configured.or(is_none.then_some(NO_EFFORT))
    }

    /// Tells whether a reply has to stand between the results of calls and what the user says.
    pub(super) fn wants_reply_behind_results(&self) -> bool {
        self.reply_behind_results.load(Relaxed)
    }

    /// Learns from the words that refused `body`; returns false if they say nothing that can be
    /// left out or written otherwise.
    pub(super) fn learn(&self, refusal: &str, body: &Value) -> bool {
        let words = refusal.to_lowercase();
        let is_unknown = |field: &str| body.get(field).is_some() && words.contains(field);
        let refusals = ["not support", "n't support", "unsupported"];
        let refuses_stream = words.contains("stream") && refusals.iter().any(|refusal| words.contains(refusal));
        // Requests that were sent at the same time are refused for the same reason. Each of them is
        // sent again, whichever was the first to learn it.
        if is_unknown("stream_options") {
            self.no_stream_options.store(true, Relaxed);
        } else if is_unknown("max_completion_tokens") {
            self.max_completion_tokens.store(false, Relaxed);
        } else if words.contains("max_completion_tokens") && body.get("max_tokens").is_some() {
            self.max_completion_tokens.store(true, Relaxed);
        } else if role_order::is_refused(&words) && is_said_behind_results(body) {
            self.reply_behind_results.store(true, Relaxed);
        } else if is_effort_refused(&words, body) {
            self.no_effort_with_tools.store(true, Relaxed);
        } else if carried::are_thoughts_demanded(&words, body) {
            self.no_thoughts.store(false, Relaxed);
            self.all_thoughts.store(true, Relaxed);
        } else if carried::are_thoughts_refused(&words, body) {
            self.no_thoughts.store(true, Relaxed);
        } else if body["stream"] == true && refuses_stream {
            self.no_stream.store(true, Relaxed);
        } else {
            return false;
        }
        true
    }
}

/// Tells whether the user says something directly behind the result of a call.
fn is_said_behind_results(body: &Value) -> bool {
    body["messages"].as_array().is_some_and(|messages| {
        let mut pairs = messages.windows(2);
        pairs.any(|pair| pair[0]["role"] == "tool" && pair[1]["role"] == "user")
    })
}

/// Tells whether `words`, in lower case, refuse the tools of `body` because the model thinks, which
/// nobody has asked it for, and say how to ask it not to.
fn is_effort_refused(words: &str, body: &Value) -> bool {
    words.contains("function tools with reasoning_effort are not supported")
        && words.contains("set reasoning_effort to 'none'")
        && body.get("tools").is_some()
        && body.get("reasoning_effort").is_none()
}
