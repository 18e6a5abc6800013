//! Slack's events: messages and presses of buttons, in the envelopes of Socket Mode and in requests
//! alike.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::super::config;
use super::super::place::{Attached, Body, Incoming, MOST_ATTACHED, is_id};
use super::markup::plain;
use super::place;
use crate::picture::named;

/// Kinds of messages that people write. A message without a kind is the usual one.
const WRITTEN: [&str; 2] = ["file_share", "thread_broadcast"];
/// Most characters of a message that are read.
const LONGEST: usize = 20_000;
/// Most characters of an address.
const LONGEST_ADDRESS: usize = 2_000;

/// Returns what somebody said or pressed, if a payload tells of it and it may concern the bot,
/// whose user is `own`.
pub fn heard(payload: &Value, config: &config::Slack, own: &str) -> Option<Incoming> {
    match payload["type"].as_str()? {
        "event_callback" => said(payload, config, own),
        "block_actions" => pressed(payload),
        _ => None,
    }
}

fn said(payload: &Value, config: &config::Slack, own: &str) -> Option<Incoming> {
    let event = &payload["event"];
    let text = |key: &str| event[key].as_str();
    let is_written = text("subtype").is_none_or(|kind| WRITTEN.contains(&kind));
    let is_message = matches!(text("type")?, "message" | "app_mention");
    let is_of_a_bot = !event["bot_id"].is_null() || text("user") == Some(own);
    if !is_message || !is_written || is_of_a_bot {
        return None;
    }
    let (user, channel, ts) = (text("user")?, text("channel")?, text("ts")?);
    let are_plain = is_id(user) && is_id(channel) && is_time(ts) && text("thread_ts").is_none_or(is_time);
    if !are_plain {
        return None;
    }
    let is_direct = text("channel_type") == Some("im") || channel.starts_with('D');
    if !is_direct && !config.channels.iter().any(|known| known == channel) {
        return None;
    }
    let written = text("text").unwrap_or_default();
    let mention = format!("<@{own}>");
    let thread = match text("thread_ts") {
        Some(thread) => Some(thread),
        None if is_direct => None,
        None => Some(ts),
    };
    Some(Incoming {
        // The same message may come as `message` and as `app_mention`.
        id: format!("slack {channel} {ts}"),
        place: place(channel, thread),
        at: time_of(ts),
        user: user.to_owned(),
        is_addressed: is_direct || written.contains(&mention),
        body: Body::Text {
            text: plain(written, own).chars().take(LONGEST).collect(),
        },
        attached: attached(event),
        reply_token: None,
    })
}

/// Returns the files that may be pictures. Those that lie elsewhere have no address that is asked.
fn attached(event: &Value) -> Vec<Attached> {
    let files = event["files"].as_array().into_iter().flatten();
    let pictures = files.filter(|file| file["mimetype"].as_str().is_some_and(|kind| kind.starts_with("image/")));
    let told = pictures.map(|file| {
        let text = |key: &str| file[key].as_str().unwrap_or_default();
        let is_elsewhere = file["is_external"] == true || text("mode") == "external";
        let address = [text("url_private_download"), text("url_private")]
            .into_iter()
            .find(|address| !address.is_empty() && !is_elsewhere);
        Attached {
            name: named(text("name")),
            place: address.unwrap_or_default().chars().take(LONGEST_ADDRESS).collect(),
        }
    });
    told.take(MOST_ATTACHED).collect()
}

fn pressed(payload: &Value) -> Option<Incoming> {
    let action = payload["actions"].as_array()?.first()?;
    let user = payload["user"]["id"].as_str()?;
    let container = &payload["container"];
    let channel = container["channel_id"].as_str().or(payload["channel"]["id"].as_str())?;
    let message = container["message_ts"].as_str().or(payload["message"]["ts"].as_str())?;
    let thread = container["thread_ts"]
        .as_str()
        .or(payload["message"]["thread_ts"].as_str());
    let at = action["action_ts"].as_str().unwrap_or(message);
    if !is_id(user) || !is_id(channel) || !is_time(message) || !is_time(at) || !thread.is_none_or(is_time) {
        return None;
    }
    Some(Incoming {
        id: format!("slack {channel} {message} {user} {at}"),
        place: place(channel, thread),
        at: time_of(at),
        user: user.to_owned(),
        is_addressed: true,
        body: Body::Press {
            value: action["value"].as_str()?.chars().take(super::LONGEST_VALUE).collect(),
        },
        attached: Vec::new(),
        reply_token: None,
    })
}

/// Tells whether a text is a time of Slack's, by which messages are named: `1700000000.000100`.
fn is_time(text: &str) -> bool {
    text.len() <= 32 && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Returns the time of a message by its name in Slack, which is seconds and millionths of them.
pub fn time_of(name: &str) -> Option<DateTime<Utc>> {
    let (seconds, fraction) = name.split_once('.').unwrap_or((name, ""));
    if fraction.len() > 6 {
        return None;
    }
    let micros: u32 = format!("{fraction:0<6}").parse().ok()?;
    DateTime::from_timestamp(seconds.parse().ok()?, micros.checked_mul(1_000)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn config() -> config::Slack {
        config::Slack {
            channels: vec!["C1".to_owned()],
            ..config::Slack::default()
        }
    }

    fn message(change: &Value) -> Option<Incoming> {
        let mut event = json!({
            "type": "message", "user": "U1", "channel": "C1", "channel_type": "channel",
            "ts": "1700000000.000100", "text": "<@UBOT> fix &lt;this&gt;",
        });
        for (key, value) in change.as_object().unwrap() {
            event[key] = value.clone();
        }
        heard(&json!({ "type": "event_callback", "event": event }), &config(), "UBOT")
    }

    #[test]
    fn a_message_in_a_channel_begins_a_thread_and_one_in_a_thread_belongs_to_it() {
        let heard = message(&json!({})).unwrap();
        assert_eq!(heard.place.to_string(), "slack:C1/1700000000.000100");
        assert!(heard.is_addressed);
        assert_eq!(
            heard.body,
            Body::Text {
                text: "fix <this>".to_owned()
            }
        );
        let mentioned = message(&json!({ "type": "app_mention" })).unwrap();
        assert_eq!(mentioned.id, heard.id, "both tell of one message");
        let later = message(&json!({ "ts": "1700000009.0", "thread_ts": "1700000000.000100", "text": "and?" }));
        let later = later.unwrap();
        assert_eq!((later.place, later.is_addressed), (heard.place, false));
        let direct = message(&json!({ "channel": "D1", "channel_type": "im", "text": "hi" })).unwrap();
        assert_eq!(
            (direct.place.to_string().as_str(), direct.is_addressed),
            ("slack:D1", true)
        );
    }

    #[test]
    fn a_message_has_the_time_that_its_name_is() {
        let micros = |name: &str| time_of(name).map(|at| at.timestamp_micros());
        assert_eq!(micros("1700000000.000100"), Some(1_700_000_000_000_100));
        assert_eq!(micros("1700000000.5"), Some(1_700_000_000_500_000));
        assert_eq!(micros("1700000000"), Some(1_700_000_000_000_000));
        for strange in ["", ".", "1.2.3", "1.00000000001", "99999999999999999999"] {
            assert_eq!(micros(strange), None, "{strange}");
        }
        let heard = message(&json!({ "ts": "1700000009.000007" })).unwrap();
        assert_eq!(heard.at, time_of("1700000009.000007"));
    }

    #[test]
    fn files_that_may_be_pictures_are_told_of() {
        let file = |name: &str, kind: &str, mode: &str| {
            json!({
                "id": "F1", "name": name, "mimetype": kind, "mode": mode, "size": 10,
                "url_private": format!("https://files.slack.com/{name}"),
                "url_private_download": format!("https://files.slack.com/download/{name}"),
            })
        };
        let files = json!([
            file("a.png", "image/png", "hosted"),
            file("b.pdf", "application/pdf", "hosted"),
            file("c\n.jpg", "image/jpeg", "external"),
        ]);
        let heard = message(&json!({ "subtype": "file_share", "files": files })).unwrap();
        let told: Vec<_> = heard
            .attached
            .iter()
            .map(|attached| (attached.name.as_str(), attached.place.as_str()))
            .collect();
        assert_eq!(
            told,
            [("a.png", "https://files.slack.com/download/a.png"), ("c .jpg", "")]
        );
    }

    #[test]
    fn what_no_person_wrote_or_where_nobody_asked_for_it_is_not_heard() {
        for change in [
            json!({ "bot_id": "B1" }),
            json!({ "user": "UBOT" }),
            json!({ "user": null }),
            json!({ "subtype": "message_changed" }),
            json!({ "subtype": "bot_message" }),
            json!({ "channel": "C2" }),
            json!({ "channel": "C1/../x" }),
            json!({ "ts": "now" }),
            json!({ "type": "reaction_added" }),
        ] {
            assert_eq!(message(&change), None, "{change}");
        }
    }

    #[test]
    fn a_press_has_a_value_and_somebody_who_pressed() {
        let payload = |value: Value| {
            json!({
                "type": "block_actions", "user": { "id": "U1" },
                "container": { "type": "message", "message_ts": "1.2", "channel_id": "C1", "thread_ts": "1.0" },
                "actions": [{ "type": "button", "action_id": "answer-0", "value": value, "action_ts": "3.4" }],
            })
        };
        let heard = heard(&payload(json!("v")), &config(), "UBOT").unwrap();
        assert_eq!(heard.body, Body::Press { value: "v".to_owned() });
        assert_eq!(heard.place.to_string(), "slack:C1/1.0");
        assert_eq!(super::heard(&payload(Value::Null), &config(), "UBOT"), None);
    }
}
