//! Refuses connections to model servers that are not local.
//!
//! A name is judged by all addresses that it has when the connection is made, so it cannot point
//! elsewhere in between; no proxy is used, since that would look names up by itself.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Allows connections to local servers only, and names the rule that demands it.
#[derive(Debug, Clone)]
pub(crate) struct PrivateNetworkResolver {
    pub(crate) rule: String,
    hosts: Arc<[String]>,
}

/// A server that is not local.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{host} is at {ip}")]
pub(crate) struct PublicAddress {
    host: String,
    ip: IpAddr,
}

impl PrivateNetworkResolver {
    /// Returns the restriction that `rule` demands; `hosts` count as local wherever they are.
    pub(crate) fn new(rule: String, hosts: Arc<[String]>) -> Self {
        Self { rule, hosts }
    }

    /// Checks a host that is written as an IP address; names are checked when they are looked up.
    pub(crate) fn check(&self, url: &Url) -> Result<(), PublicAddress> {
        let ip = match url.host() {
            Some(url::Host::Ipv4(ip)) => IpAddr::V4(ip),
            Some(url::Host::Ipv6(ip)) => IpAddr::V6(ip),
            Some(url::Host::Domain(_)) | None => return Ok(()),
        };
        let host = url.host_str().unwrap_or_default();
        self.check_all(host, [ip])
    }

    fn check_all(&self, host: &str, ips: impl IntoIterator<Item = IpAddr>) -> Result<(), PublicAddress> {
        let bare = host.trim_matches(['[', ']']);
        if self.hosts.iter().any(|named| named.eq_ignore_ascii_case(bare)) {
            return Ok(());
        }
        match ips.into_iter().find(|ip| !is_local(*ip)) {
            Some(ip) => Err(PublicAddress {
                host: host.to_owned(),
                ip,
            }),
            None => Ok(()),
        }
    }
}

impl Resolve for PrivateNetworkResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let network = self.clone();
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            network.check_all(name.as_str(), found.iter().map(SocketAddr::ip))?;
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}

/// Returns the refusal of this module if it is the cause of `error`.
pub(crate) fn refusal_in<'error>(error: &'error (dyn std::error::Error + 'static)) -> Option<&'error PublicAddress> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref::<PublicAddress>() {
            return Some(refused);
        }
        cause = error.source();
    }
    None
}

/// Tells whether an address is local. Link-local ones are not: cloud providers answer there. Nor
/// are those that carriers share out (100.64/10), although [`crate::egress`] takes them for
/// somebody's own network: a model there has to be named.
fn is_local(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_loopback() || ip.is_private(),
        IpAddr::V6(ip) => ip.is_loopback() || ip.is_unique_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network() -> PrivateNetworkResolver {
        let hosts = ["gpu.example", "203.0.113.9"].map(str::to_owned);
        PrivateNetworkResolver::new("test".to_owned(), Arc::new(hosts))
    }

    #[test]
    fn only_this_machine_private_networks_and_what_is_named_are_local() {
        let network = network();
        for (host, is_local) in [
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
            assert_eq!(network.check(&url).is_ok(), is_local, "{host}");
        }
    }

    #[test]
    fn one_address_that_is_far_is_enough() {
        let network = network();
        let ips: [IpAddr; 2] = ["10.0.0.1".parse().unwrap(), "8.8.8.8".parse().unwrap()];
        assert_eq!(
            network.check_all("model.example", ips).unwrap_err().to_string(),
            "model.example is at 8.8.8.8"
        );
        assert_eq!(network.check_all("gpu.example", ips), Ok(()));
    }

    #[tokio::test]
    async fn a_name_is_judged_when_it_is_looked_up() {
        let network = network();
        let found: Vec<_> = network.resolve("localhost".parse().unwrap()).await.unwrap().collect();
        assert!(found.iter().all(|address| address.ip().is_loopback()), "{found:?}");
    }
}
