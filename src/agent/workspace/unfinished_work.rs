//! Copies a run's unfinished work into the store, so that any worker resumes any run.
//!
//! The mirror of this machine stays the fast way: the copy is read only where the mirror was made
//! anew, or another machine has worked on the run since.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::stream::{Stream, try_unfold};
use serde::{Deserialize, Serialize};
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio_util::io::StreamReader;
use uuid::Uuid;

use crate::agent::claim::Claim;
use crate::agent::record::Record;
use crate::agent::record::interruption::Interruption;
use crate::agent::workspace::fetching::OnStop;
use crate::approval::digest::{Digest, Hashing};
use crate::repository::mirror::Mirror;
use crate::repository::unfinished::UnfinishedWork;
use crate::repository::{CommitId, RepositoryError};
use crate::store::{Lease, Store, StoreError, StoredWork};

/// Bytes that are read or written in one statement.
const PART: u64 = 1024 * 1024;

/// The document that is stored with the copy.
#[derive(Debug, Serialize, Deserialize)]
struct Label {
    work: UnfinishedWork,
    digest: Digest,
    /// The commit with the work, where it was too large and is on a branch of the forge instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pushed: Option<CommitId>,
}

/// Whether a copy could be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Copied {
    /// It is in the store, or only this machine has it for now.
    AsFarAsPossible,
    /// It has more bytes than the store takes.
    TooLarge,
}

/// Writes copies of one run's work.
#[derive(Clone)]
pub(crate) struct WorkCopy {
    store: Store,
    lease: Arc<Lease>,
    base: CommitId,
    max_bytes: u64,
}

#[derive(Debug, thiserror::Error)]
enum CopyError {
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("packing it failed: {0}")]
    Packing(#[from] io::Error),
    #[error("it has more than {0} bytes (`store.max_work_bytes`)")]
    TooLarge(u64),
    #[error("its label cannot be written: {0}")]
    Label(#[from] serde_json::Error),
}

impl WorkCopy {
    /// Returns the writer for a run; `None` for a local task, which only its own machine can
    /// resume, and for a run that has no base yet.
    pub(crate) fn of(claim: &Claim) -> Option<Self> {
        let base = claim.record.planned.base.as_ref();
        let base = base.filter(|_| claim.record.request.local.is_none())?;
        Some(Self {
            store: claim.services.store.clone(),
            lease: Arc::clone(&claim.lease),
            base: base.commit.clone(),
            max_bytes: claim.services.settings.max_work_bytes,
        })
    }

    /// Copies the run's work from the mirror to the store, unless the store has it already. A
    /// failure is only logged, because the mirror of this machine has the work.
    pub(crate) async fn write(&self, mirror: &Mirror) -> Copied {
        let Err(error) = self.copy(mirror).await else {
            return Copied::AsFarAsPossible;
        };
        tracing::warn!(task = %self.lease.task, "the work is kept on this machine and not in the store: {error}");
        match error {
            CopyError::TooLarge(_) => Copied::TooLarge,
            _ => Copied::AsFarAsPossible,
        }
    }

    /// Notes in the place of a copy that a branch of the forge has the work, as this commit.
    pub(crate) async fn refer_to(&self, mirror: &Mirror, pushed: CommitId) {
        let noting = async {
            let Some(work) = mirror.unfinished(&self.lease.run.to_string()).await? else {
                return Ok(());
            };
            self.complete(Uuid::now_v7(), work, Hashing::default(), Some(pushed))
                .await
        };
        let noted: Result<(), CopyError> = noting.await;
        if let Err(error) = noted {
            tracing::warn!(task = %self.lease.task, "other machines are not told of the pushed work: {error}");
        }
    }

    async fn copy(&self, mirror: &Mirror) -> Result<(), CopyError> {
        let Some(work) = mirror.unfinished(&self.lease.run.to_string()).await? else {
            return Ok(());
        };
        let stored = self.store.work_of(self.lease.run).await?;
        if stored.is_some_and(|stored| label(&stored).is_ok_and(|label| label.work.has_commits_of(&work))) {
            return Ok(());
        }
        let mut pack = mirror.pack_unfinished(&self.base, &work).await?;
        let (upload, mut hashing, mut bytes) = (Uuid::now_v7(), Hashing::default(), 0);
        for position in 0.. {
            let mut part = Vec::new();
            (&mut pack).take(PART).read_to_end(&mut part).await?;
            if part.is_empty() {
                break;
            }
            bytes += part.len() as u64;
            if bytes > self.max_bytes {
                return Err(CopyError::TooLarge(self.max_bytes));
            }
            hashing.add(&part);
            self.store.add_work_part(&self.lease, upload, position, part).await?;
        }
        self.complete(upload, work, hashing, None).await
    }

    async fn complete(
        &self,
        upload: Uuid,
        work: UnfinishedWork,
        hashing: Hashing,
        pushed: Option<CommitId>,
    ) -> Result<(), CopyError> {
        let digest = hashing.finish();
        let label = serde_json::to_value(Label { work, digest, pushed })?;
        Ok(self.store.complete_work(&self.lease, upload, &label).await?)
    }
}

/// Restores the run's work from the store, if the mirror does not have it.
pub(crate) async fn restore(claim: &Claim, mirror: &Mirror, on_stop: OnStop) -> Result<(), Interruption> {
    let Some(base) = &claim.record.planned.base else {
        return Ok(());
    };
    let store = &claim.services.store;
    let Some(stored) = store.work_of(claim.lease.run).await? else {
        return Ok(());
    };
    let run = claim.lease.run.to_string();
    let lost = |reason: String| {
        Interruption::failed(format!(
            "the work so far could not be taken back from the store: {reason}; set the label again to begin anew"
        ))
    };
    let Label { work, digest, pushed } = label(&stored).map_err(|error| lost(error.to_string()))?;
    let own = mirror.unfinished(&run).await?;
    // Whoever kept the copy has the same or newer work: the mirror is written first.
    if own.is_some_and(|own| own.mirror == work.mirror || own.has_commits_of(&work)) {
        return Ok(());
    }
    if let Some(pushed) = pushed {
        return match mirror.adopt(&run, &base.commit, &pushed).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(lost(format!(
                "it was too large for the store, and the branch with its commit {pushed} is gone"
            ))),
            Err(error) => Err(error.into()),
        };
    }
    let is_damaged = Arc::new(AtomicBool::new(false));
    let parts = parts(store.clone(), stored, digest, Arc::clone(&is_damaged));
    let pack = StreamReader::new(Box::pin(parts));
    let restoring = async {
        match mirror.restore(&run, &base.commit, &work, pack).await {
            Ok(()) => Ok(()),
            Err(_) if is_damaged.load(Ordering::Relaxed) => Err(lost("the copy is damaged".to_owned())),
            Err(error @ RepositoryError::Unavailable { .. }) => Err(error.into()),
            Err(error) => Err(lost(error.to_string())),
        }
    };
    match on_stop {
        OnStop::GiveUp => claim.unless_stopped(restoring).await?,
        OnStop::Finish => restoring.await?,
    }
    tracing::info!(task = %claim.lease.task, "the work so far was taken from the store");
    Ok(())
}

/// Returns true if the store may have work of the run that `mirror` does not have.
pub(crate) async fn has_more_than(claim: &Claim, mirror: Option<&Mirror>) -> bool {
    let stored = match claim.services.store.work_of(claim.lease.run).await {
        Ok(Some(stored)) => stored,
        Ok(None) => return false,
        Err(_) => return true,
    };
    let own = match mirror {
        Some(mirror) => mirror.unfinished(&claim.lease.run.to_string()).await.ok().flatten(),
        None => None,
    };
    match (own, label(&stored)) {
        (Some(own), Ok(Label { work, .. })) => own.mirror != work.mirror && !own.has_commits_of(&work),
        _ => true,
    }
}

/// Writes the run's work from the store into a bundle of git, a file of that name among the run's
/// outputs. Returns the file with the name of what is to be fetched from it; `None` if the store
/// has none.
pub(crate) async fn put_into_bundle(claim: &Claim, name: &str) -> anyhow::Result<Option<(PathBuf, &'static str)>> {
    let (store, run) = (&claim.services.store, claim.lease.run);
    let Some((base, stored)) = claim.record.planned.base.as_ref().zip(store.work_of(run).await?) else {
        return Ok(None);
    };
    let Label { work, digest, pushed } = label(&stored)?;
    if let Some(pushed) = pushed {
        anyhow::bail!("it was too large for the store, and is on a branch of the forge as the commit {pushed}");
    }
    let Some(newest) = newest(&claim.record, work.accepted.as_ref(), work.wip.as_ref()) else {
        return Ok(None);
    };
    let head = work.bundle_head(&run.to_string(), &base.commit)?;
    let parts = parts(store.clone(), stored, digest, Arc::default());
    let pack = StreamReader::new(Box::pin(parts));
    let file = claim.outputs.place(name).await?;
    // Under its name it is whole.
    let fresh = file.with_added_extension("new");
    if let Err(error) = write_bundle(&fresh, &head, pack).await {
        let _ = tokio::fs::remove_file(&fresh).await;
        return Err(error.into());
    }
    tokio::fs::rename(&fresh, &file).await?;
    Ok(Some((file, newest)))
}

/// Returns the name of the newest of a run's work that is kept; `None` if there is none.
///
/// That is what was accepted, as long as it is the result. Otherwise the model has gone on since,
/// and the work in progress is newer.
pub(crate) fn newest(record: &Record, accepted: Option<&CommitId>, wip: Option<&CommitId>) -> Option<&'static str> {
    let base = record.planned.base.as_ref().map(|base| &base.commit);
    let accepted = accepted.filter(|accepted| Some(*accepted) != base);
    let is_result = accepted == record.delivered.head.as_ref();
    match (accepted, wip) {
        (Some(accepted), Some(wip)) if !is_result && accepted != wip => Some("wip"),
        (Some(_), _) => Some("accepted"),
        (None, Some(_)) => Some("wip"),
        (None, None) => None,
    }
}

async fn write_bundle(file: &Path, head: &str, mut pack: impl AsyncRead + Unpin) -> io::Result<()> {
    let mut written = File::create(file).await?;
    written.write_all(head.as_bytes()).await?;
    tokio::io::copy(&mut pack, &mut written).await?;
    written.sync_all().await
}

/// Streams the parts of a copy. It ends with an error, and sets `is_damaged`, unless all together
/// have the digest.
fn parts(
    store: Store,
    stored: StoredWork,
    digest: Digest,
    is_damaged: Arc<AtomicBool>,
) -> impl Stream<Item = io::Result<io::Cursor<Vec<u8>>>> + Send {
    try_unfold((0, Hashing::default()), move |(position, mut hashing)| {
        let (store, stored, digest) = (store.clone(), stored.clone(), digest.clone());
        let is_damaged = Arc::clone(&is_damaged);
        async move {
            let part = store.work_part(&stored, position).await.map_err(io::Error::other)?;
            let Some(part) = part else {
                if hashing.finish() == digest {
                    return Ok(None);
                }
                is_damaged.store(true, Ordering::Relaxed);
                return Err(io::ErrorKind::InvalidData.into());
            };
            hashing.add(&part);
            Ok(Some((io::Cursor::new(part), (position + 1, hashing))))
        }
    })
}

fn label(stored: &StoredWork) -> Result<Label, serde_json::Error> {
    serde_json::from_value(stored.about.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_model_did_after_a_result_was_accepted_is_the_newest() {
        let commit = |digit: &str| -> CommitId { digit.repeat(40).parse().unwrap() };
        let (base, accepted, wip) = (commit("0"), commit("1"), commit("2"));
        let record = |head: Option<&CommitId>| -> Record {
            let base = json!({"commit": base, "branch": "main", "head_branch": "greet", "holds_work": false});
            let record = json!({"planned": {"base": base}, "delivered": {"head": head}});
            serde_json::from_value(record).unwrap()
        };
        let repairing = record(None);
        for (accepted, wip, expected) in [
            (Some(&accepted), Some(&wip), Some("wip")),
            (Some(&accepted), None, Some("accepted")),
            // Taken up from a branch of the forge.
            (Some(&accepted), Some(&accepted), Some("accepted")),
            (Some(&base), Some(&wip), Some("wip")),
            (None, Some(&wip), Some("wip")),
            (Some(&base), None, None),
            (None, None, None),
        ] {
            assert_eq!(newest(&repairing, accepted, wip), expected);
        }
        let delivering = record(Some(&accepted));
        assert_eq!(newest(&delivering, Some(&accepted), Some(&wip)), Some("accepted"));
        // Another result, of which the store has no copy.
        let later = record(Some(&commit("3")));
        assert_eq!(newest(&later, Some(&accepted), Some(&wip)), Some("wip"));
    }
}
