//! Saves unfinished work: [`keep_work`] of a run that another process continues, [`set_work_aside`]
//! of one that waits, [`rescue`] of one that ends, [`take_result`] of a task without a forge.
//!
//! Work that began in a fork is not pushed to any branch: its history has the fork's commits, and
//! on a branch of the item's own repository these would run with that repository's secrets. It is
//! kept on the worker, and people are told so.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::approval::result_guard;
use crate::agent::claim::Claim;
use crate::agent::claim::on_forge::fenced;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::{KeptWork, SavedWork};
use crate::agent::run::Run;
use crate::agent::workspace::confidentiality;
use crate::agent::workspace::open;
use crate::agent::workspace::snapshots;
use crate::agent::workspace::source;
use crate::agent::workspace::unfinished_work::{Copied, WorkCopy};
use crate::journal::fact::Fact;
use crate::repository::git::address::Login;
use crate::repository::mirror::Mirror;
use crate::repository::remote::pushing::Pushable;
use crate::repository::{CommitId, RepositoryError};
use crate::task::state::{Judged, State};

/// Longest time to save the work when a run ends or is suspended.
pub(crate) const RESCUE_TIME: Duration = Duration::from_mins(1);

/// Longest time of that for the container to give the work out.
const TAKING_TIME: Duration = Duration::from_secs(40);
/// Longest time for a last snapshot where it does not.
const KEEPING_TIME: Duration = Duration::from_secs(10);

/// Message of the commit with changes that were uncommitted when the run was paused.
const UNFINISHED: &str = "Work in progress";
/// Name of the file that keeps the work of an ended run on a fork.
const BUNDLE: &str = "work.bundle";

/// Saves the work of a run that is set aside: [`keep_work`], and on a branch.
pub(crate) async fn set_work_aside(run: &mut Run) -> Option<SavedWork> {
    if !keep_work(run).await {
        return None;
    }
    let shown = async {
        let head = take_out(run, UNFINISHED).await?;
        copy_work(run).await;
        show_work(run, &head).await
    };
    tokio::time::timeout(RESCUE_TIME, shown).await.ok().flatten()
}

/// Saves the workspace to the mirror for the next container. Returns true if there was something to
/// save and it was saved; on failure the container stays for the process that resumes the run.
pub(crate) async fn keep_work(run: &mut Run) -> bool {
    let is_worth_it = match run.claim.state {
        State::Working | State::AwaitingAnswer | State::Verifying | State::Reviewing(Judged::Result) => true,
        State::Delivering => run.claim.record.delivered.head.is_none(),
        _ => false,
    };
    let Some(opened) = run.workspace.open.as_mut().filter(|_| is_worth_it) else {
        return false;
    };
    opened.keeping.finish().await;
    match tokio::time::timeout(RESCUE_TIME, opened.project.keep()).await {
        Ok(Ok(true)) => {
            copy_work(run).await;
            return true;
        }
        Ok(Ok(false)) => {
            tracing::warn!(task = %run.claim.lease.task, "not all of the work can be kept outside of its container, which stays");
            copy_work(run).await;
        }
        Ok(Err(interruption)) => {
            tracing::warn!(task = %run.claim.lease.task, "the work could not be kept: {interruption:?}");
        }
        Err(_) => tracing::warn!(task = %run.claim.lease.task, "the work could not be kept in time"),
    }
    // The work, or some of it, exists only in the container, which stays for the process that
    // resumes the run.
    open::leave_container(run).await;
    false
}

/// Copies what the mirror keeps of the run into the store. Where other machines share the store,
/// what is too large for it is pushed to a branch instead.
async fn copy_work(run: &mut Run) {
    let (Some(opened), Some(copy)) = (&run.workspace.open, WorkCopy::of(&run.claim)) else {
        return;
    };
    let project = Arc::clone(&opened.project);
    // Too late is no loss on this machine, which has the work in the mirror.
    let copied = tokio::time::timeout(RESCUE_TIME, copy.write(project.mirror())).await;
    if copied != Ok(Copied::TooLarge) || !run.claim.services.store.is_shared() {
        return;
    }
    let pushed = async {
        let head = take_out(run, UNFINISHED).await?;
        let saved = show_work(run, &head).await?;
        matches!(saved, SavedWork::Branch(_)).then_some(head)
    };
    if let Ok(Some(head)) = tokio::time::timeout(RESCUE_TIME, pushed).await {
        copy.refer_to(project.mirror(), head).await;
    }
}

/// Pushes the work so far to a branch of the program's own, so that an end before delivery loses
/// nothing. Work on a fork is written to a file instead.
pub(crate) async fn rescue(run: &mut Run) -> Option<SavedWork> {
    // Saved before the forge is asked for anything. Where it has to be waited for, the next claim
    // finds no container. On this machine it pushes from the mirror, on another from the copy.
    let is_noted = tokio::time::timeout(RESCUE_TIME, note_result(run)).await;
    if is_noted != Ok(true) {
        return None;
    }
    copy_work(run).await;
    let shown = async {
        if run.claim.record.planned.fork.is_some() {
            return put_into_file(&mut run.claim).await;
        }
        let head = run.claim.record.delivered.head.clone()?;
        show_work(run, &head).await
    };
    tokio::time::timeout(RESCUE_TIME, shown).await.ok().flatten()
}

/// Takes the work out and saves that; returns false if another worker has the run.
async fn note_result(run: &mut Run) -> bool {
    take_result(run).await;
    if let Err(interruption) = run.claim.save().await {
        if matches!(interruption, Interruption::Disowned(_)) {
            return false;
        }
        tracing::warn!(task = %run.claim.lease.task, "the work taken out could not be noted: {interruption:?}");
    }
    true
}

/// Fetches the commits from the workspace unless that was done before; where they cannot be had,
/// what was kept of them counts.
pub(crate) async fn take_result(run: &mut Run) {
    if run.claim.record.delivered.head.is_some() {
        return;
    }
    let title = run.claim.record.request.title.clone();
    // A container that does not answer must not take up the time for what was kept.
    let taken = match tokio::time::timeout(TAKING_TIME, take_out(run, &title)).await {
        Ok(Some(head)) => Some(head),
        Ok(None) | Err(_) => take_kept(run).await,
    };
    run.claim.record.delivered.head = taken;
}

/// Accepts what was kept of work that cannot be taken out: its container is gone, or something in
/// it stands in the way. What is refused of a result is refused here, too.
async fn take_kept(run: &mut Run) -> Option<CommitId> {
    let project = Arc::clone(&run.workspace.open.as_ref()?.project);
    // Anew, without what a snapshot leaves out; on failure the last one that was kept counts.
    match tokio::time::timeout(KEEPING_TIME, project.keep()).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(task = %run.claim.lease.task, "the work could not be kept: {error}"),
        Err(_) => tracing::warn!(task = %run.claim.lease.task, "the work could not be kept in time"),
    }
    let taken = async {
        let files = &run.claim.record.planned.rules.files;
        let Some(accepted) = project.take_kept(files).await? else {
            return Ok(None);
        };
        confidentiality::shown_as(&run.claim, project.mirror(), accepted.head)
            .await
            .map(Some)
    };
    match taken.await {
        Ok(head) => head,
        Err(interruption) => {
            tracing::warn!(task = %run.claim.lease.task, "what was kept of the work could not be taken: {interruption:?}");
            None
        }
    }
}

/// Fetches the commits from the workspace, if one is open; `message` is for what was uncommitted.
async fn take_out(run: &mut Run, message: &str) -> Option<CommitId> {
    // A running snapshot temporarily moves the branch back.
    snapshots::finish_snapshot(run).await;
    let project = Arc::clone(&run.workspace.open.as_ref()?.project);
    let taken = async {
        let files = &run.claim.record.planned.rules.files;
        let accepted = project.take_back(message, files).await?;
        confidentiality::shown_as(&run.claim, project.mirror(), accepted.head).await
    };
    match taken.await {
        Ok(head) => Some(head),
        Err(interruption) => {
            tracing::warn!(task = %run.claim.lease.task, "the work so far could not be taken out: {interruption:?}");
            None
        }
    }
}

/// Pushes `head` to the run's own branch, or to one beside it if others pushed to that. The
/// branch of a pull/merge request only receives finished work.
async fn show_work(run: &mut Run, head: &CommitId) -> Option<SavedWork> {
    let base = run.claim.record.planned.base.clone()?;
    if *head == base.commit {
        return None;
    }
    let item = run.reporter.item(&mut run.claim).await.ok()??;
    if confidentiality::may_be_published(&run.claim, &item).is_err() {
        return None;
    }
    let source = source::source_at_end(run, &item).await.ok()?;
    let mirror = source.mirror;
    if run.claim.record.planned.fork.is_some() || !mirror.is_of(&item.clone_url) {
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
    let aside = Aside {
        pushable,
        login,
        home: item.clone_url,
    };
    let beside = format!(
        "{}-unfinished",
        confidentiality::branch_of(&run.claim, &run.claim.record.request.title)
    );
    let own = item.change.is_none().then(|| base.head_branch.clone());
    let last_resort = format!("{beside}-{}", run.claim.lease.run);
    for branch in own.into_iter().chain([beside, last_resort]) {
        match aside.put_on(&branch, &mut run.claim).await {
            Ok(true) => return Some(SavedWork::Branch(branch)),
            Ok(false) => {}
            Err(interruption) => {
                tracing::warn!(task = %run.claim.lease.task, "the work so far could not be pushed: {interruption:?}");
                return None;
            }
        }
    }
    None
}

/// Unfinished work that is pushed to a branch of the program's own.
struct Aside {
    pushable: Pushable,
    login: Option<Login>,
    /// The clone address of the item's repository.
    home: String,
}

impl Aside {
    /// Pushes to this branch; returns false if it has commits of others.
    async fn put_on(&self, branch: &str, claim: &mut Claim) -> Result<bool, Interruption> {
        let head = self.pushable.commit();
        let unfinished = &mut claim.record.delivered.unfinished;
        let known = unfinished.get(branch).cloned().unwrap_or_default();
        // Saved before the push, so that a process that takes over after a crash recognizes the
        // branch as its own.
        unfinished.entry(branch.to_owned()).or_default().push(head.clone());
        claim.save().await?;
        let on_forge = claim.on_forge.clone();
        let fenced = fenced(on_forge.as_deref(), self.pushable.clone(), &self.home).await?;
        match set_branch(&fenced.pushable, self.login.as_ref(), branch, &known).await {
            Ok(()) => fenced.passed(),
            Err(RepositoryError::Moved { .. }) => {
                drop(fenced);
                claim.record.delivered.unfinished.insert(branch.to_owned(), known);
                // The branch was moved, or the claim.
                if let Some(on_forge) = &on_forge {
                    on_forge.confirm_now().await?;
                }
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        claim.note(Fact::Pushed {
            branch: branch.to_owned(),
            commit: head.as_str().to_owned(),
        });
        let shown = vec![head.clone()];
        claim.record.delivered.unfinished.insert(branch.to_owned(), shown);
        Ok(true)
    }
}

/// Writes the accepted commits of a run on a fork to a file among its outputs, since the mirror is
/// removed at the end of the run.
async fn put_into_file(claim: &mut Claim) -> Option<SavedWork> {
    let (base, fork) = (claim.record.planned.base.clone()?, claim.record.planned.fork.clone()?);
    let run = claim.lease.run.to_string();
    let settings = &claim.services.settings;
    let kept = async {
        let Some(mirror) = Mirror::at_hand(&settings.repository, &settings.state_dir, &fork).await? else {
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
            // A relative path, since the location of the folder of outputs only concerns the
            // operator.
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

/// Sets a branch of the program's own to a commit. The branch may be new, at one of the `known`
/// commits, which need not be an ancestor, or at an ancestor; anything else was pushed by others
/// and gives `Moved`.
pub(crate) async fn set_branch(
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
