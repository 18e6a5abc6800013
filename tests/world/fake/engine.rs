//! Docker engines of other versions, and on other machines: the real one behind a door of its own,
//! reached over TCP (`DOCKER_HOST`).
//!
//! As an engine does, it refuses a request whose path asks for an API that it does not have, or a
//! setting that its machine has no means for, and its answers lack what its version does not tell
//! any more.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::task::JoinHandle;

use super::proxy::read_head;

/// An engine's answer about its own version.
#[derive(Clone, Copy)]
pub struct Version {
    pub engine: &'static str,
    /// The oldest and the newest version of the API: the number behind `1.`.
    pub api: (u32, u32),
}

/// The machine of an engine, where it differs from this one.
#[derive(Clone, Default)]
pub struct Machine {
    /// Members of `GET /info` that the engine answers differently.
    pub info: Value,
    /// The architecture of each image, where it is not that of this machine.
    pub images: Option<&'static str>,
    /// Members of `HostConfig` that the engine refuses, each with the words of the refusal.
    pub refuses: Vec<(&'static str, &'static str)>,
    /// Whether the engine attaches to no container, only to what is started in one.
    pub attaches_to_none: bool,
    /// Whether the engine is stopped whenever it has begun to pull an image.
    pub breaks_off_pulls: bool,
    /// Whether a proxy before the engine's socket takes no question for a registry, as `HAProxy` does
    /// under the rules of docker-socket-proxy.
    pub hides_registries: bool,
    /// How much older the engine says that each container is.
    pub ages_by: Duration,
}

/// The usual version, for tests that are about something else.
pub const USUAL: Version = Version {
    engine: "28.5.2",
    api: (24, 51),
};

/// The path of the list of containers.
const LIST: &str = "/containers/json";

/// A running engine. It ends when dropped.
pub struct Engine {
    address: String,
    seen: Arc<Seen>,
    serving: JoinHandle<()>,
}

#[derive(Default)]
struct Seen {
    asked: Mutex<Vec<String>>,
    /// Whether removals of containers fail.
    fails_removals: AtomicBool,
    failed_removals: AtomicUsize,
}

/// An engine's words where a process on its machine still looks into a container's files.
const BUSY: &str = "driver \"overlay2\" failed to remove root filesystem: unlinkat /var/lib/docker/overlay2/merged: \
                    device or resource busy";

impl Engine {
    pub async fn start(version: Version) -> Self {
        Self::on(Machine::default(), version).await
    }

    pub async fn on(machine: Machine, version: Version) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = format!("tcp://{}", listener.local_addr().unwrap());
        let seen: Arc<Seen> = Arc::default();
        let (noted, machine) = (Arc::clone(&seen), Arc::new(machine));
        let serving = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // A client that breaks off is its own business.
                tokio::spawn(serve(client, version, Arc::clone(&machine), Arc::clone(&noted)));
            }
        });
        Self { address, seen, serving }
    }

    /// Returns the value for `DOCKER_HOST`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the requests so far, in order: method and path, without the version and the query.
    pub fn asked(&self) -> Vec<String> {
        self.seen.asked.lock().unwrap().clone()
    }

    /// Has removals of containers fail from now on, or not any more. One that fails leaves its
    /// container as it is.
    pub fn fails_removals(&self, is_so: bool) {
        self.seen.fails_removals.store(is_so, Ordering::SeqCst);
    }

    pub fn failed_removals(&self) -> usize {
        self.seen.failed_removals.load(Ordering::SeqCst)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(mut client: TcpStream, version: Version, machine: Arc<Machine>, seen: Arc<Seen>) -> io::Result<()> {
    let (head, mut begun) = read_head(&mut client).await?;
    let (first, headers) = head.split_once("\r\n").unwrap_or((&head, ""));
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let target = match without_version(target, version) {
        Ok(target) => target,
        Err(refusal) => return answer(&mut client, "400 Bad Request", &json!({ "message": refusal })).await,
    };
    let path = target.split('?').next().unwrap_or_default();
    seen.asked.lock().unwrap().push(format!("{method} {path}"));

    // One that never ran is not there to be removed.
    let container = path.strip_prefix("/containers/").filter(|_| method == "DELETE");
    let has_run = |container: &str| {
        let start = format!("POST /containers/{container}/start");
        seen.asked.lock().unwrap().contains(&start)
    };
    if container.is_some_and(has_run) && seen.fails_removals.load(Ordering::SeqCst) {
        seen.failed_removals.fetch_add(1, Ordering::SeqCst);
        return answer(&mut client, "500 Internal Server Error", &json!({ "message": BUSY })).await;
    }

    if machine.hides_registries && path.starts_with("/distribution/") {
        let body = "<html><body><h1>403 Forbidden</h1>\nRequest forbidden by administrative rules.\n</body></html>\n";
        let head = "HTTP/1.1 403 Forbidden\r\ncache-control: no-cache\r\ncontent-type: text/html\r\nconnection: close";
        let answer = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        return client.write_all(answer.as_bytes()).await;
    }
    if machine.breaks_off_pulls && method == "POST" && path == "/images/create" {
        // The end of the chunks never comes.
        let report = "{\"status\":\"Pulling from library/image\",\"id\":\"latest\"}\r\n";
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked";
        let begun = format!("{head}\r\n\r\n{:x}\r\n{report}\r\n", report.len());
        return client.write_all(begun.as_bytes()).await;
    }
    if method == "POST" && path == "/containers/create" {
        let length = content_length(headers);
        let mut rest = vec![0; length.saturating_sub(begun.len())];
        client.read_exact(&mut rest).await?;
        begun.extend(rest);
        if let Some(words) = refused(&machine, &begun) {
            return answer(&mut client, "400 Bad Request", &json!({ "message": words })).await;
        }
    }
    if machine.attaches_to_none && path.starts_with("/containers/") && path.ends_with("/attach") {
        return answer(&mut client, "404 Not Found", &json!({ "message": "page not found" })).await;
    }
    let mut engine = UnixStream::connect(socket()).await?;
    if method == "GET" && is_told_differently(path, &machine) {
        // The older protocol has no chunks: the body is all that comes.
        let request = format!("GET {target} HTTP/1.0\r\nhost: docker\r\n\r\n");
        engine.write_all(request.as_bytes()).await?;
        let mut told = Vec::new();
        engine.read_to_end(&mut told).await?;
        let told = String::from_utf8_lossy(&told).into_owned();
        let (head, body) = told.split_once("\r\n\r\n").unwrap_or((&told, ""));
        let status = head.lines().next().unwrap_or_default().split_once(' ');
        let body = serde_json::from_str(body).unwrap_or_default();
        let (_, status) = status.unwrap_or_default();
        return answer(&mut client, status, &told_by(version, &machine, path, body)).await;
    }
    let is_upgrade = headers.to_ascii_lowercase().contains("upgrade: tcp");
    let is_kept = |line: &&str| {
        let is_connection = line.to_ascii_lowercase().starts_with("connection:");
        !line.is_empty() && (is_upgrade || !is_connection)
    };
    let mut kept: Vec<_> = headers.lines().filter(is_kept).collect();
    if !is_upgrade {
        // One request for each connection: each is looked at.
        kept.push("connection: close");
    }
    let passed_on = format!("{method} {target} HTTP/1.1\r\n{}\r\n\r\n", kept.join("\r\n"));
    engine.write_all(passed_on.as_bytes()).await?;
    engine.write_all(&begun).await?;
    tokio::io::copy_bidirectional(&mut client, &mut engine).await?;
    Ok(())
}

/// Takes the version off a path, as the real engine may have another one; `Err` is what an engine
/// says that does not have it.
fn without_version(target: &str, version: Version) -> Result<String, String> {
    let Some((asked, rest)) = target.strip_prefix("/v1.").and_then(|rest| rest.split_once('/')) else {
        return Ok(target.to_owned());
    };
    let number: u32 = asked.parse().map_err(|_| format!("{asked} is no version"))?;
    let (oldest, newest) = version.api;
    if number > newest {
        return Err(format!(
            "client version 1.{number} is too new. Maximum supported API version is 1.{newest}"
        ));
    }
    if number < oldest {
        return Err(format!(
            "client version 1.{number} is too old. Minimum supported API version is 1.{oldest}"
        ));
    }
    Ok(format!("/{rest}"))
}

fn is_told_differently(path: &str, machine: &Machine) -> bool {
    let is_list_of_old = path == LIST && !machine.ages_by.is_zero();
    is_list_of_old || path == "/version" || path == "/info" || (path.starts_with("/images/") && path.ends_with("/json"))
}

fn told_by(version: Version, machine: &Machine, path: &str, mut body: Value) -> Value {
    let (oldest, newest) = version.api;
    if path == "/version" {
        body["Version"] = json!(version.engine);
        body["ApiVersion"] = json!(format!("1.{newest}"));
        body["MinAPIVersion"] = json!(format!("1.{oldest}"));
    } else if path == "/info" {
        for (name, value) in machine.info.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
    } else if path == LIST {
        for container in body.as_array_mut().into_iter().flatten() {
            let created = container["Created"].as_u64().unwrap_or_default();
            container["Created"] = json!(created.saturating_sub(machine.ages_by.as_secs()));
        }
    } else if let Some(image) = body.as_object_mut() {
        if let Some(architecture) = machine.images {
            image.insert("Architecture".to_owned(), json!(architecture));
        }
        for (gone_since, name) in [(44, "VirtualSize"), (45, "Container"), (45, "ContainerConfig")] {
            if newest >= gone_since {
                image.remove(name);
            }
        }
    }
    body
}

async fn answer(client: &mut TcpStream, status: &str, body: &Value) -> io::Result<()> {
    let body = body.to_string();
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    );
    client.write_all(answer.as_bytes()).await
}

fn content_length(headers: &str) -> usize {
    let length = headers.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_it = name.eq_ignore_ascii_case("content-length");
        value.trim().parse().ok().filter(|_| is_it)
    });
    length.unwrap_or_default()
}

/// Returns what the engine says to a container that it has no means for.
fn refused(machine: &Machine, body: &[u8]) -> Option<&'static str> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let asks_for = |setting: &str| {
        let value = &body["HostConfig"][setting];
        ![json!(null), json!(0), json!(false)].contains(value)
    };
    let refused = machine.refuses.iter().find(|(setting, _)| asks_for(setting));
    refused.map(|(_, words)| *words)
}

/// Returns the socket of the engine that everybody else speaks to.
fn socket() -> String {
    let host = std::env::var("DOCKER_HOST").unwrap_or_default();
    match host.strip_prefix("unix://") {
        Some(path) => path.to_owned(),
        None => "/var/run/docker.sock".to_owned(),
    }
}
