//! Decides which model servers are local: on this machine, in a private network, or named by the
//! configuration.
//!
//! Confidential work goes to no other. A name is judged by all addresses that it has when the
//! connection is made, so it cannot point elsewhere in between; no proxy is used, since that would
//! look names up by itself.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::Config;

/// The configuration of confidential work and of local servers.
#[derive(Debug, Default)]
pub(super) struct Confidential {
    always: bool,
    repositories: Vec<String>,
    label: Option<String>,
    hosts: Arc<[String]>,
}

/// Allows connections to local servers only, and names the rule that demands it.
#[derive(Debug, Clone)]
pub(super) struct Nearby {
    pub(super) rule: String,
    hosts: Arc<[String]>,
}

/// A server that is not local.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{host} is at {ip}")]
pub(super) struct TooFar {
    host: String,
    ip: IpAddr,
}

impl Confidential {
    pub(super) fn new(config: &Config) -> Self {
        let hosts = config.local_endpoints.iter().map(|host| host.trim().to_lowercase());
        Self {
            always: config.local_only,
            repositories: config.local_only_repositories.clone(),
            label: config.local_only_label.clone(),
            hosts: hosts.filter(|host| !host.is_empty()).collect(),
        }
    }

    /// Returns the rule that makes work on this item confidential, if one does.
    pub(super) fn rule(&self, repository: Option<&str>, labels: &[String]) -> Option<String> {
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
    pub(super) fn part(&self) -> Option<String> {
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
    pub(super) fn wall(&self, rule: String) -> Nearby {
        let hosts = Arc::clone(&self.hosts);
        Nearby { rule, hosts }
    }
}

impl Nearby {
    /// Checks a host that is written as an IP address; names are checked when they are looked up.
    pub(super) fn check(&self, url: &Url) -> Result<(), TooFar> {
        let ip = match url.host() {
            Some(url::Host::Ipv4(ip)) => IpAddr::V4(ip),
            Some(url::Host::Ipv6(ip)) => IpAddr::V6(ip),
            Some(url::Host::Domain(_)) | None => return Ok(()),
        };
        let host = url.host_str().unwrap_or_default();
        self.check_all(host, [ip])
    }

    fn check_all(&self, host: &str, ips: impl IntoIterator<Item = IpAddr>) -> Result<(), TooFar> {
        let bare = host.trim_matches(['[', ']']);
        if self.hosts.iter().any(|named| named.eq_ignore_ascii_case(bare)) {
            return Ok(());
        }
        match ips.into_iter().find(|ip| !is_near(*ip)) {
            Some(ip) => Err(TooFar {
                host: host.to_owned(),
                ip,
            }),
            None => Ok(()),
        }
    }
}

impl Resolve for Nearby {
    fn resolve(&self, name: Name) -> Resolving {
        let wall = self.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            wall.check_all(name.as_str(), found.iter().map(SocketAddr::ip))?;
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}

/// Returns the refusal of this module if it is the cause of `error`.
pub(super) fn wall_in<'error>(error: &'error (dyn std::error::Error + 'static)) -> Option<&'error TooFar> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(far) = error.downcast_ref::<TooFar>() {
            return Some(far);
        }
        cause = error.source();
    }
    None
}

/// Tells whether an address is local. Link-local ones are not: cloud providers answer there. Nor
/// are those that carriers share out (100.64/10), although [`crate::egress`] takes them for
/// somebody's own network: a model there has to be named.
fn is_near(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local(),
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

    fn confidential() -> Confidential {
        Confidential::new(&Config {
            local_only_repositories: vec!["acme/vault".to_owned(), "Secret/*".to_owned()],
            local_only_label: Some("confidential".to_owned()),
            local_endpoints: vec!["GPU.example".to_owned(), "203.0.113.9".to_owned()],
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
            assert_eq!(
                confidential().rule(repository, labels).as_deref(),
                expected,
                "{repository:?}"
            );
        }
        let always = Confidential::new(&Config {
            local_only: true,
            ..Config::default()
        });
        assert_eq!(always.rule(None, &[]).as_deref(), Some("llm.local_only is true"));
    }

    #[test]
    fn only_this_machine_private_networks_and_what_is_named_are_near() {
        let wall = confidential().wall("test".to_owned());
        for (host, is_near) in [
            ("127.0.0.1", true),
            ("[::1]", true),
            ("10.1.2.3", true),
            ("172.31.0.1", true),
            ("172.32.0.1", false),
            ("192.168.1.20", true),
            ("[fd00::1]", true),
            ("[::ffff:10.0.0.1]", true),
            ("[::ffff:8.8.8.8]", false),
            ("169.254.169.254", false),
            ("[fe80::1]", false),
            ("0.0.0.0", false),
            ("8.8.8.8", false),
            ("203.0.113.9", true),
            ("[2001:db8::1]", false),
        ] {
            let url = Url::parse(&format!("http://{host}:11434/api")).unwrap();
            assert_eq!(wall.check(&url).is_ok(), is_near, "{host}");
        }
    }

    #[test]
    fn one_address_that_is_far_is_enough() {
        let wall = confidential().wall("test".to_owned());
        let ips: [IpAddr; 2] = ["10.0.0.1".parse().unwrap(), "8.8.8.8".parse().unwrap()];
        assert_eq!(
            wall.check_all("model.example", ips).unwrap_err().to_string(),
            "model.example is at 8.8.8.8"
        );
        assert_eq!(wall.check_all("gpu.example", ips), Ok(()));
    }

    #[tokio::test]
    async fn a_name_is_judged_when_it_is_looked_up() {
        let wall = confidential().wall("test".to_owned());
        let found: Vec<_> = wall.resolve("localhost".parse().unwrap()).await.unwrap().collect();
        assert!(found.iter().all(|address| address.ip().is_loopback()), "{found:?}");
    }
}
