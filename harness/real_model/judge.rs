//! The conditions that must hold, whatever the model says.

use anyhow::{Context, ensure};
use coding_agent::plain::counted;
use serde_json::Value;

use crate::fake::github::Item;
use crate::relay::Exchange;
use crate::site::{Ended, Site, TRIGGER};

/// The part of a prompt, in percent, that the next request of the same conversation finds in the
/// server's cache. The server reads the end of the last reply once more: a text may be cut into
/// other tokens than it was written in.
const FOUND: u64 = 90;

/// The ends that a task may have when nothing went wrong but the model, each with its exit codes.
const ENDS: [(&str, &[i32]); 4] = [
    ("coding agent done", &[0]),
    ("coding agent failed", &[1, 2, 3]),
    ("coding agent paused", &[0, 1]),
    ("coding agent waiting", &[0]),
];

/// The scripted model's name in the configuration; its replies do not pass the relay.
pub const HAND: &str = "hand";

/// The tokens of one reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub input: u64,
    pub output: u64,
    pub cached: u64,
}

/// Checks that the task has one end that fits the exit code, that a comment says so, and that
/// nothing is left over. Returns the label.
pub async fn ended_honestly(site: &Site, issue: &Item, ended: &Ended) -> anyhow::Result<String> {
    let labels = issue.labels();
    let [label] = labels.as_slice() else {
        anyhow::bail!("not one label: {labels:?} ({ended:?})");
    };
    let end = ENDS.iter().find(|(name, _)| name == label);
    let (_, codes) = end.with_context(|| format!("the label '{label}' is no end ({ended:?})"))?;
    let code = ended.code.unwrap_or(-1);
    ensure!(codes.contains(&code), "{label} with exit code {code}: {ended:?}");
    let comments = issue.comments_of(site.github.bot());
    ensure!(
        !comments.is_empty(),
        "no comment tells of the end: {}",
        issue.timeline()
    );
    ensure!(label != TRIGGER, "the trigger is still on");
    let left = site.left_over().await?;
    ensure!(left.is_empty(), "something is left over: {left:?}");
    Ok(label.trim_start_matches("coding agent ").to_owned())
}

/// Checks that every request was taken, that every reply has the ending and the counts that the
/// protocol names, and that the journal has the same counts. Returns the number of replies, and
/// their tokens.
pub fn counted_as_the_server_does(site: &Site) -> anyhow::Result<(usize, Counts)> {
    let exchanges = site.relay.exchanges();
    ensure!(!exchanges.is_empty(), "nothing was asked");
    for exchange in &exchanges {
        ensure!(exchange.status == 200, "a request was refused: {}", exchange.answer);
        ensure!(
            ["stop", "length"].contains(&ending(exchange).as_str()),
            "a reply ends with '{}'",
            ending(exchange)
        );
    }
    let of_server: Vec<Counts> = exchanges.iter().map(counts).collect::<anyhow::Result<_>>()?;
    let own = |fact: &Value| Counts {
        input: fact["input"].as_u64().unwrap_or_default(),
        output: fact["output"].as_u64().unwrap_or_default(),
        cached: fact["cached"].as_u64().unwrap_or_default(),
    };
    let mut called = site.facts("model_called");
    called.retain(|fact| fact["model"] != HAND);
    let of_journal: Vec<Counts> = called.iter().map(own).collect();
    ensure!(
        of_journal == of_server,
        "the journal counts {of_journal:?}, the server {of_server:?}"
    );
    let sum = |part: fn(&Counts) -> u64| of_server.iter().map(part).sum();
    let all = Counts {
        input: sum(|counts| counts.input),
        output: sum(|counts| counts.output),
        cached: sum(|counts| counts.cached),
    };
    Ok((of_server.len(), all))
}

/// Checks that a request that goes on with a conversation finds its beginning in the server's
/// cache, and never asks for another window. Returns how many did; `None` where the server does not
/// tell.
pub fn found_in_the_cache(site: &Site) -> anyhow::Result<Option<usize>> {
    let exchanges = site.relay.exchanges();
    let mut found = 0;
    for pair in exchanges.windows(2) {
        let [before, after] = pair else { continue };
        ensure!(
            before.request["options"] == after.request["options"],
            "the options changed: {} and {}",
            before.request["options"],
            after.request["options"]
        );
        let messages = |exchange: &Exchange| exchange.request["messages"].as_array().cloned().unwrap_or_default();
        if !messages(after).starts_with(&messages(before)) {
            continue;
        }
        if after.answer["usage"]["prompt_tokens_details"].is_null() {
            return Ok(None);
        }
        let (known, cached) = (counts(before)?.input, counts(after)?.cached);
        ensure!(
            cached >= known * FOUND / 100,
            "of a prompt of {known} tokens the next request found {cached} in the cache"
        );
        found += 1;
    }
    Ok(Some(found))
}

/// Checks that replies that came to their own end are the JSON that the form asks for. Returns how
/// many were cut at the length limit.
pub fn held_to_their_form(site: &Site) -> anyhow::Result<usize> {
    let exchanges = site.relay.exchanges();
    let (whole, cut): (Vec<&Exchange>, Vec<_>) = exchanges.iter().partition(|exchange| ending(exchange) == "stop");
    for exchange in whole {
        let text = text(exchange);
        ensure!(
            serde_json::from_str::<Value>(text).is_ok_and(|reply| reply.is_object()),
            "a reply that was held to a form is no JSON object: {text}"
        );
    }
    Ok(cut.len())
}

/// Checks that a task that did not pass its review ended as the configuration says, after as many
/// rounds as it allows and no more questions than these need, and that nothing passed that the
/// reviewer did not call ready with the whole score. Returns the outcome in words.
pub async fn reviewed_as_configured(
    site: &Site,
    issue: &Item,
    ended: &Ended,
    (plan, result): (&str, &str),
) -> anyhow::Result<String> {
    let (given, missing) = (site.facts("review_given"), site.facts("review_missing"));
    let unready = site.facts("review_unready");
    let passed = |what: &str| given.iter().any(|fact| fact["what"] == what && fact["passed"] == true);
    for fact in &given {
        let is_whole = fact["ready"] == true && fact["score"] == 10.0 && fact["blockers"] == 0;
        ensure!(fact["passed"] == is_whole, "it was let pass: {fact}");
    }
    let follows = |what: &str| {
        unready
            .iter()
            .find(|fact| fact["what"] == what)
            .map(|fact| fact["follows"].clone())
    };
    ensure!(
        passed("plan") || follows("plan").is_some_and(|follows| follows == plan),
        "the plan did not pass, and {unready:?} follows"
    );
    let rounds = given.len() + missing.len();
    let asked = site.relay.exchanges().len();
    ensure!((1..=3).contains(&rounds), "there were {rounds} rounds");
    ensure!(
        (rounds..=3 * rounds).contains(&asked),
        "{asked} questions for {rounds} rounds"
    );
    let labels = issue.labels();
    let comment = issue.comments_of(site.github.bot()).pop().unwrap_or_default();
    let outcome = if plan == "fail" && !passed("plan") {
        ensure!(
            labels == ["coding agent failed"] && ended.code == Some(1),
            "{labels:?}, {ended:?}"
        );
        ensure!(
            comment.contains("did not pass its review"),
            "nobody is told why: {comment}"
        );
        ensure!(site.github.pulls().is_empty(), "something was delivered");
        "failed at its plan"
    } else {
        ensure!(
            passed("result") || follows("result").is_some_and(|follows| follows == result),
            "the result did not pass, and {unready:?} follows"
        );
        let is_draft = site.github.pulls().first().is_some_and(Item::is_draft);
        ensure!(
            labels == ["coding agent done"] && is_draft != passed("result"),
            "{labels:?}, {ended:?}"
        );
        if is_draft { "delivered as a draft" } else { "delivered" }
    };
    counted_as_the_server_does(site)?;
    let left = site.left_over().await?;
    ensure!(left.is_empty(), "something is left over: {left:?}");
    let scores: Vec<String> = given.iter().map(|fact| fact["score"].to_string()).collect();
    Ok(format!(
        "{outcome}, {} in {}, {} unreadable, scores {scores:?}",
        counted(rounds, "round"),
        counted(asked, "question"),
        missing.len()
    ))
}

fn ending(exchange: &Exchange) -> String {
    let answer = &exchange.answer;
    let reason = answer["choices"][0]["finish_reason"]
        .as_str()
        .or(answer["done_reason"].as_str());
    reason.unwrap_or_default().to_owned()
}

fn text(exchange: &Exchange) -> &str {
    let answer = &exchange.answer;
    let text = answer["choices"][0]["message"]["content"]
        .as_str()
        .or(answer["message"]["content"].as_str());
    text.unwrap_or_default()
}

/// Returns what the server counted, in its own words.
fn counts(exchange: &Exchange) -> anyhow::Result<Counts> {
    let answer = &exchange.answer;
    let usage = &answer["usage"];
    let input = usage["prompt_tokens"].as_u64().or(answer["prompt_eval_count"].as_u64());
    let output = usage["completion_tokens"].as_u64().or(answer["eval_count"].as_u64());
    let (Some(input), Some(output)) = (input, output) else {
        anyhow::bail!("the server counts nothing: {answer}");
    };
    ensure!(input > 0 && output > 0, "the server counts {input} and {output} tokens");
    let cached = usage["prompt_tokens_details"]["cached_tokens"].as_u64();
    Ok(Counts {
        input,
        output,
        cached: cached.unwrap_or_default(),
    })
}
