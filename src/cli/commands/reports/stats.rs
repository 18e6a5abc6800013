//! `stats`: figures over many runs, from the facts in the store.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use chrono::{DateTime, Utc};

use crate::cli::arguments::Stats;
use crate::cli::exit;
use crate::cli::session::{complain, configuration_or_defaults, print};
use crate::journal::reading;
use crate::journal::statistics::{Figure, Report, Statistics};
use crate::llm::config::PriceList;
use crate::store::{Address, FactFilter, Store};

/// Prints the figures.
pub async fn show(config: Option<&Path>, asked: &Stats) -> ExitCode {
    let config = match configuration_or_defaults(config) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let since = asked.since.and_then(|period| Utc::now().checked_sub_signed(period));
    match read(config.store(), since, &PriceList(config.prices())).await {
        Ok(report) if asked.json => print(serde_json::to_string_pretty(&report).unwrap_or_default()),
        Ok(report) => print(as_text(&report).trim_end()),
        Err(error) => {
            complain(format_args!("{error:#}"));
            return exit::FAILED.into();
        }
    }
    exit::SUCCESS.into()
}

async fn read(store: Address, since: Option<DateTime<Utc>>, prices: &PriceList) -> anyhow::Result<Report> {
    let store = Store::open(store).await.context("the store cannot be opened")?;
    let mut statistics = Statistics::since(since);
    reading::each_in_store(&store, &FactFilter::All, &mut 0, |entry| statistics.take(&entry)).await?;
    Ok(statistics.report(prices))
}

fn as_text(report: &Report) -> String {
    let mut text = String::new();
    let ended: Vec<String> = report
        .ended
        .iter()
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    let ended = if ended.is_empty() {
        "none".to_owned()
    } else {
        ended.join(", ")
    };
    let _ = writeln!(text, "{:<22} {ended}", "runs that ended");
    let percent = |value: &f64| format!("{:.1} %", value * 100.0);
    line(&mut text, "success rate", &report.success_rate, percent);
    line(&mut text, "duration", &report.duration_seconds, |duration| {
        format!("p50 {} s, p95 {} s", duration.p50, duration.p95)
    });
    line(&mut text, "tokens per run", &report.tokens_per_run, |tokens| {
        format!("{} in ({} cached), {} out", tokens.input, tokens.cached, tokens.output)
    });
    let dollars = |cost: &f64| format!("${cost:.4}");
    for (model, used) in &report.tokens_by_model {
        let tokens = &used.tokens;
        let cost = used.cost_usd.as_ref().map(dollars);
        let cost = cost.map_or_else(String::new, |cost| format!(", {cost}"));
        let _ = writeln!(
            text,
            "  {model:<20} {} in ({} cached), {} out{cost}",
            tokens.input, tokens.cached, tokens.output
        );
    }
    line(&mut text, "cost per run", &report.cost_per_run_usd, dollars);
    line(&mut text, "refusals", &report.refusals, usize::to_string);
    for (rule, count) in &report.refusals_by_rule {
        let _ = writeln!(text, "  {rule:<20} {count}");
    }
    line(&mut text, "partial failures", &report.partial_failure_rate, percent);
    line(&mut text, "plan reproduction", &report.plan_reproduction_rate, percent);
    line(&mut text, "repaired", &report.repair_rate, percent);
    line(&mut text, "repairs per run", &report.repair_steps, |steps| {
        format!("{steps:.1}")
    });
    let score = |score: &f64| format!("{score:.2} of 10");
    line(&mut text, "first review score", &report.first_review_score, score);
    line(&mut text, "last review score", &report.last_review_score, score);
    line(&mut text, "reviews passed", &report.review_pass_rate, percent);
    line(&mut text, "rounds per review", &report.review_rounds, |rounds| {
        format!("{rounds:.1}")
    });
    text
}

fn line<T>(text: &mut String, name: &str, figure: &Figure<T>, shown: impl Fn(&T) -> String) {
    let value = figure.value.as_ref().map_or_else(|| "no data".to_owned(), shown);
    let since = figure.since.map_or_else(String::new, |since| {
        format!(
            "  (of {}, data since {})",
            figure.of,
            since.format("%Y-%m-%d %H:%M UTC")
        )
    });
    let _ = writeln!(text, "{name:<22} {value}{since}");
}
