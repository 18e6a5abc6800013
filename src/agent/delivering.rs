//! The last stage: the result becomes a branch and a pull/merge request, or a change of the local
//! folder.

use std::sync::Arc;

use super::run::Run;
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
    if run.record.head.is_none() {
        run.commit_result().await?;
    }
    if run.needs_a_word().await? {
        return Ok(Signal::ApprovalNeeded);
    }
    let item = run.item().await?;
    match &item {
        Some(item) if run.record.has_changes() => push(run, item).await?,
        Some(_) => {}
        None => apply(run).await?,
    }
    run.show_final(State::Done).await?;
    let text = talk::done(&run.record, &run.workshop.settings);
    run.say("final", &text).await?;
    if let Some(item) = &item {
        run.take_trigger_off(item).await?;
    }
    run.show_label(State::Done, item.as_ref().map(|item| item.labels.as_slice()))
        .await?;
    run.have_it_followed().await?;
    Ok(Signal::Finished)
}

async fn push(run: &mut Run, item: &Item) -> Result<(), Setback> {
    let (Some(base), Some(head)) = (run.record.base.clone(), run.record.head.clone()) else {
        return Ok(());
    };
    run.may_be_published(item)?;
    let source = run.source(Some(item)).await?;
    let Some(remote) = &source.remote else { return Ok(()) };
    let branch = &base.head_branch;
    let pushable = source.mirror.pushable(&run.lease.run.to_string(), &head).await?;
    let login = remote.login.as_ref();
    let pushed = if item.change.is_some() {
        pushable.advance(login, &base.commit, branch).await
    } else {
        // The finished work need not contain the commit that showed it half done.
        let shown = run.record.unfinished.get(branch).cloned().unwrap_or_default();
        put(&pushable, login, branch, &shown).await
    };
    match pushed {
        Err(RepositoryError::Moved { .. }) => return Err(run.why_moved(remote, branch).await?),
        pushed => pushed?,
    }
    run.note(Fact::Pushed {
        branch: base.head_branch.clone(),
        commit: head.as_str().to_owned(),
    });
    run.clear_unfinished(item, &source).await;
    let Thread::Item { forge, .. } = &run.thread else {
        return Ok(());
    };
    if item.change.is_some() || run.record.change.is_some() {
        return Ok(());
    }
    let forge = Arc::clone(forge);
    let body = talk::change_body(
        &run.record,
        &run.workshop.settings,
        run.lease.task.number(),
        run.lease.run,
    );
    let new = NewChange {
        title: run.workshop.redactor.clean(&message::title(&run.record.title)),
        body: body.written(&run.workshop.redactor),
        head: base.head_branch,
        base: base.branch,
        is_draft: !run.record.is_verified(),
    };
    // A forge may need a minute to see the branch. Opening looks first for one that is open, so it
    // may be given up.
    let opening = forge.open_change(&run.lease.task, &new);
    let change = run.unless_stopped(opening).await?;
    run.note(Fact::ChangeOpened {
        number: change.number,
        url: change.url.clone(),
    });
    run.record.change = Some(change);
    run.save().await?;
    // Now, so that a run of the pull/merge request's own that is asked for from here on waits for
    // this one to end.
    run.have_it_followed().await
}

/// Applies the result to the folder the task was given for, unless it is only to be shown.
async fn apply(run: &mut Run) -> Result<(), Setback> {
    let (Some(local), Some(base), Some(head)) = (&run.record.local, &run.record.base, &run.record.head) else {
        return Ok(());
    };
    if local.dry_run || base.commit == *head {
        return Ok(());
    }
    let (folder, base, head) = (local.folder.clone(), base.commit.clone(), head.clone());
    let source = run.source(None).await?;
    Ok(source.mirror.apply(&base, &head, &folder).await?)
}
