//! Messages of people in messengers: the conversation, the author and the content.

use std::fmt;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// A messenger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Messenger {
    Slack,
    Line,
}

impl Messenger {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Slack => "slack",
            Self::Line => "line",
        }
    }

    /// Tells whether something that was said can be changed.
    pub const fn edits(self) -> bool {
        matches!(self, Self::Slack)
    }
}

/// A conversation: a thread of Slack, or a chat of LINE.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    pub messenger: Messenger,
    /// The channel, or the user, group or room.
    pub channel: String,
    /// The first message of the thread, in Slack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

/// Writes the name under which the conversation is stored.
impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.messenger.as_str(), self.channel)?;
        match &self.thread {
            Some(thread) => write!(formatter, "/{thread}"),
            None => Ok(()),
        }
    }
}

/// A message that somebody wrote, or a button that somebody pressed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incoming {
    /// The messenger's name for it: a repeated delivery has the same.
    pub id: String,
    pub place: Place,
    /// The time of the message by the messenger's clock; an earlier version stored none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<DateTime<Utc>>,
    /// The messenger's id of the person.
    pub user: String,
    /// Whether it was said to the bot: in a direct message, or with its name. In a thread that it
    /// takes part in, it hears the rest, too.
    pub is_addressed: bool,
    pub body: Body,
    /// Pictures that were sent with it, or as far as the messenger says so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attached: Vec<Attached>,
    /// The token with which LINE takes one answer for free, for a short time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_token: Option<String>,
}

/// The content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Body {
    Text {
        text: String,
    },
    /// A button: its value is the one that the program gave it.
    Press {
        value: String,
    },
}

/// A picture as a messenger tells of it. Nothing of that is believed: its bytes say what it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// Its name as people see it.
    pub name: String,
    /// Address in Slack, or the message's name in LINE; empty if the file lies elsewhere.
    pub place: String,
}

/// Most pictures of one message that are remembered.
pub(super) const MOST_ATTACHED: usize = 10;

/// True for a plain name of the messenger, such as `U0123ABCD`: 1 to 64 letters and digits.
pub(super) fn is_id(text: &str) -> bool {
    !text.is_empty() && text.len() <= 64 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
}
