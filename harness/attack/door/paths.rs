//! Addresses that lead to files of the machine, past the door, or to other hosts.

use reqwest::StatusCode;

use super::Tally;
use super::entrance::{ALICE, Entrance};
use super::texts::is_own;

/// Ways to write a path that leads up.
const UPWARDS: [&str; 12] = [
    "../../../../etc/passwd",
    "..%2f..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "%252e%252e%252fetc%252fpasswd",
    "....//....//etc/passwd",
    "..%c0%af..%c0%afetc/passwd",
    "..\\..\\etc\\passwd",
    "..%5c..%5cetc%5cpasswd",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "style.css/../../../../etc/passwd",
    "style.css%00.txt",
];
/// Places that somebody without a token must not see, written so that a door might not know them.
const INNER: [&str; 14] = [
    "//api/status",
    "/api//status",
    "/./api/status",
    "/login/../api/status",
    "/assets/../api/status",
    "/assets/..%2fapi%2fstatus",
    "/health/../metrics",
    "/API/STATUS",
    "/api/status/",
    "/api/status;x=/login",
    "/api/status%20",
    "/metrics/",
    "/hooks/../api/status",
    "/%61%70%69/status",
];
/// Ways back that lead to somebody else.
const BACK: [&str; 10] = [
    "//evil.example",
    "/\\evil.example",
    "https://evil.example",
    "/%09/evil.example",
    "/%0d%0aLocation:%20https://evil.example",
    "/%2f/evil.example",
    "javascript:alert(1)",
    "///evil.example",
    "/.//evil.example",
    "@evil.example",
];

pub async fn play(entrance: &Entrance) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let style = entrance.get("/assets/style.css", &[]).await?;
    tally.controls("a file of the dashboard", style.status == StatusCode::OK);
    let (_, cookie) = entrance.logs_in(ALICE, &[]).await?;
    for before in ["/assets/", "/runs/", "/api/runs/", "/evaluations/", "/"] {
        for path in UPWARDS {
            // As it is written: a client would tidy it up.
            let request = format!(
                "GET {before}{path} HTTP/1.1\r\nHost: {}\r\nCookie: {cookie}\r\nConnection: close\r\n\r\n",
                entrance.host
            );
            let back = entrance.raw(request.as_bytes()).await?;
            let is_through = back.contains("root:") || back.contains("127.0.0.1\tlocalhost");
            tally.tries(path, is_through.then(|| "a file of the machine was shown".to_owned()));
        }
    }
    for path in INNER {
        for start in ["", "http://127.0.0.1", "http://evil.example"] {
            let request = format!(
                "GET {start}{path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
                entrance.host
            );
            let back = entrance.raw(request.as_bytes()).await?;
            let is_through = back.contains("newest_fact") || back.contains("coding_agent_runs_total");
            tally.tries(
                path,
                is_through.then(|| "it was shown to nobody in particular".to_owned()),
            );
        }
    }
    for method in [
        "TRACE", "CONNECT", "OPTIONS", "PUT", "PATCH", "DELETE", "PROPFIND", "GETT",
    ] {
        let request = format!(
            "{method} /api/status HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {ALICE}\r\nConnection: close\r\n\r\n",
            entrance.host
        );
        let back = entrance.raw(request.as_bytes()).await?;
        let is_through = back.starts_with("HTTP/1.1 2") || back.contains(ALICE);
        tally.tries(
            method,
            is_through.then(|| "it was taken, or what was sent came back".to_owned()),
        );
    }
    for back in BACK {
        let answer = entrance.get(&format!("/language?to=en&back={back}"), &[]).await?;
        let location = answer.header("location");
        let is_through = !location.is_empty() && !is_own(location);
        tally.tries(back, is_through.then(|| format!("it leads to {location}")));
    }
    let home = entrance.get("/language?to=ja&back=/statistics", &[]).await?;
    tally.controls("a way back", home.header("location") == "/statistics");
    Ok(tally)
}
