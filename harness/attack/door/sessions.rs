//! Sessions that somebody planted, changed or ended; people who may only look.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::{Method, StatusCode};

use super::Tally;
use super::entrance::{ALICE, BOB, Entrance};

const NAME: &str = "coding-agent-session";

pub async fn play(entrance: &Entrance) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let (answered, cookie) = entrance.logs_in(ALICE, &[]).await?;
    let is_in = async |cookie: &str| -> anyhow::Result<bool> {
        let page = entrance.get("/api/status", &[("cookie", cookie)]).await?;
        Ok(page.status == StatusCode::OK)
    };
    tally.controls("a session", is_in(&cookie).await?);
    let written = answered.header("set-cookie").to_owned();
    for word in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        tally.tries(
            word,
            (!written.contains(word)).then(|| format!("the cookie is '{written}'")),
        );
    }
    // Fixation: what was planted before the login is not what counts after it.
    let planted = format!("{NAME}=9999999999.00000000000000000000000000000001.alice.AAAA");
    let (_, fresh) = entrance.logs_in(ALICE, &[("cookie", &planted)]).await?;
    tally.tries(
        "a planted session",
        is_in(&planted).await?.then(|| "it counts".to_owned()),
    );
    tally.tries(
        "the session after it",
        (fresh == planted).then(|| "it is the planted one".to_owned()),
    );
    let (_, again) = entrance.logs_in(ALICE, &[("cookie", &cookie)]).await?;
    tally.tries(
        "a second login",
        (again == cookie).then(|| "it has the same session".to_owned()),
    );

    // Changed in each place, and given to somebody else.
    let value = cookie.split_once('=').map_or("", |(_, value)| value);
    for at in 0..value.len() {
        let mut changed = value.as_bytes().to_vec();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = format!("{NAME}={}", String::from_utf8_lossy(&changed));
        tally.tries(
            &format!("a session changed at {at}"),
            is_in(&changed).await?.then(|| "it counts".to_owned()),
        );
    }
    let (_, bobs) = entrance.logs_in(BOB, &[]).await?;
    let of_bob = bobs.split_once('=').map_or("", |(_, value)| value);
    let signature = of_bob.rsplit('.').next().unwrap_or_default();
    let parts: Vec<&str> = value.split('.').collect();
    for forged in [
        of_bob.replace(".bob.", ".alice."),
        format!("{}.{signature}", parts[..parts.len() - 1].join(".")),
        format!("9999999999.{}", parts[1..].join(".")),
        format!("{}.alice.", parts[..2].join(".")),
        format!("{}.nobody.{signature}", parts[..2].join(".")),
        URL_SAFE_NO_PAD.encode(value),
        "alice".to_owned(),
        "null".to_owned(),
        format!("{value}{value}"),
        "x".repeat(5_000),
    ] {
        let forged = format!("{NAME}={forged}");
        tally.tries(
            "a forged session",
            is_in(&forged).await?.then(|| format!("{forged} counts")),
        );
    }
    // Ended for good.
    let token = entrance.form_token(&cookie).await?;
    let own = format!("http://{}", entrance.host);
    let headers = [
        ("cookie", cookie.as_str()),
        ("origin", &own),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    let out = entrance
        .send(Method::POST, "/logout", &headers, format!("form_token={token}"))
        .await?;
    tally.controls("logging out", out.status == StatusCode::SEE_OTHER);
    tally.tries(
        "a session that was ended",
        is_in(&cookie).await?.then(|| "it counts".to_owned()),
    );
    tally.controls("another session of the same user", is_in(&again).await?);
    for token in [ALICE, BOB] {
        tally.tries("the logs", entrance.logs(token).then(|| "they hold a token".to_owned()));
    }
    Ok(tally)
}

/// Has somebody who may only look do everything.
pub async fn viewers(entrance: &Entrance) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let before = entrance.deeds();
    let runs = entrance.runs().await?;
    let run = runs.first().map_or("", String::as_str);
    let (_, cookie) = entrance.logs_in(BOB, &[]).await?;
    let token = entrance.form_token(&cookie).await?;
    let own = format!("http://{}", entrance.host);
    let bearer = format!("Bearer {BOB}");
    let actions = ["pause", "resume", "stop", "approve", "deny", "budget"];
    let mut paths: Vec<String> = actions.iter().map(|action| format!("/runs/{run}/{action}")).collect();
    paths.extend(["/tasks", "/auto-approve", "/clear-history"].map(str::to_owned));
    for path in &paths {
        let form = format!("form_token={token}&tokens=1M&on=true&repository=github:acme/widgets&title=x");
        let headers = [
            ("cookie", cookie.as_str()),
            ("origin", &own),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        let answer = entrance.send(Method::POST, path, &headers, form).await?;
        let is_refused = answer.status == StatusCode::FORBIDDEN;
        tally.tries(
            path,
            (!is_refused).then(|| format!("it was answered with {}", answer.status)),
        );
        let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
        let body = r#"{"on": true, "tokens": "1M", "repository": "github:acme/widgets", "title": "x"}"#;
        let answer = entrance
            .send(Method::POST, &format!("/api{path}"), &headers, body)
            .await?;
        let is_refused = answer.status == StatusCode::FORBIDDEN;
        tally.tries(
            &format!("/api{path}"),
            (!is_refused).then(|| format!("it was answered with {}", answer.status)),
        );
    }
    let looks = entrance.get("/api/status", &[("authorization", &bearer)]).await?;
    tally.controls("looking", looks.status == StatusCode::OK);
    // What is recorded is written within a moment.
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    let done = entrance.deeds() - before;
    tally.tries(
        "all of them",
        (done > 0).then(|| format!("{done} deeds stand in the journal")),
    );
    Ok(tally)
}
