//! Tokens by the model and the role that it was asked in, and what they cost.

use serde::Serialize;

use crate::conversation::Usage;
use crate::journal::fact::Fact;
use crate::llm::config::PriceList;

/// The model and the role of a call; empty in the facts of earlier versions of the program.
pub(super) type Asked = (String, String);

/// Tokens by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tokens {
    pub input: u64,
    pub output: u64,
    /// Part of `input`.
    pub cached: u64,
}

/// Tokens of a model in a role, and what they cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ModelTokens {
    #[serde(flatten)]
    pub tokens: Tokens,
    /// In US dollars; `None` where no model has a price.
    pub cost_usd: Option<f64>,
}

impl ModelTokens {
    pub(super) fn of(asked: &Asked, usage: &Usage, prices: &PriceList) -> Self {
        let (model, _) = asked;
        Self {
            tokens: Tokens::from(*usage),
            cost_usd: prices.cost([(model.as_str(), usage)]).filter(|_| is_named(asked)),
        }
    }
}

impl From<Usage> for Tokens {
    fn from(usage: Usage) -> Self {
        Self {
            input: usage.input,
            output: usage.output,
            cached: usage.cached,
        }
    }
}

/// Returns whom a call asked, and its tokens.
pub(super) fn called(fact: &Fact) -> Option<(Asked, Usage)> {
    let Fact::ModelCalled {
        input,
        output,
        cached,
        cache_written,
        model,
        role,
        ..
    } = fact
    else {
        return None;
    };
    let usage = Usage {
        input: *input,
        output: *output,
        cached: *cached,
        cache_written: cache_written.unwrap_or_default(),
    };
    Some(((model.clone(), role.clone()), usage))
}

pub(super) fn is_named((model, _): &Asked) -> bool {
    !model.is_empty()
}

/// Returns the name of a row.
pub(super) fn name_of(asked: &Asked) -> String {
    let (model, role) = asked;
    if is_named(asked) {
        format!("{model} as {role}")
    } else {
        "unknown".to_owned()
    }
}
