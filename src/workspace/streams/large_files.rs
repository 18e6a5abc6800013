//! Contents of Git LFS on their way into a container and out of it. The executor is at the other
//! end, and is git's filter there.

use std::future::ready;
use std::io;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::io::{ReaderStream, StreamReader};

use crate::environment::{Container, EXECUTOR};
use crate::lfs::{self, Pointer};
use crate::repository::mirror::Mirror;
use crate::repository::reading::large_files::{LargeFile, LargeFiles};
use crate::repository::{CommitId, RepositoryError};
use crate::workspace::error::WorkspaceError;
use crate::workspace::scripts;

/// The repository's folder in the container.
const GIT: &str = "/workspace/project/.git";
/// Contents that one command is asked for.
const AT_A_TIME: usize = 500;

type Parts = Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>;

/// Returns the files in Git LFS that the container will show; `None` for a project without any.
pub(crate) async fn of(
    mirror: &Mirror,
    base: &CommitId,
    unfinished: Option<&CommitId>,
) -> Result<Option<LargeFiles>, RepositoryError> {
    let mut large = mirror.large_files(base).await?;
    if let Some(unfinished) = unfinished {
        let now = mirror.large_files(unfinished).await?;
        large.is_used |= now.is_used;
        large.pointers.extend(now.pointers);
    }
    Ok(large.is_used.then_some(large))
}

/// Returns the configuration by which git in the container has the executor as its filter; empty
/// where nothing can be kept in Git LFS. A filter of the image's own, which would ask a server,
/// loses against it.
///
/// Also for a project that has no such files: the work may be to begin with them, and without a
/// filter git would write their contents into commits. Git starts it for no other files.
pub(crate) fn settings(mirror: &Mirror) -> String {
    if !mirror.may_use_lfs() {
        return String::new();
    }
    format!("[filter \"lfs\"]\n\tprocess = {EXECUTOR} lfs-filter {GIT}\n\trequired = true\n")
}

/// Returns a reader of the contents that are on this machine, and of the attributes, for the
/// executor. A file whose content is missing stays a pointer.
pub(crate) fn handed_in(mirror: Mirror, large: LargeFiles) -> impl AsyncRead + Send + Unpin {
    let LargeFiles {
        pointers, exceptions, ..
    } = large;
    let mut wanted: Vec<Pointer> = pointers.into_iter().map(|file| file.pointer).collect();
    wanted.sort();
    wanted.dedup();
    let mut attributes = format!("attributes {}\n", exceptions.len()).into_bytes();
    attributes.extend(exceptions);
    let contents = stream::iter(wanted)
        .then(move |pointer| {
            let mirror = mirror.clone();
            async move { Ok::<_, io::Error>(content(&mirror, &pointer).await) }
        })
        .try_flatten();
    let whole = part(attributes)
        .chain(contents)
        .chain(part(lfs::END.as_bytes().to_vec()));
    let whole: Parts = Box::pin(whole);
    StreamReader::new(whole)
}

fn part(bytes: Vec<u8>) -> impl Stream<Item = io::Result<Bytes>> + Send {
    stream::once(ready(Ok(Bytes::from(bytes))))
}

async fn content(mirror: &Mirror, pointer: &Pointer) -> Parts {
    let opened = match mirror.content(pointer).await {
        Some(path) => File::open(path).await.ok(),
        None => None,
    };
    match opened {
        Some(file) => {
            let content = ReaderStream::new(file.take(pointer.size()));
            Box::pin(part(pointer.line().into_bytes()).chain(content))
        }
        None => Box::pin(stream::empty()),
    }
}

/// Takes the contents of new files out of the container, and keeps them until the run is
/// forgotten. One that the container does not have may be on the forge: the push finds out.
pub(crate) async fn take_out(
    container: &Container,
    mirror: &Mirror,
    run: &str,
    files: &[LargeFile],
) -> Result<(), WorkspaceError> {
    let pointers: Vec<Pointer> = files.iter().map(|file| file.pointer.clone()).collect();
    let missing = mirror.missing_contents(&pointers).await;
    mirror.may_take_in(&missing)?;
    // Pinned first: until then another run could remove them as not used.
    mirror.pin_contents(run, &pointers).await?;
    for wanted in missing.chunks(AT_A_TIME) {
        let command: Vec<&str> = [EXECUTOR, "lfs-send", GIT]
            .into_iter()
            .chain(wanted.iter().map(Pointer::digest))
            .collect();
        let attached = container.attach(&command, &scripts::ENVIRONMENT).await?;
        drop(attached.stdin);
        match mirror.take_in_contents(attached.stdout, wanted).await {
            Err(slow @ RepositoryError::TooSlow(_)) => return Err(WorkspaceError::of_delay(slow, container).await),
            taken => taken?,
        }
        let ending = attached.ending.await?;
        if ending.exit_code != 0 {
            return Err(WorkspaceError::Failed(format!(
                "the large files could not be taken out of the container: {}",
                ending.stderr.trim()
            )));
        }
    }
    Ok(())
}
