//! Webhooks: forged ones do nothing, and repeated ones nothing more.

use std::fmt::Write;

use hmac::{Hmac, Mac};
use reqwest::{Method, StatusCode};

use super::Tally;
use super::entrance::{Entrance, SECRET, settled, until};

const BODY: &str = r#"{"action":"labeled","label":{"name":"coding agent"},"issue":{"number":1}}"#;
const REPEATED: usize = 500;

fn signed(secret: &str, body: &str) -> anyhow::Result<String> {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes())
        .map_err(|_| anyhow::anyhow!("no key of this length"))?;
    mac.update(body.as_bytes());
    let bytes = mac.finalize().into_bytes();
    Ok(bytes.iter().fold("sha256=".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

pub async fn forged(entrance: &Entrance) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let before = settled(entrance).await;
    let good = signed(SECRET, BODY)?;
    let mut signatures = vec![
        String::new(),
        "sha256=".to_owned(),
        good[7..].to_owned(),
        good[..good.len() - 2].to_owned(),
        format!("{good}00"),
        good.to_uppercase(),
        good.replace("sha256", "sha1"),
        signed("", BODY)?,
        signed("secret", BODY)?,
        signed(SECRET, "")?,
        signed(SECRET, &format!("{BODY} "))?,
        format!("{good},{good}"),
        SECRET.to_owned(),
    ];
    signatures.extend((7..good.len()).map(|at| {
        let other = if &good[at..=at] == "0" { "1" } else { "0" };
        format!("{}{other}{}", &good[..at], &good[at + 1..])
    }));
    for (number, signature) in signatures.iter().enumerate() {
        let id = format!("forged-{number}");
        let headers = [
            ("x-github-event", "issues"),
            ("x-github-delivery", id.as_str()),
            ("x-hub-signature-256", signature.as_str()),
        ];
        let answer = entrance.send(Method::POST, "/hooks/github", &headers, BODY).await?;
        tally.tries(signature, taken(answer.status));
    }
    // Signed rightly, and twice, or beside a wrong one.
    for second in [good.as_str(), "sha256=00"] {
        let headers = [
            ("x-github-event", "issues"),
            ("x-github-delivery", "forged-two"),
            ("x-hub-signature-256", good.as_str()),
            ("x-hub-signature-256", second),
        ];
        let answer = entrance.send(Method::POST, "/hooks/github", &headers, BODY).await?;
        tally.tries("two signatures", taken(answer.status));
    }
    for (name, headers, body) in [
        ("no id", vec![("x-github-event", "issues")], BODY),
        (
            "an id of signs",
            vec![("x-github-event", "issues"), ("x-github-delivery", "a b")],
            BODY,
        ),
        ("no event", vec![("x-github-delivery", "f-1")], BODY),
        (
            "a list",
            vec![("x-github-event", "issues"), ("x-github-delivery", "f-2")],
            "[]",
        ),
        (
            "no JSON",
            vec![("x-github-event", "issues"), ("x-github-delivery", "f-3")],
            "payload=%7B%7D",
        ),
    ] {
        let signature = signed(SECRET, body)?;
        let mut headers = headers;
        headers.push(("x-hub-signature-256", &signature));
        if let Ok(answer) = entrance.send(Method::POST, "/hooks/github", &headers, body).await {
            tally.tries(name, taken(answer.status));
        }
    }
    for token in [
        "",
        "a",
        &SECRET[1..],
        &SECRET.to_uppercase(),
        &format!("{SECRET}{SECRET}"),
    ] {
        let headers = [
            ("x-gitlab-event", "Issue Hook"),
            ("x-gitlab-event-uuid", "f-4"),
            ("x-gitlab-token", token),
        ];
        let answer = entrance.send(Method::POST, "/hooks/gitlab", &headers, BODY).await?;
        tally.tries("a token of GitLab", taken(answer.status));
    }
    let after = settled(entrance).await;
    tally.tries(
        "all of them",
        (after != before).then(|| "the program looked at the forge".to_owned()),
    );
    let headers = [
        ("x-github-event", "issues"),
        ("x-github-delivery", "real-1"),
        ("x-hub-signature-256", good.as_str()),
    ];
    let real = entrance.send(Method::POST, "/hooks/github", &headers, BODY).await?;
    tally.controls("a real delivery", real.status == StatusCode::ACCEPTED);
    until("the program looks", || entrance.github.requests().len() > after).await?;
    Ok(tally)
}

fn taken(status: StatusCode) -> Option<String> {
    (!status.is_client_error()).then(|| format!("it was answered with {status}"))
}

pub async fn repeated(entrance: &Entrance) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let body = BODY.replace("labeled", "opened");
    let good = signed(SECRET, &body)?;
    let deliver = async |id: &str, event: &str| -> anyhow::Result<String> {
        let headers = [
            ("x-github-event", event),
            ("x-github-delivery", id),
            ("x-hub-signature-256", good.as_str()),
        ];
        let answer = entrance
            .send(Method::POST, "/hooks/github", &headers, body.clone())
            .await?;
        Ok(answer.json()["outcome"].as_str().unwrap_or_default().to_owned())
    };
    let begun = entrance.github.requests().len();
    tally.controls("the first delivery", deliver("first", "issues").await? == "taken");
    until("the program looks", || entrance.github.requests().len() > begun).await?;
    let (before, runs) = (settled(entrance).await, entrance.runs().await?.len());
    for number in 0..REPEATED {
        let id = if number % 2 == 0 {
            "first".to_owned()
        } else {
            format!("again-{number}")
        };
        let event = ["issues", "issue_comment", "pull_request"][number % 3];
        let outcome = deliver(&id, event).await?;
        tally.tries(
            "a delivery that came before",
            (outcome == "taken").then(|| format!("it was taken as {id}, {event}")),
        );
    }
    let (after, now) = (settled(entrance).await, entrance.runs().await?.len());
    tally.tries(
        "all of them",
        (after != before).then(|| "the program looked at the forge".to_owned()),
    );
    tally.tries(
        "all of them",
        (now != runs).then(|| format!("there were {runs} runs, and {now} now")),
    );
    Ok(tally)
}
