//! GitLab, through the gitlab crate.
use crate::task::labels::Labels;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;

/// gitlab.com or an own GitLab.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Base address of the REST API, e.g. `https://gitlab.example.com/api/v4`; the part after the host may be left out.
    pub api_url: String,
    /// Personal, group or project access token with the scope `api`.
    #[schemars(with = "Option<String>")]
    pub token: Option<SecretString>,
    /// User name of the account the token belongs to; asked of the API when empty.
    pub bot_name: String,
    /// `group/project`, or `group/*` for all projects of a group and its subgroups.
    pub projects: Vec<String>,
    /// Names of the labels.
    pub labels: Labels,
}
impl Default for Config {
    fn default() -> Self {
        Self {
            api_url: "https://gitlab.com/api/v4".to_owned(),
            token: None,
            bot_name: String::new(),
            projects: Vec::new(),
            labels: Labels::default(),
        }
    }
}
