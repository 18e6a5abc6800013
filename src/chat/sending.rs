//! Out of the outbox: in the order of each conversation, each text once.
//!
//! Before a text is sent it is written down that this was begun. Where nobody knows what came of
//! it, after a kill or a lost connection, Slack is asked whether it has the text, and LINE takes it
//! once under its key.

use std::collections::HashSet;
use std::time::Duration;

use chrono::{TimeDelta, Utc};

use super::desk::Desk;
use super::sayings::{Parcel, packed};
use crate::messenger::outcome::Outcome;
use crate::messenger::place::Messenger;
use crate::messenger::slack::Slack;
use crate::secret::Clean;
use crate::store::{Saying, StoreError};

/// Texts that are looked at together.
const MOST: u32 = 200;
/// Pause before it is asked what came of a text.
const BREATH: Duration = Duration::from_secs(3);
/// Longest pause that a messenger may ask for.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);

/// Sends what waits, and is due.
pub(super) async fn send_all(desk: &Desk) -> Result<(), StoreError> {
    let mut held: HashSet<String> = HashSet::new();
    for saying in desk.store().unsaid(MOST).await? {
        if held.contains(&saying.session) {
            continue;
        }
        if saying.not_before > Utc::now() || !send(desk, &saying).await? {
            held.insert(saying.session);
        }
    }
    Ok(())
}

/// Sends one text; returns whether those behind it may follow.
async fn send(desk: &Desk, saying: &Saying) -> Result<bool, StoreError> {
    let Ok(parcel) = serde_json::from_value::<Parcel>(saying.document.clone()) else {
        desk.store().said(saying, None).await?;
        return Ok(true);
    };
    let text = desk.service.clean(&parcel.words.text);
    let outcome = match (parcel.place.messenger, &desk.slack, &desk.line) {
        (Messenger::Slack, Some(slack), _) => to_slack(desk, slack, saying, &parcel, &text).await?,
        (Messenger::Line, _, Some(line)) => {
            let now = Utc::now();
            let reply = parcel
                .reply
                .as_ref()
                .filter(|(_, until)| *until > now || saying.is_begun);
            let reply = reply.map(|(token, _)| token.as_str());
            desk.store().begin_saying(saying.id).await?;
            line.say(&parcel.place, saying.id, &text, reply, saying.is_begun).await
        }
        _ => Outcome::Refused {
            reason: "its messenger is not configured any more".to_owned(),
        },
    };
    settle(desk, saying, parcel, outcome).await
}

async fn to_slack(
    desk: &Desk,
    slack: &Slack,
    saying: &Saying,
    parcel: &Parcel,
    text: &Clean,
) -> Result<Outcome, StoreError> {
    let mut message = saying.message.clone();
    if saying.is_begun && message.is_none() {
        match slack.find(&parcel.place, saying.id).await {
            Ok(Some(found)) if saying.wanted == 1 => return Ok(Outcome::Taken(Some(found))),
            Ok(found) => message = found,
            Err(failure) => {
                return Ok(Outcome::Unknown {
                    reason: failure.to_string(),
                });
            }
        }
    }
    if let Some(message) = message {
        let outcome = slack.change(&parcel.place, &message, text, &parcel.words).await;
        return Ok(match outcome {
            Outcome::Taken(_) => Outcome::Taken(Some(message)),
            other => other,
        });
    }
    desk.store().begin_saying(saying.id).await?;
    Ok(slack.say(&parcel.place, saying.id, text, &parcel.words).await)
}

async fn settle(desk: &Desk, saying: &Saying, parcel: Parcel, outcome: Outcome) -> Result<bool, StoreError> {
    let store = desk.store();
    let after = |pause: Duration| {
        let pause = pause.clamp(Duration::from_millis(200), LONGEST_PAUSE);
        Utc::now() + TimeDelta::from_std(pause).unwrap_or_default()
    };
    match outcome {
        Outcome::Taken(message) => {
            store.said(saying, message.as_deref()).await?;
            Ok(true)
        }
        Outcome::Later { pause, reason } => {
            tracing::info!(session = saying.session, "said later: {reason}");
            let is_begun = saying.is_begun && saying.message.is_none();
            store.say_later(saying.id, after(pause), is_begun).await?;
            Ok(false)
        }
        Outcome::Unknown { reason } => {
            tracing::warn!(session = saying.session, "nobody knows whether it was said: {reason}");
            store.say_later(saying.id, after(BREATH), true).await?;
            Ok(false)
        }
        Outcome::Refused { reason } => {
            tracing::error!(session = saying.session, "it cannot be said: {reason}");
            store.said(saying, None).await?;
            Ok(true)
        }
        Outcome::NotAsReply => {
            // It goes as an ordinary message, under a key that was not used.
            let parcel = Parcel { reply: None, ..parcel };
            store.change_saying(&packed(saying.id, &parcel)).await?;
            store.say_later(saying.id, after(Duration::ZERO), false).await?;
            Ok(false)
        }
    }
}
