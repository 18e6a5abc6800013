//! Checks of the sections on the language model, its limits and its plans.

use url::Url;

use super::check_address;
use super::check_given;
use super::check_positive;
use crate::config::Config;
use crate::config::fault::Faults;
use crate::llm::config::ProviderName;

/// The system prompt with the built-in tools needs about 1,200 tokens; no work is possible in a
/// smaller window.
const SMALLEST_WINDOW: u64 = 4_096;

pub(super) fn check(config: &Config, faults: &mut Faults) {
    let llm = &config.llm;
    let (section, key, address, model, window) = match llm.provider {
        ProviderName::Ollama => (
            "ollama",
            "endpoint",
            &llm.ollama.endpoint,
            &llm.ollama.model,
            llm.ollama.context_length,
        ),
        ProviderName::Lmstudio => (
            "lmstudio",
            "base_url",
            &llm.lmstudio.base_url,
            &llm.lmstudio.model,
            llm.lmstudio.context_length,
        ),
        ProviderName::Openai => (
            "openai",
            "base_url",
            &llm.openai.base_url,
            &llm.openai.model,
            llm.openai.context_length,
        ),
        ProviderName::Anthropic => (
            "anthropic",
            "base_url",
            &llm.anthropic.base_url,
            &llm.anthropic.model,
            llm.anthropic.context_length,
        ),
    };
    check_address(&format!("llm.{section}.{key}"), address, faults);
    check_given(&format!("llm.{section}.model"), model, faults);
    if window < SMALLEST_WINDOW {
        let reason = format!("must be at least {SMALLEST_WINDOW} tokens, or the prompt does not fit");
        faults.at(&format!("llm.{section}.context_length"), reason);
    }
    if llm.parallel_requests() == Some(0) {
        let key = format!("llm.{section}.parallel_requests");
        faults.at(&key, "must be at least 1, or nothing is ever asked");
    }
    check_replies(config, faults);
    check_key(config, faults);
    check_positive("llm.timeout_seconds", llm.timeout_seconds, faults);
    check_positive("max_llm_process_num", config.max_llm_process_num.into(), faults);
    check_budget(config, faults);
    if config.planning.max_subtasks == 0 {
        faults.at(
            "planning.max_subtasks",
            "must be at least 1; to work without a plan set planning.enabled to false",
        );
    }
    if config.planning.verification.max_failures == 0 {
        faults.at(
            "planning.verification.max_failures",
            "must be at least 1; to have nothing repaired set max_rounds to 0",
        );
    }
}

pub(super) fn address_with_secret(config: &Config) -> Option<(&'static str, &str)> {
    let llm = &config.llm;
    match llm.provider {
        ProviderName::Openai if llm.openai.api_key.is_some() => Some(("llm.openai.base_url", &llm.openai.base_url)),
        ProviderName::Anthropic => Some(("llm.anthropic.base_url", &llm.anthropic.base_url)),
        ProviderName::Openai | ProviderName::Ollama | ProviderName::Lmstudio => None,
    }
}

/// Checks that a reply fits into the window beside the prompt.
fn check_replies(config: &Config, faults: &mut Faults) {
    let llm = &config.llm;
    let (key, reply, window) = match (llm.provider, llm.openai.max_tokens) {
        (ProviderName::Anthropic, _) => (
            "llm.anthropic.max_tokens",
            llm.anthropic.max_tokens,
            llm.anthropic.context_length,
        ),
        (ProviderName::Openai, Some(reply)) => ("llm.openai.max_tokens", reply, llm.openai.context_length),
        (ProviderName::Openai, None) | (ProviderName::Ollama | ProviderName::Lmstudio, _) => return,
    };
    check_positive(key, reply, faults);
    if reply >= window {
        faults.at(key, "must be smaller than context_length, which holds prompt and reply");
    }
}

/// Checks that the API key is given; only servers of one's own need none.
fn check_key(config: &Config, faults: &mut Faults) {
    let llm = &config.llm;
    let is_openai = Url::parse(&llm.openai.base_url).is_ok_and(|url| url.host_str() == Some("api.openai.com"));
    let reason = "is missing; give `api_key` or `api_key_file`";
    match llm.provider {
        ProviderName::Openai if is_openai && llm.openai.api_key.is_none() => faults.at("llm.openai.api_key", reason),
        ProviderName::Anthropic if llm.anthropic.api_key.is_none() => faults.at("llm.anthropic.api_key", reason),
        ProviderName::Openai | ProviderName::Anthropic | ProviderName::Ollama | ProviderName::Lmstudio => {}
    }
}

fn check_budget(config: &Config, faults: &mut Faults) {
    let budget = &config.budget;
    for (key, limit) in [
        ("budget.tokens", budget.tokens),
        ("budget.minutes", budget.minutes),
        ("budget.per_day.tokens", budget.per_day.tokens),
    ] {
        if limit == Some(0) {
            faults.at(key, "must be at least 1; leave it out for no limit");
        }
    }
    let costs = [
        ("budget.cost_usd", budget.cost_usd),
        ("budget.per_day.cost_usd", budget.per_day.cost_usd),
    ];
    for (key, cost) in costs {
        if cost.is_some_and(|cost| cost <= 0.0) {
            faults.at(key, "must be more than 0; leave it out for no limit");
        } else if cost.is_some() && budget.prices.is_none() {
            faults.at(key, "needs `prices`: without them the cost of a run is not known");
        }
    }
    if let Some(prices) = &budget.prices {
        let all = [
            ("input", Some(prices.input)),
            ("output", Some(prices.output)),
            ("cached", prices.cached),
        ];
        for (key, price) in all {
            if price.is_some_and(|price| price < 0.0) {
                faults.at(&format!("budget.prices.{key}"), "must not be less than 0");
            }
        }
    }
}
