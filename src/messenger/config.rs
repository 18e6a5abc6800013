//! The sections `slack` and `line` of the configuration.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;

use crate::certificates::Trust;

/// A Slack app: by Socket Mode with `app_token`, by `POST /hooks/slack` with `signing_secret`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Slack {
    /// The address of Slack's interface.
    pub api_url: String,
    /// The app's token for Socket Mode (`xapp-`), with the scope `connections:write`.
    #[schemars(with = "Option<String>")]
    pub app_token: Option<SecretString>,
    /// The bot's token (`xoxb-`).
    #[schemars(with = "Option<String>")]
    pub bot_token: Option<SecretString>,
    /// The secret by which Slack signs what it sends to `POST /hooks/slack`.
    #[schemars(with = "Option<String>")]
    pub signing_secret: Option<SecretString>,
    /// Ids of the channels in which the bot hears who mentions it. Direct messages are heard
    /// without.
    pub channels: Vec<String>,
    /// Ids of the people who are heard, each with accounts of the forges.
    pub allowed_users: BTreeMap<String, Accounts>,
    #[serde(skip)]
    pub trust: Trust,
}

/// A LINE channel, by `POST /hooks/line`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Line {
    /// The address of the Messaging API.
    pub api_url: String,
    /// The address that pictures are fetched from.
    pub data_url: String,
    /// The secret by which LINE signs what it sends.
    #[schemars(with = "Option<String>")]
    pub channel_secret: Option<SecretString>,
    /// The channel's access token.
    #[schemars(with = "Option<String>")]
    pub channel_access_token: Option<SecretString>,
    /// Ids of the people who are heard, each with accounts of the forges.
    pub allowed_users: BTreeMap<String, Accounts>,
    #[serde(skip)]
    pub trust: Trust,
}

/// A person's accounts: the name of a forge, such as `github`, and the login there.
pub type Accounts = BTreeMap<String, String>;

impl Slack {
    /// Tells whether the section is filled in.
    pub fn is_used(&self) -> bool {
        self.bot_token.is_some()
    }
}

impl Line {
    /// Tells whether the section is filled in.
    pub fn is_used(&self) -> bool {
        self.channel_access_token.is_some()
    }
}

impl Default for Slack {
    fn default() -> Self {
        Self {
            api_url: "https://slack.com/api".to_owned(),
            app_token: None,
            bot_token: None,
            signing_secret: None,
            channels: Vec::new(),
            allowed_users: BTreeMap::new(),
            trust: Trust::default(),
        }
    }
}

impl Default for Line {
    fn default() -> Self {
        Self {
            api_url: "https://api.line.me".to_owned(),
            data_url: "https://api-data.line.me".to_owned(),
            channel_secret: None,
            channel_access_token: None,
            allowed_users: BTreeMap::new(),
            trust: Trust::default(),
        }
    }
}
