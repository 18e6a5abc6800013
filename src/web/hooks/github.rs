//! Deliveries of GitHub: signed with `X-Hub-Signature-256`.

use axum::http::HeaderMap;
use secrecy::ExposeSecret;

use super::{Delivery, NotTaken, delivery_id, is_object, sole};
use crate::config::http::GithubHook;
use crate::signature::{from_hex, is_signed};

/// Events that can mean work, or a word to a run.
const OF_INTEREST: [&str; 9] = [
    "check_run",
    "check_suite",
    "issue_comment",
    "issues",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "status",
    "workflow_run",
];

/// Judges a delivery by its headers and its bytes.
pub(super) fn judge(config: &GithubHook, headers: &HeaderMap, body: &[u8]) -> Result<Delivery, NotTaken> {
    let Some(secret) = &config.secret else {
        let detail = "webhooks of GitHub are not taken: http.webhooks.github has no secret_file";
        return Err(NotTaken::NotConfigured(detail));
    };
    let signature = sole(headers, "x-hub-signature-256");
    let signature = signature.and_then(|text| from_hex(text.strip_prefix("sha256=")?));
    let is_real = |signature: Vec<u8>| is_signed(secret.expose_secret().as_bytes(), &[body], &signature);
    if !signature.is_some_and(is_real) {
        let detail =
            "X-Hub-Signature-256 is missing or wrong; see that the webhook has the secret of http.webhooks.github";
        return Err(NotTaken::Unsigned(detail));
    }
    let Some(id) = delivery_id(headers, "x-github-delivery") else {
        return Err(NotTaken::Malformed("X-GitHub-Delivery is missing, or no id"));
    };
    let Some(event) = sole(headers, "x-github-event") else {
        return Err(NotTaken::Malformed("X-GitHub-Event is missing"));
    };
    if !is_object(body) {
        let detail = "the body is no JSON object; choose the content type application/json for the webhook";
        return Err(NotTaken::Malformed(detail));
    }
    Ok(Delivery {
        id,
        is_of_interest: OF_INTEREST.contains(&event),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hmac::{Hmac, Mac};
    use std::fmt::Write;

    const SECRET: &str = "It's a Secret to Everybody";
    const BODY: &[u8] = b"Hello, World!";
    /// From GitHub's documentation on validating deliveries, for the secret and body above.
    const SIGNATURE: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    fn judged(signature: Option<&str>, body: &[u8]) -> Result<Delivery, NotTaken> {
        let mut headers = HeaderMap::new();
        headers.insert(
            "x-github-delivery",
            "72d3162e-cc78-11e3-81ab-4c9367dc0958".parse().unwrap(),
        );
        headers.insert("x-github-event", "issues".parse().unwrap());
        if let Some(signature) = signature {
            headers.insert("x-hub-signature-256", signature.parse().unwrap());
        }
        let config = GithubHook {
            secret: Some(SECRET.into()),
        };
        judge(&config, &headers, body)
    }

    #[test]
    fn the_signature_of_the_documentation_is_good_and_no_other() {
        // Signed well, and no JSON: that is what is said of it.
        assert!(matches!(judged(Some(SIGNATURE), BODY), Err(NotTaken::Malformed(detail)) if detail.contains("JSON")));
        let upper = SIGNATURE.to_uppercase();
        let mut wrong = vec![
            None,
            Some(""),
            Some("sha256="),
            Some(&SIGNATURE[..SIGNATURE.len() - 2]),
            Some(&SIGNATURE[7..]),
            Some("sha1=757107ea0eb2509fc211221cce984b8a37570b6d"),
            Some(upper.as_str()),
        ];
        let flipped: Vec<String> = (7..SIGNATURE.len())
            .map(|at| {
                let mut text = SIGNATURE.to_owned();
                let other = if &text[at..=at] == "0" { "1" } else { "0" };
                text.replace_range(at..=at, other);
                text
            })
            .collect();
        wrong.extend(flipped.iter().map(|text| Some(text.as_str())));
        for signature in wrong {
            assert!(
                matches!(judged(signature, BODY), Err(NotTaken::Unsigned(_))),
                "{signature:?}"
            );
        }
        assert!(matches!(
            judged(Some(SIGNATURE), b"Hello, World?"),
            Err(NotTaken::Unsigned(_))
        ));
    }

    #[test]
    fn a_signed_object_is_taken() {
        let body = br#"{"action":"labeled"}"#;
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(SECRET.as_bytes()).unwrap();
        mac.update(body);
        let hex = mac.finalize().into_bytes().iter().fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        });
        let delivery = judged(Some(&format!("sha256={hex}")), body);
        assert!(delivery.is_ok_and(|delivery| delivery.is_of_interest));
    }
}
