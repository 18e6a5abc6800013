//! Texts that want to be run: in the title of an issue, the steps and the goal of a plan, and in the
//! addresses of pages.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::Tally;
use super::entrance::{ALICE, Answered, Entrance};
use crate::fake::model::Plan;

/// Each runs where it is taken for markup, for a part of an attribute, for a script's text or for a
/// template.
pub const HOSTILE: [&str; 20] = [
    "<script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</textarea><script>alert(1)</script>",
    "</pre></details><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><animate onbegin=alert(1) attributeName=x dur=1s>",
    "<iframe srcdoc=\"<script>alert(1)</script>\">",
    "<a href=\"javascript:alert(1)\">x</a>",
    "\" onmouseover=\"alert(1)",
    "' onfocus='alert(1)' autofocus='",
    "\"><script>alert(1)</script>",
    "<meta http-equiv=refresh content=\"0;url=https://evil.example\">",
    "<base href=\"https://evil.example/\">",
    "<form action=\"https://evil.example\"><button>x</button></form>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<style>*{background:url(//evil.example)}</style>",
    "<!--><script>alert(1)</script-->",
    "{{ self._TemplateReference__context }}{% include 'run.html' %}${7*7}",
    "<details open ontoggle=alert(1)>",
];

/// Returns a plan whose every word wants to be run, for the task that carries such a text.
pub fn planned(task: &str) -> Plan {
    let hostile = HOSTILE
        .iter()
        .rev()
        .find(|text| task.contains(**text))
        .unwrap_or(&HOSTILE[0]);
    let goal = json!({
        "main_objective": hostile, "success_criteria": [hostile], "constraints": [hostile], "context_analysis": hostile,
    });
    let plan = Plan::of(&[hostile, HOSTILE[4]])
        .in_environment("python")
        .verified_by("true");
    plan.with("goal_understanding", goal)
        .with("comment", Value::from(*hostile))
}

pub async fn play(entrance: &Entrance) -> anyhow::Result<Tally> {
    let mut tally = Tally::default();
    let (_, cookie) = entrance.logs_in(ALICE, &[]).await?;
    let mut pages: Vec<String> = ["/", "/?hidden=true", "/evaluations", "/statistics", "/new", "/login"]
        .map(str::to_owned)
        .into();
    let runs = entrance.runs().await?;
    tally.controls("a run for each text", runs.len() == HOSTILE.len());
    pages.extend(runs.iter().map(|run| format!("/runs/{run}")));
    for language in ["en", "ja"] {
        let cookies = format!("{cookie}; coding-agent-language={language}");
        for path in &pages {
            let page = entrance.get(path, &[("cookie", &cookies)]).await?;
            tally.tries(path, judged(&page));
        }
        // The texts do stand there, as texts.
        let list = entrance.get("/", &[("cookie", &cookies)]).await?;
        tally.controls("a list of the runs", list.body.contains("&lt;script&gt;alert(1)"));
    }
    for text in HOSTILE {
        let text: String = url::form_urlencoded::byte_serialize(text.as_bytes()).collect();
        for path in [
            format!("/?repository={text}"),
            format!("/?state={text}"),
            format!("/?before={text}"),
            format!("/runs/{text}"),
            format!("/runs/{}?did={text}", runs.first().map_or("x", String::as_str)),
            format!("/evaluations/{text}"),
            format!("/login?failed={text}"),
            format!("/language?to={text}&back={text}"),
            format!("/language?to=en&back={text}"),
            format!("/assets/{text}"),
            format!("/{text}"),
            format!("/api/history?state={text}"),
            format!("/api/{text}"),
            format!("/api/runs/{text}"),
        ] {
            let page = entrance.get(&path, &[("cookie", &cookie)]).await?;
            tally.tries(&path, judged(&page));
        }
    }
    Ok(tally)
}

/// Returns what would be run of an answer, or could be.
fn judged(answer: &Answered) -> Option<String> {
    let kind = answer.header("content-type");
    let policy = answer.header("content-security-policy");
    if !policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'") || policy.contains("unsafe") {
        return Some(format!("the content policy is '{policy}'"));
    }
    if answer.header("x-content-type-options") != "nosniff" {
        return Some("the browser may guess what it is".to_owned());
    }
    let location = answer.header("location");
    if !location.is_empty() && !is_own(location) {
        return Some(format!("it leads to {location}"));
    }
    if answer.status == StatusCode::INTERNAL_SERVER_ERROR {
        return Some("the page broke".to_owned());
    }
    let is_page = kind.starts_with("text/html");
    let is_data = kind.starts_with("application/") || kind.starts_with("text/plain") || answer.body.is_empty();
    if !is_page {
        return (!is_data).then(|| format!("it is '{kind}'"));
    }
    let found = HOSTILE.iter().find(|text| answer.body.contains(**text));
    found.map(|text| format!("it has {text} as it came"))
}

/// Tells whether an address is one of this server.
pub fn is_own(location: &str) -> bool {
    location.starts_with('/') && !location.starts_with("//") && !location.contains(['\\', '\r', '\n', '\t'])
}
