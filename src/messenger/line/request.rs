//! Bodies of LINE's webhooks: signed with `X-Line-Signature`, several events at once.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
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

/// Why a request is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTaken {
    Unsigned,
    Malformed,
}

/// Judges a request by its headers and its bytes; returns what people said in it.
pub fn judge(secret: &SecretString, headers: &HeaderMap, body: &[u8]) -> Result<Vec<Incoming>, NotTaken> {
    let signature = headers.get("x-line-signature").and_then(|value| value.to_str().ok());
    let signature = signature.and_then(|text| STANDARD.decode(text).ok());
    let is_real = |signature: Vec<u8>| is_signed(secret.expose_secret().as_bytes(), &[body], &signature);
    if !signature.is_some_and(is_real) {
        return Err(NotTaken::Unsigned);
    }
    read(body)
}

/// Reads a request that was judged.
pub fn read(body: &[u8]) -> Result<Vec<Incoming>, NotTaken> {
    let told: Value = serde_json::from_slice(body).map_err(|_| NotTaken::Malformed)?;
    let events = told["events"].as_array().ok_or(NotTaken::Malformed)?;
    Ok(events.iter().take(MOST_EVENTS).filter_map(heard).collect())
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
            let mut own = mentioned.filter(|mentionee| mentionee["isSelf"] == true);
            let text = text.chars().take(LONGEST).collect();
            (Body::Text { text }, own.next().is_some())
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
        user: user.to_owned(),
        is_addressed: is_direct || is_mentioned,
        body,
        attached,
        reply_token: event["replyToken"].as_str().map(str::to_owned),
    })
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
        judge(&SECRET.into(), &headers, body)
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
