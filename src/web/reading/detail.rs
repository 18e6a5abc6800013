//! The document about one run.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::runs::{RunSummary, Wait};
use crate::agent::record::usage::ModelUsage;
use crate::agent::record::{Failure, PausedBy, Record};
use crate::journal::fact::{Entry, Fact};
use crate::review::rounds::{Opinion, ReviewLoop};
use crate::review::score::Score;
use crate::service::Service;
use crate::store::{FactFilter, NumberedFact, Run, StoreError};
use crate::task::id::RunId;
use crate::task::state::State;

/// A run with all that is known of it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in crate::web) struct RunDetail {
    #[serde(flatten)]
    pub(in crate::web) run: RunSummary,
    /// Why what was saved of the run cannot be read, if so. Then nothing else here that comes of it
    /// is known, and what is empty or 0 says nothing.
    pub(in crate::web) unreadable: Option<String>,
    pub(in crate::web) waits_for: Option<Wait>,
    /// The question of the model, or why a plan or result waits.
    pub(in crate::web) question: Option<String>,
    pub(in crate::web) objective: String,
    pub(in crate::web) criteria: Vec<String>,
    pub(in crate::web) steps: Vec<Step>,
    pub(in crate::web) environment: Option<String>,
    /// The model's own account of its current work.
    pub(in crate::web) doing: String,
    pub(in crate::web) checks: Vec<CheckView>,
    pub(in crate::web) reviews: Vec<ReviewView>,
    pub(in crate::web) usage: Vec<UsageView>,
    pub(in crate::web) turns: u32,
    pub(in crate::web) tokens: u64,
    pub(in crate::web) cost_usd: Option<f64>,
    pub(in crate::web) budget: BudgetView,
    pub(in crate::web) summary: Option<String>,
    pub(in crate::web) failure: Option<String>,
    /// The address of the pull or merge request.
    pub(in crate::web) change: Option<String>,
    /// Number of the newest fact. `GET /api/events` continues after it.
    pub(in crate::web) newest_fact: u64,
}

/// A step of the plan.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in crate::web) struct Step {
    pub(in crate::web) id: String,
    pub(in crate::web) description: String,
    pub(in crate::web) is_finished: bool,
}

/// A check that the program ran.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in crate::web) struct CheckView {
    pub(in crate::web) command: String,
    pub(in crate::web) exit_code: Option<i64>,
    pub(in crate::web) passed: bool,
}

/// The rounds of the review of a plan or a result.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in crate::web) struct ReviewView {
    /// `plan` or `result`.
    pub(in crate::web) what: String,
    /// The score of each round, from 0 to 10; null for a round without a review.
    pub(in crate::web) scores: Vec<Option<f64>>,
}

/// Tokens of a model in a role.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in crate::web) struct UsageView {
    pub(in crate::web) model: String,
    pub(in crate::web) role: String,
    pub(in crate::web) input: u64,
    pub(in crate::web) output: u64,
    pub(in crate::web) cached: u64,
    pub(in crate::web) cost_usd: Option<f64>,
}

/// The limits of the run; null stands for no limit.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in crate::web) struct BudgetView {
    pub(in crate::web) tokens: Option<u64>,
    pub(in crate::web) minutes: Option<u64>,
    pub(in crate::web) cost_usd: Option<f64>,
    pub(in crate::web) turns: u32,
}

/// A fact of the log.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in crate::web) struct LogLine {
    pub(in crate::web) sequence: u64,
    pub(in crate::web) at: String,
    pub(in crate::web) task: Option<String>,
    pub(in crate::web) run: Option<String>,
    /// Its name, such as `tool_called`.
    pub(in crate::web) fact: String,
    /// Its other fields.
    pub(in crate::web) fields: serde_json::Map<String, Value>,
}

/// A file of a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::web) struct ChangedFile {
    pub(in crate::web) path: String,
    pub(in crate::web) added: usize,
    pub(in crate::web) removed: usize,
    pub(in crate::web) lines: Vec<DiffLine>,
}

/// A line of a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(in crate::web) struct DiffLine {
    /// `added`, `removed`, `place` or `same`.
    pub(in crate::web) kind: &'static str,
    pub(in crate::web) text: String,
}

/// The difference that a run makes.
#[derive(Debug, Clone, Default, Serialize)]
pub(in crate::web) struct Difference {
    pub(in crate::web) files: Vec<ChangedFile>,
    pub(in crate::web) is_cut: bool,
}

/// Returns a run with all that is known of it.
pub(in crate::web) async fn detail(service: &Service, id: RunId) -> Result<Option<RunDetail>, StoreError> {
    let newest_fact = service.store().newest_fact().await?;
    let Some(run) = service.store().run(id).await? else {
        return Ok(None);
    };
    let shown = match Record::read(&run) {
        Ok(record) => of(service, &run, &record, newest_fact),
        Err(unreadable) => RunDetail {
            unreadable: Some(unreadable.to_string()),
            cost_usd: None,
            ..of(service, &run, &Record::default(), newest_fact)
        },
    };
    Ok(Some(shown))
}

fn of(service: &Service, run: &Run, record: &Record, newest_fact: u64) -> RunDetail {
    let config = service.config();
    let plan = record.planned.plan.clone().unwrap_or_default();
    let finished = &record.worked.finished_subtasks;
    // As in the comments on the item: a change that was verified as a whole has no open step.
    let is_whole = run.state == State::Done && record.is_verified() && record.has_changes();
    let steps = plan.task_decomposition.subtasks.into_iter().map(|step| Step {
        is_finished: is_whole || finished.contains(&step.id),
        id: step.id,
        description: step.description,
    });
    let checks = record.verified.checks.iter().map(|check| CheckView {
        command: check.command.clone(),
        exit_code: check.exit_code,
        passed: !check.is_open(),
    });
    let allowance = record.waiting.allowance.map(|allowance| allowance.tokens);
    RunDetail {
        run: RunSummary::of(run),
        unreadable: None,
        waits_for: Wait::of(run, record, config.steering.expire_days),
        question: question(record),
        objective: plan.goal_understanding.main_objective,
        criteria: plan.goal_understanding.success_criteria,
        steps: steps.collect(),
        environment: record.planned.environment.clone(),
        doing: record.worked.doing.clone(),
        checks: checks.collect(),
        reviews: reviews(record),
        usage: usage(service, record),
        turns: record.worked.turns,
        tokens: record.worked.usage.input + record.worked.usage.output,
        cost_usd: record.cost(service.prices()),
        budget: BudgetView {
            tokens: allowance.or(config.budget.tokens),
            minutes: config.budget.minutes,
            cost_usd: config.budget.cost_usd,
            turns: config.max_llm_process_num,
        },
        summary: record.worked.summary.clone(),
        failure: record.failure.as_ref().map(Failure::in_words),
        change: record.delivered.change.as_ref().map(|change| change.url.clone()),
        newest_fact,
    }
}

fn question(record: &Record) -> Option<String> {
    match &record.waiting.paused.as_ref()?.by {
        PausedBy::Question(text) | PausedBy::Limit(text) => Some(text.clone()),
        PausedBy::Plan(held) => Some(held.goal.clone()),
        PausedBy::Objections(_) | PausedBy::Person(_) | PausedBy::AllRuns => None,
    }
}

fn reviews(record: &Record) -> Vec<ReviewView> {
    let scores = |rounds: &ReviewLoop| -> Vec<Option<f64>> {
        let score = |opinion: &Opinion| opinion.score().map(Score::value);
        rounds.rounds().iter().map(|round| score(&round.opinion)).collect()
    };
    [("plan", &record.reviewed.plan), ("result", &record.reviewed.result)]
        .into_iter()
        .filter(|(_, rounds)| !rounds.rounds().is_empty())
        .map(|(what, rounds)| ReviewView {
            what: what.to_owned(),
            scores: scores(rounds),
        })
        .collect()
}

fn usage(service: &Service, record: &Record) -> Vec<UsageView> {
    let entries = record.worked.by_model.iter();
    let entries = entries.map(|ModelUsage { model, role, usage }| UsageView {
        cost_usd: service.prices().cost([(model.as_str(), usage)]),
        model: model.clone(),
        role: role.as_str().to_owned(),
        input: usage.input,
        output: usage.output,
        cached: usage.cached,
    });
    entries.collect()
}

/// Returns the newest facts, in order.
pub(in crate::web) async fn log(service: &Service, filter: &FactFilter, most: u32) -> Result<Vec<LogLine>, StoreError> {
    let facts = service.store().newest_facts(filter, most).await?;
    Ok(facts.iter().filter_map(line).collect())
}

fn line(fact: &NumberedFact) -> Option<LogLine> {
    let mut fields: serde_json::Map<String, Value> = serde_json::from_str(&fact.document).ok()?;
    let mut take = |name: &str| fields.remove(name)?.as_str().map(str::to_owned);
    Some(LogLine {
        sequence: fact.sequence,
        at: take("at")?,
        task: take("task"),
        run: take("run"),
        fact: take("fact")?,
        fields,
    })
}

/// Returns the newest difference of a run, taken apart.
pub(in crate::web) async fn difference(service: &Service, run: RunId) -> Result<Difference, StoreError> {
    let fact = service.store().newest_of(run, "difference_made").await?;
    let entry = fact.and_then(|fact| serde_json::from_str::<Entry>(&fact.document).ok());
    let Some(Fact::DifferenceMade { difference, is_cut, .. }) = entry.map(|entry| entry.fact) else {
        return Ok(Difference::default());
    };
    Ok(Difference {
        files: files(&difference),
        is_cut,
    })
}

/// Takes a unified difference apart, file by file.
fn files(difference: &str) -> Vec<ChangedFile> {
    let mut files: Vec<ChangedFile> = Vec::new();
    for line in difference.lines() {
        if let Some(names) = line.strip_prefix("diff --git ") {
            let path = names.rsplit_once(" b/").map_or(names, |(_, path)| path);
            files.push(ChangedFile {
                path: path.to_owned(),
                added: 0,
                removed: 0,
                lines: Vec::new(),
            });
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        let is_head = file.lines.is_empty() && !line.starts_with("@@");
        let kind = match line.as_bytes().first() {
            _ if is_head => continue,
            Some(b'+') => "added",
            Some(b'-') => "removed",
            Some(b'@') => "place",
            _ => "same",
        };
        file.added += usize::from(kind == "added");
        file.removed += usize::from(kind == "removed");
        file.lines.push(DiffLine {
            kind,
            text: line.to_owned(),
        });
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_taken_apart_by_file_without_its_heads() {
        let text = "diff --git a/a b.md b/a b.md\nindex 1..2 100644\n--- a/a b.md\n+++ b/a b.md\n@@ -1 +1,2 @@\n-old\n+new\n+more\n same\n\
                    diff --git a/x b/x\nnew file mode 100644\n";
        let files = files(text);
        assert_eq!(files.len(), 2);
        assert_eq!(
            (files[0].path.as_str(), files[0].added, files[0].removed),
            ("a b.md", 2, 1)
        );
        assert_eq!(files[0].lines.len(), 5);
        assert_eq!((files[1].path.as_str(), files[1].lines.len()), ("x", 0));
    }
}
