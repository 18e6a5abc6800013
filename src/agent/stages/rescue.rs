//! Unfinished work goes where people can see it, and where another container can go on with it.
//!
//! Work that began in a fork goes to no branch: below it lie the fork's commits, and on a branch of
//! the item's own repository they would be run with that repository's secrets. It is kept with the
//! program, and people are told so.

use crate::agent::approval::result_guard;
use crate::agent::claim::Claim;
use crate::agent::run::Run;
use crate::agent::workspace::confidentiality;
use crate::agent::workspace::open;
use crate::agent::workspace::snapshots;
use crate::agent::workspace::source;
use std::time::Duration;

use crate::agent::record::{KeptWork, SavedWork};
use crate::journal::fact::Fact;
use crate::repository::address::Login;
use crate::repository::mirror::Mirror;
use crate::repository::pushing::Pushable;
use crate::repository::{CommitId, RepositoryError};
use crate::task::state::State;

/// How long saving the work may take when a run is put down.
pub(crate) const RESCUE_TIME: Duration = Duration::from_mins(1);

/// The title of a commit of what was not committed when the run was set aside.
const UNFINISHED: &str = "Work in progress";
/// The file that keeps the work of a run on a fork that is over.
const BUNDLE: &str = "work.bundle";

/// Keeps the workspace in the mirror, so that another container can go on with it, and shows
/// the work on a branch.
pub(crate) async fn set_work_aside(run: &mut Run) -> Option<SavedWork> {
    if !keep_work(run).await {
        return None;
    }
    let shown = async {
        let taken = run
            .workspace
            .open
            .as_ref()?
            .workspace
            .take_back(UNFINISHED, &run.claim.record.rules.files)
            .await;
        match taken {
            Ok(accepted) => {
                let mirror = run.workspace.open.as_ref()?.workspace.mirror().clone();
                let head = confidentiality::shown_as(&run.claim, &mirror, accepted.head)
                    .await
                    .ok()?;
                show_work(run, &head).await
            }
            Err(interruption) => {
                tracing::warn!(task = %run.claim.lease.task, "the work so far could not be taken out: {interruption:?}");
                None
            }
        }
    };
    tokio::time::timeout(RESCUE_TIME, shown).await.ok().flatten()
}

/// Keeps the workspace in the mirror. Returns whether there was something to keep and it is
/// kept; else the container stays for whoever takes the run up.
pub(crate) async fn keep_work(run: &mut Run) -> bool {
    let is_worth_it = match run.claim.state {
        State::Working | State::AwaitingAnswer | State::Verifying => true,
        State::Delivering => run.claim.record.head.is_none(),
        _ => false,
    };
    let Some(opened) = run.workspace.open.as_mut().filter(|_| is_worth_it) else {
        return false;
    };
    opened.keeping.finish().await;
    match tokio::time::timeout(RESCUE_TIME, opened.workspace.keep()).await {
        Ok(Ok(_)) => return true,
        Ok(Err(interruption)) => {
            tracing::warn!(task = %run.claim.lease.task, "the work could not be kept: {interruption:?}")
        }
        Err(_) => tracing::warn!(task = %run.claim.lease.task, "the work could not be kept in time"),
    }
    // It is nowhere but in the container, which stays for whoever takes the run up.
    open::leave_container(run).await;
    false
}

/// Pushes what was done so far to a branch of the program's own, so that an end before delivery
/// loses nothing. What was done on a fork is put into a file instead.
pub(crate) async fn rescue(run: &mut Run) -> Option<SavedWork> {
    let rescued = async {
        take_result(run).await;
        if run.claim.record.fork.is_some() {
            return put_into_file(&mut run.claim).await;
        }
        let head = run.claim.record.head.clone()?;
        show_work(run, &head).await
    };
    tokio::time::timeout(RESCUE_TIME, rescued).await.ok().flatten()
}

/// Takes the commits out of the workspace unless that was done before.
pub(crate) async fn take_result(run: &mut Run) {
    // A snapshot that is being made moves the branch back for a moment.
    snapshots::finish_snapshot(run).await;
    let Some(opened) = run.workspace.open.as_ref().filter(|_| run.claim.record.head.is_none()) else {
        return;
    };
    let taken = opened
        .workspace
        .take_back(&run.claim.record.title, &run.claim.record.rules.files)
        .await;
    let shown = match taken {
        Ok(accepted) => confidentiality::shown_as(&run.claim, opened.workspace.mirror(), accepted.head).await,
        Err(error) => Err(error.into()),
    };
    match shown {
        Ok(head) => run.claim.record.head = Some(head),
        Err(interruption) => {
            tracing::warn!(task = %run.claim.lease.task, "the work so far could not be taken out: {interruption:?}");
        }
    }
}

/// Pushes `head` to the run's own branch; where somebody else's commits are on it, beside it. A
/// pull/merge request's branch gets finished work only.
async fn show_work(run: &mut Run, head: &CommitId) -> Option<SavedWork> {
    let base = run.claim.record.base.clone()?;
    if *head == base.commit {
        return None;
    }
    let item = run.reporter.item(&mut run.claim).await.ok()??;
    if confidentiality::may_be_published(&run.claim, &item).is_err() {
        return None;
    }
    let source = source::source(run, Some(&item)).await.ok()?;
    let mirror = source.mirror;
    if run.claim.record.fork.is_some() || !mirror.is_of(&item.clone_url) {
        run.claim.note(Fact::WorkKept {
            place: "the mirror of the fork".to_owned(),
        });
        return Some(SavedWork::Kept(KeptWork::Mirror));
    }
    if !result_guard::may_be_shown(&mut run.claim, &mirror, &base.commit, head).await {
        return None;
    }
    let pushable = match mirror.pushable(&run.claim.lease.run.to_string(), head).await {
        Ok(pushable) => pushable,
        Err(error) => {
            tracing::warn!(task = %run.claim.lease.task, "the work so far could not be pushed: {error}");
            return None;
        }
    };
    let login = source.remote.and_then(|remote| remote.login);
    let beside = format!(
        "{}-unfinished",
        confidentiality::branch_of(&run.claim, &run.claim.record.title)
    );
    let own = item.change.is_none().then(|| base.head_branch.clone());
    let last_resort = format!("{beside}-{}", run.claim.lease.run);
    for branch in own.into_iter().chain([beside, last_resort]) {
        let known = run.claim.record.unfinished.get(&branch).cloned().unwrap_or_default();
        // Saved before the push, so that a process that takes over after a crash knows the
        // branch for its own.
        let shown = run.claim.record.unfinished.entry(branch.clone()).or_default();
        shown.push(head.clone());
        if run.claim.save().await.is_err() {
            return None;
        }
        let pushed = put(&pushable, login.as_ref(), &branch, &known).await;
        match pushed {
            Ok(()) => {
                run.claim.note(Fact::Pushed {
                    branch: branch.clone(),
                    commit: head.as_str().to_owned(),
                });
                run.claim.record.unfinished.insert(branch.clone(), vec![head.clone()]);
                return Some(SavedWork::Branch(branch));
            }
            Err(RepositoryError::Moved { .. }) => {
                run.claim.record.unfinished.insert(branch, known);
            }
            Err(error) => {
                tracing::warn!(task = %run.claim.lease.task, "the work so far could not be pushed: {error}");
                return None;
            }
        }
    }
    None
}

/// Puts what was accepted of a run on a fork into a file below its outputs: the mirror goes
/// when the run is over.
async fn put_into_file(claim: &mut Claim) -> Option<SavedWork> {
    let (base, fork) = (claim.record.base.clone()?, claim.record.fork.clone()?);
    let run = claim.lease.run.to_string();
    let settings = &claim.services.settings;
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
        let file = claim.outputs.place(BUNDLE).await?;
        mirror.bundle(&run, &base.commit, &file).await?;
        Ok::<_, anyhow::Error>(Some((file, name)))
    };
    match kept.await {
        Ok(file) => {
            let (file, name) = file?;
            claim.note(Fact::WorkKept {
                place: file.display().to_string(),
            });
            // For people: where the folder of outputs lies is nobody's business but the
            // operator's.
            let folder = claim.services.settings.outputs_dir.file_name()?.display();
            Some(SavedWork::Kept(KeptWork::File {
                file: format!("{folder}/{run}/{BUNDLE}"),
                reference: format!("refs/coding-agent/{run}/{name}"),
            }))
        }
        Err(error) => {
            tracing::warn!(task = %claim.lease.task, "the work so far could not be put into a file: {error}");
            None
        }
    }
}

/// Points a branch of the program's own to a commit. It is at one of the commits that were put
/// there before, of which the new one need not be a descendant, or it goes forward, or it is new;
/// `Moved` where somebody else has put something there.
pub(crate) async fn put(
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
