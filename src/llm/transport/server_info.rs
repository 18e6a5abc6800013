//! The facts about a provider that are known before anything is sent to it.

use reqwest::header::HeaderMap;

/// The parts that all requests to a provider share, and what its errors name.
#[derive(Debug)]
pub(crate) struct ServerInfo {
    pub(crate) name: &'static str,
    /// The section of the configuration that has its keys.
    pub(crate) section: String,
    pub(crate) model: String,
    pub(crate) address: String,
    /// The window in tokens.
    pub(crate) window: u64,
    /// The longest reply that requests ask for, in tokens; 0 where they ask for none.
    pub(crate) longest_reply: u64,
    /// Headers of each request; keys are marked sensitive.
    pub(crate) headers: HeaderMap,
    /// The remedy if the key is refused.
    pub(crate) key_hint: String,
    /// The remedy if nothing, or something else, answers at the address.
    pub(crate) address_hint: String,
    /// The remedy if nobody answers at the address.
    pub(crate) start_hint: String,
    /// The remedy if the server does not have the model.
    pub(crate) model_hint: String,
    /// The remedy if the server cuts the prompt.
    pub(crate) window_hint: String,
}

impl ServerInfo {
    /// Returns how many tokens a prompt may have: many servers refuse one that leaves no room in
    /// the window for the longest reply.
    pub(crate) fn room(&self) -> u64 {
        self.window.saturating_sub(self.longest_reply)
    }

    /// Returns `provider model at address`.
    pub(crate) fn describe(&self) -> String {
        format!("{} {} at {}", self.name, self.model, self.address)
    }
}

#[cfg(test)]
impl ServerInfo {
    /// Returns a server without hints, for tests.
    pub(super) fn of_tests() -> Self {
        Self {
            name: "openai",
            section: "llm.openai".to_owned(),
            model: "gpt".to_owned(),
            address: "http://model.test".to_owned(),
            window: 8_192,
            longest_reply: 1_024,
            headers: HeaderMap::new(),
            key_hint: String::new(),
            address_hint: String::new(),
            start_hint: String::new(),
            model_hint: String::new(),
            window_hint: String::new(),
        }
    }
}
