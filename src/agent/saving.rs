//! Unfinished work goes where people can see it, and where another container can go on with it.
//!
//! Work that began in a fork goes to no branch: below it lie the fork's commits, and on a branch of
//! the item's own repository they would be run with that repository's secrets. It is kept with the
//! program, and people are told so.

use std::time::Duration;

use super::record::{Kept, Saved};
use super::run::Run;
use crate::journal::fact::Fact;
use crate::repository::address::Login;
use crate::repository::mirror::Mirror;
use crate::repository::pushing::Pushable;
use crate::repository::{CommitId, RepositoryError};
use crate::task::state::State;

/// How long saving the work may take when a run is put down.
pub(super) const RESCUE_TIME: Duration = Duration::from_mins(1);

/// The title of a commit of what was not committed when the run was set aside.
const UNFINISHED: &str = "Work in progress";
/// The file that keeps the work of a run on a fork that is over.
const BUNDLE: &str = "work.bundle";

impl Run {
    /// Keeps the workspace in the mirror, so that another container can go on with it, and shows
    /// the work on a branch.
    pub(super) async fn set_work_aside(&mut self) -> Option<Saved> {
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

    /// Keeps the workspace in the mirror. Returns whether there was something to keep and it is
    /// kept; else the container stays for whoever takes the run up.
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

    /// Pushes what was done so far to a branch of the program's own, so that an end before delivery
    /// loses nothing. What was done on a fork is put into a file instead.
    pub(super) async fn rescue(&mut self) -> Option<Saved> {
        let rescued = async {
            self.take_result().await;
            if self.record.fork.is_some() {
                return self.put_into_file().await;
            }
            let head = self.record.head.clone()?;
            self.show_work(&head).await
        };
        tokio::time::timeout(RESCUE_TIME, rescued).await.ok().flatten()
    }

    /// Takes the commits out of the workspace unless that was done before.
    pub(super) async fn take_result(&mut self) {
        // A snapshot that is being made moves the branch back for a moment.
        self.finish_keeping().await;
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

    /// Pushes `head` to the run's own branch; where somebody else's commits are on it, beside it. A
    /// pull/merge request's branch gets finished work only.
    async fn show_work(&mut self, head: &CommitId) -> Option<Saved> {
        let base = self.record.base.clone()?;
        if *head == base.commit {
            return None;
        }
        let item = self.item().await.ok()??;
        if self.may_be_published(&item).is_err() {
            return None;
        }
        let source = self.source(Some(&item)).await.ok()?;
        let mirror = source.mirror;
        if self.record.fork.is_some() || !mirror.is_of(&item.clone_url) {
            self.note(Fact::WorkKept {
                place: "the mirror of the fork".to_owned(),
            });
            return Some(Saved::Kept(Kept::Mirror));
        }
        if !self.may_be_shown(&mirror, &base.commit, head).await {
            return None;
        }
        let pushable = match mirror.pushable(&self.lease.run.to_string(), head).await {
            Ok(pushable) => pushable,
            Err(error) => {
                tracing::warn!(task = %self.lease.task, "the work so far could not be pushed: {error}");
                return None;
            }
        };
        let login = source.remote.and_then(|remote| remote.login);
        let beside = format!("{}-unfinished", self.branch_name(&self.record.title));
        let own = item.change.is_none().then(|| base.head_branch.clone());
        let last_resort = format!("{beside}-{}", self.lease.run);
        for branch in own.into_iter().chain([beside, last_resort]) {
            let known = self.record.unfinished.get(&branch).cloned().unwrap_or_default();
            // Saved before the push, so that a process that takes over after a crash knows the
            // branch for its own.
            let shown = self.record.unfinished.entry(branch.clone()).or_default();
            shown.push(head.clone());
            if self.save().await.is_err() {
                return None;
            }
            let pushed = put(&pushable, login.as_ref(), &branch, &known).await;
            match pushed {
                Ok(()) => {
                    self.note(Fact::Pushed {
                        branch: branch.clone(),
                        commit: head.as_str().to_owned(),
                    });
                    self.record.unfinished.insert(branch.clone(), vec![head.clone()]);
                    return Some(Saved::Branch(branch));
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

    /// Puts what was accepted of a run on a fork into a file below its outputs: the mirror goes
    /// when the run is over.
    async fn put_into_file(&mut self) -> Option<Saved> {
        let (base, fork) = (self.record.base.clone()?, self.record.fork.clone()?);
        let run = self.lease.run.to_string();
        let settings = &self.workshop.settings;
        let kept = async {
            let Some(mirror) = Mirror::fork_at_hand(&settings.repository, &settings.state_dir, &fork).await? else {
                return Ok(None);
            };
            let accepted = mirror.kept(&run).await?.filter(|accepted| *accepted != base.commit);
            let name = match (accepted, mirror.kept_wip(&run).await?) {
                (Some(_), _) => "accepted",
                (None, Some(_)) => "wip",
                (None, None) => return Ok(None),
            };
            let file = self.outputs.place(BUNDLE).await?;
            mirror.bundle(&run, &base.commit, &file).await?;
            Ok::<_, anyhow::Error>(Some((file, name)))
        };
        match kept.await {
            Ok(file) => {
                let (file, name) = file?;
                self.note(Fact::WorkKept {
                    place: file.display().to_string(),
                });
                // For people: where the folder of outputs lies is nobody's business but the
                // operator's.
                let folder = self.workshop.settings.outputs_dir.file_name()?.display();
                Some(Saved::Kept(Kept::File {
                    file: format!("{folder}/{run}/{BUNDLE}"),
                    reference: format!("refs/coding-agent/{run}/{name}"),
                }))
            }
            Err(error) => {
                tracing::warn!(task = %self.lease.task, "the work so far could not be put into a file: {error}");
                None
            }
        }
    }
}

/// Points a branch of the program's own to a commit. It is at one of the commits that were put
/// there before, of which the new one need not be a descendant, or it goes forward, or it is new;
/// `Moved` where somebody else has put something there.
pub(super) async fn put(
    pushable: &Pushable,
    login: Option<&Login>,
    branch: &str,
    known: &[CommitId],
) -> Result<(), RepositoryError> {
    for from in known.iter().rev() {
        match pushable.advance(login, from, branch).await {
            Err(RepositoryError::Moved { .. }) => {}
            ended => return ended,
        }
    }
    pushable.push(login, branch).await
}
