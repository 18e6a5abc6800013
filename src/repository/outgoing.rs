//! Streams history into a container, as a pack that is made while it is read and never stored.

use std::ffi::OsString;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, ReadBuf};
use tokio::process::{Child, ChildStdout};
use tokio::time::{Sleep, sleep, timeout};

use crate::repository::git::command::feed;
use crate::repository::git::limits::Effort;
use crate::repository::git::process_group::ProcessGroup;
use crate::repository::git::progress::tail;
use crate::repository::incoming::quarantine::alternate;
use crate::repository::mirror::Mirror;
use crate::repository::reading::submodules::SubmoduleContents;
use crate::repository::{CommitId, RepositoryError};

impl Mirror {
    /// Returns a reader of a pack with everything reachable from `tips`, for `git index-pack
    /// --stdin` on the other side. It ends with an error if git fails. Without tips the pack is
    /// empty.
    pub async fn pack(&self, tips: &[CommitId]) -> Result<Box<dyn AsyncRead + Send + Unpin>, RepositoryError> {
        self.pack_without(tips, &[]).await
    }

    /// Packs like [`Self::pack`], together with the files of submodules, which are in other
    /// mirrors.
    pub async fn pack_with(
        &self,
        tips: &[CommitId],
        submodules: &[SubmoduleContents],
    ) -> Result<Box<dyn AsyncRead + Send + Unpin>, RepositoryError> {
        let mut elsewhere = OsString::new();
        for submodule in submodules {
            if !elsewhere.is_empty() {
                elsewhere.push(":");
            }
            elsewhere.push(alternate(&submodule.mirror.path().join("objects")));
        }
        let trees = submodules.iter().map(|submodule| submodule.tree.to_string());
        let wanted: Vec<String> = tips.iter().map(CommitId::to_string).chain(trees).collect();
        self.packed(&wanted, elsewhere).await
    }

    /// Packs like [`Self::pack`], without what is reachable from `known`.
    pub(in crate::repository) async fn pack_without(
        &self,
        tips: &[CommitId],
        known: &[CommitId],
    ) -> Result<Box<dyn AsyncRead + Send + Unpin>, RepositoryError> {
        let known = known.iter().map(|commit| format!("^{commit}"));
        let wanted: Vec<String> = tips.iter().map(CommitId::to_string).chain(known).collect();
        self.packed(&wanted, OsString::new()).await
    }

    /// Packs what git's list says; `elsewhere` names more folders with objects.
    async fn packed(
        &self,
        wanted: &[String],
        elsewhere: OsString,
    ) -> Result<Box<dyn AsyncRead + Send + Unpin>, RepositoryError> {
        let (mut child, group, input) = self
            .git("packing the history")
            .with(Effort::Transfer, self.config())
            .args(["pack-objects", "--stdout", "--revs", "--delta-base-offset", "--quiet"])
            .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", elsewhere)
            .input(wanted.join("\n"))
            .start()?;
        let idle = Duration::from_secs(self.config().timeout_seconds);
        // Git reads the whole list before it writes a byte, so this cannot deadlock. If git dies,
        // its exit code reports it.
        let _ = timeout(idle, feed(child.stdin.take(), input)).await;
        let stderr = child.stderr.take();
        Ok(Box::new(PackStream {
            stdout: child.stdout.take(),
            end: Some(Box::pin(end(child, tail(stderr, None)))),
            group,
            idle,
            patience: None,
        }))
    }
}

type GitEnd = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

/// A pack that git is writing. Dropping it kills git.
struct PackStream {
    stdout: Option<ChildStdout>,
    /// Resolves to git's success or failure.
    end: Option<GitEnd>,
    group: ProcessGroup,
    idle: Duration,
    /// The idle time-out, which runs only while the reader waits for git.
    patience: Option<Pin<Box<Sleep>>>,
}

impl AsyncRead for PackStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        if let Some(stdout) = &mut self.stdout {
            match Pin::new(stdout).poll_read(context, buffer) {
                Poll::Ready(Ok(())) if buffer.filled().len() == before && buffer.remaining() > 0 => self.stdout = None,
                Poll::Ready(read) => {
                    self.patience = None;
                    return Poll::Ready(read);
                }
                Poll::Pending => return self.waited(context),
            }
        }
        let Some(end) = &mut self.end else {
            return Poll::Ready(Ok(()));
        };
        let Poll::Ready(ended) = end.as_mut().poll(context) else {
            return self.waited(context);
        };
        self.end = None;
        self.group.is_over();
        Poll::Ready(ended)
    }
}

impl PackStream {
    fn waited(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let idle = self.idle;
        let patience = self.patience.get_or_insert_with(|| Box::pin(sleep(idle)));
        match patience.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::other("git stopped writing the pack"))),
            Poll::Pending => Poll::Pending,
        }
    }
}

async fn end(mut child: Child, complaint: impl Future<Output = String> + Send) -> io::Result<()> {
    let complaint = complaint.await;
    let status = child.wait().await?;
    if status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "git could not pack the history: {}",
        complaint.trim()
    )))
}
