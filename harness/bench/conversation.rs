//! A long conversation: what it costs to save one more message, with the real store, and to write
//! the request of all of them.

use std::time::{Duration, Instant};

use anyhow::Context;
use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::routing::post;
use coding_agent::conversation::Message;
use coding_agent::llm::config::role::Role;
use coding_agent::llm::config::{Config, OpenAi, ProviderName};
use coding_agent::llm::models::Models;
use coding_agent::secret::Redactor;
use coding_agent::store::Store;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::figure::Figure;
use crate::scale::Scale;
use crate::turns::milliseconds;

const MESSAGES: usize = 5_000;
/// How many at the beginning and at the end are held against each other.
const ENDS: usize = 500;
/// How often each request is sent.
const REQUESTS: usize = 20;

pub async fn measure(scale: Scale) -> anyhow::Result<Vec<Figure>> {
    let (messages, ends) = (scale.of(MESSAGES, 100), scale.of(ENDS, 10));
    let said = said(messages);
    let appends = appends(&said).await?;
    let (first, last) = (&appends[..ends], &appends[messages - ends..]);
    let address = answering().await?;
    let (mut long, mut short) = (Vec::new(), Vec::new());
    for _ in 0..scale.of(REQUESTS, 2) {
        long.push(request(&address, &said).await?);
        short.push(request(&address, &said[..messages / 10]).await? * 10.0);
    }
    Ok(vec![
        Figure::of("a message behind 4,500 others is saved", "ms", last)?
            .over(first)
            .at_most_times(1.2),
        Figure::of("a request of 5,000 messages, against ten of 500", "ms", &long)?
            .over(&short)
            .at_most_times(1.2),
    ])
}

/// Returns a conversation of commands and what they said.
fn said(messages: usize) -> Vec<Message> {
    let said = |number: usize| {
        if number.is_multiple_of(2) {
            let text =
                format!("{{\"comment\":\"Looking\",\"command\":{{\"tool\":\"a/b\",\"args\":{{\"n\":{number}}}}}}}");
            return Message::Assistant {
                text,
                calls: Vec::new(),
                origin: None,
            };
        }
        Message::User {
            text: format!("{number}: {}", "an output of some length, as most are. ".repeat(10)),
            pictures: Vec::new(),
        }
    };
    (1..=messages).map(said).collect()
}

/// Saves one message after the other, each with a record, and returns how long each took.
async fn appends(said: &[Message]) -> anyhow::Result<Vec<f64>> {
    let folder = tempfile::Builder::new().prefix("coding-agent-bench-").tempdir()?;
    let store = Store::open(folder.path()).await?;
    let task = "github:acme/widgets#1".parse().map_err(anyhow::Error::msg)?;
    let record = json!({ "task_text": "What is to be done, at some length. ".repeat(50) });
    store.admit(&task, "Talk", &record).await?;
    let (lease, _) = store
        .claim(Duration::from_mins(10))
        .await?
        .context("the run cannot be claimed")?;
    let mut took = Vec::with_capacity(said.len());
    for (place, message) in said.iter().enumerate() {
        let begun = Instant::now();
        let message = std::slice::from_ref(message);
        store.append(&lease, &record, place, message).await?;
        took.push(milliseconds(begun.elapsed()));
    }
    anyhow::ensure!(
        store.messages(lease.run).await?.len() == said.len(),
        "messages were lost"
    );
    Ok(took)
}

/// Takes a stored conversation up, asks for the next reply, and returns how long the asking took.
async fn request(address: &str, said: &[Message]) -> anyhow::Result<f64> {
    let models = Models::new(&Config {
        provider: ProviderName::Openai,
        openai: OpenAi {
            base_url: address.to_owned(),
            model: "scripted".to_owned(),
            context_length: 100_000_000,
            ..OpenAi::default()
        },
        ..Config::default()
    })?;
    let mut chat = models
        .of(Role::Worker, None)
        .chat(Vec::new().into(), false, CancellationToken::new());
    chat.resume(said.to_vec());
    let redactor = Redactor::new(&[]);
    // The first request opens the connection.
    chat.get_response().await?;
    chat.send_user_message(&redactor.clean("Go on."));
    let begun = Instant::now();
    chat.get_response().await?;
    Ok(milliseconds(begun.elapsed()))
}

/// Starts a server that reads requests of any length and answers at once; returns its address.
async fn answering() -> anyhow::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}/v1", listener.local_addr()?);
    let answer = |_: Bytes| async {
        let answer: Value = json!({ "choices": [{ "message": { "content": "{}" }, "finish_reason": "stop" }] });
        axum::Json(answer)
    };
    let router = Router::new()
        .route("/v1/chat/completions", post(answer))
        .layer(DefaultBodyLimit::disable());
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}
