//! The prices of models, from which the cost of a run is computed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conversation::Usage;

/// US dollars for a million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Price of input tokens.
    pub input: f64,
    /// Price of output tokens.
    pub output: f64,
    /// Price of input tokens from the provider's cache; `input` when left out.
    #[serde(default)]
    pub cached: Option<f64>,
    /// Price of input tokens that the provider writes into its cache; `input` when left out.
    #[serde(default)]
    pub cache_write: Option<f64>,
}

impl Prices {
    /// Returns the cost of `usage` in US dollars.
    pub fn cost(&self, usage: &Usage) -> f64 {
        let fresh = usage.input.saturating_sub(usage.cached);
        let fresh = fresh.saturating_sub(usage.cache_written);
        #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
        let millions = |tokens: u64| tokens as f64 / 1_000_000.0;
        millions(fresh) * self.input
            + millions(usage.cached) * self.cached.unwrap_or(self.input)
            + millions(usage.cache_written) * self.cache_write.unwrap_or(self.input)
            + millions(usage.output) * self.output
    }
}

/// The prices of models, by their names in the configuration.
#[derive(Debug, Clone, Default)]
pub struct PriceList(pub BTreeMap<String, Prices>);

impl PriceList {
    /// Returns the cost in US dollars; `None` if no model has a price. A model without one costs
    /// nothing.
    pub fn cost<'a>(&self, usage: impl IntoIterator<Item = (&'a str, &'a Usage)>) -> Option<f64> {
        let costs = usage
            .into_iter()
            .filter_map(|(model, usage)| Some(self.0.get(model)?.cost(usage)));
        // The sum of no numbers at all is -0.0.
        (!self.0.is_empty()).then(|| costs.fold(0.0, |sum, cost| sum + cost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::config::model_config::OWN;

    #[test]
    fn each_model_costs_what_its_price_list_says() {
        let prices = Prices {
            input: 2.0,
            output: 10.0,
            cached: Some(0.5),
            cache_write: Some(2.5),
        };
        let as_input = Prices {
            cache_write: None,
            ..prices.clone()
        };
        let list = PriceList([("cloud".to_owned(), prices), ("plain".to_owned(), as_input)].into());
        let usage = Usage {
            input: 1_000_000,
            output: 100_000,
            cached: 400_000,
            cache_written: 200_000,
        };
        assert_eq!(
            list.cost([("cloud", &usage), (OWN, &usage)]),
            Some(0.8 + 0.2 + 0.5 + 1.0)
        );
        assert_eq!(list.cost([("plain", &usage)]), Some(0.8 + 0.2 + 0.4 + 1.0));
        assert_eq!(list.cost([(OWN, &usage)]), Some(0.0));
        assert_eq!(PriceList::default().cost([("cloud", &usage)]), None);
    }
}
