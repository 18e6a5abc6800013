//! What a run may use, and what it has used.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conversation::Usage;

/// What one run may use. Nothing is limited by what is left out.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Tokens in and out together.
    pub tokens: Option<u64>,
    /// Minutes from the first claim.
    pub minutes: Option<u64>,
    /// Cost in US dollars; needs `prices`.
    pub cost_usd: Option<f64>,
    pub prices: Option<Prices>,
}

/// US dollars for a million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    pub input: f64,
    pub output: f64,
    /// Of input tokens that came from the provider's cache; `input` when left out.
    #[serde(default)]
    pub cached: Option<f64>,
}

impl Budget {
    /// Returns what `usage` cost in US dollars, if prices are known.
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        let prices = self.prices.as_ref()?;
        let fresh = usage.input.saturating_sub(usage.cached);
        #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
        let millions = |tokens: u64| tokens as f64 / 1_000_000.0;
        Some(
            millions(fresh) * prices.input
                + millions(usage.cached) * prices.cached.unwrap_or(prices.input)
                + millions(usage.output) * prices.output,
        )
    }

    /// Returns the sentence that says which limit is reached, if one is.
    pub fn exceeded(&self, usage: &Usage, started_at: DateTime<Utc>, now: DateTime<Utc>) -> Option<String> {
        let tokens = usage.input + usage.output;
        if let Some(limit) = self.tokens.filter(|limit| tokens >= *limit) {
            return Some(format!(
                "the budget of {limit} tokens is used up ({tokens} used); raise budget.tokens to allow more"
            ));
        }
        let minutes = (now - started_at).num_minutes().max(0).unsigned_abs();
        if let Some(limit) = self.minutes.filter(|limit| minutes >= *limit) {
            return Some(format!(
                "the budget of {limit} minutes is used up; raise budget.minutes to allow more"
            ));
        }
        let limit = self.cost_usd?;
        let cost = self.cost(usage)?;
        (cost >= limit).then(|| {
            format!("the budget of ${limit:.2} is used up (${cost:.2} spent); raise budget.cost_usd to allow more")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    fn spent(input: u64, output: u64, cached: u64) -> Usage {
        Usage { input, output, cached }
    }

    #[test]
    fn cached_tokens_cost_what_the_price_list_says() {
        let prices = Prices {
            input: 2.0,
            output: 10.0,
            cached: Some(0.5),
        };
        let budget = Budget {
            prices: Some(prices),
            ..Budget::default()
        };
        assert_eq!(budget.cost(&spent(1_000_000, 100_000, 400_000)), Some(1.2 + 0.2 + 1.0));
        assert_eq!(Budget::default().cost(&spent(1, 1, 0)), None);
    }

    #[test]
    fn each_limit_stops_a_run_and_is_named() {
        let now = Utc::now();
        let check = |budget: Budget, age: i64| budget.exceeded(&spent(900, 100, 0), now - TimeDelta::minutes(age), now);
        assert_eq!(check(Budget::default(), 10_000), None);
        assert!(
            check(
                Budget {
                    tokens: Some(1000),
                    ..Budget::default()
                },
                0
            )
            .is_some_and(|text| text.contains("budget.tokens"))
        );
        assert_eq!(
            check(
                Budget {
                    tokens: Some(1001),
                    ..Budget::default()
                },
                0
            ),
            None
        );
        assert!(
            check(
                Budget {
                    minutes: Some(30),
                    ..Budget::default()
                },
                30
            )
            .is_some_and(|text| text.contains("budget.minutes"))
        );
        let dear = Budget {
            cost_usd: Some(1.0),
            prices: Some(Prices {
                input: 1000.0,
                output: 1000.0,
                cached: None,
            }),
            ..Budget::default()
        };
        assert!(check(dear, 0).is_some_and(|text| text.contains("budget.cost_usd")));
    }
}
