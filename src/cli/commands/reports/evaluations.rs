//! `evaluations`: documents that other programs had evaluated, and how that ended.

use std::path::Path;
use std::process::ExitCode;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::cli::arguments::Evaluations;
use crate::cli::exit;
use crate::cli::session::{complain, configuration_or_defaults, print};
use crate::evaluation::stored::state;
use crate::store::{Address, Store, StoreError, StoredEvaluation};

/// Maximum number of evaluations that are listed.
const MOST_LISTED: u32 = 30;
/// Number of the last digits of an id that are listed. Ids begin with the time, so those that were
/// made at about the same time differ at the end only.
const LISTED: usize = 12;

/// Lists the newest evaluations, or prints one.
pub async fn show(config: Option<&Path>, asked: &Evaluations) -> ExitCode {
    let config = match configuration_or_defaults(config) {
        Ok(config) => config,
        Err(code) => return code,
    };
    match told(config.store(), asked).await {
        Ok(text) => {
            print(text);
            exit::SUCCESS.into()
        }
        Err(reason) => {
            complain(reason);
            exit::FAILED.into()
        }
    }
}

async fn told(store: Address, asked: &Evaluations) -> Result<String, String> {
    let in_words = |error: StoreError| error.to_string();
    let store = Store::open(store).await.map_err(in_words)?;
    let now = Utc::now();
    let Some(id) = &asked.id else {
        let all = store.evaluations(MOST_LISTED).await.map_err(in_words)?;
        return Ok(if asked.json {
            json!(all.iter().map(|one| as_json(one, now)).collect::<Vec<_>>()).to_string()
        } else if all.is_empty() {
            "no evaluations yet".to_owned()
        } else {
            all.iter().map(|one| line(one, now)).collect::<Vec<_>>().join("\n")
        });
    };
    let found = store.evaluations_named(id).await.map_err(in_words)?;
    match found.as_slice() {
        [one] if asked.json => Ok(as_json(one, now).to_string()),
        [one] => Ok(page(one, now)),
        [] => Err(format!(
            "there is no evaluation '{id}'; `coding-agent evaluations` lists them"
        )),
        _ => Err(format!("'{id}' is the end of several evaluations; write more of it")),
    }
}

fn as_json(one: &StoredEvaluation, now: DateTime<Utc>) -> Value {
    let mut value = one.document.clone();
    value["id"] = json!(one.id);
    value["state"] = json!(state(one, now));
    value["begun_at"] = json!(one.begun_at);
    value["ended_at"] = json!(one.ended_at);
    value
}

fn line(one: &StoredEvaluation, now: DateTime<Utc>) -> String {
    let id = one.id.to_string();
    let score = &one.document["evaluation"]["score"];
    let score = score
        .as_f64()
        .map_or_else(|| "-".to_owned(), |score| format!("{score:.1}"));
    let name = one.document["name"].as_str().unwrap_or_default();
    format!(
        "{} {:<10} {score:>4} {name} ({} min ago)",
        &id[id.len() - LISTED..],
        state(one, now),
        (now - one.begun_at).num_minutes().max(0)
    )
}

fn page(one: &StoredEvaluation, now: DateTime<Utc>) -> String {
    let document = &one.document;
    let mut lines = vec![
        format!("{}: {}", document["name"].as_str().unwrap_or_default(), state(one, now)),
        format!("began {}", one.begun_at.format("%Y-%m-%d %H:%M:%S UTC")),
        format!(
            "{} bytes, digest {}",
            document["bytes"],
            document["digest"].as_str().unwrap_or_default()
        ),
    ];
    if let Some(error) = document["error"].as_str() {
        lines.push(format!("error: {error}"));
    }
    let evaluation = &document["evaluation"];
    if evaluation.is_object() {
        lines.push(format!(
            "score {} of 10, target {}",
            evaluation["score"], evaluation["target_score"]
        ));
        let indented = serde_json::to_string_pretty(evaluation).unwrap_or_default();
        lines.push(indented);
    }
    lines.join("\n")
}
