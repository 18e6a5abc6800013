//! `status`: what is queued, active and finished.

use std::path::Path;
use std::process::ExitCode;

use chrono::Utc;
use serde_json::json;

use crate::agent::record::Record;
use crate::agent::record::usage::ModelUsage;
use crate::cli::arguments::Status;
use crate::cli::exit;
use crate::cli::session::{complain, configuration_or_defaults, print};
use crate::agent::text::reviews;
use crate::config::Config;
use crate::review::rounds::ReviewLoop;
use crate::review::score::Score;
use crate::store::{Run, Store, StoreError};

/// How many runs are listed.
const MOST_RUNS: u32 = 30;

/// Prints the newest runs; with `--quiet` prints nothing, and the exit code tells whether a service
/// is at work.
pub async fn show(config: Option<&Path>, status: &Status) -> ExitCode {
    let config = match configuration_or_defaults(config) {
        Ok(config) => config,
        Err(code) => return code,
    };
    match read(&config).await {
        Ok((_, true)) if status.quiet => exit::SUCCESS.into(),
        Ok((_, false)) if status.quiet => exit::FAILED.into(),
        Ok((runs, is_served)) => {
            if status.json {
                print(as_json(&runs, is_served));
            } else {
                print(as_text(&runs, is_served));
            }
            exit::SUCCESS.into()
        }
        Err(error) => {
            if !status.quiet {
                complain(error);
            }
            exit::FAILED.into()
        }
    }
}

async fn read(config: &Config) -> Result<(Vec<Run>, bool), StoreError> {
    let store = Store::open(&config.state_dir).await?;
    Ok((store.runs(None, MOST_RUNS).await?, store.has_other_workers().await?))
}

fn as_json(runs: &[Run], is_served: bool) -> serde_json::Value {
    let runs: Vec<_> = runs
        .iter()
        .map(|run| {
            json!({
                "task": run.task,
                "run": run.id,
                "title": run.title,
                "state": run.state.to_string(),
                "created_at": run.created_at,
                "updated_at": run.updated_at,
                "not_before": run.not_before,
                "usage": usage(run),
                "reviews": reviews_as_json(run),
            })
        })
        .collect();
    json!({ "worker_active": is_served, "runs": runs })
}

/// Returns the reviews of plan and result that there are.
fn reviews(run: &Run) -> Vec<(&'static str, ReviewLoop)> {
    let Ok(record) = Record::read(run) else {
        return Vec::new();
    };
    let reviewed = [("plan", record.reviewed.plan), ("result", record.reviewed.result)];
    let is_made = |(_, rounds): &(&str, ReviewLoop)| !rounds.rounds().is_empty();
    reviewed.into_iter().filter(is_made).collect()
}

/// Returns the score of each round, `null` where no review came of it.
fn reviews_as_json(run: &Run) -> serde_json::Value {
    let scores = |rounds: &ReviewLoop| -> Vec<Option<Score>> {
        rounds.rounds().iter().map(|round| round.opinion.score()).collect()
    };
    let reviews = reviews(run);
    let entries = reviews
        .iter()
        .map(|(what, rounds)| ((*what).to_owned(), json!(scores(rounds))));
    serde_json::Value::Object(entries.collect())
}

/// Returns the tokens of each model in each role; empty where none was asked.
fn usage(run: &Run) -> Vec<ModelUsage> {
    Record::read(run).map_or_else(|_| Vec::new(), |record| record.worked.by_model)
}

fn as_text(runs: &[Run], is_served: bool) -> String {
    let mut lines = vec![if is_served {
        "a worker is active".to_owned()
    } else {
        "no worker is active".to_owned()
    }];
    for run in runs {
        let minutes = (Utc::now() - run.updated_at).num_minutes().max(0);
        let wait = run
            .not_before
            .map_or_else(String::new, |until| format!(", again at {}", until.format("%H:%M UTC")));
        lines.push(format!(
            "{:<11} {:<32} {} ({minutes} min ago{wait})",
            run.state.to_string(),
            run.task.to_string(),
            run.title
        ));
        for (what, rounds) in reviews(run) {
            let scores = reviews::scores(&rounds).unwrap_or_default();
            lines.push(format!("            review of the {what}: {scores}"));
        }
        let usage = usage(run);
        if usage.iter().any(|entry| entry.model != usage[0].model) {
            lines.extend(usage.iter().map(|ModelUsage { model, role, usage }| {
                let (role, input, output) = (role.as_str(), usage.input, usage.output);
                format!("            {role} {model}: {input} tokens in, {output} out")
            }));
        }
    }
    if runs.is_empty() {
        lines.push("no runs yet".to_owned());
    }
    lines.join("\n")
}
