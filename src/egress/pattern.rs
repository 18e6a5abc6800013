//! One entry of a list of hosts in the configuration.
//!
//! `example.com` matches that host, `*.example.com` (or `.example.com`) every host below it but not
//! itself; both on ports 80 and 443. `example.com:8080` matches that port alone. An address is
//! written like a name, an IPv6 address in `[...]`.

use std::fmt;
use std::str::FromStr;

use super::{Destination, Host};

/// Ports that an entry without a port matches.
const USUAL_PORTS: [u16; 2] = [80, 443];

/// A set of hosts and ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    hosts: Hosts,
    /// `None` means [`USUAL_PORTS`].
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    One(Host),
    /// Every name that ends with this suffix, which begins with a dot.
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

    /// Returns true if the entry names a port instead of meaning the usual ones.
    pub fn names_port(&self) -> bool {
        self.port.is_some()
    }

    /// Returns true if the entry matches the host, whatever the port.
    pub fn names(&self, host: &Host) -> bool {
        match (&self.hosts, host) {
            (Hosts::One(one), host) => one == host,
            (Hosts::Below(ending), Host::Name(name)) => name.ends_with(ending.as_str()),
            (Hosts::Below(_), Host::Address(_)) => false,
        }
    }
}

impl FromStr for Pattern {
    /// A sentence that quotes the entry.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let below = text.strip_prefix('*').unwrap_or(text).strip_prefix('.');
        let has_port = match text.rsplit_once(']') {
            Some((_, rest)) => rest.starts_with(':'),
            None => text.contains(':'),
        };
        // For an entry without a port any default will do: it is not kept.
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
