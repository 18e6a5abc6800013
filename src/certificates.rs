//! The certificate authorities that this machine trusts, read once for all HTTP clients.
//!
//! Reading them takes longer than anything else at a start, and each client by itself would read
//! all of them again.

use std::sync::LazyLock;

use reqwest::ClientBuilder;
use rustls::ClientConfig;
use rustls_platform_verifier::ConfigVerifierExt;

static SHARED: LazyLock<Option<ClientConfig>> = LazyLock::new(|| {
    let mut config = ClientConfig::with_platform_verifier()
        .inspect_err(|error| tracing::warn!("the certificates of this machine cannot be read: {error}"))
        .ok()?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Some(config)
});

/// Returns a builder of a client that trusts the authorities of this machine. Needs a default
/// provider of rustls.
pub fn client() -> ClientBuilder {
    let builder = reqwest::Client::builder();
    match &*SHARED {
        Some(config) => builder.tls_backend_preconfigured(config.clone()),
        // The client then tries it itself, and its error says why it failed.
        None => builder,
    }
}
