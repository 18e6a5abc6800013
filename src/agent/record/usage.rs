//! Tokens by model and role, and what they cost.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::conversation::Usage;
use crate::journal::fact::Fact;
use crate::llm::config::Prices;
use crate::llm::config::role::Role;

/// A call of a model that was answered.
#[derive(Debug, Clone, Copy)]
pub struct ModelCall<'a> {
    /// The name in the configuration of the model that answered.
    pub model: &'a str,
    pub role: Role,
    pub usage: Usage,
    pub took: Duration,
}

impl ModelCall<'_> {
    /// Returns the fact about the call; `turn` is its number in its run, and 0 where it is part of
    /// none.
    pub fn fact(&self, turn: u32) -> Fact {
        Fact::ModelCalled {
            turn,
            input: self.usage.input,
            output: self.usage.output,
            cached: self.usage.cached,
            cache_written: (self.usage.cache_written > 0).then_some(self.usage.cache_written),
            milliseconds: u64::try_from(self.took.as_millis()).unwrap_or(u64::MAX),
            model: self.model.to_owned(),
            role: self.role.as_str().to_owned(),
        }
    }
}

/// Tokens that one model used in one role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelUsage {
    /// The model's name in the configuration.
    pub model: String,
    pub role: Role,
    #[serde(flatten)]
    pub usage: Usage,
}

/// Adds the usage of one call.
pub fn add(list: &mut Vec<ModelUsage>, model: &str, role: Role, usage: Usage) {
    match list.iter_mut().find(|entry| entry.model == model && entry.role == role) {
        Some(entry) => entry.usage += usage,
        None => list.push(ModelUsage {
            model: model.to_owned(),
            role,
            usage,
        }),
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

    #[test]
    fn the_usage_of_a_model_in_a_role_is_one_sum() {
        let one = Usage {
            input: 1,
            output: 2,
            ..Usage::default()
        };
        let mut list = Vec::new();
        for (model, role) in [(OWN, Role::Planner), ("near", Role::Worker), (OWN, Role::Planner)] {
            add(&mut list, model, role, one);
        }
        assert_eq!(list.len(), 2);
        assert_eq!((list[0].usage.input, list[1].usage.output), (2, 2));
    }
}
