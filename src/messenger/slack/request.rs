//! Slack's requests over HTTP, where no socket is used: signed with `X-Slack-Signature`.

use chrono::{DateTime, TimeDelta, Utc};
use http::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use url::form_urlencoded;

use crate::signature::{from_hex, is_signed};

/// Largest difference between the time of a request and that of this machine.
const LATEST: TimeDelta = TimeDelta::minutes(5);

/// Why a request is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotTaken {
    Unsigned,
    Malformed,
}

/// The content of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum RequestContent {
    /// Slack's check of the address, with the text that it wants as the answer.
    Challenge(String),
    Payload(Value),
}

/// Judges a request by its headers and its bytes.
pub fn judge(
    secret: &SecretString,
    headers: &HeaderMap,
    body: &[u8],
    now: DateTime<Utc>,
) -> Result<RequestContent, NotTaken> {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    let (Some(at), Some(signature)) = (header("x-slack-request-timestamp"), header("x-slack-signature")) else {
        return Err(NotTaken::Unsigned);
    };
    let sent = at.parse().ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    let is_recent = sent.is_some_and(|sent| (now - sent).abs() <= LATEST);
    let signature = signature.strip_prefix("v0=");
    // Slack writes them small.
    let signature = signature.filter(|digits| !digits.contains(|digit: char| digit.is_ascii_uppercase()));
    let signature = signature.and_then(from_hex);
    let parts: [&[u8]; 4] = [b"v0:", at.as_bytes(), b":", body];
    let is_real = |signature: Vec<u8>| is_signed(secret.expose_secret().as_bytes(), &parts, &signature);
    if !is_recent || !signature.is_some_and(is_real) {
        return Err(NotTaken::Unsigned);
    }
    read(header("content-type").unwrap_or_default(), body).ok_or(NotTaken::Malformed)
}

/// Reads a request that was judged, as the kind that its header names.
pub fn read(kind: &str, body: &[u8]) -> Option<RequestContent> {
    let payload: Value = if kind.starts_with("application/x-www-form-urlencoded") {
        let mut fields = form_urlencoded::parse(body);
        let (_, payload) = fields.find(|(name, _)| name == "payload")?;
        serde_json::from_str(&payload).ok()?
    } else {
        serde_json::from_slice(body).ok()?
    };
    if payload["type"] == "url_verification" {
        let challenge = payload["challenge"].as_str()?;
        return Some(RequestContent::Challenge(challenge.chars().take(200).collect()));
    }
    payload.is_object().then_some(RequestContent::Payload(payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Slack's documentation on verifying requests.
    const SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";
    const AT: i64 = 1_531_420_618;
    const BODY: &str = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&\
                        channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&\
                        response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&\
                        trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
    const SIGNATURE: &str = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";

    fn judged(signature: &str, seconds: i64, body: &str) -> Result<RequestContent, NotTaken> {
        let mut headers = HeaderMap::new();
        headers.insert("x-slack-request-timestamp", AT.to_string().parse().unwrap());
        headers.insert("x-slack-signature", signature.parse().unwrap());
        headers.insert("content-type", "application/x-www-form-urlencoded".parse().unwrap());
        let now = DateTime::from_timestamp(AT + seconds, 0).unwrap();
        judge(&SECRET.into(), &headers, body.as_bytes(), now)
    }

    #[test]
    fn the_signature_of_the_documentation_is_good_at_its_time_and_no_other() {
        // It is signed, and has no payload: that is what is said of it.
        assert_eq!(judged(SIGNATURE, 0, BODY), Err(NotTaken::Malformed));
        assert_eq!(judged(SIGNATURE, 300, BODY), Err(NotTaken::Malformed));
        let flipped: Vec<String> = (3..SIGNATURE.len())
            .map(|at| {
                let mut text = SIGNATURE.to_owned();
                let other = if &text[at..=at] == "0" { "1" } else { "0" };
                text.replace_range(at..=at, other);
                text
            })
            .collect();
        let upper = SIGNATURE.to_uppercase();
        let others = ["", "v0=", &SIGNATURE[3..], &SIGNATURE[..20], upper.as_str()];
        for signature in others.into_iter().chain(flipped.iter().map(String::as_str)) {
            assert_eq!(judged(signature, 0, BODY), Err(NotTaken::Unsigned), "{signature}");
        }
        assert_eq!(judged(SIGNATURE, 301, BODY), Err(NotTaken::Unsigned));
        assert_eq!(judged(SIGNATURE, -301, BODY), Err(NotTaken::Unsigned));
        assert_eq!(
            judged(SIGNATURE, 0, &BODY.replace("foobar", "foobaz")),
            Err(NotTaken::Unsigned)
        );
    }

    #[test]
    fn a_question_for_the_address_and_a_press_are_read() {
        let asked = read("application/json", br#"{"type":"url_verification","challenge":"abc"}"#);
        assert_eq!(asked, Some(RequestContent::Challenge("abc".to_owned())));
        let pressed = read(
            "application/x-www-form-urlencoded",
            b"payload=%7B%22type%22%3A%22block_actions%22%7D",
        );
        assert_eq!(
            pressed,
            Some(RequestContent::Payload(serde_json::json!({ "type": "block_actions" })))
        );
        assert_eq!(read("application/json", b"[]"), None);
    }
}
