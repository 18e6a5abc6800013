//! One entry of a list of hosts, as it stands in the configuration.
//!
//! `example.com` is that host, `*.example.com` (or `.example.com`) every host below it and not
//! itself; both on the ports of HTTP and HTTPS. `example.com:8080` is that port alone. An address
//! is written like a name, one of IPv6 in `[...]`.

use std::fmt;
use std::str::FromStr;

use super::{Destination, Host};

/// What an entry without a port means.
const USUAL_PORTS: [u16; 2] = [80, 443];

/// Hosts, and ports of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    hosts: Hosts,
    /// `None` for the usual ones.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    One(Host),
    /// Every name that ends with this, which begins with a dot.
    Below(String),
}

impl Pattern {
    pub fn takes(&self, destination: &Destination) -> bool {
        let is_port = match self.port {
            Some(port) => port == destination.port,
            None => USUAL_PORTS.contains(&destination.port),
        };
        is_port && self.names(&destination.host)
    }

    /// Tells whether the entry names a port itself, and does not stand for the usual ones.
    pub fn names_port(&self) -> bool {
        self.port.is_some()
    }

    /// Tells whether the host is meant, whatever the port.
    pub fn names(&self, host: &Host) -> bool {
        match (&self.hosts, host) {
            (Hosts::One(one), host) => one == host,
            (Hosts::Below(ending), Host::Name(name)) => name.ends_with(ending.as_str()),
            (Hosts::Below(_), Host::Address(_)) => false,
        }
    }
}

impl FromStr for Pattern {
    /// A sentence that names the entry.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let below = text.strip_prefix('*').unwrap_or(text).strip_prefix('.');
        let has_port = match text.rsplit_once(']') {
            Some((_, rest)) => rest.starts_with(':'),
            None => text.contains(':'),
        };
        // Any port will do to read the rest of an entry that has none.
        let read = Destination::parse(below.unwrap_or(text), Some(443));
        let hosts = match read.as_ref().map(|read| &read.host) {
            Some(Host::Name(name)) if below.is_some() => Hosts::Below(format!(".{name}")),
            Some(host) if below.is_none() => Hosts::One(host.clone()),
            _ => {
                return Err(format!(
                    "'{text}' is not a host; write a name such as example.com, *.example.com for all below it, or \
                     example.com:8080 for another port than 80 and 443 (no https://, no path)"
                ));
            }
        };
        let port = read.filter(|_| has_port).map(|read| read.port);
        Ok(Self { hosts, port })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::One(host) => write!(formatter, "{host}")?,
            Hosts::Below(ending) => write!(formatter, "*{ending}")?,
        }
        match self.port {
            Some(port) => write!(formatter, ":{port}"),
            None => Ok(()),
        }
    }
}
