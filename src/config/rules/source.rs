//! Checks of the forges that `task_sources` names, and of their labels. A section that is not used
//! may be incomplete.

use std::path::Path;

use secrecy::ExposeSecret;
use secrecy::SecretString;
use url::Url;

use super::check_address;
use crate::config::Config;
use crate::config::Hosts;
use crate::config::TaskSource;
use crate::config::fault::Faults;
use crate::config::fault::written;
use crate::forge::github;
use crate::forge::gitlab;
use crate::forge::settings::allowed_users::Entry;
use crate::forge::settings::trigger::Trigger;
use crate::task::id::HostName;
use crate::task::labels::Labels;

/// Longest name of a label that GitHub accepts.
const LONGEST_LABEL: usize = 50;
/// The names of hosts that were given none, now and in the future of a single section.
const PLATFORMS: [&str; 2] = ["github", "gitlab"];

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
            TaskSource::Github => {
                for (key, host) in config.github.with_keys("github") {
                    check_github(&key, host, folder, faults);
                }
            }
            TaskSource::Gitlab => {
                for (key, host) in config.gitlab.with_keys("gitlab") {
                    check_gitlab(&key, host, faults);
                }
            }
        }
    }
    check_names(config, faults);
}

/// Checks that each used host has a name of its own, because the ids of tasks begin with it.
fn check_names(config: &Config, faults: &mut Faults) {
    let mut known: Vec<(String, &str)> = Vec::new();
    for source in &config.task_sources {
        let (section, names) = match source {
            TaskSource::Github => ("github", names(&config.github, "github", |host| host.name.as_deref())),
            TaskSource::Gitlab => ("gitlab", names(&config.gitlab, "gitlab", |host| host.name.as_deref())),
        };
        if names.is_empty() {
            faults.at(
                section,
                "is an empty list; describe a host, or take it out of task_sources",
            );
        }
        for (index, (key, name)) in names.into_iter().enumerate() {
            let place = format!("{key}.name");
            match name {
                None if index > 0 => faults.at(
                    &place,
                    "is missing; every entry but the first needs one, for the ids of its tasks",
                ),
                None => {}
                Some(name) if PLATFORMS.contains(&name) => {
                    faults.at(
                        &place,
                        format!("'{name}' is the name of a platform; give the host another"),
                    );
                }
                Some(name) if HostName::parse(name).is_none() => faults.at(
                    &place,
                    format!("'{name}' cannot stand in the id of a task; write small letters, digits and `-`"),
                ),
                Some(name) => match known.iter().find(|(_, other)| *other == name) {
                    Some((other, _)) => faults.at(&place, format!("'{name}' is given to {} too", written(other))),
                    None => known.push((key, name)),
                },
            }
        }
    }
}

fn names<'a, T>(
    hosts: &'a Hosts<T>,
    section: &str,
    name: impl Fn(&'a T) -> Option<&'a str>,
) -> Vec<(String, Option<&'a str>)> {
    hosts.with_keys(section).map(|(key, host)| (key, name(host))).collect()
}

pub(super) fn addresses_with_secret(config: &Config) -> Vec<(String, &str)> {
    let mut addresses = Vec::new();
    for source in &config.task_sources {
        match source {
            TaskSource::Github => {
                let hosts = config.github.with_keys("github");
                addresses.extend(hosts.map(|(key, host)| (key, host.api_url.as_str())));
            }
            TaskSource::Gitlab => {
                let hosts = config.gitlab.with_keys("gitlab");
                addresses.extend(hosts.map(|(key, host)| (key, host.api_url.as_str())));
            }
        }
    }
    let of_host = |(key, address)| (written(&format!("{key}.api_url")), address);
    addresses.into_iter().map(of_host).collect()
}

fn check_github(key: &str, github: &github::Config, folder: &Path, faults: &mut Faults) {
    let at = |part: &str| format!("{key}.{part}");
    check_address(&at("api_url"), &github.api_url, faults);
    let host = Url::parse(&github.api_url).ok();
    if let Some("github.com" | "www.github.com") = host.as_ref().and_then(Url::host_str) {
        let reason = "is where GitHub has its pages; its API is at https://api.github.com";
        faults.at(&at("api_url"), reason);
    }
    match (&github.token, &github.app) {
        (Some(token), None) => check_token(&at("token"), token, faults),
        (None, Some(app)) => {
            let file = folder.join(&app.private_key_file);
            if !file.is_file() {
                let reason = format!("the file {} is not there", file.display());
                faults.at(&at("app.private_key_file"), reason);
            }
        }
        (Some(_), Some(_)) => faults.at(&at("app"), "`token` is given too; leave one of them out"),
        (None, None) => faults.missing(
            &at("token"),
            "is missing; give `token`, `token_file` or `app`, or take github out of task_sources",
        ),
    }
    if github.repositories.is_empty() {
        let reason = "names no repository; write [\"owner/repo\"] or [\"owner/*\"]";
        faults.at(&at("repositories"), reason);
    }
    for (index, repository) in github.repositories.iter().enumerate() {
        let is_pattern = repository
            .split_once('/')
            .is_some_and(|(owner, name)| is_name(owner) && (name == "*" || is_name(name)));
        if !is_pattern {
            let reason = format!("'{repository}' is not a repository; write owner/repo or owner/*");
            faults.at(&at(&format!("repositories.{index}")), reason);
        }
    }
    check_allowed_users(key, &github.allowed_users, faults);
    check_trigger(key, &github.trigger, &github.labels, faults);
    check_labels(&at("labels"), &github.labels, faults);
}

fn check_gitlab(key: &str, gitlab: &gitlab::Config, faults: &mut Faults) {
    let at = |part: &str| format!("{key}.{part}");
    check_address(&at("api_url"), &gitlab.api_url, faults);
    match &gitlab.token {
        Some(token) => check_token(&at("token"), token, faults),
        None => faults.missing(
            &at("token"),
            "is missing; give `token` or `token_file`, or take gitlab out of task_sources",
        ),
    }
    if gitlab.projects.is_empty() {
        let reason = "names no project; write [\"group/project\"] or [\"group/*\"]";
        faults.at(&at("projects"), reason);
    }
    for (index, project) in gitlab.projects.iter().enumerate() {
        let is_pattern = project
            .rsplit_once('/')
            .is_some_and(|(group, name)| group.split('/').all(is_name) && (name == "*" || is_name(name)));
        if !is_pattern {
            let reason = format!("'{project}' is not a project; write group/project or group/*");
            faults.at(&at(&format!("projects.{index}")), reason);
        }
    }
    check_allowed_users(key, &gitlab.allowed_users, faults);
    check_trigger(key, &gitlab.trigger, &gitlab.labels, faults);
    check_labels(&at("labels"), &gitlab.labels, faults);
    let labels = &gitlab.labels;
    if let Some(scope) = scope(&labels.trigger)
        && scope == self::scope(&labels.processing).unwrap_or_default()
    {
        let reason = format!(
            "is in the scope `{scope}::` as the trigger is: GitLab would take the trigger off before the run is stored; give \
             one of them another scope"
        );
        faults.at(&at("labels.processing"), reason);
    }
}

/// Returns the scope of a GitLab label such as `agent::wanted`. An item carries one label of each.
fn scope(label: &str) -> Option<&str> {
    label.rsplit_once("::").map(|(scope, _)| scope)
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

fn check_trigger(section: &str, trigger: &Trigger, labels: &Labels, faults: &mut Faults) {
    if let Some(label) = trigger.label.as_ref().filter(|label| **label != labels.trigger) {
        let reason = format!(
            "'{label}' is not '{}', which `labels.trigger` says; leave one of them out",
            labels.trigger
        );
        faults.at(&format!("{section}.trigger.label"), reason);
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
