//! The HTTP server: readers of events while many runs are at work, webhooks until they are answered
//! and until work begins, and pages of a long history.

use std::fmt::Write;
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use chrono::{DateTime, Utc};
use hmac::{Hmac, Mac};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::concurrency;
use crate::economy::count;
use crate::fake::model::{Answer, Model, Plan};
use crate::figure::Figure;
use crate::idle::megabytes;
use crate::scale::Scale;
use crate::site::{Service, Site, until};
use crate::turns::milliseconds;

/// Readers of events at once, and the runs beside them.
const READERS: usize = 200;
const RUNS: usize = 64;
/// How long they are watched together.
const WATCHED: Duration = Duration::from_secs(30);
/// Labels that are put on, one after the other.
const LABELS: usize = 20;
/// The program looks at a forge once in this time, however often it rings.
const BREATH: Duration = Duration::from_millis(1_200);
const TOKEN: &str = "a-token-of-the-bench-0123456789";
const SECRET: &str = "a-secret-of-the-bench-0123456789";

/// A client of a program's HTTP server, which listens at its address.
pub struct WebClient {
    address: String,
    client: reqwest::Client,
}

impl WebClient {
    fn new() -> anyhow::Result<Self> {
        let free = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        Ok(Self {
            address: free.to_string(),
            client: reqwest::Client::builder().no_proxy().build()?,
        })
    }

    pub fn configure(&self, config: &mut Value) {
        config["http"] = json!({
            "listen": self.address,
            "users": { "bench": { "token": TOKEN, "can": "approve" } },
            "webhooks": { "github": { "secret": SECRET } },
        });
    }

    fn get(&self, path: &str) -> reqwest::RequestBuilder {
        self.client
            .get(format!("http://{}{path}", self.address))
            .bearer_auth(TOKEN)
    }

    async fn until_open(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        while self.get("/ready").send().await.is_err() {
            anyhow::ensure!(begun.elapsed() < Duration::from_mins(1), "the program does not listen");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }
}

/// Many readers of events of one HTTP server.
pub struct Crowded {
    pub web: WebClient,
    readers: usize,
    /// Milliseconds from a fact to a reader of it, of all readers.
    late: Arc<Mutex<Vec<f64>>>,
}

impl Crowded {
    /// Has all readers come, and waits until each is served.
    pub async fn come(&self) -> anyhow::Result<Vec<JoinHandle<()>>> {
        let mut readers = Vec::new();
        for _ in 0..self.readers {
            let response = self.web.get("/api/events").send().await?.error_for_status()?;
            readers.push(tokio::spawn(read(response, Arc::clone(&self.late))));
        }
        Ok(readers)
    }

    /// Has them go.
    pub async fn leave(&self, readers: Vec<JoinHandle<()>>) -> anyhow::Result<()> {
        for reader in readers {
            anyhow::ensure!(!reader.is_finished(), "a reader was sent away");
            reader.abort();
            let _ = reader.await;
        }
        Ok(())
    }
}

/// Reads events, and notes how late each is.
async fn read(mut response: reqwest::Response, late: Arc<Mutex<Vec<f64>>>) {
    let mut text = String::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        text.push_str(&String::from_utf8_lossy(&chunk));
        while let Some((event, rest)) = text.split_once("\n\n") {
            let data = event.lines().find_map(|line| line.strip_prefix("data:"));
            let fact: Option<Value> = data.and_then(|data| serde_json::from_str(data).ok());
            let at = fact.and_then(|fact| fact["at"].as_str()?.parse::<DateTime<Utc>>().ok());
            if let Some(passed) = at.and_then(|at| (Utc::now() - at).to_std().ok()) {
                let mut late = late.lock().unwrap_or_else(PoisonError::into_inner);
                late.push(milliseconds(passed));
            }
            text = rest.to_owned();
        }
    }
}

pub async fn measure(scale: Scale) -> anyhow::Result<Vec<Figure>> {
    let mut figures = readers(scale).await?;
    figures.extend(webhooks(scale).await?);
    Ok(figures)
}

/// Measures the same runs without readers and with them.
async fn readers(scale: Scale) -> anyhow::Result<Vec<Figure>> {
    let (runs, watched) = (scale.of(RUNS, 2), scale.of(WATCHED, Duration::from_secs(5)));
    let crowd = |readers| -> anyhow::Result<Crowded> {
        Ok(Crowded {
            web: WebClient::new()?,
            readers,
            late: Arc::default(),
        })
    };
    let (nobody, everybody) = (crowd(0)?, crowd(scale.of(READERS, 20))?);
    let alone = concurrency::together(runs, watched, Some(&nobody)).await?;
    let crowded = concurrency::together(runs, watched, Some(&everybody)).await?;
    let late = everybody.late.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mean = |turns: &[f64]| turns.iter().sum::<f64>() / count(turns.len());
    let more = megabytes(crowded.memory) - megabytes(alone.memory);
    Ok(vec![
        Figure::of(
            "64 runs and 200 readers of events, a turn of each",
            "ms",
            &[mean(&crowded.turns)],
        )?
        .over(&[mean(&alone.turns)])
        .at_most_times(1.05),
        Figure::of(
            "64 runs and 200 readers of events, processor for a turn",
            "ms",
            &[milliseconds(crowded.processor)],
        )?
        .over(&[milliseconds(alone.processor)]),
        Figure::of("200 readers of events, memory of all", "MB", &[more.max(0.0)])?.at_most(30.0),
        Figure::of("200 readers of events, from a fact to a reader", "ms", &late)?.at_most(300.0),
    ])
}

/// Measures webhooks: the answer, and the label until the run plans.
async fn webhooks(scale: Scale) -> anyhow::Result<Vec<Figure>> {
    let model = Model::answering(|_| Answer::plans(Plan::of(&["say hello"]).in_environment("python"))).await;
    let web = WebClient::new()?;
    let site = Site::new(&model).await?.configured(|config| {
        web.configure(config);
        // Nobody but the webhook has it look, and nobody goes on behind the plan.
        config["producer"] = json!({ "interval_seconds": 3_600 });
        config["approval"] = json!({ "plan": true });
        config["consumers"] = json!(4);
    })?;
    let service = site.serve()?;
    web.until_open().await?;
    until("the first look", || !site.github.requests().is_empty()).await?;
    let (mut answered, mut planning) = (Vec::new(), Vec::new());
    for number in 0..scale.of(LABELS, 3) {
        tokio::time::sleep(BREATH).await;
        site.github
            .open_issue(&format!("Say hello {number}"))
            .label("coding agent");
        let asked = model.requests().len();
        let (begun, at) = (Instant::now(), Utc::now());
        deliver(&web, number).await?;
        answered.push(milliseconds(begun.elapsed()));
        until("the plan is asked for", || model.requests().len() > asked).await?;
        // The journal is written a moment after what it tells.
        let claimed = || {
            let facts = site.journal().into_iter();
            let claims = facts.filter(|fact| fact["fact"] == "claimed");
            let times = claims.filter_map(|fact| fact["at"].as_str()?.parse::<DateTime<Utc>>().ok());
            times.filter(|time| *time >= at).max()
        };
        until("a run was claimed", || claimed().is_some()).await?;
        let passed = (claimed().unwrap_or(at) - at).to_std().unwrap_or_default();
        planning.push(milliseconds(passed));
    }
    service.stop().await?;
    Ok(vec![
        Figure::of("a webhook, until it is answered", "ms", &answered)?.at_most(100.0),
        Figure::of("a label by webhook, until planning begins", "ms", &planning)?.at_most(300.0),
    ])
}

/// Delivers that an issue was labelled.
async fn deliver(web: &WebClient, number: usize) -> anyhow::Result<()> {
    let body = json!({ "action": "labeled", "number": number }).to_string();
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(SECRET.as_bytes()).context("a key of any length")?;
    mac.update(body.as_bytes());
    let digest = mac.finalize().into_bytes();
    let digest = digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    let sent = web.client.post(format!("http://{}/hooks/github", web.address));
    let sent = sent
        .header("x-github-event", "issues")
        .header("x-github-delivery", format!("delivery-{number}"))
        .header("x-hub-signature-256", format!("sha256={digest}"))
        .header("content-type", "application/json");
    let response = sent.body(body).send().await?.error_for_status()?;
    let said: Value = serde_json::from_slice(&response.bytes().await?)?;
    anyhow::ensure!(said["outcome"] == "taken", "the delivery was not taken: {said}");
    Ok(())
}

/// Measures pages of the history of a store with many finished runs.
pub async fn history(site: &Site, rounds: usize) -> anyhow::Result<Vec<Figure>> {
    let web = WebClient::new()?;
    site.reconfigure(|config| web.configure(config))?;
    let mut command: Command = site.command(&["dashboard"])?;
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let service = Service::of(command.spawn().context("the program cannot be started")?);
    web.until_open().await?;
    let first: Value = page(&web, "/api/history?limit=200").await?.1;
    let before = first["next"].as_str().context("there is one page only")?.to_owned();
    let deep = "00000000-0000-7000-8000-000000000200";
    let mut figures = Vec::new();
    for (name, path, target) in [
        (
            "a page of the history behind finished runs",
            "/api/history".to_owned(),
            Some(50.0),
        ),
        (
            "a later page of the history behind finished runs",
            format!("/api/history?before={before}"),
            Some(50.0),
        ),
        (
            "the last page of the history behind finished runs",
            format!("/api/history?before={deep}"),
            Some(50.0),
        ),
        (
            "a filtered page of the history behind finished runs",
            "/api/history?state=done".to_owned(),
            Some(50.0),
        ),
        (
            "a page of the history behind finished runs, none in that state",
            "/api/history?state=failed".to_owned(),
            None,
        ),
    ] {
        // The first one finds the files cold.
        page(&web, &path).await?;
        let mut times = Vec::new();
        for _ in 0..rounds {
            times.push(page(&web, &path).await?.0);
        }
        let figure = Figure::of(name, "ms", &times)?;
        figures.push(match target {
            Some(target) => figure.at_most(target),
            None => figure,
        });
    }
    service.stop().await?;
    site.reconfigure(|config| config["http"] = json!({}))?;
    Ok(figures)
}

async fn page(web: &WebClient, path: &str) -> anyhow::Result<(f64, Value)> {
    let begun = Instant::now();
    let response = web.get(path).send().await?.error_for_status()?;
    let bytes = response.bytes().await?;
    Ok((milliseconds(begun.elapsed()), serde_json::from_slice(&bytes)?))
}
