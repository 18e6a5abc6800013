//! Configuration of a GitLab host.

use std::path::PathBuf;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::certificates::Trust;
use crate::forge::settings::trigger::Trigger;
use crate::task::labels::Labels;

/// gitlab.com or an own GitLab.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Takes the place of `gitlab` in the ids of tasks: small letters, digits and `-`. Every entry
    /// of a list but the first must have one.
    pub name: Option<String>,
    /// Base address of the REST API, e.g. `https://gitlab.example.com/api/v4`; the part after the
    /// host may be left out.
    pub api_url: String,
    /// Personal, group or project access token with the scope `api`.
    #[schemars(with = "Option<String>")]
    pub token: Option<SecretString>,
    /// User name of the account the token belongs to; asked of the API when empty.
    pub bot_name: String,
    /// `group/project`, or `group/*` for all projects of a group and its subgroups.
    pub projects: Vec<String>,
    /// People who are obeyed and heard as if they had the role Developer: user names, or
    /// `id:12345`, which stays with its account.
    pub allowed_users: Vec<String>,
    /// The treatment of a confidential issue in a project that more people can read: `refuse`
    /// leaves it alone and says so on it, `neutral_names` works on it and shows only the changed
    /// files and the issue's number.
    pub confidential_issues: ConfidentialIssues,
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

/// The treatment of a confidential issue in a project that more people can read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfidentialIssues {
    #[default]
    Refuse,
    NeutralNames,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            name: None,
            api_url: "https://gitlab.com/api/v4".to_owned(),
            token: None,
            bot_name: String::new(),
            projects: Vec::new(),
            allowed_users: Vec::new(),
            confidential_issues: ConfidentialIssues::default(),
            trigger: Trigger::default(),
            labels: Labels::default(),
            ca_file: None,
            trust: Trust::default(),
        }
    }
}
