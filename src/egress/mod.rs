//! What a container may reach: a name against the lists, and then the addresses that the name stands for.
//!
//! Two questions, because the answer to the first says nothing about the second: whoever owns a name that is on the list decides where
//! it points to, and may let it point into the operator's own network. So a [`Permit`] is not yet a way: only
//! [`Permit::choose`] gives addresses, and what is connected to is one of those, never the name again.

pub mod address;
pub mod pattern;

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use address::{Range, range};
use pattern::Pattern;

/// Where the way out begins in a container: a port of its own loopback.
pub const PROXY_PORT: u16 = 3128;

/// Connections that one container may have at once; more wait.
pub const MOST_CONNECTIONS: usize = 64;

/// The first line that the inner end of the way out says, before anything else.
pub const READY: &str = "listening";

/// Longest name that the name system knows.
const LONGEST_NAME: usize = 253;

/// A host and a port, as somebody inside asked for them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Destination {
    pub host: Host,
    pub port: u16,
}

/// A name in small letters without a dot at its end, or an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Host {
    Address(IpAddr),
    Name(String),
}

/// What the containers of one environment may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    allowed: Vec<Pattern>,
    /// Allowed even where they lie in a private network.
    private: Vec<Pattern>,
}

/// A destination that the lists let through; where it leads is not known yet. Only [`Policy::judge`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permit {
    destination: Destination,
    may_be_private: bool,
}

/// A destination that is not reached, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Refusal {
    pub destination: Destination,
    pub reason: Reason,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// No list names the host.
    NotListed,
    /// A list names the host, and not this port of it.
    OtherPort,
    /// It leads into a private network, and is no exception.
    Private { address: IpAddr },
    /// It leads where nothing in a container may ever reach.
    Forbidden { address: IpAddr, what: String },
}

impl Destination {
    /// Reads `host:port`, or a host alone where `usual_port` says which port is meant; `None` for what is neither.
    pub fn parse(authority: &str, usual_port: Option<u16>) -> Option<Self> {
        let (host, port) = match authority.strip_prefix('[') {
            Some(rest) => {
                let (address, rest) = rest.split_once(']')?;
                let address = IpAddr::V6(address.parse::<Ipv6Addr>().ok()?).to_canonical();
                let port = match rest {
                    "" => None,
                    rest => Some(rest.strip_prefix(':')?),
                };
                (Host::Address(address), port)
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (Host::parse(host)?, Some(port)),
                None => (Host::parse(authority)?, None),
            },
        };
        let port = match port {
            // Neither a sign nor anything else that a number may begin with.
            Some(port) if port.bytes().all(|digit| digit.is_ascii_digit()) => port.parse().ok()?,
            Some(_) => return None,
            None => usual_port?,
        };
        (port != 0).then_some(Self { host, port })
    }
}

impl Host {
    fn parse(text: &str) -> Option<Self> {
        let name = text.strip_suffix('.').unwrap_or(text);
        // An address with a dot behind it is that address to whoever looks it up.
        if let Ok(address) = name.parse::<IpAddr>() {
            return Some(Self::Address(address.to_canonical()));
        }
        is_name(name).then(|| Self::Name(name.to_ascii_lowercase()))
    }
}

/// Tells whether `text` can be a name: letters, digits, `-` and `_`, in parts.
fn is_name(text: &str) -> bool {
    let is_part = |part: &str| {
        (1..=63).contains(&part.len())
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    text.len() <= LONGEST_NAME && text.split('.').all(is_part)
}

impl Policy {
    /// Reads both lists; an entry that cannot be read lets nothing through.
    pub fn of_readable<'text>(
        allowed: impl IntoIterator<Item = &'text String>,
        private: impl IntoIterator<Item = &'text String>,
    ) -> Self {
        Self {
            allowed: readable(allowed),
            private: readable(private),
        }
    }

    /// Returns what the lists name, for the model.
    pub fn named(&self) -> impl Iterator<Item = String> {
        self.allowed.iter().chain(&self.private).map(ToString::to_string)
    }

    /// Decides by host and port alone.
    pub fn judge(&self, destination: Destination) -> Result<Permit, Refusal> {
        let may_be_private = self.private.iter().any(|pattern| pattern.takes(&destination));
        if may_be_private || self.allowed.iter().any(|pattern| pattern.takes(&destination)) {
            return Ok(Permit {
                destination,
                may_be_private,
            });
        }
        let is_known = |pattern: &Pattern| pattern.names(&destination.host);
        let reason = if self.allowed.iter().chain(&self.private).any(is_known) {
            Reason::OtherPort
        } else {
            Reason::NotListed
        };
        Err(Refusal { destination, reason })
    }
}

fn readable<'text>(texts: impl IntoIterator<Item = &'text String>) -> Vec<Pattern> {
    texts.into_iter().filter_map(|text| text.parse().ok()).collect()
}

impl Permit {
    pub fn destination(&self) -> &Destination {
        &self.destination
    }

    /// Returns those of `resolved` that may be connected to, in their order; refuses where there are some and none may be.
    pub fn choose(&self, resolved: &[IpAddr]) -> Result<Vec<IpAddr>, Refusal> {
        let (mut chosen, mut refused) = (Vec::new(), None);
        for address in resolved {
            let address = address.to_canonical();
            let reason = match range(address) {
                Range::Public => None,
                Range::Private if self.may_be_private => None,
                Range::Private => Some(Reason::Private { address }),
                Range::Forbidden(what) => Some(Reason::Forbidden {
                    address,
                    what: what.to_owned(),
                }),
            };
            match reason {
                None => chosen.push(address),
                Some(reason) => refused = refused.or(Some(reason)),
            }
        }
        match refused {
            Some(reason) if chosen.is_empty() => Err(Refusal {
                destination: self.destination.clone(),
                reason,
            }),
            _ => Ok(chosen),
        }
    }
}

impl Refusal {
    /// Returns in a sentence what was refused, by which rule, and how it is allowed.
    pub fn sentence(&self) -> String {
        let what = self.what();
        match self.line() {
            Some(line) => format!("{what}; whoever runs coding-agent can allow it in config.yaml: {line}"),
            None => format!("{what}, whatever the configuration says"),
        }
    }

    /// Returns the rule that refused it, in a few words.
    pub fn rule(&self) -> String {
        match &self.reason {
            Reason::NotListed => "not among the hosts that containers may reach".to_owned(),
            Reason::OtherPort => "not a port of this host that containers may reach".to_owned(),
            Reason::Private { address } => format!("leads into a private network ({address})"),
            Reason::Forbidden { address, what } => format!("never reached from a container ({address}, {what})"),
        }
    }

    /// Returns what was refused and by which rule, as a sentence without a full stop.
    pub fn what(&self) -> String {
        let Destination { host, port } = &self.destination;
        match &self.reason {
            Reason::NotListed => format!("{host} is not among the hosts that containers may reach"),
            Reason::OtherPort => format!("{host} may be reached, but not its port {port}"),
            Reason::Private { address } if *host == Host::Address(*address) => {
                format!("{address} is in a private network, which containers do not reach")
            }
            Reason::Private { address } => {
                format!("{host} leads to {address}, in a private network, which containers do not reach")
            }
            Reason::Forbidden { address, what } if *host == Host::Address(*address) => {
                format!("{address} ({what}) is never reached from a container")
            }
            Reason::Forbidden { address, what } => {
                format!("{host} leads to {address} ({what}), which is never reached from a container")
            }
        }
    }

    /// Returns the line of configuration that would allow it; `None` where there is none.
    pub fn line(&self) -> Option<String> {
        let key = match self.reason {
            Reason::NotListed | Reason::OtherPort => "allow",
            Reason::Private { .. } => "allow_private",
            Reason::Forbidden { .. } => return None,
        };
        let Destination { host, port } = &self.destination;
        let entry = match (port, host) {
            (80 | 443, Host::Name(name)) => name.clone(),
            _ => format!("\"{}\"", self.destination),
        };
        Some(format!("command_executor.network.{key}: [{entry}]"))
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.host, self.port)
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(formatter, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]"),
        }
    }
}

#[cfg(test)]
mod tests;
