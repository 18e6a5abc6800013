//! The rules that make work confidential, and the network that such work may use.
//!
//! Confidential work goes only to model servers on this machine, in a private network, or named by
//! the configuration.

pub(crate) mod private_network; // refuses connections to other servers

use std::sync::Arc;

use reqwest::Url;

use crate::llm::config::Config;
use crate::llm::local_only::private_network::PrivateNetworkResolver;

/// The configuration of confidential work and of local servers.
#[derive(Debug, Default)]
pub(crate) struct LocalOnlyRules {
    always: bool,
    repositories: Vec<String>,
    label: Option<String>,
    hosts: Arc<[String]>,
}

impl LocalOnlyRules {
    pub(crate) fn new(config: &Config) -> Self {
        let hosts = config.local_endpoints.iter().map(|host| host.trim().to_lowercase());
        Self {
            always: config.local_only,
            repositories: config.local_only_repositories.clone(),
            label: config.local_only_label.clone(),
            hosts: hosts.filter(|host| !host.is_empty()).collect(),
        }
    }

    /// Returns the rule that makes work on this item confidential, if one does.
    pub(crate) fn rule(&self, repository: Option<&str>, labels: &[String]) -> Option<String> {
        if self.always {
            return Some("llm.local_only is true".to_owned());
        }
        let repository = repository.unwrap_or_default();
        if let Some(entry) = self.repositories.iter().find(|entry| fits(entry, repository)) {
            return Some(format!("llm.local_only_repositories names `{entry}`"));
        }
        let label = self.label.as_deref()?.trim();
        let is_set = labels.iter().any(|set| set.trim().eq_ignore_ascii_case(label));
        is_set.then(|| format!("the item has the label `{label}` (llm.local_only_label)"))
    }

    /// Describes the confidential part of the work; `None` if that is all or nothing.
    pub(crate) fn part(&self) -> Option<String> {
        let repositories = self
            .repositories
            .iter()
            .map(|entry| format!("work on `{}`", entry.trim()));
        let label = self
            .label
            .iter()
            .map(|label| format!("items labelled `{}`", label.trim()));
        let all: Vec<String> = repositories.chain(label).collect();
        (!self.always && !all.is_empty()).then(|| all.join(", "))
    }

    /// Tells whether a server is local, as far as its address says: a name is one that this machine
    /// gives itself, or that the configuration counts as local. Other names may lead anywhere.
    pub(crate) fn is_near(&self, address: &Url) -> bool {
        let is_named = |host: &str| self.hosts.iter().any(|named| named.eq_ignore_ascii_case(host));
        match address.host() {
            Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost") || is_named(name),
            Some(_) => self.resolver(String::new()).check(address).is_ok(),
            None => false,
        }
    }

    /// Returns the restriction that `rule` demands.
    pub(crate) fn resolver(&self, rule: String) -> PrivateNetworkResolver {
        PrivateNetworkResolver::new(rule, Arc::clone(&self.hosts))
    }
}

/// Tells whether `entry` (`owner/repo`, `group/*`) names `repository`; a group includes its
/// subgroups.
fn fits(entry: &str, repository: &str) -> bool {
    let (entry, repository) = (entry.trim().to_lowercase(), repository.to_lowercase());
    match entry.strip_suffix('*') {
        Some(group) => !repository.is_empty() && repository.starts_with(group),
        None => entry == repository,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> LocalOnlyRules {
        LocalOnlyRules::new(&Config {
            local_only_repositories: vec!["acme/vault".to_owned(), "Secret/*".to_owned()],
            local_only_label: Some("confidential".to_owned()),
            ..Config::default()
        })
    }

    #[test]
    fn a_server_is_near_where_its_address_says_so() {
        let rules = LocalOnlyRules::new(&Config {
            local_endpoints: vec!["gpu.example".to_owned()],
            ..Config::default()
        });
        for (address, expected) in [
            ("http://127.0.0.1:11434", true),
            ("http://localhost:1234/v1", true),
            ("http://192.168.1.20:1234", true),
            ("http://[::1]:1", true),
            ("https://GPU.example/v1", true),
            ("https://api.openai.com/v1", false),
            ("http://intranet:8080", false),
            ("http://8.8.8.8", false),
        ] {
            assert_eq!(rules.is_near(&Url::parse(address).unwrap()), expected, "{address}");
        }
    }

    #[test]
    fn the_rule_that_makes_work_confidential_is_named() {
        let label = ["Confidential".to_owned()];
        for (repository, labels, expected) in [
            (Some("acme/widgets"), &[][..], None),
            (None, &[], None),
            (
                Some("ACME/Vault"),
                &[],
                Some("llm.local_only_repositories names `acme/vault`"),
            ),
            (
                Some("secret/sub/a"),
                &[],
                Some("llm.local_only_repositories names `Secret/*`"),
            ),
            (Some("secrets/a"), &[], None),
            (
                Some("acme/widgets"),
                &label[..],
                Some("the item has the label `confidential` (llm.local_only_label)"),
            ),
        ] {
            assert_eq!(rules().rule(repository, labels).as_deref(), expected, "{repository:?}");
        }
        let always = LocalOnlyRules::new(&Config {
            local_only: true,
            ..Config::default()
        });
        assert_eq!(always.rule(None, &[]).as_deref(), Some("llm.local_only is true"));
    }
}
