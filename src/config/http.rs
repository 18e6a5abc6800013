//! How people and programs reach this one over HTTP: dashboard, API, metrics, webhooks.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use url::Url;

/// The HTTP server of `serve` and `dashboard`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    /// Address and port, such as 127.0.0.1:8420. Without it `serve` has no HTTP server. Any address
    /// that is not of this machine alone needs `users`.
    pub listen: Option<String>,
    /// Users by name. Without any the program makes a token of its own, and listens on this machine
    /// alone.
    pub users: BTreeMap<String, User>,
    /// The address under which people open the dashboard where that is another one than `listen`,
    /// for instance that of a proxy with TLS.
    pub public_url: Option<String>,
    /// Secrets of the forges' webhooks.
    pub webhooks: Webhooks,
    /// Whether `/metrics` has the figures for Prometheus.
    pub metrics: bool,
}

/// A user of the HTTP server.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct User {
    /// The user's secret token: at least 16 characters that nobody can guess.
    #[schemars(with = "Option<String>")]
    pub token: Option<SecretString>,
    /// `view` only looks; `approve` also decides, and starts, pauses and stops runs.
    pub can: May,
}

/// The rights of a user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum May {
    Approve,
    #[default]
    View,
}

/// Secrets that only the forges know besides this program, so that their deliveries can be told
/// from others'.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Webhooks {
    /// `POST /hooks/github`.
    pub github: GithubHook,
    /// `POST /hooks/gitlab`.
    pub gitlab: GitlabHook,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GithubHook {
    /// The secret that the webhook was given on GitHub.
    #[schemars(with = "Option<String>")]
    pub secret: Option<SecretString>,
}

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct GitlabHook {
    /// The secret token that the webhook was given on GitLab.
    #[schemars(with = "Option<String>")]
    pub token: Option<SecretString>,
    /// The signing token that GitLab made for the webhook; it begins with `whsec_`.
    #[schemars(with = "Option<String>")]
    pub signing_secret: Option<SecretString>,
}

impl Http {
    /// Returns the address to listen on, if there is one that can be read.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listen.as_deref()?.parse().ok()
    }

    /// Returns the public address without path and slash, such as `https://agent.example.com`, and
    /// its host with the port, as browsers send it.
    pub fn public_origin(&self) -> Option<(String, String)> {
        let url = Url::parse(self.public_url.as_deref()?).ok()?;
        let host = url.host_str()?;
        let host = url
            .port()
            .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        Some((format!("{}://{host}", url.scheme()), host))
    }

    /// Returns the secrets of the section.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretString> {
        let hooks = &self.webhooks;
        let of_hooks = [&hooks.github.secret, &hooks.gitlab.token, &hooks.gitlab.signing_secret];
        let of_users = self.users.values().map(|user| &user.token);
        of_users.chain(of_hooks).flatten()
    }
}

impl Default for Http {
    fn default() -> Self {
        Self {
            listen: None,
            users: BTreeMap::new(),
            public_url: None,
            webhooks: Webhooks::default(),
            metrics: true,
        }
    }
}
