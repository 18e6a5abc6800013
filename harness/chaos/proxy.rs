//! A unix socket before the Docker engine's own: it can cut all connections and refuse new ones, as
//! an engine does that is restarted with live-restore. The engine itself, which others use as well,
//! notices nothing.

use std::path::{Path, PathBuf};

use anyhow::Context;
use tokio::io::copy_bidirectional;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

pub struct Proxy {
    path: PathBuf,
    is_up: watch::Sender<bool>,
    _serving: AbortOnDropHandle<()>,
}

impl Proxy {
    pub fn start(path: PathBuf) -> anyhow::Result<Self> {
        let engine = engine()?;
        let (is_up, state) = watch::channel(true);
        let first = UnixListener::bind(&path)?;
        let serving = serve(path.clone(), first, engine, state);
        Ok(Self {
            path,
            is_up,
            _serving: AbortOnDropHandle::new(tokio::spawn(serving)),
        })
    }

    /// Returns what stands in `DOCKER_HOST`.
    pub fn address(&self) -> String {
        format!("unix://{}", self.path.display())
    }

    pub fn goes_away(&self) {
        self.is_up.send_replace(false);
    }

    pub fn comes_back(&self) {
        self.is_up.send_replace(true);
    }
}

/// The engine that everybody else speaks to.
fn engine() -> anyhow::Result<PathBuf> {
    let host = std::env::var("DOCKER_HOST").unwrap_or_default();
    if host.is_empty() {
        return Ok(PathBuf::from("/var/run/docker.sock"));
    }
    let path = host.strip_prefix("unix://");
    Ok(path
        .context("DOCKER_HOST is no unix socket, and only before one can a proxy be put")?
        .into())
}

async fn serve(path: PathBuf, first: UnixListener, engine: PathBuf, mut state: watch::Receiver<bool>) {
    let mut listener = Some(first);
    loop {
        let Some(open) = listener.take() else {
            // The socket's file stays, and connecting to it is refused.
            if state.wait_for(|is_up| *is_up).await.is_err() {
                return;
            }
            listener = reopened(&path);
            continue;
        };
        let shared = state.clone();
        tokio::select! {
            accepted = open.accept() => {
                if let Ok((client, _)) = accepted {
                    tokio::spawn(connect(client, engine.clone(), shared));
                }
                listener = Some(open);
            }
            gone = state.wait_for(|is_up| !*is_up) => if gone.is_err() { return },
        }
    }
}

fn reopened(path: &Path) -> Option<UnixListener> {
    let _ = std::fs::remove_file(path);
    UnixListener::bind(path).ok()
}

async fn connect(mut client: UnixStream, engine: PathBuf, mut state: watch::Receiver<bool>) {
    let Ok(mut server) = UnixStream::connect(&engine).await else {
        return;
    };
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => {}
        _ = state.wait_for(|is_up| !*is_up) => {}
    }
}
