//! What is known of a provider before anything is sent to it.

use reqwest::header::HeaderMap;

/// The parts that all requests to a provider share, and what its errors name.
#[derive(Debug)]
pub(crate) struct ServerInfo {
    pub(crate) name: &'static str,
    /// Where its keys stand in the configuration.
    pub(crate) section: String,
    pub(crate) model: String,
    pub(crate) address: String,
    /// The window in tokens.
    pub(crate) window: u64,
    /// Headers of each request; keys are marked sensitive.
    pub(crate) headers: HeaderMap,
    /// What to do when the key is refused.
    pub(crate) key_hint: String,
    /// What to do when nothing, or something else, answers at the address.
    pub(crate) address_hint: String,
    /// What to do when the server does not have the model.
    pub(crate) model_hint: String,
    /// What to do when the server cuts the prompt.
    pub(crate) window_hint: String,
}
