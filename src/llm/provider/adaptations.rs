//! Changes to later requests of chat completions, as a server's refusals demand them.
//!
//! They are learnt from its words, not from the name of its host, and forgotten when the process
//! ends.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use serde_json::Value;

use crate::llm::provider::carried::{self, SentBack};

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
