//! Facts about a provider that are known before anything is sent to it.

use reqwest::header::HeaderMap;

/// The parts that all requests to a provider share, and what its errors name.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) name: &'static str,
    pub(super) model: String,
    pub(super) address: String,
    /// The window in tokens.
    pub(super) window: u64,
    /// Headers of each request; keys are marked sensitive.
    pub(super) headers: HeaderMap,
    /// What to do when the key is refused.
    pub(super) key_mend: &'static str,
    /// What to do when nothing, or something else, answers at the address.
    pub(super) address_mend: String,
    /// What to do when the server does not have the model.
    pub(super) model_mend: String,
    /// What to do when the server cuts the prompt.
    pub(super) window_mend: String,
}
