//! Deliveries of GitLab: with the secret token in `X-Gitlab-Token`, or signed in the form of
//! Standard Webhooks. Where the configuration has a signing secret, only what is signed counts.

use axum::http::HeaderMap;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, TimeDelta, Utc};
use secrecy::{ExposeSecret, SecretString};

use super::{Delivery, NotTaken, delivery_id, is_object, sole};
use crate::config::http::GitlabHook;
use crate::signature::{is_same, is_signed};

/// How far the time of a signed delivery may be from that of this machine.
const LATEST: TimeDelta = TimeDelta::minutes(5);
/// How a signing secret begins; the rest is base64.
const SECRET: &str = "whsec_";

/// Events that can mean work, or a word to a run.
const OF_INTEREST: [&str; 8] = [
    "Issue Hook",
    "Confidential Issue Hook",
    "Note Hook",
    "Confidential Note Hook",
    "Merge Request Hook",
    "Pipeline Hook",
    "Job Hook",
    "Work Item Hook",
];

/// Judges a delivery by its headers and its bytes.
pub(super) fn judge(
    config: &GitlabHook,
    headers: &HeaderMap,
    body: &[u8],
    now: DateTime<Utc>,
) -> Result<Delivery, NotTaken> {
    match (&config.signing_secret, &config.token) {
        (Some(secret), _) => is_signed_by(secret, headers, body, now)?,
        (None, Some(token)) => {
            let given = sole(headers, "x-gitlab-token").unwrap_or_default();
            if !is_same(token.expose_secret().as_bytes(), given.as_bytes()) {
                let detail =
                    "X-Gitlab-Token is missing or wrong; see that the webhook has the token of http.webhooks.gitlab";
                return Err(NotTaken::Unsigned(detail));
            }
        }
        (None, None) => {
            let detail =
                "webhooks of GitLab are not taken: http.webhooks.gitlab has no token_file and no signing_secret_file";
            return Err(NotTaken::NotConfigured(detail));
        }
    }
    let id = ["webhook-id", "idempotency-key", "x-gitlab-event-uuid"]
        .iter()
        .find_map(|name| delivery_id(headers, name));
    let Some(id) = id else {
        return Err(NotTaken::Malformed(
            "there is no id of the delivery (Idempotency-Key, X-Gitlab-Event-UUID)",
        ));
    };
    let Some(event) = sole(headers, "x-gitlab-event") else {
        return Err(NotTaken::Malformed("X-Gitlab-Event is missing"));
    };
    if !is_object(body) {
        return Err(NotTaken::Malformed("the body is no JSON object"));
    }
    Ok(Delivery {
        id,
        is_of_interest: OF_INTEREST.contains(&event),
    })
}

fn is_signed_by(secret: &SecretString, headers: &HeaderMap, body: &[u8], now: DateTime<Utc>) -> Result<(), NotTaken> {
    let refused = || {
        let detail = "the delivery is not signed, or not with http.webhooks.gitlab.signing_secret_file, or too old";
        NotTaken::Unsigned(detail)
    };
    let text = secret.expose_secret();
    let key = text.strip_prefix(SECRET).and_then(|rest| STANDARD.decode(rest).ok());
    let key = key.unwrap_or_else(|| text.as_bytes().to_vec());
    let id = sole(headers, "webhook-id").ok_or_else(refused)?;
    let at = sole(headers, "webhook-timestamp").ok_or_else(refused)?;
    let signatures = sole(headers, "webhook-signature").ok_or_else(refused)?;
    let sent = at.parse().ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    let is_recent = sent.is_some_and(|sent| (now - sent).abs() <= LATEST);
    let parts: [&[u8]; 5] = [id.as_bytes(), b".", at.as_bytes(), b".", body];
    // A secret that is being replaced signs beside the new one.
    let mut signatures = signatures
        .split(' ')
        .filter_map(|one| STANDARD.decode(one.strip_prefix("v1,")?).ok());
    if is_recent && signatures.any(|signature| is_signed(&key, &parts, &signature)) {
        return Ok(());
    }
    Err(refused())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.insert(*name, value.parse().unwrap());
        }
        headers
    }

    const EVENT: (&str, &str) = ("x-gitlab-event", "Issue Hook");
    const BODY: &[u8] = br#"{"test": 2432232314}"#;

    #[test]
    fn a_token_lets_in_what_carries_it() {
        let config = GitlabHook {
            token: Some("a-token-of-some-length".into()),
            signing_secret: None,
        };
        let judged = |token: &str| {
            let headers = headers(&[
                EVENT,
                ("x-gitlab-event-uuid", "13792a34-cac6"),
                ("x-gitlab-token", token),
            ]);
            judge(&config, &headers, BODY, Utc::now())
        };
        assert!(judged("a-token-of-some-length").is_ok_and(|delivery| delivery.is_of_interest));
        for wrong in ["", "a-token", "a-token-of-some-length-", "A-token-of-some-length"] {
            assert!(matches!(judged(wrong), Err(NotTaken::Unsigned(_))), "{wrong}");
        }
    }

    /// The example of the Standard Webhooks specification.
    #[test]
    fn the_signature_of_the_specification_is_good_at_its_time() {
        let config = GitlabHook {
            token: Some("a-token-of-some-length".into()),
            signing_secret: Some("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".into()),
        };
        let judged = |signature: &str, seconds: i64, body: &[u8]| {
            let headers = headers(&[
                EVENT,
                ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
                ("webhook-timestamp", "1614265330"),
                ("webhook-signature", signature),
                // Where a signing secret is configured the token alone is not enough.
                ("x-gitlab-token", "a-token-of-some-length"),
            ]);
            judge(
                &config,
                &headers,
                body,
                DateTime::from_timestamp(1_614_265_330 + seconds, 0).unwrap(),
            )
        };
        let good = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert!(judged(good, 0, BODY).is_ok_and(|delivery| delivery.id == "msg_p5jXN8AQM9LWM0D4loKWxJek"));
        assert!(judged(&format!("v1,AAAA {good}"), 299, BODY).is_ok());
        for (signature, seconds, body) in [
            (good, 301, BODY),
            (good, -301, BODY),
            (good, 0, br#"{"test": 2432232315}"#),
            ("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OF=", 0, BODY),
            ("v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", 0, BODY),
            ("", 0, BODY),
        ] {
            assert!(
                matches!(judged(signature, seconds, body), Err(NotTaken::Unsigned(_))),
                "{signature}"
            );
        }
    }
}
