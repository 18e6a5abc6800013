//! Tokens by model and role.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::conversation::Usage;
use crate::journal::fact::Fact;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::config::model_config::OWN;

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
