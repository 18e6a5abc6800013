//! A proxy that cuts streams of containers, as proxies, load balancers and restarts do: after any
//! number of bytes, in the middle of a frame, in both directions at once. It stands before the
//! Docker engine's own socket; the processes in the container live on.

use std::collections::{HashSet, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::world::{PATIENCE, World};

/// Where the engine itself listens.
const ENGINE: &str = "/var/run/docker.sock";

/// The socket of one world. It ends when dropped.
pub struct CuttingProxy {
    path: PathBuf,
    shared: Arc<Shared>,
    _serving: AbortOnDropHandle<()>,
}

#[derive(Clone, Copy)]
enum Limit {
    /// After so many bytes of both directions.
    Bytes(usize),
    Time(Duration),
}

struct Shared {
    /// When the streams of the executor are cut, one after the other.
    limits: Mutex<VecDeque<Limit>>,
    /// The engine's ids of the processes that lead to the executor.
    ways: Mutex<HashSet<String>>,
    /// The stream of the executor that was opened last.
    latest: Mutex<CancellationToken>,
    /// How many streams were cut.
    cuts: watch::Sender<usize>,
}

/// A connection of the client.
#[derive(Default)]
struct Line {
    /// Bytes until it is cut, if it is a stream of the executor that will be.
    left: Mutex<Option<usize>>,
    cut: CancellationToken,
    /// The next answer names a process that leads to the executor.
    awaits_name: Mutex<bool>,
}

impl CuttingProxy {
    /// Puts a socket of a world's own before the engine.
    pub fn before(world: &mut World) -> Self {
        let path = world.folder().join("docker.sock");
        world.sets("DOCKER_HOST", &format!("unix://{}", path.display()));
        let listener = UnixListener::bind(&path).unwrap();
        let shared = Arc::new(Shared {
            limits: Mutex::default(),
            ways: Mutex::default(),
            latest: Mutex::default(),
            cuts: watch::Sender::new(0),
        });
        let serving = serve(listener, Arc::clone(&shared));
        Self {
            path,
            shared,
            _serving: AbortOnDropHandle::new(tokio::spawn(serving)),
        }
    }

    /// Cuts each of the next streams of the executor after so many bytes of both directions.
    pub fn cuts_after(&self, limits: impl IntoIterator<Item = usize>) {
        let limits = limits.into_iter().map(Limit::Bytes);
        self.shared.limits.lock().unwrap().extend(limits);
    }

    /// Cuts each of the next streams of the executor after so many milliseconds.
    pub fn cuts_within(&self, limits: impl IntoIterator<Item = u64>) {
        let limits = limits
            .into_iter()
            .map(|limit| Limit::Time(Duration::from_millis(limit)));
        self.shared.limits.lock().unwrap().extend(limits);
    }

    /// Cuts the stream of the executor that was opened last.
    pub fn cuts_now(&self) {
        self.shared.latest.lock().unwrap().cancel();
    }

    /// Returns how many streams were cut.
    pub fn cuts(&self) -> usize {
        *self.shared.cuts.borrow()
    }

    /// Waits until so many streams were cut.
    pub async fn until_cut(&self, count: usize) {
        let mut cuts = self.shared.cuts.subscribe();
        let cut = tokio::time::timeout(PATIENCE, cuts.wait_for(|cuts| *cuts >= count));
        cut.await.expect("the streams are cut").unwrap();
    }
}

impl Drop for CuttingProxy {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn serve(listener: UnixListener, shared: Arc<Shared>) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(connect(client, Arc::clone(&shared)));
    }
}

async fn connect(client: UnixStream, shared: Arc<Shared>) -> io::Result<()> {
    let engine = UnixStream::connect(ENGINE).await?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_engine, mut to_engine) = engine.into_split();
    let line = Line::default();
    let asking = async {
        let mut part = vec![0; 64 * 1024];
        while let length @ 1.. = from_client.read(&mut part).await? {
            look_at_request(&part[..length], &line, &shared);
            to_engine.write_all(line.passes(&part[..length])).await?;
        }
        to_engine.shutdown().await
    };
    let answering = async {
        let mut part = vec![0; 64 * 1024];
        while let length @ 1.. = from_engine.read(&mut part).await? {
            look_at_answer(&part[..length], &line, &shared);
            to_client.write_all(line.passes(&part[..length])).await?;
        }
        to_client.shutdown().await
    };
    tokio::select! {
        both = async { tokio::try_join!(asking, answering) } => both.map(|_| ()),
        () = line.cut.cancelled() => {
            shared.cuts.send_modify(|cuts| *cuts += 1);
            Ok(())
        }
    }
}

impl Line {
    /// Returns what passes of a part before the line is cut.
    fn passes<'a>(&self, part: &'a [u8]) -> &'a [u8] {
        let mut left = self.left.lock().unwrap();
        let Some(left) = left.as_mut() else {
            return part;
        };
        let passed = part.len().min(*left);
        *left -= passed;
        if *left == 0 {
            self.cut.cancel();
        }
        &part[..passed]
    }

    fn is_to_executor(&self, shared: &Shared) {
        match shared.limits.lock().unwrap().pop_front() {
            Some(Limit::Bytes(bytes)) => *self.left.lock().unwrap() = Some(bytes),
            Some(Limit::Time(time)) => {
                let cut = self.cut.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(time).await;
                    cut.cancel();
                });
            }
            None => {}
        }
        *shared.latest.lock().unwrap() = self.cut.clone();
    }
}

/// Looks at what a client sends: the head of a request is one part, and so is a short request.
fn look_at_request(part: &[u8], line: &Line, shared: &Shared) {
    if !part.starts_with(b"POST ") {
        return;
    }
    let text = String::from_utf8_lossy(part);
    let target = text.split(' ').nth(1).unwrap_or_default();
    let path = target.split('?').next().unwrap_or_default();
    let mut places = path.rsplit('/');
    match (places.next(), places.next()) {
        (Some("attach"), _) => line.is_to_executor(shared),
        (Some("start"), Some(process)) if shared.ways.lock().unwrap().contains(process) => line.is_to_executor(shared),
        (Some("exec"), _) => {
            let leads = |word: &str| text.contains(&format!(r#""/usr/local/bin/coding-agent-executor","{word}""#));
            // The second where a container was taken over: its own executor was ended.
            *line.awaits_name.lock().unwrap() = leads("attach") || leads("multiplex");
        }
        _ => {}
    }
}

fn look_at_answer(part: &[u8], line: &Line, shared: &Shared) {
    let mut awaits_name = line.awaits_name.lock().unwrap();
    let text = String::from_utf8_lossy(part);
    let name = text.split_once(r#""Id":""#).and_then(|(_, rest)| rest.split_once('"'));
    if let Some((process, _)) = name.filter(|_| *awaits_name) {
        shared.ways.lock().unwrap().insert(process.to_owned());
        *awaits_name = false;
    }
}
