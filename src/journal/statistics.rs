//! Figures over many runs, from their facts.
//!
//! Pure: facts go in, oldest first, and a report comes out. A run counts in the period in which it
//! ended, with everything it did before; a model's reply outside of runs in that in which it came.
//! Each figure says since when there is data for it; one without data is empty, not zero.

pub mod used; // tokens by model and role, and what they cost

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::fact::{Entry, Fact};
use crate::conversation::Usage;
use crate::llm::config::PriceList;
use crate::task::id::RunId;
use crate::task::state::State;
use used::{Asked, ModelTokens, Tokens};

/// A figure, from how many cases it is, and since when there is data for it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure<T> {
    pub value: Option<T>,
    pub of: usize,
    pub since: Option<DateTime<Utc>>,
}

/// Durations of runs, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Duration {
    pub p50: i64,
    pub p95: i64,
}

/// The figures of a period.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Runs that ended, by their last state.
    pub ended: BTreeMap<String, usize>,
    /// Share of done runs among those that were done or failed.
    pub success_rate: Figure<f64>,
    /// Time from the first work on a run to its end, including waits for people.
    pub duration_seconds: Figure<Duration>,
    pub tokens_per_run: Figure<Tokens>,
    /// Mean cost of the runs of which it is known, in US dollars, by the prices of now.
    pub cost_per_run_usd: Figure<f64>,
    /// Tokens by the model and the role that it was asked in, where that is known; those of
    /// conversations in messengers and of evaluated documents are among them.
    pub tokens_by_model: BTreeMap<String, ModelTokens>,
    pub refusals: Figure<usize>,
    pub refusals_by_rule: BTreeMap<String, usize>,
    /// Share of done runs in which a check did not pass in the end.
    pub partial_failure_rate: Figure<f64>,
    /// Share of plans that were the same as an earlier one of the same input.
    pub plan_reproduction_rate: Figure<f64>,
    /// Share of runs with a failed check in which all passed in the end.
    pub repair_rate: Figure<f64>,
    /// Mean number of repairs of those.
    pub repair_steps: Figure<f64>,
    /// Mean score of plans and results in the first round of their reviews, from 0 to 10.
    pub first_review_score: Figure<f64>,
    /// The same in the last round.
    pub last_review_score: Figure<f64>,
    /// Share of the reviewed plans and results that passed in the end.
    pub review_pass_rate: Figure<f64>,
    /// Mean number of rounds of those reviews.
    pub review_rounds: Figure<f64>,
}

/// Collects facts.
#[derive(Default)]
pub struct Statistics {
    since: Option<DateTime<Utc>>,
    runs: BTreeMap<RunId, RunFacts>,
    refusals: BTreeMap<String, usize>,
    /// Tokens outside of runs.
    apart: BTreeMap<Asked, Usage>,
    plans: Reproduction,
    first: First,
}

/// The first fact of each kind.
#[derive(Default)]
struct First {
    any: Option<DateTime<Utc>>,
    claimed: Option<DateTime<Utc>>,
    called: Option<DateTime<Utc>>,
    /// The first call of a model that is named.
    named: Option<DateTime<Utc>>,
    verified: Option<DateTime<Utc>>,
    planned: Option<DateTime<Utc>>,
    reviewed: Option<DateTime<Utc>>,
}

/// Plans of one input after the first.
#[derive(Default)]
struct Reproduction {
    last: BTreeMap<String, String>,
    again: usize,
    same: usize,
}

/// The reviews of a run's plan, or of its result.
#[derive(Clone, Copy)]
struct Reviews {
    first: f64,
    last: f64,
    rounds: u32,
    is_passed: bool,
}

#[derive(Default)]
struct RunFacts {
    begun: Option<DateTime<Utc>>,
    ended: Option<(DateTime<Utc>, State)>,
    by_model: BTreeMap<Asked, Usage>,
    /// The last result of each check.
    checks: BTreeMap<String, bool>,
    has_failed_check: bool,
    repairs: u32,
    /// By what was reviewed.
    reviews: BTreeMap<String, Reviews>,
}

impl Statistics {
    /// Starts a report on runs that ended at `since` or later; without it, on all runs.
    pub fn since(since: Option<DateTime<Utc>>) -> Self {
        Self {
            since,
            ..Self::default()
        }
    }

    /// Adds a fact to the report.
    pub fn take(&mut self, entry: &Entry) {
        let at = entry.at;
        let is_in_period = self.since.is_none_or(|since| at >= since);
        self.first.any.get_or_insert(at);
        if let (Fact::PolicyRefused { rule, .. }, true) = (&entry.fact, is_in_period) {
            *self.refusals.entry(rule.clone()).or_default() += 1;
        }
        if let Fact::Planned { input, digest, .. } = &entry.fact
            && !input.is_empty()
        {
            self.first.planned.get_or_insert(at);
            self.plans.take(input, digest, is_in_period);
        }
        let called = used::called(&entry.fact);
        let Some(run) = entry.subject.run else {
            if let Some((asked, usage)) = called.filter(|_| is_in_period) {
                *self.apart.entry(asked).or_default() += usage;
            }
            return;
        };
        let run = self.runs.entry(run).or_default();
        if let Some((asked, usage)) = called {
            self.first.called.get_or_insert(at);
            if used::is_named(&asked) {
                self.first.named.get_or_insert(at);
            }
            *run.by_model.entry(asked).or_default() += usage;
        }
        match &entry.fact {
            Fact::Claimed { .. } => {
                self.first.claimed.get_or_insert(at);
                run.begun.get_or_insert(at);
            }
            Fact::StageChanged { from, to } => {
                if to.is_final() {
                    run.ended = Some((at, *to));
                }
                run.repairs += u32::from(*from == State::Verifying && *to == State::Working);
            }
            Fact::Verified { command, passed, .. } => {
                self.first.verified.get_or_insert(at);
                run.has_failed_check |= !passed;
                run.checks.insert(command.clone(), *passed);
            }
            Fact::ReviewGiven {
                what, score, passed, ..
            } => {
                self.first.reviewed.get_or_insert(at);
                run.take_review(what, score.value(), *passed);
            }
            _ => {}
        }
    }

    /// Returns the report; `prices` are those of the models.
    pub fn report(&self, prices: &PriceList) -> Report {
        let is_counted = |run: &&RunFacts| {
            run.ended
                .is_some_and(|(at, _)| self.since.is_none_or(|since| at >= since))
        };
        let runs: Vec<&RunFacts> = self.runs.values().filter(is_counted).collect();
        let mut ended = BTreeMap::new();
        for (_, state) in runs.iter().filter_map(|run| run.ended) {
            *ended.entry(state.to_string()).or_default() += 1;
        }
        let is_state = |run: &&RunFacts, wanted: State| run.ended.is_some_and(|(_, state)| state == wanted);
        let done: Vec<&RunFacts> = runs.iter().copied().filter(|run| is_state(run, State::Done)).collect();
        let failed = runs.iter().filter(|run| is_state(run, State::Failed)).count();
        let with_failures: Vec<&RunFacts> = runs.iter().copied().filter(|run| run.has_failed_check).collect();
        let repaired: Vec<&RunFacts> = with_failures.iter().copied().filter(|run| run.passes()).collect();
        let mut by_model = self.apart.clone();
        for (asked, usage) in runs.iter().flat_map(|run| &run.by_model) {
            *by_model.entry(asked.clone()).or_default() += *usage;
        }
        let costs: Vec<f64> = runs.iter().filter_map(|run| run.cost(prices)).collect();
        let with_prices = self.from(self.first.named.filter(|_| !prices.0.is_empty()));
        let begun = self.from(self.first.claimed);
        let verified = self.from(self.first.verified);
        let refusals: usize = self.refusals.values().sum();
        let reviews: Vec<Reviews> = runs.iter().flat_map(|run| run.reviews.values().copied()).collect();
        let reviewed = self.from(self.first.reviewed);
        Report {
            ended,
            success_rate: share(done.len(), done.len() + failed, begun),
            duration_seconds: durations(&runs, begun),
            tokens_per_run: mean_tokens(&runs, self.from(self.first.called)),
            cost_per_run_usd: mean_of(costs.into_iter(), with_prices),
            tokens_by_model: by_model
                .iter()
                .map(|(asked, usage)| (used::name_of(asked), ModelTokens::of(asked, usage, prices)))
                .collect(),
            refusals: Figure {
                value: self.first.any.map(|_| refusals),
                of: refusals,
                since: self.from(self.first.any),
            },
            refusals_by_rule: self.refusals.clone(),
            partial_failure_rate: share(done.iter().filter(|run| !run.passes()).count(), done.len(), begun),
            plan_reproduction_rate: share(self.plans.same, self.plans.again, self.from(self.first.planned)),
            repair_rate: share(repaired.len(), with_failures.len(), verified),
            repair_steps: mean(repaired.iter().map(|run| run.repairs).sum(), repaired.len(), verified),
            first_review_score: mean_of(reviews.iter().map(|review| review.first), reviewed),
            last_review_score: mean_of(reviews.iter().map(|review| review.last), reviewed),
            review_pass_rate: share(
                reviews.iter().filter(|review| review.is_passed).count(),
                reviews.len(),
                reviewed,
            ),
            review_rounds: mean(
                reviews.iter().map(|review| review.rounds).sum(),
                reviews.len(),
                reviewed,
            ),
        }
    }

    /// Returns the time since which there are data, if `first` is known.
    fn from(&self, first: Option<DateTime<Utc>>) -> Option<DateTime<Utc>> {
        first.map(|first| self.since.map_or(first, |since| since.max(first)))
    }
}

impl Reproduction {
    fn take(&mut self, input: &str, digest: &str, is_counted: bool) {
        let before = self.last.insert(input.to_owned(), digest.to_owned());
        if let Some(before) = before.filter(|_| is_counted) {
            self.again += 1;
            self.same += usize::from(before == digest);
        }
    }
}

impl RunFacts {
    /// Tells whether no check failed when it was last run.
    fn passes(&self) -> bool {
        self.checks.values().all(|passed| *passed)
    }

    /// Returns what the run cost; `None` where no model has a price, or a call does not name its
    /// model.
    fn cost(&self, prices: &PriceList) -> Option<f64> {
        let by_model = self.by_model.iter();
        let by_model = by_model.map(|((model, _), usage)| (model.as_str(), usage));
        prices
            .cost(by_model)
            .filter(|_| self.by_model.keys().all(used::is_named))
    }

    fn take_review(&mut self, what: &str, score: f64, is_passed: bool) {
        let reviews = self.reviews.entry(what.to_owned()).or_insert(Reviews {
            first: score,
            last: score,
            rounds: 0,
            is_passed,
        });
        (reviews.last, reviews.is_passed) = (score, is_passed);
        reviews.rounds += 1;
    }
}

fn share(part: usize, whole: usize, since: Option<DateTime<Utc>>) -> Figure<f64> {
    mean(u32::try_from(part).unwrap_or(u32::MAX), whole, since)
}

fn mean(sum: u32, count: usize, since: Option<DateTime<Utc>>) -> Figure<f64> {
    let whole = u32::try_from(count).unwrap_or(u32::MAX);
    Figure {
        value: (count > 0).then(|| f64::from(sum) / f64::from(whole)),
        of: count,
        since,
    }
}

fn mean_of(values: impl ExactSizeIterator<Item = f64>, since: Option<DateTime<Utc>>) -> Figure<f64> {
    let count = values.len();
    let whole = u32::try_from(count).unwrap_or(u32::MAX);
    Figure {
        value: (count > 0).then(|| values.sum::<f64>() / f64::from(whole)),
        of: count,
        since,
    }
}

fn mean_tokens(runs: &[&RunFacts], since: Option<DateTime<Utc>>) -> Figure<Tokens> {
    let mut all = Usage::default();
    for usage in runs.iter().flat_map(|run| run.by_model.values()) {
        all += *usage;
    }
    let value = u64::try_from(runs.len())
        .ok()
        .filter(|count| *count > 0)
        .map(|count| Tokens {
            input: all.input / count,
            output: all.output / count,
            cached: all.cached / count,
        });
    Figure {
        value,
        of: runs.len(),
        since,
    }
}

fn durations(runs: &[&RunFacts], since: Option<DateTime<Utc>>) -> Figure<Duration> {
    let mut seconds: Vec<i64> = runs
        .iter()
        .filter_map(|run| Some((run.ended?.0 - run.begun?).num_seconds()))
        .collect();
    seconds.sort_unstable();
    // The smallest value that so many percent of all do not exceed.
    let percentile = |percent: usize| seconds.get((seconds.len() * percent).div_ceil(100).max(1) - 1).copied();
    Figure {
        value: percentile(50)
            .zip(percentile(95))
            .map(|(p50, p95)| Duration { p50, p95 }),
        of: seconds.len(),
        since,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::fact::Subject;
    use crate::llm::config::Prices;
    use serde_json::{Value, json};

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_790_000_000 + seconds, 0).unwrap()
    }

    fn take(statistics: &mut Statistics, run: RunId, seconds: i64, fact: Value) {
        let fact: Fact = serde_json::from_value(fact).unwrap();
        let subject = Subject {
            task: None,
            run: Some(run),
        };
        let entry = Entry {
            at: at(seconds),
            subject,
            fact,
        };
        statistics.take(&entry);
    }

    fn changed(from: State, to: State) -> Value {
        json!({"fact": "stage_changed", "from": from.to_string(), "to": to.to_string()})
    }

    fn verified(passed: bool) -> Value {
        json!({"fact": "verified", "command": "make test", "exit_code": 0, "passed": passed})
    }

    fn run(number: u128) -> RunId {
        uuid::Uuid::from_u128(number).to_string().parse().unwrap()
    }

    fn prices() -> PriceList {
        let prices = |input: f64| Prices {
            input,
            output: 10.0,
            cached: Some(0.5),
            cache_write: None,
        };
        PriceList([("near".to_owned(), prices(2.0)), ("far".to_owned(), prices(4.0))].into())
    }

    /// Four runs: done, repaired, done with a check that fails, failed; and one that still works.
    fn played(since: Option<i64>) -> Report {
        let mut statistics = Statistics::since(since.map(at));
        let called = json!({"fact": "model_called", "turn": 1, "input": 100, "output": 10, "cached": 40, "milliseconds": 5,
            "model": "near", "role": "worker"});
        for (number, end, state, checks) in [
            (1, 100, State::Done, vec![true]),
            (2, 200, State::Done, vec![false, false, true]),
            (3, 300, State::Done, vec![false]),
            (4, 400, State::Failed, vec![]),
        ] {
            take(&mut statistics, run(number), 0, json!({"fact": "claimed"}));
            take(&mut statistics, run(number), 10, json!({"fact": "claimed"}));
            take(&mut statistics, run(number), 20, called.clone());
            for (place, passed) in checks.into_iter().enumerate() {
                if place > 0 {
                    take(
                        &mut statistics,
                        run(number),
                        30,
                        changed(State::Verifying, State::Working),
                    );
                }
                take(&mut statistics, run(number), 31, verified(passed));
            }
            for (place, score) in [6.0, 8.5]
                .into_iter()
                .take(usize::try_from(number - 1).unwrap())
                .enumerate()
            {
                let given = json!({"fact": "review_given", "what": "plan", "round": place + 1, "digest": "", "model": "far",
                    "score": score, "ready": true, "passed": score > 8.0, "blockers": 0, "unproven": 0});
                take(&mut statistics, run(number), 40, given);
            }
            let refused = json!({"fact": "policy_refused", "rule": "left_out", "reason": "x"});
            take(&mut statistics, run(number), end - 1, refused);
            take(&mut statistics, run(number), end, changed(State::Delivering, state));
        }
        take(&mut statistics, run(5), 500, json!({"fact": "claimed"}));
        statistics.report(&PriceList::default())
    }

    #[test]
    fn figures_come_from_the_facts() {
        let report = played(None);
        let figure = |value: f64, of: usize, seconds: i64| Figure {
            value: Some(value),
            of,
            since: Some(at(seconds)),
        };
        assert_eq!(
            report.ended,
            BTreeMap::from([("done".to_owned(), 3), ("failed".to_owned(), 1)])
        );
        assert_eq!(report.success_rate, figure(0.75, 4, 0));
        assert_eq!(report.duration_seconds.value, Some(Duration { p50: 200, p95: 400 }));
        assert_eq!(report.partial_failure_rate, figure(1.0 / 3.0, 3, 0));
        assert_eq!(report.repair_rate, figure(0.5, 2, 31));
        assert_eq!(report.repair_steps, figure(2.0, 1, 31));
        assert_eq!(report.first_review_score, figure(6.0, 3, 40));
        assert_eq!(report.last_review_score, figure((6.0 + 8.5 + 8.5) / 3.0, 3, 40));
        assert_eq!(report.review_pass_rate, figure(2.0 / 3.0, 3, 40));
        assert_eq!(report.review_rounds, figure(5.0 / 3.0, 3, 40));
        assert_eq!(report.refusals.value, Some(4));
        assert_eq!(report.tokens_per_run.value.map(|tokens| tokens.input), Some(100));
        assert_eq!(report.tokens_by_model["near as worker"].tokens.output, 40);
        let unpriced = (report.cost_per_run_usd.value, report.cost_per_run_usd.since);
        assert_eq!(unpriced, (None, None));
        assert_eq!(report.tokens_by_model["near as worker"].cost_usd, None);
        assert_eq!(
            (report.plan_reproduction_rate.value, report.plan_reproduction_rate.since),
            (None, None)
        );
    }

    #[test]
    fn plans_of_the_same_input_are_compared_with_the_one_before() {
        let mut statistics = Statistics::since(None);
        for (number, seconds, input, digest) in [
            (1, 1, "", "p"),
            (2, 2, "x", "p"),
            (3, 3, "y", "p"),
            (4, 4, "x", "p"),
            (5, 5, "x", "q"),
        ] {
            let planned =
                json!({"fact": "planned", "environment": "python", "subtasks": 1, "input": input, "digest": digest});
            take(&mut statistics, run(number), seconds, planned);
        }
        let rate = statistics.report(&PriceList::default()).plan_reproduction_rate;
        assert_eq!((rate.value, rate.of, rate.since), (Some(0.5), 2, Some(at(2))));
    }

    #[test]
    fn a_run_counts_in_the_period_in_which_it_ended() {
        let report = played(Some(250));
        assert_eq!(report.ended.values().sum::<usize>(), 2);
        assert_eq!(report.duration_seconds.value, Some(Duration { p50: 300, p95: 400 }));
        assert_eq!((report.refusals.value, report.refusals.since), (Some(2), Some(at(250))));
    }

    #[test]
    fn what_is_used_outside_of_runs_counts_in_the_period_in_which_it_was() {
        let mut statistics = Statistics::since(Some(at(100)));
        for (seconds, input) in [(50, 1), (150, 20), (151, 300)] {
            let called = json!({"fact": "model_called", "turn": 0, "input": input, "output": 1, "cached": 0,
                "milliseconds": 5, "model": "near", "role": "chat"});
            statistics.take(&Entry {
                at: at(seconds),
                subject: Subject::default(),
                fact: serde_json::from_value(called).unwrap(),
            });
        }
        let report = statistics.report(&prices());
        let used = report.tokens_by_model["near as chat"];
        assert_eq!(used.tokens.input, 320);
        assert!((used.cost_usd.unwrap() - 0.000_66).abs() < 1e-9, "{used:?}");
        assert_eq!((report.cost_per_run_usd.value, report.cost_per_run_usd.of), (None, 0));
        assert_eq!(report.tokens_per_run.value, None);
    }

    #[test]
    fn a_run_costs_what_its_models_do_and_one_whose_models_are_not_known_counts_for_no_mean() {
        let mut statistics = Statistics::since(None);
        for (number, model, role, input) in [
            (4, "", "", 9_000_000),
            (1, "near", "worker", 1_000_000),
            (1, "far", "reviewer", 500_000),
            (2, "near", "worker", 3_000_000),
            (3, "unpriced", "worker", 7_000_000),
        ] {
            let called = json!({"fact": "model_called", "turn": 1, "input": input, "output": 100_000, "cached": 0,
                "milliseconds": 5, "model": model, "role": role});
            let seconds = if model.is_empty() { 5 } else { 10 };
            take(&mut statistics, run(number), seconds, called);
            take(
                &mut statistics,
                run(number),
                30,
                changed(State::Delivering, State::Done),
            );
        }
        let report = statistics.report(&prices());
        let cost = &report.cost_per_run_usd;
        assert!((cost.value.unwrap() - (3.0 + 3.0 + 7.0) / 3.0).abs() < 1e-9, "{cost:?}");
        assert_eq!((cost.of, cost.since), (3, Some(at(10))));
        for (asked, expected) in [
            ("near as worker", Some(10.0)),
            ("far as reviewer", Some(3.0)),
            ("unpriced as worker", Some(0.0)),
            ("unknown", None),
        ] {
            let found = report.tokens_by_model[asked].cost_usd;
            let is_close = found
                .zip(expected)
                .map_or(found == expected, |(one, other)| (one - other).abs() < 1e-9);
            assert!(is_close, "{asked}: {found:?}");
        }
    }

    #[test]
    fn without_data_there_are_no_figures() {
        let report = Statistics::since(None).report(&prices());
        assert_eq!((report.success_rate.value, report.duration_seconds.value), (None, None));
        assert_eq!((report.refusals.value, report.repair_steps.since), (None, None));
    }
}
