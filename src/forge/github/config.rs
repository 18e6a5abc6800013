//! Configuration of a GitHub host.

use std::path::PathBuf;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;

use crate::certificates::Trust;
use crate::forge::settings::trigger::Trigger;
use crate::task::labels::Labels;

/// GitHub or GitHub Enterprise.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Takes the place of `github` in the ids of tasks: small letters, digits and `-`. Every entry
    /// of a list but the first must have one.
    pub name: Option<String>,
    /// Base address of the REST API.
    pub api_url: String,
    /// Personal access token (classic or fine-grained). Leave it out when `app` is given.
    #[schemars(with = "Option<String>")]
    pub token: Option<SecretString>,
    /// A GitHub App instead of a token.
    pub app: Option<App>,
    /// Login of the account the token belongs to, to tell the bot's own comments; asked of the API
    /// when empty.
    pub bot_name: String,
    /// `owner/repo`, or `owner/*` for all repositories of a user or organisation.
    pub repositories: Vec<String>,
    /// More search terms, in GitHub's search syntax.
    pub query: Option<String>,
    /// People who are obeyed and heard as if they could write to the repositories: logins, or
    /// `id:12345`, which stays with its account.
    pub allowed_users: Vec<String>,
    /// The events that start work on an item besides the label.
    pub trigger: Trigger,
    /// Names of the labels.
    pub labels: Labels,
    /// File with certificates (PEM) that connections to this host trust besides the machine's and
    /// those of the top-level `ca_file`.
    pub ca_file: Option<PathBuf>,
    /// Whom connections to this host trust, when `ca_file` was read.
    #[serde(skip)]
    pub trust: Trust,
}

/// A GitHub App.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct App {
    /// The App's id.
    pub id: u64,
    /// File that holds the App's private key (PEM).
    pub private_key_file: PathBuf,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: None,
            api_url: "https://api.github.com".to_owned(),
            token: None,
            app: None,
            bot_name: String::new(),
            repositories: Vec::new(),
            query: None,
            allowed_users: Vec::new(),
            trigger: Trigger::default(),
            labels: Labels::default(),
            ca_file: None,
            trust: Trust::default(),
        }
    }
}
