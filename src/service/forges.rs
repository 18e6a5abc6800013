//! The configured forges.

use std::sync::Arc;

use url::Url;

use crate::agent::reporter::destination::ReportTarget;
use crate::config::{Config, TaskSource};
use crate::forge::{Forge, ForgeError, github, gitlab};
use crate::store::Store;
use crate::task::id::TaskId;
use crate::task::labels::Labels;

/// A forge and the names of its labels.
#[derive(Clone)]
pub struct Connected {
    pub forge: Arc<dyn Forge>,
    pub labels: Labels,
    /// Tells it from other hosts in what the store keeps for the next process.
    address: String,
}

impl Connected {
    fn new(forge: Arc<dyn Forge>, name: Option<&str>, api_url: &str) -> Self {
        // Two hosts may have one address, and are answered differently: their tokens are others.
        let of_name = name.map(|name| format!(" to {name}")).unwrap_or_default();
        Self {
            labels: forge.labels().clone(),
            forge,
            address: format!("{api_url}{of_name}"),
        }
    }

    /// Returns the names by which people call this host: that of the configuration, and the one in
    /// the addresses of its pages.
    pub fn names(&self) -> Vec<String> {
        let own = self.forge.name().as_str().to_owned();
        let api_url = self.address.split(' ').next().unwrap_or_default();
        std::iter::once(own).chain(host_of_pages(api_url)).collect()
    }

    /// Returns the key under which the store keeps something about this host for the next process.
    pub(super) fn memory_of(&self, what: &str) -> String {
        format!("{what} of {}", self.address)
    }

    /// Hands the answers of an earlier process to the forge's client. Without them it fetches
    /// everything in full, as the first time.
    pub async fn recall(&self, store: &Store) {
        let left = match store.remembered(&self.memory_of("answers")).await {
            Ok(Some(text)) => serde_json::from_str(&text).map_err(|error| error.to_string()),
            Ok(None) => return,
            Err(error) => Err(error.to_string()),
        };
        match left {
            Ok(answers) => self.forge.recall(answers),
            Err(error) => tracing::warn!("the {} could not be read: {error}", self.memory_of("answers")),
        }
    }

    /// Stores the answers that the forge's client knows for the next process.
    pub async fn remember(&self, store: &Store) {
        let Some(answers) = self.forge.news() else { return };
        let written = match serde_json::to_string(&answers) {
            Ok(text) => store
                .remember(&self.memory_of("answers"), &text)
                .await
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = written {
            tracing::warn!("the {} could not be kept: {error}", self.memory_of("answers"));
        }
    }
}

/// The forges that `task_sources` names, in that order.
pub struct Forges {
    hosts: Vec<Connected>,
}

impl Forges {
    /// Sets up the clients of the configured forges, without a request.
    pub async fn connect(config: &Config) -> Result<Self, ForgeError> {
        let mut hosts = Vec::new();
        for source in &config.task_sources {
            match source {
                TaskSource::Github => {
                    for section in &config.github.entries {
                        let host = github::connect(section).await?;
                        hosts.push(Connected::new(
                            Arc::new(host),
                            section.name.as_deref(),
                            &section.api_url,
                        ));
                    }
                }
                TaskSource::Gitlab => {
                    for section in &config.gitlab.entries {
                        let host = gitlab::connect(section)?;
                        hosts.push(Connected::new(
                            Arc::new(host),
                            section.name.as_deref(),
                            &section.api_url,
                        ));
                    }
                }
            }
        }
        Ok(Self { hosts })
    }

    pub fn all(&self) -> impl Iterator<Item = &Connected> {
        self.hosts.iter()
    }

    /// Returns the forge of a task, if it is configured.
    pub fn of(&self, task: &TaskId) -> Option<&Connected> {
        let host = &task.item()?.host;
        self.hosts.iter().find(|connected| connected.forge.name() == host)
    }

    /// Returns where a task's reports go; `None` if its forge is no longer configured.
    pub fn thread(&self, task: &TaskId) -> Option<ReportTarget> {
        let Connected { forge, labels, .. } = self.of(task)?.clone();
        Some(ReportTarget::Item { forge, labels })
    }
}

/// Returns the name that a host has in the addresses of its pages. The APIs of github.com and of
/// ghe.com have names of their own.
fn host_of_pages(api_url: &str) -> Option<String> {
    let address = Url::parse(api_url).ok()?;
    let host = address.host_str()?;
    Some(host.strip_prefix("api.").unwrap_or(host).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_of_a_host_are_where_people_find_them() {
        for (api_url, host) in [
            ("https://api.github.com", Some("github.com")),
            ("https://api.acme.ghe.com", Some("acme.ghe.com")),
            ("https://git.example/api/v3", Some("git.example")),
            ("https://gitlab.com", Some("gitlab.com")),
            ("nowhere", None),
        ] {
            assert_eq!(host_of_pages(api_url).as_deref(), host, "{api_url}");
        }
    }
}
