//! Attempts to reach targets from here, since what a network allows is tried and not assumed.
//!
//! A cluster accepts a network policy whether anything keeps it or not. So a container tries what
//! it must not reach, and says what came of it. Blocks and uses no runtime: it is a small process
//! of its own.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Time limit of one attempt. A policy that drops packets takes all of it.
const LIMIT: Duration = Duration::from_secs(2);

/// Most targets of one call.
const MOST: usize = 32;

/// Where a container's name servers are listed.
const RESOLVER: &str = "/etc/resolv.conf";

/// A question for the address of `kubernetes.default.svc.cluster.local`, as DNS has it.
const QUESTION: &[u8] = b"\x2a\x2a\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x0akubernetes\x07default\x03svc\x07cluster\x05local\x00\x00\x01\x00\x01";

/// The result of one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// The target, as it was named.
    pub target: String,
    pub is_reached: bool,
    /// Why not, or by which address.
    pub detail: String,
}

/// Tries the targets and prints a JSON list of [`Attempt`]s. A target is `tcp:ADDRESS:PORT`,
/// `names` for the name servers that this container was given, or `server` for the API server of
/// its cluster, which is told to every container in two variables.
pub fn print(
    targets: impl Iterator<Item = String>,
    server: Option<&(String, String)>,
    mut stdout: impl Write,
) -> io::Result<()> {
    let attempts: Vec<_> = targets
        .take(MOST)
        .map(|target| {
            let server = server.cloned();
            thread::spawn(move || try_one(target, server))
        })
        .collect();
    let attempts: Vec<Attempt> = attempts.into_iter().filter_map(|attempt| attempt.join().ok()).collect();
    serde_json::to_writer(&mut stdout, &attempts)?;
    stdout.flush()
}

/// Listens on any port, prints the port, and accepts connections until `stdin` ends.
pub fn listen(mut stdin: impl Read, mut stdout: impl Write) -> io::Result<()> {
    let listener =
        TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))?;
    writeln!(stdout, "{}", listener.local_addr()?.port())?;
    stdout.flush()?;
    thread::spawn(move || {
        for connection in listener.incoming() {
            drop(connection);
        }
    });
    io::copy(&mut stdin, &mut io::sink())?;
    Ok(())
}

fn try_one(target: String, server: Option<(String, String)>) -> Attempt {
    let tried = match target.strip_prefix("tcp:").map(str::parse::<SocketAddr>) {
        Some(Ok(address)) => connect(address),
        Some(Err(error)) => Err(error.to_string()),
        None if target == "server" => match server {
            Some((host, port)) => connect_to_server(&host, &port),
            None => Err("this container was told of none".to_owned()),
        },
        None if target == "names" => ask_names(&std::fs::read_to_string(RESOLVER).unwrap_or_default()),
        None => Err("nobody knows how to try this".to_owned()),
    };
    Attempt {
        target,
        is_reached: tried.is_ok(),
        detail: tried.unwrap_or_else(|reason| reason),
    }
}

fn connect(address: SocketAddr) -> Result<String, String> {
    match TcpStream::connect_timeout(&address, LIMIT) {
        Ok(_) => Ok(address.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

fn connect_to_server(host: &str, port: &str) -> Result<String, String> {
    let host: IpAddr = host.parse().map_err(|_| format!("{host} is no address"))?;
    let port: u16 = port.parse().map_err(|_| format!("{port} is no port"))?;
    connect(SocketAddr::new(host, port))
}

/// Asks the name servers of a resolver's configuration, over UDP and TCP.
fn ask_names(configuration: &str) -> Result<String, String> {
    let servers: Vec<IpAddr> = configuration
        .lines()
        .filter_map(|line| line.trim().strip_prefix("nameserver")?.trim().parse().ok())
        .take(3)
        .collect();
    let mut why_not = "there is no name server".to_owned();
    for server in servers {
        let address = SocketAddr::new(server, 53);
        // At the same time: what is dropped takes the whole limit.
        let asking = thread::spawn(move || ask(address));
        let connected = connect(address);
        let asked = asking
            .join()
            .unwrap_or_else(|_| Err("it could not be asked".to_owned()));
        match asked.or(connected) {
            Ok(reached) => return Ok(reached),
            Err(reason) => why_not = format!("{address}: {reason}"),
        }
    }
    Err(why_not)
}

fn ask(server: SocketAddr) -> Result<String, String> {
    let here: SocketAddr = if server.is_ipv4() {
        (Ipv4Addr::UNSPECIFIED, 0).into()
    } else {
        (Ipv6Addr::UNSPECIFIED, 0).into()
    };
    let asked = || {
        let socket = UdpSocket::bind(here)?;
        socket.set_read_timeout(Some(LIMIT))?;
        socket.connect(server)?;
        socket.send(QUESTION)?;
        socket.recv(&mut [0; 512])
    };
    match asked() {
        Ok(_) => Ok(server.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    fn tried(targets: &[String]) -> Vec<Attempt> {
        let mut printed = Vec::new();
        print(targets.iter().cloned(), None, &mut printed).unwrap();
        serde_json::from_slice(&printed).unwrap()
    }

    #[test]
    fn what_is_reached_is_told_from_what_is_not() {
        let open = TcpListener::bind("127.0.0.1:0").unwrap();
        let attempts = tried(&[
            format!("tcp:{}", open.local_addr().unwrap()),
            "tcp:127.0.0.1:1".to_owned(),
            "tcp:somewhere".to_owned(),
        ]);
        let reached: Vec<bool> = attempts.iter().map(|attempt| attempt.is_reached).collect();
        assert_eq!(reached, [true, false, false], "{attempts:?}");
    }

    #[test]
    fn a_listener_is_reached_until_its_input_ends() {
        let (stdin, said) = (
            std::os::unix::net::UnixStream::pair().unwrap(),
            std::os::unix::net::UnixStream::pair().unwrap(),
        );
        let (inner, outer) = stdin;
        let (heard, speaker) = said;
        let listening = thread::spawn(move || listen(inner, speaker));
        let mut line = String::new();
        BufReader::new(heard).read_line(&mut line).unwrap();
        let port: u16 = line.trim().parse().unwrap();
        assert!(tried(&[format!("tcp:127.0.0.1:{port}")])[0].is_reached);
        drop(outer);
        listening.join().unwrap().unwrap();
    }

    #[test]
    fn a_name_server_is_asked_over_both_ways() {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let answering = thread::spawn(move || {
            let mut question = [0; 512];
            let (length, from) = server.recv_from(&mut question).unwrap();
            assert_eq!(&question[..length], QUESTION);
            server.send_to(b"answer", from).unwrap();
        });
        assert_eq!(ask(address), Ok(address.to_string()));
        answering.join().unwrap();
        assert_eq!(
            ask_names("search cluster.local\n"),
            Err("there is no name server".to_owned())
        );
    }
}
