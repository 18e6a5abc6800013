//! From a permit to a connection: what was checked is what is connected to.
//!
//! A name is looked up once, here; what it leads to is checked, and one of the checked addresses is
//! connected to. A name that is looked up again for the connection could lead elsewhere by then.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::idle::Idle;
use super::own_address::own_addresses;
use super::upstream::Proxy;
use crate::egress::{Destination, Host, Permit, Refusal};

/// Longest time for a name to be looked up.
const LOOKUP: Duration = Duration::from_secs(10);

/// Longest time for one address to answer.
const CONNECT: Duration = Duration::from_secs(10);

/// Most addresses of one name that are tried.
const MOST_TRIES: usize = 4;

/// Longest silence on a connection.
const SILENCE: Duration = Duration::from_mins(5);

pub(super) type Connection = Idle<TcpStream>;

/// Why there is no connection.
#[derive(Debug)]
pub(super) enum NotConnected {
    Refused(Refusal),
    /// The outside did not do its part; a sentence.
    Failed(String),
}

/// Connects to the destination itself.
pub(super) async fn directly(permit: &Permit) -> Result<Connection, NotConnected> {
    let Destination { host, port } = permit.destination();
    let resolved = match host {
        Host::Address(address) => vec![*address],
        Host::Name(name) => look_up(name, *port).await.map_err(NotConnected::Failed)?,
    };
    let chosen = permit
        .choose(&resolved, &own_addresses())
        .map_err(NotConnected::Refused)?;
    let addresses = chosen.into_iter().map(|address| SocketAddr::new(address, *port));
    connect(&host.to_string(), addresses)
        .await
        .map_err(NotConnected::Failed)
}

/// Connects to the proxy on the way, which the operator named and which may lie anywhere.
pub(super) async fn to_proxy(proxy: &Proxy) -> Result<Connection, NotConnected> {
    let resolved = look_up(&proxy.host, proxy.port).await.map_err(NotConnected::Failed)?;
    let addresses = resolved.into_iter().map(|address| SocketAddr::new(address, proxy.port));
    let name = format!("the worker's proxy {}", proxy.host);
    connect(&name, addresses).await.map_err(NotConnected::Failed)
}

async fn look_up(name: &str, port: u16) -> Result<Vec<IpAddr>, String> {
    match timeout(LOOKUP, lookup_host((name, port))).await {
        Ok(Ok(found)) => Ok(found.map(|address| address.ip()).collect()),
        Ok(Err(error)) => Err(format!("{name} could not be looked up: {error}")),
        Err(_) => Err(format!(
            "{name} could not be looked up: no answer within {} s",
            LOOKUP.as_secs()
        )),
    }
}

async fn connect(name: &str, addresses: impl Iterator<Item = SocketAddr>) -> Result<Connection, String> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in addresses.take(MOST_TRIES) {
        match timeout(CONNECT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                // Both sides say small things in turn.
                let _ = stream.set_nodelay(true);
                return Ok(Idle::new(stream, SILENCE));
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(format!("{name} could not be connected to: {last}"))
}
