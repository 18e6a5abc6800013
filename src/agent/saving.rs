//! Unfinished work goes where people can see it, and where another container can go on with it.

use std::time::Duration;

use super::run::Run;
use crate::journal::fact::Fact;
use crate::repository::address::Remote;
use crate::repository::mirror::Mirror;
use crate::repository::{CommitId, RepositoryError};
use crate::task::state::State;

/// How long saving the work may take when a run is put down.
pub(super) const RESCUE_TIME: Duration = Duration::from_mins(1);

/// The title of a commit of what was not committed when the run was set aside.
const UNFINISHED: &str = "Work in progress";

impl Run {
    /// Keeps the workspace in the mirror, so that another container can go on with it, and shows the work on a branch.
    pub(super) async fn set_work_aside(&mut self) -> Option<String> {
        if !self.keep_work().await {
            return None;
        }
        let shown = async {
            let taken = self
                .desk
                .as_ref()?
                .workspace
                .take_back(UNFINISHED, &self.record.rules.files)
                .await;
            match taken {
                Ok(accepted) => {
                    let mirror = self.desk.as_ref()?.workspace.mirror().clone();
                    let head = self.shown_as(&mirror, accepted.head).await.ok()?;
                    self.show_work(&head).await
                }
                Err(setback) => {
                    tracing::warn!(task = %self.lease.task, "the work so far could not be taken out: {setback:?}");
                    None
                }
            }
        };
        tokio::time::timeout(RESCUE_TIME, shown).await.ok().flatten()
    }

    /// Keeps the workspace in the mirror. Returns whether there was something to keep and it is kept; else the container
    /// stays for whoever takes the run up.
    pub(super) async fn keep_work(&mut self) -> bool {
        let is_worth_it = match self.state {
            State::Working | State::AwaitingAnswer | State::Verifying => true,
            State::Delivering => self.record.head.is_none(),
            _ => false,
        };
        let Some(desk) = self.desk.as_mut().filter(|_| is_worth_it) else {
            return false;
        };
        desk.keeping.finish().await;
        match tokio::time::timeout(RESCUE_TIME, desk.workspace.keep()).await {
            Ok(Ok(_)) => return true,
            Ok(Err(setback)) => tracing::warn!(task = %self.lease.task, "the work could not be kept: {setback:?}"),
            Err(_) => tracing::warn!(task = %self.lease.task, "the work could not be kept in time"),
        }
        // It is nowhere but in the container, which stays for whoever takes the run up.
        self.leave_container().await;
        false
    }

    /// Pushes what was done so far to a branch of the program's own, so that an end before delivery loses nothing.
    pub(super) async fn rescue(&mut self) -> Option<String> {
        let rescued = async {
            self.take_result().await;
            let head = self.record.head.clone()?;
            self.show_work(&head).await
        };
        tokio::time::timeout(RESCUE_TIME, rescued).await.ok().flatten()
    }

    /// Takes the commits out of the workspace unless that was done before.
    pub(super) async fn take_result(&mut self) {
        let Some(desk) = self.desk.as_ref().filter(|_| self.record.head.is_none()) else {
            return;
        };
        let taken = desk
            .workspace
            .take_back(&self.record.title, &self.record.rules.files)
            .await;
        let shown = match taken {
            Ok(accepted) => self.shown_as(desk.workspace.mirror(), accepted.head).await,
            Err(setback) => Err(setback),
        };
        match shown {
            Ok(head) => self.record.head = Some(head),
            Err(setback) => {
                tracing::warn!(task = %self.lease.task, "the work so far could not be taken out: {setback:?}");
            }
        }
    }

    /// Pushes `head` to the run's own branch; where somebody else's commits are on it, beside it. A pull/merge request's
    /// branch gets finished work only.
    async fn show_work(&mut self, head: &CommitId) -> Option<String> {
        let base = self.record.base.clone()?;
        if *head == base.commit {
            return None;
        }
        let item = self.item().await.ok()??;
        if self.may_be_published(&item).is_err() {
            return None;
        }
        let mirror = self.source(Some(&item)).await.ok()?.mirror;
        if !self.may_be_shown(&mirror, &base.commit, head).await {
            return None;
        }
        let home = self.home(&item).await.ok()?;
        let beside = format!("{}-unfinished", self.branch_name(&self.record.title));
        let own = item.change.is_none().then(|| base.head_branch.clone());
        let last_resort = format!("{beside}-{}", self.lease.run);
        for branch in own.into_iter().chain([beside, last_resort]) {
            let known = self.record.unfinished.get(&branch).cloned().unwrap_or_default();
            // Saved before the push, so that a process that takes over after a crash knows the branch for its own.
            let shown = self.record.unfinished.entry(branch.clone()).or_default();
            shown.push(head.clone());
            if self.save().await.is_err() {
                return None;
            }
            let pushed = put(&mirror, &home, head, &branch, &known).await;
            match pushed {
                Ok(()) => {
                    self.note(Fact::Pushed {
                        branch: branch.clone(),
                        commit: head.as_str().to_owned(),
                    });
                    self.record.unfinished.insert(branch.clone(), vec![head.clone()]);
                    return Some(branch);
                }
                Err(RepositoryError::Moved { .. }) => {
                    self.record.unfinished.insert(branch, known);
                }
                Err(error) => {
                    tracing::warn!(task = %self.lease.task, "the work so far could not be pushed: {error}");
                    return None;
                }
            }
        }
        None
    }
}

/// Points a branch of the program's own to `head`. It is at one of the commits that were put there before, of which `head` need not be a
/// descendant, or it goes forward, or it is new; `Moved` where somebody else has put something there.
pub(super) async fn put(
    mirror: &Mirror,
    remote: &Remote,
    head: &CommitId,
    branch: &str,
    known: &[CommitId],
) -> Result<(), RepositoryError> {
    for from in known.iter().rev() {
        match mirror.advance(remote, from, head, branch).await {
            Err(RepositoryError::Moved { .. }) => {}
            ended => return ended,
        }
    }
    mirror.push(remote, head, branch).await
}
