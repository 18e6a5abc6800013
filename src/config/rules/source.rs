//! Checks of the forges that `task_sources` names, and of their labels. A section that is not used
//! may be incomplete.

use std::path::Path;

use secrecy::ExposeSecret;
use secrecy::SecretString;

use super::check_address;
use crate::config::Config;
use crate::config::TaskSource;
use crate::config::fault::Faults;
use crate::forge::allowed_users::Entry;
use crate::task::labels::Labels;

/// Longest name of a label that GitHub accepts.
const LONGEST_LABEL: usize = 50;

pub(super) fn check(config: &Config, folder: &Path, faults: &mut Faults) {
    for (index, source) in config.task_sources.iter().enumerate() {
        if config.task_sources[..index].contains(source) {
            faults.at(
                &format!("task_sources.{index}"),
                "is named twice; leave one of them out",
            );
            continue;
        }
        match source {
            TaskSource::Github => check_github(config, folder, faults),
            TaskSource::Gitlab => check_gitlab(config, faults),
        }
    }
}

pub(super) fn addresses_with_secret(config: &Config) -> Vec<(&'static str, &str)> {
    let of = |source: &TaskSource| match source {
        TaskSource::Github => ("github.api_url", config.github.api_url.as_str()),
        TaskSource::Gitlab => ("gitlab.api_url", config.gitlab.api_url.as_str()),
    };
    config.task_sources.iter().map(of).collect()
}

fn check_github(config: &Config, folder: &Path, faults: &mut Faults) {
    let github = &config.github;
    check_address("github.api_url", &github.api_url, faults);
    match (&github.token, &github.app) {
        (Some(token), None) => check_token("github.token", token, faults),
        (None, Some(app)) => {
            let file = folder.join(&app.private_key_file);
            if !file.is_file() {
                let reason = format!("the file {} is not there", file.display());
                faults.at("github.app.private_key_file", reason);
            }
        }
        (Some(_), Some(_)) => faults.at("github.app", "`token` is given too; leave one of them out"),
        (None, None) => faults.at(
            "github.token",
            "is missing; give `token`, `token_file` or `app`, or take github out of task_sources",
        ),
    }
    if github.repositories.is_empty() {
        let reason = "names no repository; write [\"owner/repo\"] or [\"owner/*\"]";
        faults.at("github.repositories", reason);
    }
    for (index, repository) in github.repositories.iter().enumerate() {
        let is_pattern = repository
            .split_once('/')
            .is_some_and(|(owner, name)| is_name(owner) && (name == "*" || is_name(name)));
        if !is_pattern {
            let reason = format!("'{repository}' is not a repository; write owner/repo or owner/*");
            faults.at(&format!("github.repositories.{index}"), reason);
        }
    }
    check_allowed_users("github", &github.allowed_users, faults);
    check_labels("github.labels", &github.labels, faults);
}

fn check_gitlab(config: &Config, faults: &mut Faults) {
    let gitlab = &config.gitlab;
    check_address("gitlab.api_url", &gitlab.api_url, faults);
    match &gitlab.token {
        Some(token) => check_token("gitlab.token", token, faults),
        None => faults.at(
            "gitlab.token",
            "is missing; give `token` or `token_file`, or take gitlab out of task_sources",
        ),
    }
    if gitlab.projects.is_empty() {
        let reason = "names no project; write [\"group/project\"] or [\"group/*\"]";
        faults.at("gitlab.projects", reason);
    }
    for (index, project) in gitlab.projects.iter().enumerate() {
        let is_pattern = project
            .rsplit_once('/')
            .is_some_and(|(group, name)| group.split('/').all(is_name) && (name == "*" || is_name(name)));
        if !is_pattern {
            let reason = format!("'{project}' is not a project; write group/project or group/*");
            faults.at(&format!("gitlab.projects.{index}"), reason);
        }
    }
    check_allowed_users("gitlab", &gitlab.allowed_users, faults);
    check_labels("gitlab.labels", &gitlab.labels, faults);
}

fn check_allowed_users(section: &str, entries: &[String], faults: &mut Faults) {
    for (index, entry) in entries.iter().enumerate() {
        if Entry::parse(entry).is_none() {
            let reason = format!("'{entry}' names nobody; write a login, or an account's number as \"id:12345\"");
            faults.at(&format!("{section}.allowed_users.{index}"), reason);
        }
    }
}

fn is_name(part: &str) -> bool {
    !part.is_empty()
        && part
            .chars()
            .all(|character| character.is_alphanumeric() || ['-', '_', '.'].contains(&character))
}

fn check_token(key: &str, token: &SecretString, faults: &mut Faults) {
    // The token becomes part of an HTTP header.
    if !token
        .expose_secret()
        .chars()
        .all(|character| character.is_ascii_graphic())
    {
        faults.at(
            key,
            "must be one word of ASCII characters, without blanks or line breaks",
        );
    }
}

fn check_labels(section: &str, labels: &Labels, faults: &mut Faults) {
    let named = [
        ("trigger", &labels.trigger),
        ("processing", &labels.processing),
        ("waiting", &labels.waiting),
        ("paused", &labels.paused),
        ("stopped", &labels.stopped),
        ("failed", &labels.failed),
        ("done", &labels.done),
    ];
    for (index, (key, label)) in named.iter().enumerate() {
        let key = format!("{section}.{key}");
        // Platforms treat names that differ only in case as the same label.
        let same = named[..index]
            .iter()
            .find(|(_, other)| other.to_lowercase() == label.to_lowercase());
        if label.trim().is_empty() {
            faults.at(&key, "must not be empty");
        } else if label.trim() != label.as_str() {
            faults.at(&key, "must not begin or end with a blank");
        } else if label.contains(',') || label.contains(char::is_control) {
            faults.at(
                &key,
                "must not hold a comma or a line break: the platforms separate labels by them",
            );
        } else if label.chars().count() > LONGEST_LABEL {
            faults.at(&key, format!("must not be longer than {LONGEST_LABEL} characters"));
        } else if let Some((other, _)) = same {
            faults.at(&key, format!("is the same label as `{other}`; each must have its own"));
        }
    }
}
