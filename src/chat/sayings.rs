//! Texts on their way into the outbox.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::services::ChatServices;
use crate::messenger::place::{Messenger, Place};
use crate::messenger::words::{Words, split};
use crate::messenger::{line, slack};
use crate::store::NewSaying;
use crate::task::id::RunId;

/// Most parts of one text; what is longer is cut.
const MOST_PARTS: usize = 10;

/// A text as the outbox keeps it, with the conversation that it goes to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Parcel {
    pub(super) place: Place,
    pub(super) words: Words,
    /// A token for a free answer, and until when it is worth trying.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reply: Option<(String, DateTime<Utc>)>,
    /// The run and the question that stands in the conversation, all of it, once this is said, if
    /// the parts before it were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) asks: Option<(RunId, Uuid)>,
    /// The run and the question of which this is a part, but not the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) part_of: Option<(RunId, Uuid)>,
}

/// The texts to be said because of one cause, in their order. Made again for the same cause, they
/// have the same ids, so that each is said once.
pub(super) struct Draft<'a> {
    services: &'a ChatServices,
    place: &'a Place,
    cause: String,
    reply: Option<(String, DateTime<Utc>)>,
    sayings: Vec<NewSaying>,
}

impl<'a> Draft<'a> {
    pub(super) fn of(services: &'a ChatServices, place: &'a Place, cause: &str) -> Self {
        Self {
            services,
            place,
            cause: cause.to_owned(),
            reply: None,
            sayings: Vec::new(),
        }
    }

    /// Has the first text sent as a free answer, while that is possible.
    pub(super) fn in_reply(mut self, token: Option<String>, at: DateTime<Utc>) -> Self {
        let within = TimeDelta::from_std(line::REPLY_WITHIN).unwrap_or_default();
        self.reply = token.map(|token| (token, at + within));
        self
    }

    /// Adds a text, in parts where it is long.
    pub(super) fn says(mut self, text: &str) -> Self {
        let clean = self.services.service.clean(text);
        for text in parts(self.place.messenger, clean.as_str()) {
            let id = self.id(self.sayings.len());
            let parcel = Parcel {
                place: self.place.clone(),
                words: Words {
                    text,
                    buttons: Vec::new(),
                },
                reply: self.reply.take(),
                asks: None,
                part_of: None,
            };
            self.sayings.push(packed(id, &parcel));
        }
        self
    }

    pub(super) fn finished(self) -> Vec<NewSaying> {
        self.sayings
    }

    fn id(&self, place: usize) -> Uuid {
        let name = format!("{} {} {place}", self.place, self.cause);
        Uuid::new_v5(&Uuid::NAMESPACE_OID, name.as_bytes())
    }
}

/// Returns a text in parts that the messenger takes; where there would be far too many, it is cut
/// and the last part says so.
pub(super) fn parts(messenger: Messenger, text: &str) -> Vec<String> {
    let longest = match messenger {
        Messenger::Slack => slack::LONGEST,
        Messenger::Line => line::LONGEST,
    };
    let mut parts = split(text, longest);
    if parts.len() > MOST_PARTS {
        parts.truncate(MOST_PARTS);
        parts.push("[…]".to_owned());
    }
    parts
}

/// Returns the id of the text that tells of something, and changes with it.
pub(super) fn id_of(what: &str) -> Uuid {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, what.as_bytes())
}

/// Returns a parcel as the outbox takes it.
pub(super) fn packed(id: Uuid, parcel: &Parcel) -> NewSaying {
    NewSaying {
        id,
        session: parcel.place.to_string(),
        document: serde_json::to_value(parcel).unwrap_or_default(),
    }
}
