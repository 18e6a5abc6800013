//! Which work is confidential, and the network that it may use.
//!
//! Confidential work goes only to model servers on this machine, in a private network, or named by
//! the configuration.

pub(crate) mod private_network; // refuses connections to other servers

use std::sync::Arc;

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
