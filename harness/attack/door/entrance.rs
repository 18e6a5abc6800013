//! The program with its door open, runs that wait for somebody, and requests to it.

use std::time::{Duration, Instant};

use anyhow::Context;
use coding_agent_harness::installation::{self, Installation, scripted};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Child;

use super::messengers::{READER, WRITER};
use super::texts::{HOSTILE, planned};
use crate::canary;
use crate::fake::board::HUMAN;
use crate::fake::github::{GitHub, Permission};
use crate::fake::line::Line;
use crate::fake::model::{Answer, Model, Request};
use crate::fake::slack::{SIGNING_SECRET, Slack};

/// Who may act, and who may look.
pub const ALICE: &str = "alice-0123456789-0123456789-alice";
pub const BOB: &str = "bob-0123456789-0123456789-bob";
/// The secret that webhooks are signed with, which only the forges know.
pub const SECRET: &str = "a-secret-of-the-webhook-0123456789";

/// Longest time for anything that is waited for.
const PATIENCE: Duration = Duration::from_mins(5);

pub struct Entrance {
    pub github: GitHub,
    /// Address and port.
    pub host: String,
    /// The cookie of a session of alice's. After many wrong tokens from one address the program
    /// takes none from it for a while, also not the right one; a session goes on.
    session: String,
    installation: Installation,
    child: Child,
    client: Client,
    pub slack: Slack,
    pub line: Line,
    model: Model,
}

/// An answer, read to its end.
#[derive(Debug)]
pub struct Answered {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
}

impl Answered {
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

impl Entrance {
    /// Starts the program, with a run for each hostile text that waits for its plan's approval.
    pub async fn open() -> anyhow::Result<Self> {
        let github = GitHub::start().await;
        github.repository("acme/widgets");
        github.default_repository().member("bob", Permission::Read);
        let (slack, line) = (Slack::start().await, Line::start().await);
        let model = Model::answering(answer).await;
        model.allows_restarts();
        let installation = Installation::new("attack")?;
        installation.configure(json!({
            "task_sources": ["github"],
            "github": { "api_url": github.api_url(), "token": github.token(), "repositories": ["acme/widgets"] },
            "llm": scripted(&model, canary::MODEL_KEY),
            "command_executor": installation::executor()?,
            // Nothing but the bell has it look at the forge.
            "producer": { "interval_seconds": 3600 },
            "approval": { "plan": true, "auto_approve": { "enabled": true } },
            "chat": chat(&slack, &line),
            "http": {
                "listen": "127.0.0.1:0",
                "users": { "alice": { "token": ALICE, "can": "approve" }, "bob": { "token": BOB } },
                "webhooks": { "github": { "secret": SECRET }, "gitlab": { "token": SECRET } },
            },
        }))?;
        let issues: Vec<_> = (0..HOSTILE.len())
            .map(|number| github.open_issue(&format!("Attack {number} {}", HOSTILE[number])))
            .collect();
        for issue in &issues {
            issue.body(HOSTILE[0]).label("coding agent");
        }
        let child = installation.start(installation.command(&["serve"])?)?;
        let mut entrance = Self {
            host: String::new(),
            session: String::new(),
            client: Client::builder()
                .no_proxy()
                .redirect(reqwest::redirect::Policy::none())
                .build()?,
            github,
            installation,
            child,
            slack,
            line,
            model,
        };
        let said = || entrance.installation.said();
        until("the door is open", || said().contains("the dashboard is at ")).await?;
        let said = said();
        let url = said.split("the dashboard is at http://").nth(1).context("no address")?;
        let host = url.split_whitespace().next().context("no address")?.to_owned();
        entrance.host = host;
        entrance.session = entrance.logs_in(ALICE, &[]).await?.1;
        let waiting = || issues.iter().all(|issue| issue.labels() == ["coding agent waiting"]);
        until("all runs wait for approval", waiting).await?;
        Ok(entrance)
    }

    /// Ends the program as an operator does.
    pub async fn close(mut self) -> anyhow::Result<()> {
        if let Some(id) = self.child.id() {
            std::process::Command::new("kill").arg(id.to_string()).status()?;
        }
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        ended.context("the program does not end")??;
        Ok(())
    }

    pub fn is_alive(&self) -> bool {
        self.child
            .id()
            .is_some_and(|id| std::path::Path::new(&format!("/proc/{id}/exe")).exists())
    }

    pub fn said(&self) -> String {
        self.installation.said()
    }

    pub fn process(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// Returns how often people, or what took their place, did something.
    pub fn deeds(&self) -> usize {
        const DEEDS: [&str; 5] = [
            "ordered",
            "approval_granted",
            "approval_denied",
            "automatic_approval_started",
            "automatic_approval_ended",
        ];
        let facts = self.installation.journal();
        facts
            .iter()
            .filter(|fact| fact["fact"].as_str().is_some_and(|fact| DEEDS.contains(&fact)))
            .count()
    }

    /// Returns the facts of this name.
    pub fn facts(&self, name: &str) -> Vec<Value> {
        let mut facts = self.installation.journal();
        facts.retain(|fact| fact["fact"] == name);
        facts
    }

    /// Tells whether any log has a text as it came.
    pub fn logs(&self, text: &str) -> bool {
        let files = std::fs::read_dir(self.installation.logs())
            .into_iter()
            .flatten()
            .flatten();
        let logs = files.filter(|file| file.path().extension().is_some_and(|end| end == "log"));
        let mut texts = logs.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        texts.any(|log| log.contains(text))
    }

    /// Sends a request with these headers, and a body.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<reqwest::Body>,
    ) -> anyhow::Result<Answered> {
        let mut all = HeaderMap::new();
        for (name, value) in headers {
            all.append(HeaderName::from_bytes(name.as_bytes())?, HeaderValue::from_str(value)?);
        }
        let request = self.client.request(method, format!("http://{}{path}", self.host));
        let response = request.headers(all).body(body).send().await?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = String::from_utf8_lossy(&response.bytes().await?).into_owned();
        Ok(Answered { status, headers, body })
    }

    pub async fn get(&self, path: &str, headers: &[(&str, &str)]) -> anyhow::Result<Answered> {
        self.send(Method::GET, path, headers, "").await
    }

    /// Returns a document of the API, as alice sees it.
    pub async fn document(&self, path: &str) -> anyhow::Result<Value> {
        let answered = self.get(path, &[("cookie", &self.session)]).await?;
        anyhow::ensure!(
            answered.status.is_success(),
            "{path} was answered with {}",
            answered.status
        );
        Ok(answered.json())
    }

    /// Returns the ids of the unfinished runs.
    pub async fn runs(&self) -> anyhow::Result<Vec<String>> {
        let status = self.document("/api/status").await?;
        let runs = status["runs"].as_array().cloned().unwrap_or_default();
        Ok(runs
            .iter()
            .filter_map(|run| run["id"].as_str().map(str::to_owned))
            .collect())
    }

    /// Logs in with these headers more; returns what was answered, and the session's cookie.
    pub async fn logs_in(&self, token: &str, more: &[(&str, &str)]) -> anyhow::Result<(Answered, String)> {
        let origin = format!("http://{}", self.host);
        let mut headers = vec![
            ("origin", origin.as_str()),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        headers.extend(more);
        let answered = self
            .send(Method::POST, "/login", &headers, format!("token={token}"))
            .await?;
        let cookie = answered
            .header("set-cookie")
            .split(';')
            .next()
            .unwrap_or_default()
            .to_owned();
        Ok((answered, cookie))
    }

    /// Returns what the forms of a session carry.
    pub async fn form_token(&self, cookie: &str) -> anyhow::Result<String> {
        let page = self.get("/", &[("cookie", cookie)]).await?;
        let rest = page
            .body
            .split("name=\"form_token\" value=\"")
            .nth(1)
            .context("there is no form")?;
        Ok(rest.split('"').next().unwrap_or_default().to_owned())
    }

    /// Sends bytes as they are, and returns what comes back within a moment.
    pub async fn raw(&self, bytes: &[u8]) -> anyhow::Result<String> {
        let mut stream = TcpStream::connect(&self.host).await?;
        stream.write_all(bytes).await?;
        let mut back = Vec::new();
        let read = stream.read_to_end(&mut back);
        let _ = tokio::time::timeout(Duration::from_secs(2), read).await;
        Ok(String::from_utf8_lossy(&back).into_owned())
    }
}

/// Returns the section on chat: two people in both messengers, of whom one may write.
fn chat(slack: &Slack, line: &Line) -> Value {
    let users = json!({ WRITER: { "github": HUMAN }, READER: { "github": "bob" } });
    let mut section = slack.section(&users);
    section["app_token"] = Value::Null;
    section["signing_secret"] = json!(SIGNING_SECRET);
    json!({ "default_repository": "github:acme/widgets", "slack": section, "line": line.section(&users) })
}

/// The model plans as the hostile text of a task wants it, and talks with people.
fn answer(request: &Request) -> Answer {
    let system = request.system();
    if system.contains("You talk with a person in a messenger") {
        return Answer::says("Well.");
    }
    if system.contains("You sort one chat message") {
        let sorted = json!({ "route": "CHAT", "confidence": 0.9, "reason": "talk", "evidence": [] });
        return Answer::says(&sorted.to_string());
    }
    Answer::plans(planned(&request.first_user_message()))
}

/// How long nothing must be asked until all that was begun is over. What failed once rests for up
/// to 3 s before it is tried again.
const QUIET: Duration = Duration::from_secs(4);

/// Waits until the program asks forge and messengers for nothing any more, and returns what it has
/// asked of the forge.
pub async fn settled(entrance: &Entrance) -> usize {
    let asked = || {
        let said = entrance.slack.said().len() + entrance.line.sent().len();
        (entrance.github.requests().len(), said, entrance.model.requests().len())
    };
    let mut before = asked();
    loop {
        tokio::time::sleep(QUIET).await;
        let now = asked();
        if now == before {
            return now.0;
        }
        before = now;
    }
}

/// Waits until something has come about.
pub async fn until(what: &str, is_so: impl Fn() -> bool) -> anyhow::Result<()> {
    let begun = Instant::now();
    while !is_so() {
        anyhow::ensure!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
