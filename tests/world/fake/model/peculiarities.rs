//! What makes a server differ from a plain one: what it refuses, drops, leaves uncounted, and has
//! in memory.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use serde_json::Value;

use super::Model;

/// The models that a server has in memory, and whether it is there at all.
#[derive(Default)]
pub(super) struct Memory {
    /// The models that Ollama has loaded, each with its window.
    pub(super) loaded: BTreeMap<String, u64>,
    /// The window that Ollama loads models with, whatever it is asked for.
    pub(super) loads_with: Option<u64>,
    /// Whether every question about the server fails, and every request for a reply.
    pub(super) is_down: bool,
}

impl Model {
    /// Refuses every request that offers tools, as a model does that was not trained for them.
    pub fn takes_no_tools(&self) {
        self.lock().takes_no_tools = true;
    }

    /// Drops the beginning of each later prompt with more tokens without a word, and counts only
    /// the rest.
    pub fn cuts_prompts_at(&self, tokens: usize) {
        self.lock().cuts_at = Some(tokens);
    }

    /// Leaves the number of the prompt's tokens out of all later answers.
    pub fn counts_nothing(&self) {
        self.lock().counts_nothing = true;
    }

    /// Counts of each later prompt only what the one before does not begin with, as servers do that
    /// count what they had to compute: Ollama before 0.4.
    pub fn counts_only_what_is_new(&self) {
        self.lock().cached = Some(String::new());
    }

    /// Makes the list of models llama.cpp's: one, under the name of its file, with the window it
    /// was loaded with.
    pub fn is_alone_with_window(&self, tokens: u64) {
        self.lock().alone_with = Some(tokens);
    }

    /// Refuses every request without this key.
    pub fn wants_key(&self, key: &str) {
        self.lock().key = Some(key.to_owned());
    }

    /// Refuses requests that hold a field, in these words.
    pub fn refuses_field(&self, field: &str, words: &str) {
        let mut inner = self.lock();
        inner.refused_fields.push((field.to_owned(), words.to_owned()));
    }

    /// Refuses requests in which the user speaks directly behind the result of a call, with this
    /// status and in these words, as the servers and templates of Mistral's models do.
    pub fn wants_replies_behind_results(&self, status: u16, words: &str) {
        let status = StatusCode::from_u16(status).expect("a status of HTTP");
        self.lock().refused_order = Some((status, words.to_owned()));
    }

    /// Sends all later replies as a whole, as if nobody had asked for a stream.
    pub fn streams_nothing(&self) {
        self.lock().streams_nothing = true;
    }

    /// Writes an empty text as the reason of the end into each chunk of a chat completion that is
    /// not the last one, as `SGLang` and Ollama did; others write null.
    pub fn writes_empty_reasons(&self) {
        self.lock().no_reason = Value::from("");
    }

    /// Answers `/api/VERSION/models` with this entry of LM Studio's list.
    pub fn is_lm_studios(&self, version: &str, entry: Value) {
        self.lock().of_lm_studio.push((version.to_owned(), entry));
    }

    /// Makes the server answer nothing but 503, as a proxy does before one that is down; or ends
    /// that.
    pub fn is_down(&self, is_down: bool) {
        self.lock().memory.is_down = is_down;
    }

    /// Makes Ollama load models with this window, whatever it is asked for; `None` ends it.
    pub fn loads_with(&self, window: Option<u64>) {
        self.lock().memory.loads_with = window;
    }

    /// Returns the models that Ollama has loaded, with their windows.
    pub fn loaded(&self) -> BTreeMap<String, u64> {
        self.lock().memory.loaded.clone()
    }
}

impl Memory {
    /// Answers what concerns the models that Ollama has in memory: `/api/generate` without a prompt
    /// loads one.
    pub(super) fn of_ollama(&mut self, path: &str, asked: &Value) -> Option<Value> {
        let name = asked["model"].as_str().unwrap_or_default();
        match path {
            "/api/ps" => {
                let entry = |(name, window): (&String, &u64)| serde_json::json!({ "name": name, "model": name, "context_length": window });
                let models: Vec<Value> = self.loaded.iter().map(entry).collect();
                Some(serde_json::json!({ "models": models }))
            }
            "/api/generate" if asked.get("prompt").is_none() && !name.starts_with("missing") => {
                let window = asked["options"]["num_ctx"].as_u64().unwrap_or(4_096);
                let window = self.loads_with.unwrap_or(window);
                self.loaded.insert(name.to_owned(), window);
                Some(serde_json::json!({ "model": name, "response": "", "done": true, "done_reason": "load" }))
            }
            _ => None,
        }
    }
}
