//! Checks of the sections on the language model, its limits and its plans.

use url::Url;

use super::check_address;
use super::check_given;
use super::check_headers;
use super::check_positive;
use crate::config::Config;
use crate::config::fault::Faults;
use crate::llm::config::model_config::{ModelConfig, OWN};
use crate::llm::config::role::Role;
use crate::llm::config::{ModelOptions, NamedModel, NamedProvider, Prices, ProviderName};
use crate::reviewer::config::LONGEST_SECONDS;
use crate::spelling::nearest;

/// The system prompt with the built-in tools needs about 1,200 tokens; no work is possible in a
/// smaller window.
const SMALLEST_WINDOW: u64 = 4_096;
/// The part of the window that the longest reply has to leave to the prompt.
const SMALLEST_PROMPT: u64 = 2_048;
/// Fields of a request that only the program writes.
const OWN_FIELDS: [&str; 7] = [
    "model",
    "messages",
    "system",
    "tools",
    "stream",
    "response_format",
    "format",
];

pub(super) fn check(config: &Config, faults: &mut Faults) {
    let llm = &config.llm;
    let used = llm.used_models();
    // A section that no role uses may be unfinished.
    for model in llm.all_models() {
        if model.name != OWN || used.iter().any(|name| name == OWN) {
            check_model(config, &model, faults);
        }
    }
    for (name, named) in &llm.models {
        check_named(name, named, faults);
    }
    for role in Role::ALL {
        if let Some(name) = llm.roles.named(role) {
            check_role(config, role, name, faults);
        }
    }
    if let Some(name) = &llm.embeddings {
        check_embedder(config, name, faults);
    }
    check_positive("llm.timeout_seconds", llm.timeout_seconds, faults);
    check_positive("llm.reply_seconds", llm.reply_seconds, faults);
    check_positive("max_llm_process_num", config.max_llm_process_num.into(), faults);
    check_health(config, faults);
    check_budget(config, faults);
    if config.planning.max_subtasks == 0 {
        faults.at(
            "planning.max_subtasks",
            "must be at least 1; to work without a plan set planning.enabled to false",
        );
    }
    if config.planning.verification.max_tries == 0 {
        faults.at(
            "planning.verification.max_tries",
            "must be at least 1, which begins no task again",
        );
    }
    if config.planning.verification.max_failures == 0 {
        faults.at(
            "planning.verification.max_failures",
            "must be at least 1; to have nothing repaired set max_rounds to 0",
        );
    }
}

fn check_health(config: &Config, faults: &mut Faults) {
    let Some(health) = &config.llm.health else { return };
    check_positive("llm.health.restart_seconds", health.restart_seconds, faults);
    check_positive("llm.health.cool_down_seconds", health.cool_down_seconds, faults);
    if health
        .restart_command
        .first()
        .is_some_and(|program| program.trim().is_empty())
    {
        faults.at("llm.health.restart_command.0", "must be the name of a program");
    }
    if let (Some(least), Some(most)) = (health.min_context, health.max_context)
        && least > most
    {
        faults.at(
            "llm.health.min_context",
            format!("must not be larger than max_context, which is {most}"),
        );
        return;
    }
    let used = config.llm.used_models();
    let own = config.llm.all_models().into_iter().filter(|model| {
        let is_own = matches!(model.provider, ProviderName::Ollama | ProviderName::Lmstudio);
        is_own && used.contains(&model.name)
    });
    for model in own {
        if let Some(fault) = health.fault_of(model.context_length) {
            let key = format!("{}.context_length", model.section);
            faults.at(
                &key,
                format!("is {}, and {fault}; change one of them", model.context_length),
            );
        }
    }
}

fn check_model(config: &Config, model: &ModelConfig, faults: &mut Faults) {
    let key = |name: &str| format!("{}.{name}", model.section);
    check_address(&model.address_key(), &model.address, faults);
    if model.name != OWN && model.model.is_empty() {
        faults.at(&key("model"), "is missing");
    } else {
        check_given(&key("model"), &model.model, faults);
    }
    if model.context_length < SMALLEST_WINDOW {
        let reason = format!("must be at least {SMALLEST_WINDOW} tokens, or the prompt does not fit");
        faults.at(&key("context_length"), reason);
    }
    if model.parallel_requests == Some(0) {
        faults.at(
            &key("parallel_requests"),
            "must be at least 1, or nothing is ever asked",
        );
    }
    if let Some(reply) = model.max_tokens {
        check_positive(&key("max_tokens"), reply, faults);
        if reply.saturating_add(SMALLEST_PROMPT) > model.context_length {
            let reason =
                format!("must be at least {SMALLEST_PROMPT} smaller than context_length, which holds prompt and reply");
            faults.at(&key("max_tokens"), reason);
        }
    }
    check_key(model, faults);
    check_options(config, model, faults);
}

/// Checks the settings that every model may have.
fn check_options(config: &Config, model: &ModelConfig, faults: &mut Faults) {
    let options = &model.options;
    let key = |name: &str| format!("{}.{name}", model.section);
    if let Some(seconds) = options.timeout_seconds {
        check_positive(&key("timeout_seconds"), seconds, faults);
    }
    if options
        .temperature
        .is_some_and(|temperature| !(0.0..=2.0).contains(&temperature))
    {
        faults.at(&key("temperature"), "must be between 0 and 2");
    }
    if options.seed.is_some() && model.provider == ProviderName::Anthropic {
        faults.at(&key("seed"), "is not known to this provider; leave it out");
    }
    for field in OWN_FIELDS {
        if options.extra_body.contains_key(field) {
            let key = key(&format!("extra_body.{field}"));
            faults.at(&key, "is what the program itself writes; leave it out");
        }
    }
    check_headers(&key("headers"), &options.headers, faults);
    if let Some(prices) = &options.prices {
        check_prices(&key("prices"), prices, faults);
    }
    if let Some(name) = &options.fallback {
        let key = key("fallback");
        check_reference(config, &key, name, faults);
        if config.llm.command_model(name).is_some() {
            faults.at(
                &key,
                format!("names `{name}`, which is a program and can only review; name a model"),
            );
        }
        let mut next = Some(name.clone());
        for _ in 0..=config.llm.models.len() {
            next = next
                .filter(|name| *name != model.name)
                .and_then(|name| config.llm.fallback_of(&name));
        }
        if next.is_some() || name == &model.name {
            faults.at(&key, "leads back to this model; name one that does not");
        }
    }
}

/// Checks a model's name, and that it has only keys of its provider.
fn check_named(name: &str, named: &NamedModel, faults: &mut Faults) {
    let key = |key: &str| format!("llm.models.{name}.{key}");
    let is_name = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if !is_name || name.is_empty() || name == OWN {
        let reason = format!("is no name for a model: letters, digits, - and _, and not `{OWN}`");
        faults.at(&format!("llm.models.{name}"), reason);
    }
    let is_ollama = named.provider == NamedProvider::Ollama;
    let has_key = matches!(named.provider, NamedProvider::Openai | NamedProvider::Anthropic);
    let is_program = named.provider == NamedProvider::Command;
    let is_server = !is_program;
    let provider = named.provider.server().map_or("command", ProviderName::as_str);
    for (given, name, is_known) in [
        (named.endpoint.is_some(), "endpoint", is_ollama),
        (named.base_url.is_some(), "base_url", is_server && !is_ollama),
        (named.keep_alive.is_some(), "keep_alive", is_ollama),
        (named.api_key.is_some(), "api_key", has_key),
        (named.max_tokens.is_some(), "max_tokens", has_key),
        (!named.model.is_empty(), "model", is_server),
        (named.context_length.is_some(), "context_length", is_server),
        (named.parallel_requests.is_some(), "parallel_requests", is_server),
        (!named.command.is_empty(), "command", is_program),
        (!named.env.is_empty(), "env", is_program),
        (named.local.is_some(), "local", is_program),
    ] {
        if given && !is_known {
            faults.at(
                &key(name),
                format!("is no key of the provider {provider}; leave it out"),
            );
        }
    }
    if is_program {
        check_program(named, &key, faults);
    }
}

/// Checks a program that answers in the place of a model.
fn check_program(named: &NamedModel, key: &impl Fn(&str) -> String, faults: &mut Faults) {
    if named.command.first().is_none_or(|program| program.trim().is_empty()) {
        let reason = "must begin with a program, e.g. [\"/usr/local/bin/codex\", \"exec\", \"-\"]";
        faults.at(&key("command"), reason);
    }
    for variable in named.env.keys() {
        if variable.is_empty() || variable.contains(['=', '\0']) {
            faults.at(&key("env"), format!("'{variable}' cannot be the name of a variable"));
        }
    }
    let ModelOptions {
        timeout_seconds,
        stream,
        pictures,
        temperature,
        seed,
        reasoning_effort,
        headers,
        extra_body,
        ca_file,
        trust: _,
        fallback,
        prices,
    } = &named.options;
    for (given, name) in [
        (stream.is_some(), "stream"),
        (*pictures, "pictures"),
        (temperature.is_some(), "temperature"),
        (seed.is_some(), "seed"),
        (reasoning_effort.is_some(), "reasoning_effort"),
        (!headers.is_empty(), "headers"),
        (!extra_body.is_empty(), "extra_body"),
        (ca_file.is_some(), "ca_file"),
        (fallback.is_some(), "fallback"),
        (prices.is_some(), "prices"),
    ] {
        if given {
            faults.at(&key(name), "is no key of the provider command; leave it out");
        }
    }
    match timeout_seconds {
        Some(0) => faults.at(&key("timeout_seconds"), "must be at least 1"),
        Some(seconds) if *seconds > LONGEST_SECONDS => {
            faults.at(&key("timeout_seconds"), format!("must be at most {LONGEST_SECONDS}"));
        }
        Some(_) | None => {}
    }
}

/// Checks that a role names a model that can have it.
fn check_role(config: &Config, role: Role, name: &str, faults: &mut Faults) {
    let key = format!("llm.roles.{}", role.as_str());
    check_reference(config, &key, name, faults);
    if role != Role::Reviewer && config.llm.command_model(name).is_some() {
        let reason = format!(
            "names `{name}`, whose provider is `command`: a program only answers one question, so it can have no other role \
             than `reviewer`; name a model"
        );
        faults.at(&key, reason);
    }
}

/// Checks that `index.embeddings` names a model whose server can turn texts into vectors.
fn check_embedder(config: &Config, name: &str, faults: &mut Faults) {
    const KEY: &str = "index.embeddings";
    check_reference(config, KEY, name, faults);
    let named = config.llm.models.get(name);
    if named.is_some_and(|model| matches!(model.provider, NamedProvider::Anthropic | NamedProvider::Command)) {
        let reason = format!(
            "names `{name}`, whose provider has no embeddings; name a model of openai, ollama or lmstudio, or write none"
        );
        faults.at(KEY, reason);
    }
}

/// Checks that a model is called `name`.
fn check_reference(config: &Config, key: &str, name: &str, faults: &mut Faults) {
    let models = &config.llm.models;
    if models.contains_key(name) {
        return;
    }
    let nearest = nearest(name, models.keys().map(String::as_str));
    let reason = match nearest {
        Some(nearest) => format!("names the model `{name}`, which llm.models does not have; did you mean `{nearest}`?"),
        None if models.is_empty() => format!("names the model `{name}`, and llm.models is empty"),
        None => {
            let known: Vec<&str> = models.keys().map(String::as_str).collect();
            format!("names the model `{name}`; llm.models has {}", known.join(", "))
        }
    };
    faults.at(key, reason);
}

/// Returns the addresses to which a key or a secret header goes, each with its configuration key.
pub(super) fn addresses_with_secret(config: &Config) -> Vec<(String, String)> {
    let used = config.llm.used_models();
    let models = config.llm.all_models().into_iter();
    let is_used =
        |model: &ModelConfig| used.contains(&model.name) || config.llm.embeddings.as_ref() == Some(&model.name);
    let secret = models.filter(is_used).filter(|model| {
        let is_anthropic = model.provider == ProviderName::Anthropic;
        is_anthropic || model.api_key.is_some() || !model.options.headers.is_empty()
    });
    secret.map(|model| (model.address_key(), model.address)).collect()
}

/// Checks that the API key is given; only servers of one's own need none.
fn check_key(model: &ModelConfig, faults: &mut Faults) {
    let is_openai = || Url::parse(&model.address).is_ok_and(|url| url.host_str() == Some("api.openai.com"));
    let needs_key = match model.provider {
        ProviderName::Openai => is_openai(),
        ProviderName::Anthropic => true,
        ProviderName::Ollama | ProviderName::Lmstudio => false,
    };
    if needs_key && model.api_key.is_none() {
        let reason = "is missing; give `api_key` or `api_key_file`";
        faults.missing(&format!("{}.api_key", model.section), reason);
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
        } else if cost.is_some() && config.prices().is_empty() {
            faults.at(key, "needs `prices`: without them the cost of a run is not known");
        }
    }
    if let Some(prices) = &budget.prices {
        check_prices("budget.prices", prices, faults);
    }
}

fn check_prices(key: &str, prices: &Prices, faults: &mut Faults) {
    let all = [
        ("input", Some(prices.input)),
        ("output", Some(prices.output)),
        ("cached", prices.cached),
        ("cache_write", prices.cache_write),
    ];
    for (name, price) in all {
        if price.is_some_and(|price| price < 0.0) {
            faults.at(&format!("{key}.{name}"), "must not be less than 0");
        }
    }
}
