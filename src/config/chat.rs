//! Chat: people ask for work in Slack and LINE, answer and approve there.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;

use crate::messenger::config::{Line, Slack};
use crate::routing::classifier::{Thresholds, percent};
use crate::routing::flow::Limits;
use crate::routing::rules::Rules;

/// Part of `serve`. Off unless a messenger has its tokens.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Chat {
    /// The repository of messages that name none, such as `github:owner/repo`.
    pub default_repository: Option<String>,
    pub slack: Slack,
    pub line: Line,
    /// Files that tell the chat model who it is and how it behaves, joined in this order.
    pub persona_files: PersonaFiles,
    /// How the route of a message is decided.
    pub routing: Routing,
    /// The commands of `/ops`, by name. Nothing else is ever run.
    pub ops: BTreeMap<String, OpsCommand>,
    /// The texts of `persona_files`, read and joined.
    #[serde(skip)]
    pub persona: String,
    /// The rules of `routing.rules_file`, read and checked.
    #[serde(skip)]
    pub rules: Option<Rules>,
}

/// Files of text for the chat model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PersonaFiles {
    /// Who the chat model is, and how it speaks.
    pub chat: Option<PathBuf>,
    /// The rules that the chat model keeps to.
    pub policy: Option<PathBuf>,
    /// Additions for this installation, or for the time being.
    pub overlay: Option<PathBuf>,
}

/// How the route of a message is decided.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Routing {
    /// A dictionary of rules in place of the shipped one.
    pub rules_file: Option<PathBuf>,
    pub classifier: Classifier,
    /// Most workers that one message is given to.
    pub max_loops: u32,
    /// Time after which workers for a message are ended; fetching the repository is not counted.
    pub max_millis: u64,
}

/// The confidence that the classifier must have, from 0 to 1.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Classifier {
    /// Confidence below which a message goes to CHAT.
    pub min_confidence: f64,
    /// The same for CODE, which also needs the message's own words as evidence.
    pub min_confidence_for_code: f64,
}

/// A command that may be run on this machine.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OpsCommand {
    /// The program and its arguments; no shell reads them, and nothing is added.
    pub command: Vec<String>,
    /// A description of the command, for people.
    pub description: String,
    /// Its environment variables; it gets no others.
    #[schemars(with = "BTreeMap<String, String>", extend("default" = {}))]
    pub env: BTreeMap<String, SecretString>,
    /// Time limit of the command, in seconds.
    pub timeout_seconds: u64,
}

impl Chat {
    /// Tells whether a messenger is configured.
    pub fn is_used(&self) -> bool {
        self.slack.is_used() || self.line.is_used()
    }

    /// Returns the dictionary of rules.
    pub fn rules(&self) -> &Rules {
        self.rules.as_ref().unwrap_or_else(|| Rules::shipped())
    }

    /// Returns the secrets of the section.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretString> {
        let (slack, line) = (&self.slack, &self.line);
        let of_messengers = [
            &slack.app_token,
            &slack.bot_token,
            &slack.signing_secret,
            &line.channel_secret,
            &line.channel_access_token,
        ];
        of_messengers.into_iter().flatten()
    }
}

impl Routing {
    pub fn thresholds(&self) -> Thresholds {
        Thresholds {
            least: percent(self.classifier.min_confidence).unwrap_or(100),
            least_for_code: percent(self.classifier.min_confidence_for_code).unwrap_or(100),
        }
    }

    pub fn limits(&self) -> Limits {
        Limits {
            max_loops: self.max_loops,
            max_millis: self.max_millis,
        }
    }
}

impl Default for Routing {
    fn default() -> Self {
        Self {
            rules_file: None,
            classifier: Classifier::default(),
            max_loops: 3,
            max_millis: 90_000,
        }
    }
}

impl Default for Classifier {
    fn default() -> Self {
        Self {
            min_confidence: 0.6,
            min_confidence_for_code: 0.8,
        }
    }
}

impl Default for OpsCommand {
    fn default() -> Self {
        Self {
            command: Vec::new(),
            description: String::new(),
            env: BTreeMap::new(),
            timeout_seconds: 60,
        }
    }
}
