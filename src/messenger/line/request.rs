//! Bodies of LINE's webhooks: signed with `X-Line-Signature`, several events at once.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, TimeDelta, Utc};
use http::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use crate::messenger::place::{Attached, Body, Incoming, Messenger, Place, is_id};
use crate::picture::named;
use crate::signature::is_signed;

/// Most characters of a message that are read.
const LONGEST: usize = 20_000;
/// Most events of a request.
const MOST_EVENTS: usize = 100;
/// Most mentions of the bot that are cut out of a message. LINE allows 20 in all.
const MOST_MENTIONS: usize = 20;
/// Longest time from a message to its delivery. The names by which a repetition is told are kept
/// longer, but not for ever: a delivery that somebody recorded would count once more afterwards.
const OLDEST: TimeDelta = TimeDelta::days(1);

/// Why a request is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTaken {
    Unsigned,
    Malformed,
}

/// Judges a request by its headers and its bytes; returns what people said in it.
pub fn judge(
    secret: &SecretString,
    headers: &HeaderMap,
    body: &[u8],
    now: DateTime<Utc>,
) -> Result<Vec<Incoming>, NotTaken> {
    let signature = headers.get("x-line-signature").and_then(|value| value.to_str().ok());
    let signature = signature.and_then(|text| STANDARD.decode(text).ok());
    let is_real = |signature: Vec<u8>| is_signed(secret.expose_secret().as_bytes(), &[body], &signature);
    if !signature.is_some_and(is_real) {
        return Err(NotTaken::Unsigned);
    }
    read(body, now)
}

/// Reads a request that was judged. What was said more than a day before `now`, by the time that is
/// signed with it, is left out: the signature is good for ever.
pub fn read(body: &[u8], now: DateTime<Utc>) -> Result<Vec<Incoming>, NotTaken> {
    let told: Value = serde_json::from_slice(body).map_err(|_| NotTaken::Malformed)?;
    let events = told["events"].as_array().ok_or(NotTaken::Malformed)?;
    let is_recent = |event: &&Value| time_of(event).is_some_and(|at| now - at <= OLDEST);
    let (recent, old): (Vec<&Value>, Vec<&Value>) = events.iter().take(MOST_EVENTS).partition(is_recent);
    if !old.is_empty() {
        tracing::warn!(
            events = old.len(),
            "LINE delivered what was said more than a day ago; it is not heard"
        );
    }
    Ok(recent.into_iter().filter_map(heard).collect())
}

fn time_of(event: &Value) -> Option<DateTime<Utc>> {
    event["timestamp"].as_i64().and_then(DateTime::from_timestamp_millis)
}

/// Returns what somebody said, if an event tells of it.
fn heard(event: &Value) -> Option<Incoming> {
    let source = &event["source"];
    let user = source["userId"].as_str()?;
    let (channel, is_direct) = match source["type"].as_str()? {
        "user" => (user, true),
        "group" => (source["groupId"].as_str()?, false),
        "room" => (source["roomId"].as_str()?, false),
        _ => return None,
    };
    let id = event["webhookEventId"].as_str()?;
    if event["mode"] != "active" || !is_id(user) || !is_id(channel) || !is_id(id) {
        return None;
    }
    let message = &event["message"];
    let mut attached = Vec::new();
    let (body, is_mentioned) = match event["type"].as_str()? {
        "message" if message["type"] == "text" => {
            let text = message["text"].as_str()?;
            let mentioned = message["mention"]["mentionees"].as_array().into_iter().flatten();
            let own = mentioned.filter(|mentionee| mentionee["isSelf"] == true);
            let own: Vec<&Value> = own.take(MOST_MENTIONS).collect();
            let text = without(text, &own).chars().take(LONGEST).collect();
            (Body::Text { text }, !own.is_empty())
        }
        "message" if message["type"] == "image" => {
            let is_here = message["contentProvider"]["type"] == "line";
            let place = message["id"].as_str().filter(|id| is_id(id) && is_here);
            attached.push(Attached {
                name: named(""),
                place: place.unwrap_or_default().to_owned(),
            });
            (Body::Text { text: String::new() }, false)
        }
        "postback" => {
            let value = event["postback"]["data"].as_str()?.chars().take(LONGEST).collect();
            (Body::Press { value }, true)
        }
        _ => return None,
    };
    Some(Incoming {
        id: format!("line {id}"),
        place: Place {
            messenger: Messenger::Line,
            channel: channel.to_owned(),
            thread: None,
        },
        at: time_of(event),
        user: user.to_owned(),
        is_addressed: is_direct || is_mentioned,
        body,
        attached,
        reply_token: event["replyToken"].as_str().map(str::to_owned),
    })
}

/// Returns a text without these mentions, and without the white space behind one that a line begins
/// with: behind either a command would be no command. LINE counts places and lengths in units of
/// UTF-16.
fn without(text: &str, mentions: &[&Value]) -> String {
    if mentions.is_empty() {
        return text.to_owned();
    }
    let mut units: Vec<Option<u16>> = text.encode_utf16().map(Some).collect();
    for mention in mentions {
        let number = |key: &str| mention[key].as_u64().and_then(|number| usize::try_from(number).ok());
        let (Some(start), Some(length)) = (number("index"), number("length")) else {
            continue;
        };
        let mut end = start.saturating_add(length).min(units.len());
        let before = start.checked_sub(1).and_then(|place| units.get(place).copied());
        if before.is_none_or(|before| before == Some(u16::from(b'\n'))) {
            end += units.iter().skip(end).take_while(|unit| is_space(**unit)).count();
        }
        if let Some(part) = units.get_mut(start..end) {
            part.fill(None);
        }
    }
    let kept: Vec<u16> = units.into_iter().flatten().collect();
    String::from_utf16_lossy(&kept).trim().to_owned()
}

/// Tells whether a unit of UTF-16 is white space within a line; Japanese keyboards have one of
/// their own.
fn is_space(unit: Option<u16>) -> bool {
    unit.is_some_and(|unit| matches!(unit, 0x09 | 0x20 | 0x3000))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hmac::{Hmac, Mac};
    use serde_json::json;

    const SECRET: &str = "8c570fa6dd201bb328f1c1eac23a96d8";

    fn signed(body: &[u8]) -> String {
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
        mac.update(body);
        STANDARD.encode(mac.finalize().into_bytes())
    }

    fn judged(signature: &str, body: &[u8]) -> Result<Vec<Incoming>, NotTaken> {
        let mut headers = HeaderMap::new();
        headers.insert("x-line-signature", signature.parse().unwrap());
        judge(&SECRET.into(), &headers, body, at(0))
    }

    /// Returns the time so many minutes after the usual event.
    fn at(minutes: i64) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(1_700_000_000_000).unwrap() + TimeDelta::minutes(minutes)
    }

    fn event(change: &[(&str, Value)]) -> Value {
        let mut event = json!({
            "type": "message", "mode": "active", "timestamp": 1_700_000_000_000_u64,
            "source": { "type": "user", "userId": "U4af4980629" },
            "webhookEventId": "01FZ74A0TDDPYRVKNK77XKC3ZR", "deliveryContext": { "isRedelivery": false },
            "replyToken": "nHuyWiB7yP5Zw52FIkcQobQuGDXCTA",
            "message": { "type": "text", "id": "444573844083572737", "quoteToken": "q", "text": "hello" },
        });
        for (key, value) in change {
            event[*key] = value.clone();
        }
        event
    }

    #[test]
    fn only_what_is_signed_is_read() {
        let body = json!({ "destination": "U1", "events": [event(&[])] }).to_string();
        let good = signed(body.as_bytes());
        let heard = judged(&good, body.as_bytes()).unwrap();
        assert_eq!(heard[0].id, "line 01FZ74A0TDDPYRVKNK77XKC3ZR");
        assert_eq!(heard[0].place.to_string(), "line:U4af4980629");
        assert_eq!(heard[0].at, Some(at(0)));
        assert_eq!(
            heard[0].body,
            Body::Text {
                text: "hello".to_owned()
            }
        );
        for wrong in ["", "AAAA", &good[1..], &good.to_lowercase()] {
            assert_eq!(judged(wrong, body.as_bytes()), Err(NotTaken::Unsigned), "{wrong}");
        }
        let changed = body.replace("hello", "hallo");
        assert_eq!(judged(&good, changed.as_bytes()), Err(NotTaken::Unsigned));
        // LINE tries the address with no events at all.
        let empty = br#"{"destination":"U1","events":[]}"#;
        assert_eq!(judged(&signed(empty), empty), Ok(Vec::new()));
        assert_eq!(judged(&signed(b"x"), b"x"), Err(NotTaken::Malformed));
    }

    #[test]
    fn what_was_recorded_a_day_ago_is_not_heard_again() {
        let heard = |event: Value, minutes: i64| {
            let body = json!({ "destination": "U1", "events": [event] }).to_string();
            read(body.as_bytes(), at(minutes)).unwrap().len()
        };
        assert_eq!(heard(event(&[]), 24 * 60), 1, "a delivery that LINE repeats");
        assert_eq!(heard(event(&[]), 24 * 60 + 1), 0);
        assert_eq!(heard(event(&[]), -5), 1, "clocks differ");
        for wrong in [Value::Null, json!("1700000000000"), json!(u64::MAX)] {
            assert_eq!(heard(event(&[("timestamp", wrong.clone())]), 0), 0, "{wrong}");
        }
    }

    #[test]
    fn the_mention_of_the_bot_is_no_part_of_what_is_said() {
        let said = |text: &str, mentionees: Value| {
            let message = json!({
                "type": "text", "id": "1", "quoteToken": "q", "text": text, "mention": { "mentionees": mentionees },
            });
            match heard(&event(&[("message", message)])).unwrap().body {
                Body::Text { text } => text,
                Body::Press { value } => value,
            }
        };
        let own = |index: u64, length: u64| json!({ "index": index, "length": length, "type": "user", "isSelf": true });
        assert_eq!(said("@Bot /local see logs", json!([own(0, 4)])), "/local see logs");
        // A character beyond the first 65,536 counts twice.
        assert_eq!(said("🎉@Bot /local", json!([own(2, 4)])), "🎉 /local");
        assert_eq!(said("@Bot 承認 @Bot", json!([own(0, 4), own(8, 4)])), "承認");
        assert_eq!(said("見て\n@Bot　/local a\nb", json!([own(3, 4)])), "見て\n/local a\nb");
        assert_eq!(said("a @Bot b", json!([own(2, 4)])), "a  b");
        let other = json!({ "index": 0, "length": 4, "type": "user", "userId": "U2", "isSelf": false });
        assert_eq!(said("@Bob /local", json!([other])), "@Bob /local");
        for strange in [
            own(50, 4),
            own(0, 0),
            own(u64::MAX, u64::MAX),
            json!({ "isSelf": true }),
        ] {
            assert_eq!(said("@Bot /local", json!([strange])), "@Bot /local");
        }
    }

    #[test]
    fn a_picture_is_told_of_by_the_name_of_its_message() {
        let picture = |provider: &str, id: &str| {
            let message = json!({
                "type": "image", "id": id, "quoteToken": "q", "contentProvider": { "type": provider },
            });
            heard(&event(&[("message", message)])).unwrap().attached.remove(0).place
        };
        assert_eq!(picture("line", "354718705033693859"), "354718705033693859");
        assert_eq!(picture("external", "354718705033693859"), "");
        assert_eq!(picture("line", "../x"), "");
    }

    #[test]
    fn groups_are_heard_where_the_bot_is_named_and_others_not_at_all() {
        let group = json!({ "type": "group", "groupId": "Cgroup", "userId": "U1" });
        let said = heard(&event(&[("source", group.clone())])).unwrap();
        assert_eq!((said.place.channel.as_str(), said.is_addressed), ("Cgroup", false));
        let mention = json!({
            "type": "text", "id": "1", "quoteToken": "q", "text": "@bot hi",
            "mention": { "mentionees": [{ "index": 0, "length": 4, "type": "user", "isSelf": true }] },
        });
        assert!(
            heard(&event(&[("source", group), ("message", mention)]))
                .unwrap()
                .is_addressed
        );
        for (key, value) in [
            ("type", json!("follow")),
            ("mode", json!("standby")),
            ("source", json!({ "type": "group", "groupId": "C1" })),
            ("webhookEventId", json!("../x")),
            ("message", json!({ "type": "sticker" })),
        ] {
            assert_eq!(heard(&event(&[(key, value.clone())])), None, "{key} {value}");
        }
    }
}
