//! The requests to the model: how long the fixed part is, how much of each request the server has
//! seen already, and how often the forge is asked meanwhile. Sixty turns of one conversation.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use serde_json::{Value, json};

use crate::economy::count;
use crate::fake::model::{Answer, Model, Plan, Said};
use crate::figure::Figure;
use crate::floor::COMMAND;
use crate::site::Site;
use crate::turns::file;

const TURNS: usize = 60;
/// The most bytes of the fixed prompt: its tokens, at three bytes for each, which no usual English
/// text falls below.
const MOST_BYTES: f64 = 1200.0 * 3.0;

pub async fn measure() -> anyhow::Result<Vec<Figure>> {
    let replies = AtomicUsize::new(0);
    let model = Model::answering(move |_| match replies.fetch_add(1, Ordering::Relaxed) {
        0 => Answer::plans(Plan::of(&["write a note"]).in_environment("python")),
        1 => Answer::calls("workspace/write_file", file("A line.\n")),
        TURNS => Answer::done("The note is written."),
        turn => Answer::calls(
            "workspace/execute_command",
            json!({ "command": format!("{COMMAND} {turn}") }),
        ),
    })
    .await;
    let site = Site::new(&model).await?;
    site.github.open_issue("Write a note").label("coding agent");
    site.deliver().await?;
    // The first request is the planner's, whose conversation is another one.
    let requests = model.requests().split_off(1);
    let system = match requests.first().and_then(|request| request.messages.first()) {
        Some(Said::System(text)) => text.len(),
        other => anyhow::bail!("the first message is no system prompt: {other:?}"),
    };
    let sent: Vec<String> = requests
        .iter()
        .map(|request| messages(&request.body))
        .collect::<Result<_, _>>()?;
    let new: Vec<f64> = sent
        .windows(2)
        .map(|pair| percent_not_repeated(&pair[0], &pair[1]))
        .collect();
    Ok(vec![
        Figure::of("the fixed prompt with the built-in tools", "bytes", &[count(system)])?.at_most(MOST_BYTES),
        Figure::of("a request, part that the next does not repeat", "%", &new)?.at_most(1.0),
        Figure::of(
            "a session of 60 turns, sent to the model",
            "kB",
            &[count(sent.iter().map(String::len).sum()) / 1e3],
        )?,
        Figure::of(
            "a run of 60 turns, forge requests",
            "",
            &[count(site.github.requests().len())],
        )?
        .at_most(40.0),
    ])
}

/// Returns the messages as they were sent, without the bracket at their end.
pub fn messages(body: &Value) -> anyhow::Result<String> {
    let messages = body.get("messages").context("a request has no messages")?;
    Ok(messages.to_string().trim_end_matches(']').to_owned())
}

pub fn percent_not_repeated(request: &str, next: &str) -> f64 {
    let same = request
        .bytes()
        .zip(next.bytes())
        .take_while(|(one, other)| one == other)
        .count();
    (1.0 - count(same) / count(request.len())) * 100.0
}
