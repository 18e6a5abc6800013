//! Where a request says it goes to, and where it says it comes from.
//!
//! A page of another site can have a browser send requests here: under a name of its own that it
//! lets point to this machine (DNS rebinding), or with a form. The first is told by `Host`, the
//! second by `Origin` and `Sec-Fetch-Site`, which a page cannot set.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderMap, HeaderValue, header};

use crate::config::http::Http;

/// The addresses that people open.
pub(in crate::web) struct Addresses {
    port: u16,
    /// Origin and host of `public_url`.
    public: Option<(String, String)>,
}

impl Addresses {
    pub(super) fn new(http: &Http, port: u16) -> Self {
        Self {
            port,
            public: http.public_origin(),
        }
    }

    pub(in crate::web) fn is_behind_tls(&self) -> bool {
        self.public
            .as_ref()
            .is_some_and(|(origin, _)| origin.starts_with("https://"))
    }

    /// Tells whether `Host` is an address of this server: `public_url`, this machine by name, or an
    /// IP address, which nobody can let a name of theirs point to.
    pub(in crate::web) fn is_own_host(&self, headers: &HeaderMap) -> bool {
        let Some(host) = sole(headers, header::HOST) else {
            return false;
        };
        let is_public = self
            .public
            .as_ref()
            .is_some_and(|(_, public)| public.eq_ignore_ascii_case(host));
        let local = [format!("localhost:{}", self.port), "localhost".to_owned()];
        let is_local = local.iter().any(|name| name.eq_ignore_ascii_case(host));
        let is_address = || {
            let bare = host
                .strip_prefix('[')
                .and_then(|host| host.strip_suffix(']'))
                .unwrap_or(host);
            host.parse::<SocketAddr>().is_ok() || bare.parse::<IpAddr>().is_ok()
        };
        is_public || is_local || is_address()
    }

    /// Tells whether a request that changes something was sent by a page of this server.
    pub(in crate::web) fn is_own_origin(&self, headers: &HeaderMap) -> bool {
        let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
        if site.is_some_and(|site| site != b"same-origin") {
            return false;
        }
        let (Some(origin), Some(host)) = (sole(headers, header::ORIGIN), sole(headers, header::HOST)) else {
            return false;
        };
        let is_public = self
            .public
            .as_ref()
            .is_some_and(|(public, _)| public.eq_ignore_ascii_case(origin));
        let is_same = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"))
            .is_some_and(|from| from.eq_ignore_ascii_case(host));
        is_public || is_same
    }
}

/// Returns a header's text, if it is there once.
fn sole(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    values.next().is_none().then(|| value.to_str().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    fn addresses() -> Addresses {
        let http = Http {
            public_url: Some("https://agent.example.com".to_owned()),
            ..Http::default()
        };
        Addresses::new(&http, 8420)
    }

    #[test]
    fn names_that_others_can_let_point_here_are_no_hosts() {
        for (host, expected) in [
            ("127.0.0.1:8420", true),
            ("[::1]:8420", true),
            ("localhost:8420", true),
            ("192.0.2.7", true),
            ("agent.example.com", true),
            ("AGENT.example.com", true),
            ("localhost:9000", false),
            ("agent.example.com.evil.example", false),
            ("evil.example:8420", false),
            ("127.0.0.1.evil.example", false),
            ("", false),
        ] {
            assert_eq!(addresses().is_own_host(&headers(&[("host", host)])), expected, "{host}");
        }
        let two = headers(&[("host", "localhost:8420"), ("host", "evil.example")]);
        assert!(!addresses().is_own_host(&two) && !addresses().is_own_host(&HeaderMap::new()));
    }

    #[test]
    fn only_pages_of_this_server_change_something() {
        let host = ("host", "127.0.0.1:8420");
        for (pairs, expected) in [
            (vec![host, ("origin", "http://127.0.0.1:8420")], true),
            (
                vec![
                    host,
                    ("origin", "http://127.0.0.1:8420"),
                    ("sec-fetch-site", "same-origin"),
                ],
                true,
            ),
            (
                vec![("host", "10.0.0.1"), ("origin", "https://agent.example.com")],
                true,
            ),
            (
                vec![
                    host,
                    ("origin", "http://127.0.0.1:8420"),
                    ("sec-fetch-site", "cross-site"),
                ],
                false,
            ),
            (vec![host, ("origin", "http://127.0.0.1:9999")], false),
            (vec![host, ("origin", "http://127.0.0.1:8420.evil.example")], false),
            (vec![host, ("origin", "null")], false),
            (vec![host], false),
        ] {
            assert_eq!(addresses().is_own_origin(&headers(&pairs)), expected, "{pairs:?}");
        }
    }
}
