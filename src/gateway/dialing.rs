//! Connects to permitted destinations, only ever to the addresses that were checked.
//!
//! A name is resolved once, here; its addresses are checked, and one of the checked addresses is
//! connected to. A name that is resolved again for the connection could lead elsewhere by then.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::idle::Idle;
use super::own_address::own_addresses;
use super::upstream::Proxy;
use crate::egress::{Destination, Host, Permit, Refusal};

/// Time limit for resolving a name.
const LOOKUP: Duration = Duration::from_secs(10);

/// Time limit for connecting to one address.
const CONNECT: Duration = Duration::from_secs(10);

/// Maximum number of addresses of one name that are tried.
const MOST_TRIES: usize = 4;

/// Maximum time without a byte in either direction.
const SILENCE: Duration = Duration::from_mins(5);

pub(super) type Connection = Idle<TcpStream>;

/// The reason why there is no connection.
#[derive(Debug)]
pub(super) enum NotConnected {
    Refused(Refusal),
    /// The name could not be resolved or no address answered; a sentence.
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

/// Connects to the operator's own proxy, which may have any address, private ones included.
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
                // Interactive protocols exchange small messages in turn.
                let _ = stream.set_nodelay(true);
                return Ok(Idle::new(stream, SILENCE));
            }
            Ok(Err(error)) => last = error,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(format!("{name} could not be connected to: {last}"))
}
