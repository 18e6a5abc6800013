//! The targets of redirects by GitHub: another place of its own, or another server, where it keeps
//! the logs of jobs.
//!
//! The token is for GitHub's own host. Another server is asked for nothing but a file that may lie
//! there, without the token, and never where a machine tells its own secrets (link-local addresses,
//! cloud metadata), nor in a private network unless GitHub is in one itself: what is read there
//! comes before the model and onto an item.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::header::LOCATION;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use crate::certificates::Trust;
use crate::egress::address::{Range, range};
use crate::forge::http::failure::Failure;
use crate::forge::http::retry::{ATTEMPT_TIMEOUT, Answer, no_answer};
use crate::http::{CONNECT_TIMEOUT, client};

/// The target of a redirect.
pub(crate) enum Target {
    /// Path and query on the same host.
    SameHost(String),
    OtherHost(Url),
}

/// Returns where an answer to a request for `place` sends to, if it does.
pub(crate) fn next(place: &Url, answer: &Answer) -> Option<Url> {
    if !matches!(answer.status.as_u16(), 301 | 302 | 307 | 308) {
        return None;
    }
    place.join(answer.headers.get(LOCATION)?.to_str().ok()?).ok()
}

/// Returns the target of the redirect, if the answer is one.
pub(crate) fn target(base: &Url, answer: &Answer) -> Option<Target> {
    let url = next(base, answer)?;
    if url.origin() != base.origin() {
        return Some(Target::OtherHost(url));
    }
    let query = url.query().map(|query| format!("?{query}"));
    Some(Target::SameHost(format!("{}{}", url.path(), query.unwrap_or_default())))
}

/// Fetches a file from another server to which the GitHub at `base` redirected.
pub(crate) async fn fetch(base: &Url, trust: &Trust, url: Url) -> Result<Answer, Failure> {
    if url.scheme() != "https" && url.scheme() != base.scheme() {
        return Err(Failure::unreadable(
            "it lies behind an address that is not encrypted, though the API's is",
        ));
    }
    let judge = AddressPolicy {
        may_be_private: is_private(base).await,
    };
    match url.host() {
        Some(Host::Ipv4(address)) => judge.judge(address.into()).map_err(Failure::unreadable)?,
        Some(Host::Ipv6(address)) => judge.judge(address.into()).map_err(Failure::unreadable)?,
        // A name is judged when it is looked up.
        Some(Host::Domain(_)) | None => {}
    }
    let http = client(trust)
        .timeout(ATTEMPT_TIMEOUT)
        .dns_resolver(Arc::new(judge))
        .build()
        .map_err(Failure::unreadable)?;
    let response = http.get(url).send().await.map_err(|error| no_answer(&error))?;
    Answer::read(response).await
}

/// Tells whether the API itself is in a private network, so that its files may be, too.
async fn is_private(base: &Url) -> bool {
    let (host, port) = (base.host_str().unwrap_or_default(), base.port_or_known_default());
    let looked_up = tokio::net::lookup_host((host.trim_matches(['[', ']']), port.unwrap_or_default()));
    match tokio::time::timeout(CONNECT_TIMEOUT, looked_up).await {
        Ok(Ok(mut found)) => found.any(|found| range(found.ip().to_canonical()) == Range::Private),
        // Behind a proxy names may mean nothing here.
        Ok(Err(_)) | Err(_) => false,
    }
}

/// Decides which addresses files may be fetched from.
#[derive(Debug, Clone, Copy)]
struct AddressPolicy {
    may_be_private: bool,
}

impl AddressPolicy {
    fn judge(self, address: IpAddr) -> Result<(), String> {
        match range(address.to_canonical()) {
            Range::Public => Ok(()),
            Range::Private if self.may_be_private => Ok(()),
            Range::Private => Err(format!(
                "it lies in a private network ({address}), and the API does not"
            )),
            Range::Forbidden(what) => Err(format!("it lies at {address} ({what})")),
        }
    }
}

impl Resolve for AddressPolicy {
    fn resolve(&self, name: Name) -> Resolving {
        let judge = *self;
        Box::pin(async move {
            let found: Vec<SocketAddr> = tokio::net::lookup_host((name.as_str(), 0)).await?.collect();
            for address in &found {
                judge
                    .judge(address.ip())
                    .map_err(Box::<dyn Error + Send + Sync>::from)?;
            }
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, HeaderValue, StatusCode};

    use super::*;

    fn told(base: &str, location: &'static str) -> String {
        let answer = Answer {
            status: StatusCode::FOUND,
            headers: HeaderMap::from_iter([(LOCATION, HeaderValue::from_static(location))]),
            body: Bytes::new(),
        };
        match target(&base.parse().unwrap(), &answer) {
            Some(Target::SameHost(path)) => format!("here {path}"),
            Some(Target::OtherHost(url)) => format!("elsewhere {url}"),
            None => "nowhere".to_owned(),
        }
    }

    #[test]
    fn another_host_port_or_scheme_is_elsewhere() {
        for (location, expected) in [
            ("https://api.example/repositories/1?a=b", "here /repositories/1?a=b"),
            ("/repositories/1", "here /repositories/1"),
            ("https://api.example:443/x", "here /x"),
            ("http://api.example/x", "elsewhere http://api.example/x"),
            ("https://api.example:8443/x", "elsewhere https://api.example:8443/x"),
            (
                "https://api.example.evil.example/x",
                "elsewhere https://api.example.evil.example/x",
            ),
            (
                "https://api.example@evil.example/x",
                "elsewhere https://api.example@evil.example/x",
            ),
            ("//evil.example/x", "elsewhere https://evil.example/x"),
            ("https://[", "nowhere"),
        ] {
            assert_eq!(told("https://api.example/api/v3", location), expected, "{location}");
        }
    }

    #[tokio::test]
    async fn files_are_fetched_neither_from_metadata_nor_from_a_network_that_the_api_is_not_in() {
        let fetched = async |base: &str, url: &str| {
            let outcome = fetch(&base.parse().unwrap(), &Trust::default(), url.parse().unwrap()).await;
            outcome.unwrap_err().to_string()
        };
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        insta::assert_snapshot!(fetched("http://127.0.0.1", "http://169.254.169.254/latest").await, @"the answer could not be read: it lies at 169.254.169.254 (link-local or cloud metadata)");
        insta::assert_snapshot!(fetched("http://127.0.0.1", "http://[::ffff:169.254.169.254]/latest").await, @"the answer could not be read: it lies at ::ffff:169.254.169.254 (link-local or cloud metadata)");
        insta::assert_snapshot!(fetched("http://1.1.1.1", "http://127.0.0.1:1/x").await, @"the answer could not be read: it lies in a private network (127.0.0.1), and the API does not");
        insta::assert_snapshot!(fetched("https://1.1.1.1", "http://9.9.9.9/x").await, @"the answer could not be read: it lies behind an address that is not encrypted, though the API's is");
        // A name is judged where it is looked up, and one that may be connected to is.
        assert!(
            fetched("http://1.1.1.1", "http://localhost:1/x")
                .await
                .contains("in a private network")
        );
        assert!(
            fetched("http://127.0.0.1", "http://localhost:1/x")
                .await
                .contains("onnect")
        );
    }
}
