//! The ways from a machine of the cluster to the world: servers on the same ports of its own
//! loopback interface. Each way can be cut, so that nothing passes and nobody is told, and mended
//! again.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

/// The target of a port of the machine.
#[derive(Debug, Clone)]
pub enum Target {
    /// The same port of this machine.
    Server,
    /// The socket of the database.
    Database(PathBuf),
}

/// The time after which the database misses a machine that answers nothing: its packets stay
/// unanswered for as long as the program's connections ask it to wait (`tcp_keepalives_*`). The
/// socket at this end answers for the machine, so that has to be played.
const MISSED_AFTER: Duration = Duration::from_secs(70);

/// The state of a way between a machine and a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Open,
    /// Nothing passes; what is on its way waits.
    Cut,
}

/// The ways of one machine; they end when this is dropped.
pub struct Links {
    database: watch::Sender<Way>,
    servers: watch::Sender<Way>,
    /// Counts up whenever all connections of the machine are to end.
    generation: watch::Sender<u64>,
    _serving: Vec<AbortOnDropHandle<()>>,
}

/// The requests by which a machine asked servers to write: the time and the first line of each.
#[derive(Debug, Clone, Default)]
pub struct Written(Arc<Mutex<Vec<(Instant, String)>>>);

impl Written {
    /// Returns the requests since this moment whose path holds `part`.
    pub fn since(&self, moment: Instant, part: &str) -> Vec<(Instant, String)> {
        let written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let later = written.iter().filter(|(at, line)| *at > moment && line.contains(part));
        later.cloned().collect()
    }

    /// Notes a request down whose first bytes these are, if it writes.
    fn note(&self, piece: &[u8]) {
        let line = piece.split(|byte| *byte == b'\r').next().unwrap_or_default();
        let line = String::from_utf8_lossy(&line[..line.len().min(300)]);
        if ["POST ", "PUT ", "PATCH ", "DELETE "]
            .iter()
            .any(|method| line.starts_with(method))
        {
            let mut written = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            written.push((Instant::now(), line.into_owned()));
        }
    }
}

impl Links {
    /// Listens on these ports in the network namespace that the file stands for.
    pub async fn listen(namespace: File, ports: Vec<(u16, Target)>, written: &Written) -> anyhow::Result<Self> {
        let numbers: Vec<u16> = ports.iter().map(|(port, _)| *port).collect();
        // Sockets stay in the namespace in which they were made; the thread that made them ends.
        let listeners = tokio::task::spawn_blocking(move || {
            let entering = std::thread::spawn(move || listeners(&namespace, &numbers));
            entering.join().unwrap_or_else(|_| anyhow::bail!("the thread failed"))
        })
        .await??;
        let (database, servers) = (watch::Sender::new(Way::Open), watch::Sender::new(Way::Open));
        let generation = watch::Sender::new(0);
        let mut serving = Vec::new();
        for (listener, (port, target)) in listeners.into_iter().zip(ports) {
            let way = match &target {
                Target::Server => servers.subscribe(),
                Target::Database(_) => database.subscribe(),
            };
            let listener = tokio::net::TcpListener::from_std(listener)?;
            let connection = Connection {
                port,
                target,
                way,
                generation: generation.subscribe(),
                written: written.clone(),
            };
            serving.push(AbortOnDropHandle::new(tokio::spawn(serve(listener, connection))));
        }
        Ok(Self {
            database,
            servers,
            generation,
            _serving: serving,
        })
    }

    /// Cuts the way to the database; `and_all` cuts those to forges and model as well.
    pub fn cut(&self, and_all: bool) {
        self.database.send_replace(Way::Cut);
        if and_all {
            self.servers.send_replace(Way::Cut);
        }
    }

    /// Mends all ways. What was on its way arrives now, unless `is_reset` ends the connections.
    pub fn mend(&self, is_reset: bool) {
        if is_reset {
            self.generation.send_modify(|count| *count += 1);
        }
        self.database.send_replace(Way::Open);
        self.servers.send_replace(Way::Open);
    }
}

fn listeners(namespace: &File, ports: &[u16]) -> anyhow::Result<Vec<TcpListener>> {
    use std::os::fd::AsFd as _;
    move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
        .context("the network namespace of a machine cannot be entered")?;
    let bound = ports.iter().map(|port| {
        let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, *port)))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    bound.collect()
}

/// The context that every connection of a port gets.
#[derive(Clone)]
struct Connection {
    port: u16,
    target: Target,
    way: watch::Receiver<Way>,
    generation: watch::Receiver<u64>,
    written: Written,
}

async fn serve(listener: tokio::net::TcpListener, connection: Connection) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(connection.clone().carry(client));
    }
}

impl Connection {
    async fn carry(mut self, client: TcpStream) {
        let born = *self.generation.borrow();
        let mut generation = self.generation.clone();
        let mut way = self.way.clone();
        let carrying = async {
            if self.way.wait_for(|way| *way == Way::Open).await.is_err() {
                return;
            }
            match &self.target {
                Target::Server => {
                    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
                    if let Ok(server) = TcpStream::connect(address).await {
                        self.both_ways(client, server).await;
                    }
                }
                Target::Database(path) => {
                    if let Ok(server) = UnixStream::connect(path).await {
                        self.both_ways(client, server).await;
                    }
                }
            }
        };
        let missed = async {
            loop {
                if way.wait_for(|way| *way == Way::Cut).await.is_err() {
                    return;
                }
                let mended = way.wait_for(|way| *way == Way::Open);
                if timeout(MISSED_AFTER, mended).await.is_err() {
                    return;
                }
            }
        };
        tokio::select! {
            () = carrying => {}
            () = missed => {}
            _ = generation.wait_for(|count| *count != born) => {}
        }
    }

    async fn both_ways(&self, client: TcpStream, server: impl AsyncRead + AsyncWrite) {
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = tokio::io::split(server);
        let is_watched = matches!(self.target, Target::Server);
        tokio::join!(
            self.one_way(from_client, to_server, is_watched),
            self.one_way(from_server, to_client, false)
        );
    }

    /// Hands on what comes, piece by piece, and waits while the way is cut. An end is news too: it
    /// does not pass either.
    async fn one_way(&self, mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, is_watched: bool) {
        let mut way = self.way.clone();
        let mut piece = vec![0; 16 * 1024];
        loop {
            let read = from.read(&mut piece).await.unwrap_or(0);
            if is_watched {
                self.written.note(&piece[..read]);
            }
            if way.wait_for(|way| *way == Way::Open).await.is_err() {
                return;
            }
            if read == 0 {
                let _ = to.shutdown().await;
                return;
            }
            if to.write_all(&piece[..read]).await.is_err() {
                return;
            }
        }
    }
}
