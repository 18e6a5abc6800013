//! What came out of a container, in quarantine until it is judged.

use super::{CommitId, RepositoryError};

/// New objects in quarantine. Dropping it throws them away.
#[derive(Debug)]
pub struct Incoming {}

/// The commits that may be pushed. Only [`Incoming::accept`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The last commit; equal to the base where nothing changed.
    pub head: CommitId,
    pub commits: usize,
    pub files_changed: usize,
}

/// How the commits from the container become commits of ours.
#[derive(Debug, Clone)]
pub struct Acceptance {
    pub base: CommitId,
    pub head: CommitId,
    /// The run: goes into each commit as `Coding-Agent-Run:` trailer and names the ref that keeps the result.
    pub run: String,
}

impl Incoming {
    /// Judges `base..head` (paths, modes, sizes, submodules), writes each commit again with the configured author, the date it had and
    /// the trailer (so that doing it twice gives the same ids), or one commit with the whole difference where `head` does not descend from
    /// `base`; moves the objects into the mirror and keeps the result under `refs/coding-agent/<run>`.
    pub async fn accept(self, _acceptance: &Acceptance) -> Result<Accepted, RepositoryError> {
        todo!()
    }
}
