//! The network policy of containers: judges a name against the lists, then the addresses that it
//! resolves to.
//!
//! Two steps, because the first answer says nothing about the second: the owner of a listed name
//! decides where it points to, and may point it into the operator's own network. So a [`Permit`]
//! gives no access yet: only [`Permit::choose`] returns addresses, and the connection goes to one
//! of those, never to the name again.

pub mod address;
pub mod hello; // the first bytes of a tunnel
pub mod pattern;
mod refusal; // refused destinations, and the sentences about them

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use address::{Range, range};
use hello::Opening;
use pattern::Pattern;
pub use refusal::{Reason, Refusal};

/// Port of the proxy on the container's own loopback, where its way out begins.
pub const PROXY_PORT: u16 = 3128;

/// Maximum number of connections of one container at a time; more wait.
pub const MOST_CONNECTIONS: usize = 64;

/// The first line that the inner end of the way out writes, before anything else.
pub const READY: &str = "listening";

/// Maximum length of a DNS name.
const LONGEST_NAME: usize = 253;

/// A host and a port, as a program in the container asked for them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Destination {
    pub host: Host,
    pub port: u16,
}

/// A lowercase name without a trailing dot, or an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Host {
    Address(IpAddr),
    Name(String),
}

/// The destinations that containers of one environment may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    allowed: Vec<Pattern>,
    /// Hosts that are allowed even where they resolve to a private network.
    private: Vec<Pattern>,
}

/// A destination that the lists allow; its addresses are not known yet. Only [`Policy::judge`]
/// makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permit {
    destination: Destination,
    may_be_private: bool,
    /// Whether an entry names the port, which then need not carry HTTP or TLS.
    is_port_named: bool,
}

/// The way in which a tunnel continues after its first bytes were judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inside {
    /// The bytes are forwarded as they are.
    Bytes,
    /// The bytes are a request in plain HTTP. It is forwarded with the judged name as its host.
    Request,
}

impl Destination {
    /// Parses `host:port`, or a host alone with `usual_port`; `None` if the text is neither.
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
            // Digits only: `parse` alone would accept a leading `+`.
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
        // Resolvers take an address with a trailing dot as that address.
        if let Ok(address) = name.parse::<IpAddr>() {
            return Some(Self::Address(address.to_canonical()));
        }
        is_name(name).then(|| Self::Name(name.to_ascii_lowercase()))
    }
}

/// Returns true if `text` can be a DNS name: labels of letters, digits, `-` and `_`.
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
    /// Parses both lists; an entry that cannot be parsed allows nothing.
    pub fn of_readable<'text>(
        allowed: impl IntoIterator<Item = &'text String>,
        private: impl IntoIterator<Item = &'text String>,
    ) -> Self {
        Self {
            allowed: readable(allowed),
            private: readable(private),
        }
    }

    /// Returns the entries of both lists, for the model.
    pub fn named(&self) -> impl Iterator<Item = String> {
        self.allowed.iter().chain(&self.private).map(ToString::to_string)
    }

    /// Judges the host and port alone.
    pub fn judge(&self, destination: Destination) -> Result<Permit, Refusal> {
        let may_be_private = self.private.iter().any(|pattern| pattern.takes(&destination));
        if may_be_private || self.allowed.iter().any(|pattern| pattern.takes(&destination)) {
            let mut patterns = self.allowed.iter().chain(&self.private);
            let is_port_named = patterns.any(|pattern| pattern.takes(&destination) && pattern.names_port());
            return Ok(Permit {
                destination,
                may_be_private,
                is_port_named,
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

    /// Judges the first bytes that a program sends through a tunnel to `permit`'s destination.
    ///
    /// Networks that serve many customers from the same addresses choose the customer by the name
    /// inside TLS or by the `Host` of a request. So the lists must allow that name as well:
    /// otherwise one allowed host would give access to every host on the same addresses.
    pub fn judge_inside(&self, permit: &Permit, opening: &Opening) -> Result<Inside, Refusal> {
        let Destination { host, port } = &permit.destination;
        let refused = |reason| {
            Err(Refusal {
                destination: permit.destination.clone(),
                reason,
            })
        };
        let is_name = matches!(host, Host::Name(_));
        match opening {
            Opening::Tls { name: Some(name) } if name == host => Ok(Inside::Bytes),
            Opening::Tls { name: Some(name) } => {
                let inner = Destination {
                    host: name.clone(),
                    port: *port,
                };
                match self.judge(inner) {
                    Ok(_) => Ok(Inside::Bytes),
                    Err(Refusal { destination, .. }) => Err(Refusal {
                        destination,
                        reason: Reason::Behind { front: host.clone() },
                    }),
                }
            }
            Opening::Tls { name: None } if is_name => refused(Reason::Unnamed),
            Opening::BrokenTls | Opening::Incomplete => refused(Reason::Unreadable),
            Opening::Http if is_name => Ok(Inside::Request),
            Opening::Other if is_name && !permit.is_port_named => refused(Reason::NotTls),
            Opening::Tls { name: None } | Opening::Http | Opening::Other => Ok(Inside::Bytes),
        }
    }
}

fn readable<'text>(texts: impl IntoIterator<Item = &'text String>) -> Vec<Pattern> {
    texts.into_iter().filter_map(|text| text.parse().ok()).collect()
}

impl Permit {
    pub fn destination(&self) -> &Destination {
        &self.destination
    }

    /// Returns the refusal of an allowed destination after set-up has ended and the network was
    /// closed.
    pub fn after_set_up(&self) -> Refusal {
        Refusal {
            destination: self.destination.clone(),
            reason: Reason::AfterSetUp,
        }
    }

    /// Returns the addresses among `resolved` that may be connected to, in order; refuses if there
    /// are addresses and none may be. `own` are the addresses of the worker's machine: its
    /// listeners often lie behind a firewall that such a connection would bypass.
    pub fn choose(&self, resolved: &[IpAddr], own: &[IpAddr]) -> Result<Vec<IpAddr>, Refusal> {
        let (mut chosen, mut refused) = (Vec::new(), None);
        for address in resolved {
            let address = address.to_canonical();
            let reason = match range(address) {
                Range::Public if own.contains(&address) && !self.may_be_private => Some(Reason::OwnAddress { address }),
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
