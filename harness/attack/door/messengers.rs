//! Messengers: messages that none of them has sent, that are sent again, that come from people who are
//! not heard, that only quote commands, and too many of them.

use std::sync::atomic::{AtomicU32, Ordering};

use chrono::Utc;
use futures_util::future::join_all;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::Tally;
use super::entrance::{Entrance, settled};
use super::floods::too_large;
use crate::fake::line;
use crate::fake::slack::{self, BOT, CHANNEL, SIGNING_SECRET};

/// A user who may write; the other one is heard and may not.
pub const WRITER: &str = "U0ALICE0";
pub const READER: &str = "U0BOB000";
/// A user whom the configuration does not name.
const STRANGER: &str = "U0MALLORY";
const REPEATED: usize = 200;
const FLOOD: usize = 500;
const BODIES: usize = 60;

/// The numbers of issues, replies, decisions and deeds that came of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    issues: usize,
    said: usize,
    decisions: usize,
    deeds: usize,
}

impl Seen {
    /// Waits until the program is still, and looks.
    async fn of(entrance: &Entrance) -> Self {
        settled(entrance).await;
        Self {
            issues: entrance.github.items().len(),
            said: entrance.slack.said().len() + entrance.line.sent().len(),
            decisions: entrance.facts("router_decision").len(),
            deeds: entrance.deeds(),
        }
    }
}

async fn to_slack(entrance: &Entrance, body: &str, at: i64, signature: &str) -> anyhow::Result<StatusCode> {
    let at = at.to_string();
    let kind = if body.starts_with("payload=") {
        "application/x-www-form-urlencoded"
    } else {
        "application/json"
    };
    let headers = [
        ("content-type", kind),
        ("x-slack-request-timestamp", at.as_str()),
        ("x-slack-signature", signature),
    ];
    let answered = entrance.send(Method::POST, "/hooks/slack", &headers, body.to_owned());
    Ok(answered.await?.status)
}

/// Delivers what Slack has signed at this moment.
async fn slack_tells(entrance: &Entrance, body: &str) -> anyhow::Result<StatusCode> {
    let now = Utc::now().timestamp();
    to_slack(entrance, body, now, &slack::signature(body, now)).await
}

async fn to_line(entrance: &Entrance, body: &str, signature: &str) -> anyhow::Result<StatusCode> {
    let headers = [("x-line-signature", signature)];
    let answered = entrance.send(Method::POST, "/hooks/line", &headers, body.to_owned());
    Ok(answered.await?.status)
}

fn taken(status: StatusCode) -> Option<String> {
    (!status.is_client_error()).then(|| format!("it was answered with {status}"))
}

/// Returns the text with another sign in each place, one after the other.
fn changed(text: &str, from: usize) -> impl Iterator<Item = String> {
    (from..text.len()).filter_map(move |at| {
        let other = if text.get(at..=at)? == "0" { "1" } else { "0" };
        Some(format!("{}{other}{}", text.get(..at)?, text.get(at + 1..)?))
    })
}

pub async fn forged(entrance: &Entrance) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let before = Seen::of(entrance).await;
    let now = Utc::now().timestamp();
    let body = entrance.slack.mentions_by_request(WRITER, "/code Forged");
    let good = slack::signature(&body, now);
    let digits = good.trim_start_matches("v0=");
    let mut wrong = vec![
        String::new(),
        "v0=".to_owned(),
        digits.to_owned(),
        format!("v1={digits}"),
        good[..good.len() - 2].to_owned(),
        format!("{good}00"),
        good.to_uppercase(),
        slack::signature(&format!("{body} "), now),
        slack::signature("", now),
        slack::signature(&body, now + 1),
        format!("{good},{good}"),
        SIGNING_SECRET.to_owned(),
    ];
    wrong.extend(changed(&good, 3));
    for signature in &wrong {
        tally.tries(signature, taken(to_slack(entrance, &body, now, signature).await?));
    }
    // What is ahead of the clock is so by a minute more than the limit of 300 s: the clock has gone
    // on since `now` was read.
    for at in [0, now - 301, now - 3_600, now + 361, now + 100_000, i64::MIN, i64::MAX] {
        let signature = slack::signature(&body, at);
        tally.tries("another time", taken(to_slack(entrance, &body, at, &signature).await?));
    }
    let (body, good) = entrance.line.writes(WRITER, "/code Forged");
    let mut wrong = vec![
        String::new(),
        "====".to_owned(),
        good[..good.len() - 4].to_owned(),
        format!("{good}AAAA"),
        good.to_lowercase(),
        line::signature(""),
        line::signature(&format!("{body} ")),
        line::CHANNEL_SECRET.to_owned(),
        format!(" {good} x"),
    ];
    wrong.extend(changed(good.trim_end_matches('='), 0).map(|text| format!("{text}=")));
    for signature in wrong.iter().filter(|signature| **signature != good) {
        tally.tries(signature, taken(to_line(entrance, &body, signature).await?));
    }
    let after = Seen::of(entrance).await;
    tally.tries(
        "all of them",
        (after != before).then(|| format!("{before:?} became {after:?}")),
    );

    let body = entrance.slack.mentions_by_request(WRITER, "/chat hello");
    tally.controls(
        "a real message in Slack",
        slack_tells(entrance, &body).await?.is_success(),
    );
    let (body, good) = entrance.line.writes(WRITER, "hello");
    tally.controls(
        "a real message in LINE",
        to_line(entrance, &body, &good).await?.is_success(),
    );
    let last = Seen::of(entrance).await;
    tally.controls("their answers", last.said == after.said + 2);
    Ok(tally)
}

pub async fn repeated(entrance: &Entrance) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let before = Seen::of(entrance).await;
    let body = entrance.slack.mentions_by_request(WRITER, "/code Only once");
    let (told, good) = entrance.line.writes(WRITER, "only once");
    let sent = (0..REPEATED).map(|number| {
        let (body, told, good) = (body.as_str(), told.as_str(), good.as_str());
        async move {
            if number % 2 == 0 {
                slack_tells(entrance, body).await
            } else {
                to_line(entrance, told, good).await
            }
        }
    });
    let answers = join_all(sent).await;
    tally.controls("each of them", answers.iter().flatten().all(StatusCode::is_success));
    for _ in 2..REPEATED {
        tally.tries("a message that came before", None);
    }
    let after = Seen::of(entrance).await;
    tally.controls(
        "the first of them",
        after.issues > before.issues && after.said > before.said,
    );
    let issues = after.issues - before.issues;
    tally.tries("issues", (issues > 1).then(|| format!("{issues} were opened")));
    let decisions = after.decisions - before.decisions;
    tally.tries("answers", (decisions > 2).then(|| format!("{decisions} were made")));
    Ok(tally)
}

/// Returns what Slack tells of a message with these fields changed.
fn event(entrance: &Entrance, change: &Value) -> String {
    let body = entrance.slack.mentions_by_request(WRITER, "/code Let me in");
    let mut told: Value = serde_json::from_str(&body).unwrap_or_default();
    for (key, value) in change.as_object().into_iter().flatten() {
        told["event"][key] = value.clone();
    }
    told.to_string()
}

/// Returns a press of a button with this value, as Slack posts it. Each has a time of its own: one
/// with the time of another would be taken for the same delivery once more.
fn press(user: &Value, value: &str) -> String {
    static PRESSES: AtomicU32 = AtomicU32::new(0);
    let at = format!("1700000001.{:06}", PRESSES.fetch_add(1, Ordering::Relaxed));
    let payload = json!({
        "type": "block_actions", "user": user, "channel": { "id": CHANNEL },
        "container": { "type": "message", "message_ts": "1700000000.000001", "channel_id": CHANNEL },
        "actions": [{ "type": "button", "action_id": "answer-0", "value": value, "action_ts": at }],
    });
    let payload = payload.to_string();
    format!("payload={}", utf8_percent_encode(&payload, NON_ALPHANUMERIC))
}

/// Returns the run and the digest of the newest question that nobody has answered yet, both empty where
/// there is none. What another attack's harmless part has answered is no question any more.
async fn open_question(entrance: &Entrance) -> anyhow::Result<(String, String)> {
    let open = entrance.runs().await?;
    let answered = [entrance.facts("approval_granted"), entrance.facts("approval_denied")].concat();
    let of = |fact: &Value, key: &str| fact[key].as_str().unwrap_or_default().to_owned();
    let is_open = |question: &&Value| {
        let run = of(question, "run");
        open.contains(&run) && !answered.iter().any(|answer| of(answer, "run") == run)
    };
    let questions = entrance.facts("approval_requested");
    let question = questions.iter().rev().find(is_open).cloned().unwrap_or_default();
    Ok((of(&question, "run"), of(&question, "digest")))
}

pub async fn people(entrance: &Entrance) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let before = Seen::of(entrance).await;
    let edited = json!({ "user": WRITER, "text": format!("<@{BOT}> /code Let me in"), "ts": "1700000000.000009" });
    for change in [
        json!({ "user": STRANGER }),
        json!({ "user": "u0alice0" }),
        json!({ "user": format!("{WRITER} ") }),
        json!({ "user": format!("{WRITER}\u{200b}") }),
        json!({ "user": [WRITER] }),
        json!({ "user": { "id": WRITER } }),
        json!({ "user": null, "username": WRITER }),
        json!({ "user": STRANGER, "username": "alice", "user_profile": { "id": WRITER } }),
        json!({ "bot_id": "B0000001" }),
        json!({ "subtype": "bot_message" }),
        json!({ "subtype": "message_changed", "message": edited }),
        json!({ "subtype": "message_deleted" }),
        json!({ "channel": "C9999999" }),
        json!({ "channel": format!("{CHANNEL}/../x") }),
        json!({ "ts": "1700000000.1; DROP TABLE chat_messages" }),
        json!({ "user": READER }),
    ] {
        let status = slack_tells(entrance, &event(entrance, &change)).await?;
        tally.tries(
            &change.to_string(),
            status.is_server_error().then(|| status.to_string()),
        );
    }
    let group = json!({ "type": "group", "groupId": WRITER, "userId": STRANGER });
    for source in [
        json!({ "type": "user", "userId": STRANGER }),
        json!({ "type": "user", "userId": [WRITER] }),
        json!({ "type": "user" }),
        json!({ "type": "admin", "userId": WRITER }),
        group,
    ] {
        let (body, _) = entrance.line.writes(WRITER, "/code Let me in");
        let mut told: Value = serde_json::from_str(&body)?;
        told["events"][0]["source"] = source.clone();
        let body = told.to_string();
        let status = to_line(entrance, &body, &line::signature(&body)).await?;
        tally.tries(
            &source.to_string(),
            status.is_server_error().then(|| status.to_string()),
        );
    }
    let (run, digest) = open_question(entrance).await?;
    let short = digest.get(..16).unwrap_or_default().to_owned();
    for user in [STRANGER, READER] {
        for value in [
            format!("approve {run} {short}"),
            format!("approve {run} {digest}"),
            format!("approve {run} {short} "),
            format!("deny {run} {short}"),
        ] {
            let body = press(&json!({ "id": user, "username": "alice" }), &value);
            let status = slack_tells(entrance, &body).await?;
            tally.tries(
                &format!("{user} {value}"),
                status.is_server_error().then(|| status.to_string()),
            );
        }
    }
    // Somebody who may, with what was not asked.
    for value in [
        format!("approve {run} 0000000000000000"),
        format!("approve 00000000-0000-7000-8000-000000000000 {short}"),
        format!("stop {run} {short}"),
        format!("approve {run}"),
        String::new(),
    ] {
        let body = press(&json!({ "id": WRITER }), &value);
        let status = slack_tells(entrance, &body).await?;
        tally.tries(&value, status.is_server_error().then(|| status.to_string()));
    }
    let after = Seen::of(entrance).await;
    tally.tries(
        "an issue",
        (after.issues != before.issues).then(|| "one was opened".to_owned()),
    );
    tally.tries(
        "an answer to a question",
        (after.deeds != before.deeds).then(|| "one counted".to_owned()),
    );

    let body = press(&json!({ "id": WRITER }), &format!("deny {run} {short}"));
    tally.controls(
        "a press of somebody who may",
        slack_tells(entrance, &body).await?.is_success(),
    );
    let last = Seen::of(entrance).await;
    tally.controls("what comes of it", last.deeds > after.deeds);
    Ok(tally)
}

/// Texts in which a command is somebody else's, or none.
const QUOTES: [&str; 18] = [
    "> /code Quoted",
    ">/code Quoted",
    "＞ /code Quoted",
    "look:\n> he said\n> /code Quoted",
    ">>> he said\n/code Quoted",
    "> please fix the bug in parser.py",
    "> バグを修正して",
    "```\n/code Quoted\n```",
    "```text\n/code Quoted",
    "~~~\n/code Quoted\n~~~",
    "`/code Quoted`",
    "he wrote `/code` there",
    "see /code Quoted",
    " /code Quoted",
    "\t/code Quoted",
    "- /code Quoted",
    "/codes Quoted",
    "/code/src/main.rs is odd",
];

pub async fn quoted(entrance: &Entrance) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let before = Seen::of(entrance).await;
    for text in QUOTES {
        // On lines of its own, behind other words.
        let body = entrance.slack.mentions_by_request(WRITER, &format!("hm:\n{text}"));
        slack_tells(entrance, &body).await?;
        tally.tries(text, None);
    }
    let after = Seen::of(entrance).await;
    tally.controls("each is heard", after.decisions == before.decisions + QUOTES.len());
    let opened = after.issues - before.issues;
    tally.tries(
        "all of them",
        (opened > 0).then(|| format!("{opened} issues were opened")),
    );
    let decided = entrance.facts("router_decision");
    for decision in decided.iter().rev().take(QUOTES.len()) {
        let is_chat = decision["route"] == "CHAT";
        tally.tries("a route", (!is_chat).then(|| decision.to_string()));
    }
    let body = entrance.slack.mentions_by_request(WRITER, "hm:\n/code Really");
    slack_tells(entrance, &body).await?;
    let last = Seen::of(entrance).await;
    tally.controls("a command", last.issues == after.issues + 1);
    Ok(tally)
}

pub async fn flooded(entrance: &Entrance) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let large = vec![b'x'; 4 << 20];
    for path in ["/hooks/slack", "/hooks/line"] {
        let bodies = (0..BODIES).map(|_| entrance.send(Method::POST, path, &[], large.clone()));
        let answers = join_all(bodies).await;
        let good = answers.iter().flatten().find(|answer| answer.status.is_success());
        let through = good.map(|answer| format!("{} was answered", answer.status));
        tally.tries(&format!("large bodies for {path}"), through);
    }
    // Strangers, whose words are not even kept, and one person: in many conversations, and in one.
    let before = Seen::of(entrance).await;
    let mut sent = Vec::new();
    for number in 0..FLOOD {
        let user = if number % 2 == 0 { STRANGER } else { WRITER };
        sent.push(
            entrance
                .slack
                .mentions_by_request(user, &format!("/chat flood {number}")),
        );
    }
    let answers = join_all(sent.iter().map(|body| slack_tells(entrance, body))).await;
    tally.controls(
        "the answers to them",
        answers.iter().flatten().any(StatusCode::is_success),
    );
    for number in 0..FLOOD {
        let (body, good) = entrance.line.writes(WRITER, &format!("flood {number}"));
        to_line(entrance, &body, &good).await?;
        tally.tries("a message of a flood", None);
    }
    let after = Seen::of(entrance).await;
    let decisions = after.decisions - before.decisions;
    let strangers = format!(
        "{decisions} messages were answered, and {} came from people",
        FLOOD / 2 + FLOOD
    );
    tally.tries("strangers", (decisions > FLOOD / 2 + FLOOD).then_some(strangers));
    let issues = after.issues - before.issues;
    tally.tries("issues", (issues > 0).then(|| format!("{issues} were opened")));
    tally.tries("its memory", too_large(entrance));
    let body = entrance.slack.mentions_by_request(WRITER, "/chat after the flood");
    slack_tells(entrance, &body).await?;
    let last = Seen::of(entrance).await;
    tally.controls("somebody after the flood", last.decisions == after.decisions + 1);
    Ok(tally)
}
