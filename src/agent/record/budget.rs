//! Limits of a run and of a day, and the usage that is counted against them.

use std::sync::Arc;

use chrono::Utc;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent::record::usage::ModelCall;
use crate::conversation::Usage;
use crate::journal::fact::Subject;
use crate::journal::{Journal, LogConfig};
use crate::llm::config::Prices;
use crate::plain::counted;
use crate::secret::Redactor;
use crate::store::{Store, StoreError};

/// Limits of one run; a limit that is left out does not apply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Tokens in and out together.
    pub tokens: Option<u64>,
    /// Minutes of work by a worker; time spent waiting does not count.
    pub minutes: Option<u64>,
    /// Cost in US dollars; needs `prices`.
    pub cost_usd: Option<f64>,
    pub prices: Option<Prices>,
    /// Limits of all runs together on a day (UTC); a run that exceeds one waits for the next day.
    pub per_day: PerDay,
}

/// Limits of all runs of an installation together on one day.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PerDay {
    /// Tokens in and out together.
    pub tokens: Option<u64>,
    /// Cost in US dollars; needs `prices`.
    pub cost_usd: Option<f64>,
}

impl Budget {
    /// Returns a sentence that names the exceeded limit, if there is one. An allowance replaces the
    /// limit on tokens and restarts the count for all limits.
    pub fn exceeded(&self, max_turns: u32, spent: &Spent, allowance: Option<&Allowance>) -> Option<String> {
        let since = allowance.map_or(Spent::default(), |allowance| allowance.spent);
        let spent = spent.since(&since);
        let tokens = spent.usage.input + spent.usage.output;
        let limit = allowance.map(|allowance| allowance.tokens);
        if let Some(limit) = limit.filter(|limit| tokens >= *limit) {
            return Some(format!(
                "the {limit} tokens that were allowed are used up ({tokens} used)"
            ));
        }
        if let Some(limit) = self.tokens.filter(|limit| allowance.is_none() && tokens >= *limit) {
            return Some(format!(
                "the budget of {limit} tokens is used up ({tokens} used; budget.tokens)"
            ));
        }
        if spent.turns >= max_turns {
            let turns = counted(max_turns, "model turn");
            return Some(format!(
                "the limit of {turns} is reached before the task was done (max_llm_process_num)"
            ));
        }
        if let Some(limit) = self.minutes.filter(|limit| spent.seconds >= limit * 60) {
            let minutes = counted(limit, "minute");
            return Some(format!("the budget of {minutes} is used up (budget.minutes)"));
        }
        let limit = self.cost_usd?;
        let cost = spent.cost_usd?;
        (cost >= limit).then(|| format!("the budget of ${limit:.2} is used up (${cost:.2} spent; budget.cost_usd)"))
    }
}

impl PerDay {
    /// Adds a call to what was used today, if there are limits of a day.
    pub async fn count(&self, store: &Store, call: &ModelCall<'_>) -> Result<(), StoreError> {
        if *self == Self::default() {
            return Ok(());
        }
        store.use_on(Utc::now().date_naive(), call.model, &call.usage).await
    }

    /// Counts calls that are part of no run, in a process without a journal of its own: in the
    /// journal, and for the limits of the day.
    pub async fn count_apart(
        &self,
        store: &Store,
        (logs, redactor): (&LogConfig, &Arc<Redactor>),
        calls: &[ModelCall<'_>],
    ) -> Result<(), StoreError> {
        let journal = Journal::open(logs, Arc::clone(redactor))
            .inspect(|journal| journal.keep_in(store))
            .inspect_err(|error| tracing::warn!(%error, "what a model was asked is not in the journal"))
            .ok();
        let mut counted = Ok(());
        for call in calls {
            counted = counted.and(self.count(store, call).await);
            if let Some(journal) = &journal {
                journal.record(&Subject::default(), call.fact(0));
            }
        }
        if let Some(journal) = journal {
            journal.close().await;
        }
        counted
    }

    /// Returns a sentence that names the day's exceeded limit, if there is one.
    pub fn exceeded(&self, tokens: u64, cost_usd: Option<f64>) -> Option<String> {
        if let Some(limit) = self.tokens.filter(|limit| tokens >= *limit) {
            return Some(format!(
                "the {limit} tokens that all runs may use in a day are used up ({tokens} used; budget.per_day.tokens)"
            ));
        }
        let limit = self.cost_usd?;
        let cost = cost_usd?;
        (cost >= limit).then(|| {
            format!("the ${limit:.2} that all runs may cost in a day are used up (${cost:.2} spent; budget.per_day.cost_usd)")
        })
    }
}

/// Usage of a run so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    pub usage: Usage,
    /// `None` if no model has a price.
    pub cost_usd: Option<f64>,
    pub turns: u32,
    /// Seconds of work by workers; time spent waiting does not count.
    pub seconds: u64,
}

impl Spent {
    fn since(&self, before: &Self) -> Self {
        Self {
            usage: self.usage.less(&before.usage),
            cost_usd: self.cost_usd.map(|cost| cost - before.cost_usd.unwrap_or_default()),
            turns: self.turns.saturating_sub(before.turns),
            seconds: self.seconds.saturating_sub(before.seconds),
        }
    }
}

/// Tokens that a person granted beyond the budget, when they were asked or before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Allowance {
    pub tokens: u64,
    /// Usage of the run when the tokens were granted.
    pub spent: Spent,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(input: u64, output: u64, cached: u64) -> Usage {
        Usage {
            input,
            output,
            cached,
            cache_written: 0,
        }
    }

    #[test]
    fn each_limit_stops_a_run_and_is_named() {
        let so_far = Spent {
            usage: spent(900, 100, 0),
            cost_usd: Some(1.1),
            turns: 10,
            seconds: 30 * 60,
        };
        let check = |budget: Budget, max_turns| budget.exceeded(max_turns, &so_far, None);
        assert_eq!(check(Budget::default(), 11), None);
        assert!(check(Budget::default(), 10).is_some_and(|text| text.contains("max_llm_process_num")));
        for (tokens, is_exceeded) in [(1000, true), (1001, false)] {
            let budget = Budget {
                tokens: Some(tokens),
                ..Budget::default()
            };
            let text = check(budget, 100);
            assert_eq!(text.is_some_and(|text| text.contains("budget.tokens")), is_exceeded);
        }
        for (minutes, is_exceeded) in [(30, true), (31, false)] {
            let budget = Budget {
                minutes: Some(minutes),
                ..Budget::default()
            };
            let text = check(budget, 100);
            assert_eq!(text.is_some_and(|text| text.contains("budget.minutes")), is_exceeded);
        }
        let short = Budget {
            minutes: Some(1),
            ..Budget::default()
        };
        let said = "the budget of 1 minute is used up (budget.minutes)";
        assert_eq!(check(short, 100).as_deref(), Some(said));
        let dear = Budget {
            cost_usd: Some(1.0),
            ..Budget::default()
        };
        assert!(check(dear, 100).is_some_and(|text| text.contains("budget.cost_usd")));
    }

    #[test]
    fn what_a_person_allows_counts_from_that_moment() {
        let at = |tokens, turns, seconds| Spent {
            usage: spent(tokens, 0, 0),
            cost_usd: None,
            turns,
            seconds,
        };
        let budget = Budget {
            tokens: Some(1000),
            minutes: Some(1),
            ..Budget::default()
        };
        assert!(budget.exceeded(5, &at(1000, 5, 60), None).is_some());
        let allowance = Allowance {
            tokens: 3000,
            spent: at(1000, 5, 60),
        };
        let check = |spent| budget.exceeded(5, &spent, Some(&allowance));
        assert_eq!(check(at(3999, 9, 119)), None);
        assert!(check(at(4000, 5, 60)).is_some_and(|text| text.contains("3000 tokens that were allowed")));
        assert!(check(at(1000, 10, 60)).is_some_and(|text| text.contains("5 model turns")));
        assert!(check(at(1000, 5, 120)).is_some_and(|text| text.contains("budget.minutes")));
    }

    #[test]
    fn the_day_has_limits_of_its_own() {
        let check = |per_day: PerDay| per_day.exceeded(1000, Some(1.1));
        let tokens = |tokens| PerDay {
            tokens: Some(tokens),
            cost_usd: None,
        };
        assert_eq!(check(PerDay::default()), None);
        assert_eq!(check(tokens(1001)), None);
        assert!(check(tokens(1000)).is_some_and(|text| text.contains("per_day.tokens")));
        let cost = PerDay {
            tokens: None,
            cost_usd: Some(1.0),
        };
        assert!(check(cost).is_some_and(|text| text.contains("per_day.cost_usd")));
    }
}
