//! Checks of the section on chat, and the files that it names.

use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};

use super::{check_address, check_given, check_positive};
use crate::config::Config;
use crate::config::fault::{self, Faults};
use crate::messenger::config::Accounts;
use crate::routing::rules::Rules;

/// Largest file of text or rules.
const LARGEST: u64 = 64 * 1024;

pub(super) fn check(config: &Config, faults: &mut Faults) {
    let chat = &config.chat;
    slack(config, faults);
    line(config, faults);
    if let Some(repository) = &chat.default_repository
        && !repository
            .split_once(':')
            .is_some_and(|(host, path)| hosts(config).contains(&host) && path.contains('/'))
    {
        let reason =
            format!("'{repository}' names no repository of a configured forge; write it like github:owner/repo");
        faults.at("chat.default_repository", reason);
    }
    let routing = &chat.routing;
    for (key, share) in [
        (
            "chat.routing.classifier.min_confidence",
            routing.classifier.min_confidence,
        ),
        (
            "chat.routing.classifier.min_confidence_for_code",
            routing.classifier.min_confidence_for_code,
        ),
    ] {
        if !(0.0..=1.0).contains(&share) {
            faults.at(key, "must be a number from 0 to 1");
        }
    }
    check_positive("chat.routing.max_loops", routing.max_loops.into(), faults);
    check_positive("chat.routing.max_millis", routing.max_millis, faults);
    for (name, command) in &chat.ops {
        let key = format!("chat.ops.{name}");
        let is_sign = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
        if name.is_empty() || name.len() > 32 || !name.chars().all(is_sign) {
            faults.at(
                "chat.ops",
                format!("'{name}': a name is made of small letters, digits and `-`, 32 at most"),
            );
        }
        check_given(
            &format!("{key}.command"),
            command.command.first().map_or("", String::as_str),
            faults,
        );
        check_positive(&format!("{key}.timeout_seconds"), command.timeout_seconds, faults);
    }
}

fn slack(config: &Config, faults: &mut Faults) {
    let slack = &config.chat.slack;
    check_address("chat.slack.api_url", &slack.api_url, faults);
    check_accounts("chat.slack.allowed_users", &slack.allowed_users, config, faults);
    let begins = |token: &Option<SecretString>, with: &str| {
        token
            .as_ref()
            .is_some_and(|token| token.expose_secret().starts_with(with))
    };
    if begins(&slack.app_token, "xoxb-") || begins(&slack.bot_token, "xapp-") {
        faults.at(
            "chat.slack",
            "the two tokens are swapped: app_token begins with xapp-, bot_token with xoxb-",
        );
    }
    let hears = slack.app_token.is_some() || slack.signing_secret.is_some();
    match (slack.bot_token.is_some(), hears) {
        (true, false) => faults.at(
            "chat.slack",
            "hears nobody; give `app_token_file` for Socket Mode, or `signing_secret_file` for POST /hooks/slack",
        ),
        (false, true) => faults.at("chat.slack", "can say nothing; give `bot_token_file`"),
        _ => {}
    }
    if slack.signing_secret.is_some() && slack.app_token.is_none() {
        needs_server("chat.slack.signing_secret", config, faults);
    }
}

fn line(config: &Config, faults: &mut Faults) {
    let line = &config.chat.line;
    check_address("chat.line.api_url", &line.api_url, faults);
    check_accounts("chat.line.allowed_users", &line.allowed_users, config, faults);
    match (&line.channel_secret, &line.channel_access_token) {
        (Some(_), Some(_)) => needs_server("chat.line", config, faults),
        (None, None) => {}
        (Some(_), None) => faults.at("chat.line", "can say nothing; give `channel_access_token_file`"),
        (None, Some(_)) => faults.at("chat.line", "hears nobody; give `channel_secret_file`"),
    }
}

fn needs_server(key: &str, config: &Config, faults: &mut Faults) {
    if config.http.listen.is_none() {
        faults.at(key, "needs the HTTP server to hear anything; give `http.listen`");
    }
}

fn check_accounts<'a>(
    key: &str,
    users: impl IntoIterator<Item = (&'a String, &'a Accounts)>,
    config: &Config,
    faults: &mut Faults,
) {
    let hosts = hosts(config);
    for (user, accounts) in users {
        for (host, login) in accounts {
            if !hosts.contains(&host.as_str()) {
                let reason = format!(
                    "{user}: '{host}' is no configured forge; there are {}",
                    hosts.join(", ")
                );
                faults.at(key, reason);
            }
            if login.trim().is_empty() {
                faults.at(key, format!("{user}: the account on {host} has no name"));
            }
        }
    }
}

/// Returns the names of the forges.
fn hosts(config: &Config) -> Vec<&str> {
    let github = config
        .github
        .entries
        .iter()
        .map(|host| host.name.as_deref().unwrap_or("github"));
    let gitlab = config
        .gitlab
        .entries
        .iter()
        .map(|host| host.name.as_deref().unwrap_or("gitlab"));
    github.chain(gitlab).collect()
}

/// Reads the texts that the chat model is told of itself, in their order.
pub(in crate::config) fn persona(config: &Config, folder: &Path, faults: &mut Faults) -> String {
    let files = &config.chat.persona_files;
    let texts = [
        ("chat", &files.chat),
        ("policy", &files.policy),
        ("overlay", &files.overlay),
    ];
    let texts = texts.into_iter().filter_map(|(key, file)| {
        let text = read(&folder.join(file.as_ref()?));
        text.map_err(|reason| faults.at(&format!("chat.persona_files.{key}"), reason))
            .ok()
    });
    texts.collect::<Vec<_>>().join("\n\n")
}

/// Reads the operator's dictionary of rules.
pub(in crate::config) fn rules(config: &Config, folder: &Path, faults: &mut Faults) -> Option<Rules> {
    let file: PathBuf = folder.join(config.chat.routing.rules_file.as_ref()?);
    let rules =
        read(&file).and_then(|text| Rules::read(&text).map_err(|reason| format!("{}: {reason}", file.display())));
    rules
        .map_err(|reason| faults.at("chat.routing.rules_file", reason))
        .ok()
}

fn read(file: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("the file {} {}", file.display(), fault::unreadable(&error));
    if std::fs::metadata(file).map_err(unreadable)?.len() > LARGEST {
        return Err(format!("{} is larger than {} KiB", file.display(), LARGEST / 1024));
    }
    Ok(std::fs::read_to_string(file).map_err(unreadable)?.trim().to_owned())
}
