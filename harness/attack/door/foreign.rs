//! Other sites in the browser of somebody who is logged in: requests that they have it send, and
//! names of theirs that they let lead to the dashboard.

use reqwest::{Method, StatusCode};

use super::Tally;
use super::entrance::{ALICE, BOB, Entrance, until};

/// Origins of requests that no page of the dashboard has sent.
const ORIGINS: [&str; 10] = [
    "https://evil.example",
    "null",
    "http://HOST.evil.example",
    "http://evil.example/HOST",
    "https://localhost",
    "http://127.0.0.1:1",
    "http://127.0.0.1",
    "file://",
    "http://HOST@evil.example",
    "",
];
const FORM: &str = "application/x-www-form-urlencoded";

/// Has forms sent as another site would.
pub async fn forged(entrance: &Entrance) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let (_, cookie) = entrance.logs_in(ALICE, &[]).await?;
    let (_, other) = entrance.logs_in(ALICE, &[]).await?;
    let (_, bobs) = entrance.logs_in(BOB, &[]).await?;
    let (good, of_other, of_bob) = (
        entrance.form_token(&cookie).await?,
        entrance.form_token(&other).await?,
        entrance.form_token(&bobs).await?,
    );
    let own = format!("http://{}", entrance.host);
    let runs = entrance.runs().await?;
    let run = runs.first().map_or("", String::as_str);
    let before = entrance.deeds();
    let deeds = [
        format!("/runs/{run}/stop"),
        format!("/runs/{run}/approve"),
        "/clear-history".to_owned(),
        "/tasks".to_owned(),
        "/auto-approve".to_owned(),
    ];
    for path in &deeds {
        let body = |token: &str| format!("form_token={token}&on=true&repository=github:acme/widgets&title=x");
        // From elsewhere, with the right token even.
        for origin in ORIGINS {
            let origin = origin.replace("HOST", &entrance.host);
            let headers = [("cookie", cookie.as_str()), ("origin", &origin), ("content-type", FORM)];
            let answer = entrance.send(Method::POST, path, &headers, body(&good)).await?;
            tally.tries(&format!("{path} from '{origin}'"), refused(answer.status));
        }
        for site in ["cross-site", "same-site", "none"] {
            let headers = [
                ("cookie", cookie.as_str()),
                ("origin", &own),
                ("sec-fetch-site", site),
                ("content-type", FORM),
            ];
            let answer = entrance.send(Method::POST, path, &headers, body(&good)).await?;
            tally.tries(&format!("{path}, {site}"), refused(answer.status));
        }
        // From here, without the session's token, or with another one, or in another form.
        let headers = [("cookie", cookie.as_str()), ("origin", &own), ("content-type", FORM)];
        for token in [
            "",
            "x",
            &of_other,
            &of_bob,
            &good.to_uppercase(),
            &good[..good.len() - 1],
        ] {
            let answer = entrance.send(Method::POST, path, &headers, body(token)).await?;
            tally.tries(&format!("{path} with another token"), refused(answer.status));
        }
        for kind in ["text/plain", "application/json", "multipart/form-data; boundary=x"] {
            let headers = [("cookie", cookie.as_str()), ("origin", &own), ("content-type", kind)];
            let answer = entrance.send(Method::POST, path, &headers, format!("{{\"form_token\": \"{good}\"}}"));
            tally.tries(&format!("{path} as {kind}"), refused(answer.await?.status));
        }
        for method in ["x-http-method-override", "x-method-override"] {
            let headers = [("cookie", cookie.as_str()), (method, "POST"), ("x-form-token", &good)];
            let answer = entrance
                .get(&format!("{path}?_method=POST&form_token={good}"), &headers)
                .await?;
            tally.tries(&format!("{path} by {method}"), refused(answer.status));
        }
    }
    // The API takes no cookie for a token of its own.
    for path in ["/api/clear-history", &format!("/api/runs/{run}/stop"), "/api/tasks"] {
        let headers = [("cookie", cookie.as_str()), ("content-type", "application/json")];
        let answer = entrance.send(Method::POST, path, &headers, "{}").await?;
        tally.tries(path, refused(answer.status));
    }
    let headers = [("cookie", cookie.as_str()), ("origin", &own), ("content-type", FORM)];
    let rightly = entrance
        .send(Method::POST, "/clear-history", &headers, format!("form_token={good}"))
        .await?;
    tally.controls("hiding the history", rightly.status == StatusCode::SEE_OTHER);
    until("the deed stands in the journal", || entrance.deeds() > before).await?;
    let done = entrance.deeds() - before;
    tally.tries(
        "all of them",
        (done != 1).then(|| format!("{done} deeds stand in the journal, one was done")),
    );
    Ok(tally)
}

/// Returns that something was done, unless it was refused.
fn refused(status: StatusCode) -> Option<String> {
    (!status.is_client_error()).then(|| format!("it was answered with {status}"))
}

/// Asks under names that others let lead here, with a session of somebody who was lured there.
pub async fn rebinding(entrance: &Entrance) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let (_, cookie) = entrance.logs_in(ALICE, &[]).await?;
    let port = entrance.host.rsplit(':').next().unwrap_or_default().to_owned();
    let names = [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("localhost.evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        format!("{}.evil.example", entrance.host.replace(':', "-")),
        format!("localhost.:{port}"),
        "localhost:1".to_owned(),
        format!("evil.example@{}", entrance.host),
        format!("{}@evil.example", entrance.host),
        format!("0x7f.1:{port}"),
        format!("2130706433:{port}"),
        format!("[::1].evil.example:{port}"),
        format!("{} evil.example", entrance.host),
        String::new(),
    ];
    let paths = [
        "/",
        "/statistics",
        "/new",
        "/api/status",
        "/api/events",
        "/api/logs",
        "/metrics",
    ];
    for path in paths {
        for name in &names {
            let request =
                format!("GET {path} HTTP/1.1\r\nHost: {name}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n");
            let back = entrance.raw(request.as_bytes()).await?;
            tally.tries(&format!("{path} at '{name}'"), shown(&back));
        }
        for more in [
            format!("Host: {}\r\nHost: evil.example", entrance.host),
            format!("Host: evil.example\r\nHost: {}", entrance.host),
            format!("Host: evil.example\r\nX-Forwarded-Host: {}", entrance.host),
            format!("Host: evil.example\r\nForwarded: host={}", entrance.host),
            "X-Nothing: x".to_owned(),
        ] {
            let request = format!("GET {path} HTTP/1.1\r\n{more}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n");
            let back = entrance.raw(request.as_bytes()).await?;
            tally.tries(&format!("{path}, {more:?}"), shown(&back));
        }
    }
    // Logging in there would hand the session to them.
    for name in &names[..4] {
        let body = format!("token={ALICE}");
        let request = format!(
            "POST /login HTTP/1.1\r\nHost: {name}\r\nOrigin: http://{name}\r\nContent-Type: {FORM}\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n{body}",
            body.len()
        );
        let back = entrance.raw(request.as_bytes()).await?;
        let is_in = back.to_lowercase().contains("set-cookie: coding-agent-session=");
        tally.tries(&format!("/login at {name}"), is_in.then(|| "it logged in".to_owned()));
    }
    let rightly = entrance.get("/api/status", &[("cookie", &cookie)]).await?;
    tally.controls("the status", rightly.body.contains("newest_fact"));
    Ok(tally)
}

fn shown(back: &str) -> Option<String> {
    let is_shown = back.starts_with("HTTP/1.1 200") || back.contains("newest_fact") || back.contains("form_token");
    is_shown.then(|| "it was shown".to_owned())
}
