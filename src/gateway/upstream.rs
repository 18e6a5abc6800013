//! The proxy that the worker itself is behind, if any, from the variables that forges and models
//! use too.

use hyper::Uri;
use hyper::header::HeaderValue;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

use crate::egress::Destination;

/// Selects the proxy for a destination.
#[derive(Debug)]
pub struct Upstream(Matcher);

/// The kind of a request to the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `CONNECT`: bytes in both directions.
    Tunnel,
    /// A request in plain HTTP.
    Plain,
}

/// The address of the worker's proxy and the credentials for it.
#[derive(Debug, Clone)]
pub(super) struct Proxy {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) authorization: Option<HeaderValue>,
}

impl Upstream {
    /// Reads `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, in lowercase as well, as curl
    /// does.
    pub fn from_variables(variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let read = |name: &str| {
            let spellings = [name.to_owned(), name.to_ascii_lowercase()];
            let mut values = spellings.iter().filter_map(|name| variable(name));
            values.find(|value| !value.is_empty()).unwrap_or_default()
        };
        Self(
            Matcher::builder()
                .http(read("HTTP_PROXY"))
                .https(read("HTTPS_PROXY"))
                .all(read("ALL_PROXY"))
                .no(read("NO_PROXY"))
                .build(),
        )
    }

    /// Returns the proxy for `destination`, if there is one; `Err` is a sentence about a proxy of
    /// an unsupported kind.
    pub(super) fn on_the_way(&self, destination: &Destination, kind: Kind) -> Result<Option<Proxy>, String> {
        let scheme = match kind {
            Kind::Tunnel => "https",
            Kind::Plain => "http",
        };
        let address: Option<Uri> = format!("{scheme}://{destination}/").parse().ok();
        let Some(intercept) = address.and_then(|address| self.0.intercept(&address)) else {
            return Ok(None);
        };
        proxy(&intercept).map(Some)
    }
}

fn proxy(intercept: &Intercept) -> Result<Proxy, String> {
    let address = intercept.uri();
    match (address.scheme_str(), address.host()) {
        (Some("http"), Some(host)) => Ok(Proxy {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: address.port_u16().unwrap_or(80),
            authorization: intercept.basic_auth().cloned(),
        }),
        (scheme, _) => Err(format!(
            "the worker is behind a proxy of the kind {}, and containers go out only through one whose address begins with http://",
            scheme.unwrap_or("unknown")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_decide_as_they_do_for_forges() {
        let variables = |name: &str| match name {
            "https_proxy" => Some("http://me:word@proxy.example:3128".to_owned()),
            "HTTP_PROXY" => Some("socks5://proxy.example".to_owned()),
            "HTTPS_PROXY" => Some(String::new()),
            "NO_PROXY" => Some("near.example,10.0.0.0/8".to_owned()),
            _ => None,
        };
        let upstream = Upstream::from_variables(&variables);
        let on_the_way = |host: &str, kind| upstream.on_the_way(&Destination::parse(host, Some(443)).unwrap(), kind);
        let far = on_the_way("far.example", Kind::Tunnel).unwrap().unwrap();
        assert_eq!((far.host.as_str(), far.port), ("proxy.example", 3128));
        assert_eq!(far.authorization.unwrap(), "Basic bWU6d29yZA==");
        for near in ["near.example", "a.near.example", "10.1.2.3"] {
            assert!(on_the_way(near, Kind::Tunnel).unwrap().is_none(), "{near}");
        }
        insta::assert_snapshot!(on_the_way("far.example", Kind::Plain).unwrap_err(), @"the worker is behind a proxy of the kind socks5, and containers go out only through one whose address begins with http://");
        assert!(
            Upstream::from_variables(&|_| None)
                .on_the_way(&Destination::parse("far.example:443", None).unwrap(), Kind::Tunnel)
                .unwrap()
                .is_none()
        );
    }
}
