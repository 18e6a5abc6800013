//! The line that says how many tokens and how much money a run has used.

use std::fmt::Write as _;

use chrono::Utc;

use crate::agent::record::Record;
use crate::agent::record::usage::ModelUsage;
use crate::agent::services::Settings;
use crate::llm::config::model_config::OWN;
use crate::markdown::compose::{Line, Page};
use crate::plain::{counted, grouped};

/// Writes what a run has used below a page, unless it has asked no model.
pub(crate) fn used(page: &mut Page, record: &Record, settings: &Settings) {
    if record.worked.turns > 0 {
        page.small(vec![Line::figures(&spent(record, settings))]);
    }
}

/// Returns turns, tokens, cost and time in one line, and who used them if several models did.
pub fn spent(record: &Record, settings: &Settings) -> String {
    let usage = &record.worked.usage;
    let turns = counted(record.worked.turns, "model turn");
    let mut text = format!("{turns} · {} tokens in", grouped(usage.input));
    if usage.cached > 0 {
        let _ = write!(text, " ({} from the cache)", grouped(usage.cached));
    }
    let _ = write!(text, ", {} out", grouped(usage.output));
    if let Some(cost) = record.cost(&settings.prices) {
        let _ = write!(text, " · ${cost:.2}");
    }
    if let Some(started_at) = record.planned.started_at {
        let seconds = (Utc::now() - started_at).num_seconds().max(0);
        let _ = match seconds {
            0..120 => write!(text, " · {seconds} s"),
            _ => write!(text, " · {} min", seconds / 60),
        };
    }
    text.push_str(&spent_by_model(record, settings));
    text
}

/// Returns the usage of each model in each role, if there are several models.
fn spent_by_model(record: &Record, settings: &Settings) -> String {
    let entries = &record.worked.by_model;
    if entries.iter().all(|entry| entry.model == entries[0].model) {
        return String::new();
    }
    let parts = entries.iter().map(|ModelUsage { model, role, usage }| {
        let name = if model == OWN { "" } else { &format!(" {model}") };
        let (role, input, output) = (role.as_str(), grouped(usage.input), grouped(usage.output));
        let cost = settings
            .prices
            .cost([(model.as_str(), usage)])
            .filter(|cost| *cost > 0.0);
        let cost = cost.map_or_else(String::new, |cost| format!(", ${cost:.2}"));
        format!(" · {role}{name}: {input} in, {output} out{cost}")
    });
    parts.collect()
}
