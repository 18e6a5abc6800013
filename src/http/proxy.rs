//! Names the proxy on the way to a server, for the texts of errors.
//!
//! The errors of the HTTP client blame the server that was asked, and never name a proxy that
//! cannot be reached, refuses, or answers in the server's place. So nobody learns from them that a
//! server of one's own network is missing in `NO_PROXY`.

use std::fmt;
use std::sync::LazyLock;

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use url::Url;

use super::remedy::Reason;

/// The proxies of the environment, found as the HTTP client finds them.
static OF_THE_ENVIRONMENT: LazyLock<Matcher> = LazyLock::new(Matcher::from_system);

/// A proxy of the environment that requests to a server go through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proxy {
    /// Host and port. User and password are left out, since they must stand in no text.
    place: String,
    /// The variables of which one names the proxy.
    variables: &'static str,
    /// The host of the server.
    server: String,
}

impl Proxy {
    /// Returns the proxy through which a client that heeds the environment asks the server at
    /// `address`; `None` if it asks the server itself.
    pub fn on_the_way(address: &Url) -> Option<Self> {
        Self::among(&OF_THE_ENVIRONMENT, address)
    }

    fn among(proxies: &Matcher, address: &Url) -> Option<Self> {
        // Nothing else of the address counts, and a path may have characters that `Uri` refuses.
        let server: Uri = address.origin().ascii_serialization().parse().ok()?;
        let found = proxies.intercept(&server)?;
        let host = found.uri().host()?;
        let port = found.uri().port_u16();
        Some(Self {
            place: port.map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")),
            variables: if address.scheme() == "https" {
                "HTTPS_PROXY or ALL_PROXY"
            } else {
                "HTTP_PROXY or ALL_PROXY"
            },
            server: address.host_str()?.trim_matches(['[', ']']).to_owned(),
        })
    }

    /// Returns what to do where the proxy may be the fault.
    pub fn remedy(&self) -> String {
        format!(
            "look at that proxy, or name {} in NO_PROXY if it is in your own network",
            self.server
        )
    }

    /// Returns the reason of a failure with the proxy in it. A remedy that it has is kept;
    /// otherwise the proxy's follows.
    pub fn in_reason(&self, reason: Reason) -> Reason {
        let Reason { what, remedy } = reason;
        Reason::with(
            format!("{what}, asked through {self}"),
            remedy.unwrap_or_else(|| self.remedy()),
        )
    }

    /// Does the same with a text of this program or of its HTTP client, in which a remedy follows a
    /// semicolon.
    pub fn told(&self, reason: &str) -> String {
        self.in_reason(Reason::of_own_words(reason)).to_string()
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the proxy {} of {}", self.place, self.variables)
    }
}

/// Returns what happened if the HTTP client says, in words that name nobody, that a proxy opened no
/// tunnel.
pub(super) fn refusal(said: &str) -> Option<&'static str> {
    match said {
        "tunnel error: unsuccessful" => Some("the proxy refuses to connect to it"),
        "tunnel error: proxy authorization required" => Some(
            "the proxy demands a user and a password; write them into its variable: http://USER:PASSWORD@HOST:PORT",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxy_is_named_without_its_password_and_with_what_to_do() {
        let proxies = Matcher::builder()
            .https("http://me:word@proxy.example:3128")
            .http("10.0.0.2:8080")
            .no("near.example,10.0.0.0/8")
            .build();
        let told = |address: &str, reason: &str| {
            let proxy = Proxy::among(&proxies, &address.parse().unwrap());
            proxy.map(|proxy| proxy.told(reason))
        };
        for near in ["https://a.near.example/x", "http://10.1.2.3:11434"] {
            assert_eq!(told(near, "it is gone"), None, "{near}");
        }
        insta::assert_snapshot!(told("https://lab.example/a b", "it is gone").unwrap(), @"it is gone, asked through the proxy proxy.example:3128 of HTTPS_PROXY or ALL_PROXY; look at that proxy, or name lab.example in NO_PROXY if it is in your own network");
        insta::assert_snapshot!(told("http://[fd00::1]:11434/v1", "it is gone").unwrap(), @"it is gone, asked through the proxy 10.0.0.2:8080 of HTTP_PROXY or ALL_PROXY; look at that proxy, or name fd00::1 in NO_PROXY if it is in your own network");
        let server = "https://lab.example".parse().unwrap();
        let proxy = Proxy::among(&proxies, &server).unwrap();
        let of_server = proxy.in_reason("it said: no; never".to_owned().into());
        assert_eq!(
            of_server.what,
            "it said: no; never, asked through the proxy proxy.example:3128 of HTTPS_PROXY or ALL_PROXY"
        );
        assert_eq!(of_server.remedy, Some(proxy.remedy()));
        insta::assert_snapshot!(told("https://lab.example", "it is not trusted; name it in ca_file").unwrap(), @"it is not trusted, asked through the proxy proxy.example:3128 of HTTPS_PROXY or ALL_PROXY; name it in ca_file");
    }
}
