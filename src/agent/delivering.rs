//! The last stage: the result becomes a branch and a pull/merge request, or a change of the local
//! folder.

use super::clearing;
use super::discretion;
use super::following_up;
use super::guard;
use super::keeping;
use super::run::Run;
use super::source;
use std::sync::Arc;

use super::saving::put;
use super::setback::Setback;
use super::talk;
use super::thread::Thread;
use crate::forge::{Item, NewChange};
use crate::journal::fact::Fact;
use crate::repository::{RepositoryError, message};
use crate::task::state::{Signal, State};

/// Pushes, opens, says so and sets the final label. Every step may be repeated after a crash.
pub(super) async fn deliver(run: &mut Run) -> Result<Signal, Setback> {
    // What was checked is delivered. Where nothing is checked it is taken out now, before a forge
    // is asked that may not answer.
    if run.claim.record.head.is_none() {
        keeping::commit_result(run).await?;
    }
    if guard::needs_a_word(run).await? {
        return Ok(Signal::ApprovalNeeded);
    }
    let item = run.reporter.item(&mut run.claim).await?;
    match &item {
        Some(item) if run.claim.record.has_changes() => push(run, item).await?,
        Some(_) => {}
        None => apply(run).await?,
    }
    run.reporter.show_final(&mut run.claim, State::Done).await?;
    let text = talk::done(&run.claim.record, &run.claim.services.settings);
    run.reporter.say(&mut run.claim, "final", &text).await?;
    if let Some(item) = &item {
        run.reporter.take_trigger_off(item).await?;
    }
    run.reporter
        .show_label(
            &mut run.claim,
            State::Done,
            item.as_ref().map(|item| item.labels.as_slice()),
        )
        .await?;
    following_up::have_it_followed(&run.claim).await?;
    Ok(Signal::Finished)
}

async fn push(run: &mut Run, item: &Item) -> Result<(), Setback> {
    let (Some(base), Some(head)) = (run.claim.record.base.clone(), run.claim.record.head.clone()) else {
        return Ok(());
    };
    discretion::may_be_published(&run.claim, item)?;
    let source = source::source(run, Some(item)).await?;
    let Some(remote) = &source.remote else { return Ok(()) };
    let branch = &base.head_branch;
    let pushable = source.mirror.pushable(&run.claim.lease.run.to_string(), &head).await?;
    let login = remote.login.as_ref();
    let pushed = if item.change.is_some() {
        pushable.advance(login, &base.commit, branch).await
    } else {
        // The finished work need not contain the commit that showed it half done.
        let shown = run.claim.record.unfinished.get(branch).cloned().unwrap_or_default();
        put(&pushable, login, branch, &shown).await
    };
    match pushed {
        Err(RepositoryError::Moved { .. }) => return Err(source::why_moved(&run.claim, remote, branch).await?),
        pushed => pushed?,
    }
    run.claim.note(Fact::Pushed {
        branch: base.head_branch.clone(),
        commit: head.as_str().to_owned(),
    });
    clearing::clear_unfinished(&mut run.claim, item, &source).await;
    let Thread::Item { forge, .. } = &run.reporter.destination else {
        return Ok(());
    };
    if item.change.is_some() || run.claim.record.change.is_some() {
        return Ok(());
    }
    let forge = Arc::clone(forge);
    let body = talk::change_body(
        &run.claim.record,
        &run.claim.services.settings,
        run.claim.lease.task.number(),
        run.claim.lease.run,
    );
    let new = NewChange {
        title: run
            .claim
            .services
            .redactor
            .clean(&message::title(&run.claim.record.title)),
        body: body.written(&run.claim.services.redactor),
        head: base.head_branch,
        base: base.branch,
        is_draft: !run.claim.record.is_verified(),
    };
    // A forge may need a minute to see the branch. Opening looks first for one that is open, so it
    // may be given up.
    let opening = forge.open_change(&run.claim.lease.task, &new);
    let change = run.claim.unless_stopped(opening).await?;
    run.claim.note(Fact::ChangeOpened {
        number: change.number,
        url: change.url.clone(),
    });
    run.claim.record.change = Some(change);
    run.claim.save().await?;
    // Now, so that a run of the pull/merge request's own that is asked for from here on waits for
    // this one to end.
    following_up::have_it_followed(&run.claim).await
}

/// Applies the result to the folder the task was given for, unless it is only to be shown.
async fn apply(run: &mut Run) -> Result<(), Setback> {
    let (Some(local), Some(base), Some(head)) =
        (&run.claim.record.local, &run.claim.record.base, &run.claim.record.head)
    else {
        return Ok(());
    };
    if local.dry_run || base.commit == *head {
        return Ok(());
    }
    let (folder, base, head) = (local.folder.clone(), base.commit.clone(), head.clone());
    let source = source::source(run, None).await?;
    Ok(source.mirror.apply(&base, &head, &folder).await?)
}
