//! Out of the outbox: in the order of each conversation, each text once, but for one case.
//!
//! Before a text is sent it is written down that this was begun. Where nobody knows what came of
//! it, after a kill or a lost connection, Slack is asked whether it has the text, and LINE takes it
//! once under its key, or with its reply token while that is good. Of an answer with a token that
//! is too old by then nobody can tell: it is sent under its key, and may be said twice.
//!
//! A text that fails keeps back its own conversation alone, is tried ever more rarely, and is given
//! up in the end, of which the journal tells: a conversation that waits for it says nothing more.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;

use super::sayings::{Parcel, packed};
use super::services::ChatServices;
use crate::journal::fact::Fact;
use crate::messenger::outcome::Outcome;
use crate::messenger::place::Messenger;
use crate::messenger::slack::{self, Slack};
use crate::secret::Clean;
use crate::service::isolated;
use crate::store::{Saying, StoreError};

/// Texts that are looked at together, each of another conversation.
const MOST: u32 = 200;
/// Texts that are sent at once: one that a messenger does not answer holds up few others.
const AT_ONCE: usize = 8;
/// Pause before it is asked what came of a text.
const BREATH: Duration = Duration::from_secs(3);
/// Shortest pause between two attempts.
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
/// Longest pause that a messenger may ask for.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);
/// Longest pause between two attempts that nobody asked for.
const LONGEST_REST: Duration = Duration::from_mins(10);
/// Time for which a text is tried: later, nobody waits for it any more.
const LONGEST_TRYING: Duration = Duration::from_hours(6);
/// Age from which a message that cannot be changed is said anew: where a workspace lets nothing be
/// changed, each step of a run would be a message of its own.
const ANEW_AFTER: TimeDelta = TimeDelta::minutes(5);
/// An attempt that comes later than this after it was due shows that the program was not there.
const LATE: TimeDelta = TimeDelta::hours(1);

/// Sends what waits and is due, until nothing more may be said now.
pub(super) async fn send_all(services: &ChatServices) -> Result<(), StoreError> {
    loop {
        let due = services.store().due_sayings(Utc::now(), MOST).await?;
        let mut may_more_follow = false;
        for few in due.chunks(AT_ONCE) {
            for sent in join_all(few.iter().map(|saying| send(services, saying))).await {
                may_more_follow |= sent?;
            }
        }
        if !may_more_follow {
            return Ok(());
        }
    }
}

/// Sends one text; returns whether those behind it may follow.
async fn send(services: &ChatServices, saying: &Saying) -> Result<bool, StoreError> {
    let Ok(parcel) = serde_json::from_value::<Parcel>(saying.document.clone()) else {
        services.store().said(saying, None).await?;
        return Ok(true);
    };
    // A text that breaks this program off fails as any other: were it to end the round, it would
    // do so in each, as the oldest one, and the texts beside it would not be sent.
    let outcome = match isolated(to_messenger(services, saying, &parcel)).await {
        Ok(outcome) => outcome?,
        // It may have been sent before that.
        Err(broken) => Outcome::Unknown {
            reason: broken.to_string(),
        },
    };
    settle(services, saying, parcel, outcome).await
}

async fn to_messenger(services: &ChatServices, saying: &Saying, parcel: &Parcel) -> Result<Outcome, StoreError> {
    let text = services.service.clean(&parcel.words.text);
    Ok(match (parcel.place.messenger, &services.slack, &services.line) {
        (Messenger::Slack, Some(slack), _) => to_slack(services, slack, saying, parcel, &text).await?,
        (Messenger::Line, _, Some(line)) => {
            let now = Utc::now();
            // A token that is too old is refused whether it was used or not: the text is pushed
            // then, and stands there twice rather than not at all.
            let reply = parcel.reply.as_ref().filter(|(_, until)| *until > now);
            let reply = reply.map(|(token, _)| token.as_str());
            services.store().begin_saying(saying.id).await?;
            line.say(&parcel.place, saying.id, &text, reply, saying.is_begun).await
        }
        _ => Outcome::Refused {
            reason: "its messenger is not configured any more".to_owned(),
        },
    })
}

async fn to_slack(
    services: &ChatServices,
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
            // A scope that is missing, or a thread that was deleted, stays so: to ask on would hold
            // up the conversation for good.
            Err(failure) => return Ok(failure.outcome()),
        }
    }
    if let Some(message) = message {
        let outcome = slack.change(&parcel.place, &message, text, &parcel.words).await;
        return Ok(match outcome {
            Outcome::Taken(_) => Outcome::Taken(Some(message)),
            other => other,
        });
    }
    services.store().begin_saying(saying.id).await?;
    Ok(slack.say(&parcel.place, saying.id, text, &parcel.words).await)
}

async fn settle(
    services: &ChatServices,
    saying: &Saying,
    parcel: Parcel,
    outcome: Outcome,
) -> Result<bool, StoreError> {
    let store = services.store();
    let since = failing_since(saying, Utc::now());
    let failing = (Utc::now() - since).to_std().unwrap_or_default();
    let after = |asked: Duration| Utc::now() + TimeDelta::from_std(pause(asked, failing)).unwrap_or_default();
    match bounded(outcome, failing) {
        Outcome::Taken(message) => {
            if let Some((run, question)) = parcel.asks {
                // By Slack's own clock, from which messages of people have their times, too.
                let at = message.as_deref().and_then(slack::time_of).unwrap_or_else(Utc::now);
                store.question_shown(run, question, at).await?;
            }
            store.said(saying, message.as_deref()).await?;
            Ok(true)
        }
        Outcome::Later { pause, reason } => {
            // One that fails again may need a person: a token that was revoked, for instance.
            if saying.failing_since.is_some() {
                tracing::warn!(session = saying.session, "still not said: {reason}");
            } else {
                tracing::info!(session = saying.session, "said later: {reason}");
            }
            let is_begun = saying.is_begun && saying.message.is_none();
            store.say_later(saying.id, since, after(pause), is_begun).await?;
            Ok(false)
        }
        Outcome::Unknown { reason } => {
            tracing::warn!(session = saying.session, "nobody knows whether it was said: {reason}");
            store.say_later(saying.id, since, after(BREATH), true).await?;
            Ok(false)
        }
        Outcome::Refused { reason } => {
            tracing::error!(session = saying.session, "it cannot be said: {reason}");
            if let Some((run, question)) = parcel.part_of {
                store.question_shown_in_part(run, question).await?;
            }
            store.said(saying, None).await?;
            // Told once: while the store cannot be written, the text is refused again and again.
            services.note(Fact::Warned {
                text: format!("a text for {} was not said: {reason}", saying.session),
            });
            Ok(true)
        }
        Outcome::NotAsReply => {
            // It goes as an ordinary message, under a key that was not used.
            let parcel = Parcel { reply: None, ..parcel };
            store.change_saying(&packed(saying.id, &parcel)).await?;
            store.say_later(saying.id, since, after(Duration::ZERO), false).await?;
            Ok(false)
        }
        Outcome::NotChangeable => {
            if is_said_anew(saying.message.as_deref(), Utc::now()) {
                store.say_anew(saying.id).await?;
            } else {
                store.said(saying, None).await?;
            }
            Ok(true)
        }
    }
}

/// Tells whether a text is said anew in place of a message that cannot be changed, by the time that
/// is Slack's name for the message.
fn is_said_anew(message: Option<&str>, now: DateTime<Utc>) -> bool {
    let seconds = message.and_then(|message| message.split('.').next()?.parse().ok());
    let at = seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    at.is_none_or(|at| now - at >= ANEW_AFTER)
}

/// Returns since when each attempt at a text has failed. An attempt that comes much later than it
/// was due counts as the first one: the program was not there to try it meanwhile.
fn failing_since(saying: &Saying, now: DateTime<Utc>) -> DateTime<Utc> {
    let is_late = now - saying.not_before > LATE;
    saying.failing_since.filter(|_| !is_late).unwrap_or(now)
}

/// Returns the pause before the next attempt: what was asked for, and more the longer it fails.
fn pause(asked: Duration, failing: Duration) -> Duration {
    let grown = (failing / 4).min(LONGEST_REST);
    asked.max(grown).clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

/// Refuses in the messenger's place what has failed for too long.
fn bounded(outcome: Outcome, failing: Duration) -> Outcome {
    match outcome {
        Outcome::Later { reason, .. } | Outcome::Unknown { reason } if failing >= LONGEST_TRYING => Outcome::Refused {
            reason: format!("it was tried for {} hours: {reason}", LONGEST_TRYING.as_secs() / 3_600),
        },
        outcome => outcome,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn time_in_which_the_program_was_off_does_not_count() {
        let at = |minutes| DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes);
        let mut saying = Saying {
            id: Uuid::nil(),
            session: "s".to_owned(),
            document: Value::Null,
            wanted: 1,
            is_begun: false,
            not_before: at(20),
            message: None,
            failing_since: None,
        };
        assert_eq!(failing_since(&saying, at(21)), at(21), "the first attempt");
        saying.failing_since = Some(at(10));
        assert_eq!(failing_since(&saying, at(21)), at(10));
        let morning = at(20 + 14 * 60);
        assert_eq!(failing_since(&saying, morning), morning);
    }

    #[test]
    fn a_message_that_cannot_be_changed_is_said_anew_now_and_then() {
        let now = DateTime::from_timestamp(1_700_000_300, 0).unwrap();
        assert!(is_said_anew(Some("1700000000.000100"), now));
        assert!(!is_said_anew(Some("1700000001.000100"), now));
        assert!(is_said_anew(Some("strange"), now) && is_said_anew(None, now));
    }

    #[test]
    fn what_fails_is_tried_ever_more_rarely_and_given_up_in_the_end() {
        let asked = Duration::from_secs(5);
        let (mut failing, mut attempts) = (Duration::ZERO, 0);
        let later = || Outcome::Later {
            pause: asked,
            reason: "x".to_owned(),
        };
        while let Outcome::Later { pause: asked, .. } = bounded(later(), failing) {
            attempts += 1;
            failing += pause(asked, failing);
        }
        assert!((40..100).contains(&attempts), "{attempts}");
        assert!(failing < LONGEST_TRYING + LONGEST_REST, "{failing:?}");
        let unknown = Outcome::Unknown { reason: "x".to_owned() };
        assert!(matches!(bounded(unknown, failing), Outcome::Refused { .. }));
        assert_eq!(bounded(Outcome::Taken(None), failing), Outcome::Taken(None));
        // Whoever asks for a longer pause has it.
        assert_eq!(pause(Duration::from_mins(20), asked), Duration::from_mins(20));
        assert_eq!(pause(Duration::from_hours(9), asked), LONGEST_PAUSE);
    }
}
