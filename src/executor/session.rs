//! The executor's end of the link: which connection carries it, and how long it is waited for one.
//!
//! The first is the stream of the process that keeps it: the container's own, or one that only the
//! worker opened. Others come through [`attach`], which the worker starts in the container: to an
//! address of the container's own network, which lasts as long as this process and which nobody
//! else can take meanwhile. A folder would not do: everything in the container has the same user,
//! and could put another socket there.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use rmcp::transport::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, DuplexStream, copy, sink};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::link::LinkEnd;
use crate::link::carrying::{Parted, Patience, carry};
use crate::link::session::{Failed, NOBODY, SessionKey, Visit, ask_to_end};

/// The address, which is in no folder: its first byte is NUL.
const ADDRESS: &str = "\0coding-agent-executor";

/// The bytes that the container's first process writes once this program has ended. The engine
/// keeps the stream open then, and the worker would wait for answers: more bytes than the longest
/// frame, none of which can begin or end a frame, end the link at once.
pub static BROKEN: [u8; 32 * 1024] = [NOBODY; 32 * 1024];

/// Time that commands go on without a worker: longer than a worker takes to notice that its
/// connection was lost, and then tries to come back. One that was killed does not come back, and
/// the next one says so ([`end`]).
const ABSENCE: Duration = Duration::from_mins(3);

/// Time in which somebody who came says what they want.
const VISIT: Duration = Duration::from_secs(10);

/// Most who are listened to at once; others are sent away.
const MOST_VISITS: usize = 8;

/// Time in which the address must be had.
const OPENING: Duration = Duration::from_secs(2);

/// Time before the next is received if one could not be, for lack of file descriptors for instance.
const PAUSE: Duration = Duration::from_millis(50);

/// Time for the executor to end everything that it started.
const ENDING: Duration = Duration::from_secs(20);

/// Both sides of a connection.
pub(super) type Sides = (Box<dyn AsyncRead + Send + Unpin>, Box<dyn AsyncWrite + Send + Unpin>);

/// Why a session has ended.
pub(super) enum Ended {
    /// The worker said so, or the link cannot go on.
    ByWorker,
    /// No worker is there to hear answers, and whoever asked for it waits until everything has
    /// ended.
    WithoutWorker { _asked: Option<UnixStream> },
}

/// The socket at which workers connect again who have lost their connection.
pub(super) struct ReconnectListener(UnixListener);

type Visitor = (Visit, UnixStream);

impl ReconnectListener {
    /// Listens at the socket; `None` if that is not possible, and a lost connection ends the
    /// session.
    pub(super) async fn open() -> Option<Self> {
        let begun = Instant::now();
        loop {
            match UnixListener::bind(ADDRESS) {
                Ok(listener) => return Some(Self(listener)),
                // One that has just ended may still have it.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && begun.elapsed() < OPENING => {
                    sleep(PAUSE).await;
                }
                Err(_) => return None,
            }
        }
    }

    /// Listens to everybody who comes, and hands on those who have a right to what they want.
    async fn receive(self, key: Arc<SessionKey>, came: mpsc::Sender<Visitor>) {
        let places = Arc::new(Semaphore::new(MOST_VISITS));
        let mut visits = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.0.accept() => {
                    let Ok((mut stream, _)) = accepted else {
                        sleep(PAUSE).await;
                        continue;
                    };
                    // A process of another container of the pod has no number here.
                    if !stream.peer_cred().is_ok_and(|peer| peer.pid().is_some_and(|process| process > 0)) {
                        continue;
                    }
                    let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                        continue;
                    };
                    let (key, came) = (Arc::clone(&key), came.clone());
                    visits.spawn(async move {
                        let (mut reader, mut writer) = stream.split();
                        let visit = timeout(VISIT, key.visit((&mut reader, &mut writer))).await;
                        if let Ok(Ok(visit)) = visit {
                            let _ = came.send((visit, stream)).await;
                        }
                        drop(place);
                    });
                }
                // Ended tasks are removed, so that they do not pile up.
                Some(_) = visits.join_next() => {}
            }
        }
    }
}

/// Keeps the link for its user at the other end of `user`, over `first` and all later connections.
pub(super) async fn keep(
    user: DuplexStream,
    first: Sides,
    key: SessionKey,
    listener: Option<ReconnectListener>,
) -> Ended {
    let (mut near_reader, mut near_writer) = tokio::io::split(user);
    let (key, mut link) = (Arc::new(key), LinkEnd::default());
    let absence = if listener.is_some() { ABSENCE } else { Duration::ZERO };
    // Held here as well, so that without a listener nobody comes, and it is not taken for an end.
    let (came, mut visitors) = mpsc::channel(1);
    let receiving = listener.map(|listener| tokio::spawn(listener.receive(Arc::clone(&key), came.clone())));
    let _receiving = receiving.map(AbortOnDropHandle::new);
    let mut far = Some(first);
    loop {
        let visitor = match &mut far {
            Some((reader, writer)) => {
                let near = (&mut near_reader, &mut near_writer);
                let parted = tokio::select! {
                    // Whoever comes has lost the connection, even if nothing shows here.
                    visitor = visitors.recv() => Err(visitor),
                    parted = carry(&mut link, near, (reader, writer), Patience::USUAL) => Ok(parted),
                };
                match parted {
                    Err(visitor) => visitor,
                    Ok(Parted::Lost(_)) => {
                        far = None;
                        continue;
                    }
                    Ok(Parted::Closed | Parted::Dropped | Parted::Broken(_)) => return Ended::ByWorker,
                }
            }
            None => timeout(absence, visitors.recv()).await.unwrap_or_default(),
        };
        match visitor {
            None => return Ended::WithoutWorker { _asked: None },
            Some((Visit::End, stream)) => return Ended::WithoutWorker { _asked: Some(stream) },
            Some((Visit::Resume(resumption), stream)) => {
                let (reader, mut writer) = stream.into_split();
                if link.resume(resumption.received).is_err() {
                    return Ended::ByWorker;
                }
                let welcoming = key.welcome(&mut writer, resumption, link.received());
                let is_welcome = matches!(timeout(VISIT, welcoming).await, Ok(Ok(())));
                far = is_welcome.then(|| -> Sides { (Box::new(reader), Box::new(writer)) });
            }
        }
    }
}

/// Is the worker's way to the executor, between its stdin and stdout: a process that the worker has
/// started in the container.
pub async fn attach() -> anyhow::Result<()> {
    let (mut reader, mut writer) = stdio_pipes();
    let mut stream = match UnixStream::connect(ADDRESS).await {
        Ok(stream) => stream,
        Err(error) => {
            // Then there is no executor any more, and the worker need not come again.
            if error.kind() == io::ErrorKind::ConnectionRefused {
                writer.write_all(&BROKEN).await?;
                writer.flush().await?;
            }
            return Err(error).context("the executor cannot be reached");
        }
    };
    let (mut from, mut to) = stream.split();
    // Where one direction ends, the other is of no use: it is a connection of frames.
    tokio::select! {
        copied = copy(&mut reader, &mut to) => copied?,
        copied = copy(&mut from, &mut writer) => copied?,
    };
    Ok(())
}

/// Ends the session of an earlier worker, and everything that it started in the container. No
/// effect where there is none.
pub async fn end() -> anyhow::Result<()> {
    let Ok(mut stream) = UnixStream::connect(ADDRESS).await else {
        return Ok(());
    };
    let ending = async {
        ask_to_end(&mut stream).await?;
        // It ends when the executor has.
        copy(&mut stream, &mut sink()).await?;
        Ok::<_, Failed>(())
    };
    let ended = timeout(ENDING, ending).await;
    Ok(ended.context("the executor of an earlier worker does not end")??)
}
