//! What is known of a provider before anything is sent to it.

use reqwest::header::HeaderMap;

/// What is the same for every request to a provider, and what its errors name.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) name: &'static str,
    pub(super) model: String,
    pub(super) address: String,
    /// In tokens.
    pub(super) window: u64,
    /// Keys are marked sensitive in here.
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
