//! Refused destinations, the rules that refused them, and the sentences about them for model and
//! people.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::{Destination, Host};

/// A refused destination, and the reason.
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
    /// A list names the host, but not this port.
    OtherPort,
    /// The host resolves to a private address, and no exception names it.
    Private { address: IpAddr },
    /// The host resolves to a public address of the worker itself, and no exception names it.
    OwnAddress { address: IpAddr },
    /// The host resolves to an address that no container may reach.
    Forbidden { address: IpAddr, what: String },
    /// No list names the host, which was asked for inside a tunnel to the allowed host `front`.
    Behind { front: Host },
    /// The TLS connection in the tunnel names no host, so the lists cannot be applied.
    Unnamed,
    /// The tunnel begins like TLS, but the rest is not a readable `ClientHello`.
    Unreadable,
    /// The bytes for a host name are neither TLS nor HTTP, and no list entry names the port.
    NotTls,
    /// The way out is open during set-up only.
    AfterSetUp,
}

impl Refusal {
    /// Returns a sentence: what was refused, by which rule, and how to allow it.
    pub fn sentence(&self) -> String {
        let what = self.what();
        match self.line() {
            Some(line) => format!("{what}; whoever runs coding-agent can allow it in config.yaml: {line}"),
            None => format!("{what}, whatever the configuration says"),
        }
    }

    /// Returns the refusing rule in a few words.
    pub fn rule(&self) -> String {
        match &self.reason {
            Reason::NotListed => "not among the hosts that containers may reach".to_owned(),
            Reason::OtherPort => "not a port of this host that containers may reach".to_owned(),
            Reason::Private { address } => format!("leads into a private network ({address})"),
            Reason::OwnAddress { address } => format!("leads to the worker's own machine ({address})"),
            Reason::Forbidden { address, what } => format!("never reached from a container ({address}, {what})"),
            Reason::Behind { front } => format!("asked for inside of a connection to {front}, and not allowed itself"),
            Reason::Unnamed => "a TLS connection that names no host".to_owned(),
            Reason::Unreadable => "a TLS connection whose beginning cannot be read".to_owned(),
            Reason::NotTls => "neither TLS nor HTTP on a port that is for these".to_owned(),
            Reason::AfterSetUp => "reached during set-up only".to_owned(),
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
            Reason::OwnAddress { address } if *host == Host::Address(*address) => {
                format!("{address} is an address of the worker's own machine, which containers do not reach")
            }
            Reason::OwnAddress { address } => {
                format!("{host} leads to {address}, the worker's own machine, which containers do not reach")
            }
            Reason::Forbidden { address, what } if *host == Host::Address(*address) => {
                format!("{address} ({what}) is never reached from a container")
            }
            Reason::Forbidden { address, what } => {
                format!("{host} leads to {address} ({what}), which is never reached from a container")
            }
            Reason::Behind { front } => format!(
                "{host} was asked for inside of a TLS connection to {front}, and is not among the hosts that containers may reach"
            ),
            Reason::Unnamed => {
                format!("a TLS connection to {host} names no host (SNI), so it cannot be told whom it is for")
            }
            Reason::Unreadable => {
                format!("a TLS connection to {host} does not begin with a ClientHello that can be read")
            }
            Reason::NotTls => format!("what was sent to {host} on port {port} is neither TLS nor HTTP"),
            Reason::AfterSetUp => format!("{host} may be reached by set-up commands only, and set-up has ended"),
        }
    }

    /// Returns the line of configuration that would allow the destination, if there is one.
    pub fn line(&self) -> Option<String> {
        let key = match self.reason {
            Reason::NotListed | Reason::OtherPort | Reason::Behind { .. } | Reason::NotTls => "allow",
            Reason::Private { .. } | Reason::OwnAddress { .. } => "allow_private",
            Reason::AfterSetUp => return Some("command_executor.network.during: always".to_owned()),
            Reason::Forbidden { .. } | Reason::Unnamed | Reason::Unreadable => return None,
        };
        let Destination { host, port } = &self.destination;
        let is_usual = matches!(port, 80 | 443) && self.reason != Reason::NotTls;
        let entry = match host {
            Host::Name(name) if is_usual => name.clone(),
            Host::Name(_) | Host::Address(_) => format!("\"{}\"", self.destination),
        };
        Some(format!("command_executor.network.{key}: [{entry}]"))
    }
}
