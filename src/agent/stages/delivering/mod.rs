//! The last stage: the result becomes a branch and a pull/merge request, or a change of the local
//! folder.

mod in_step; // the request follows the last result
mod furnishing; // labels and people of the configuration
mod target; // the branch that a new request is merged into
mod project_template; // the project's template of requests
mod threads; // reviewers' threads are answered
mod leftover_branches; // obsolete branches with unfinished work

use std::sync::Arc;

use crate::agent::approval::result_guard;
use crate::agent::claim::on_forge::fenced;
use crate::agent::commands;
use crate::agent::record::PushedResult;
use crate::agent::record::interruption::Interruption;
use crate::agent::reporter::Carried;
use crate::agent::reporter::destination::ReportTarget;
use crate::agent::run::Run;
use crate::agent::stages::follow_up;
use crate::agent::stages::rescue::pushing::{reached, set_branch};
use crate::agent::text::comments;
use crate::agent::workspace::confidentiality;
use crate::agent::workspace::open;
use crate::agent::workspace::snapshots;
use crate::agent::workspace::source;
use crate::agent::workspace::source::push_right::may_be_pushed;
use crate::forge::{Forge, Item, NewChange, Opened};
use crate::journal::fact::{Fact, LONGEST_DOCUMENT};
use crate::repository::CommitId;
use crate::repository::commit::message;
use crate::task::state::{Signal, State};
use crate::workspace::base::Base;

/// Pushes, opens the request, comments and sets the final label. Each step is idempotent.
pub(crate) async fn deliver(run: &mut Run) -> Result<Signal, Interruption> {
    // Given while the result was checked, when no model was asked. Those before the question for
    // an approval are no answer to it.
    commands::hear_orders(run).await?;
    // The checked commit is delivered. A run of an earlier version has none where there are no
    // checks: it is created now, before any request to a forge that may fail.
    if run.claim.record.delivered.head.is_none() {
        open::ensure_open(run).await?;
        snapshots::commit_result(run).await?;
    }
    note_difference(run).await;
    if !run.claim.record.is_handed_over() && result_guard::needs_approval(run).await? {
        return Ok(Signal::ApprovalNeeded);
    }
    let item = run.reporter.item(&mut run.claim).await?;
    run.claim.confirm_item().await?;
    match &item {
        Some(item) if run.claim.record.has_changes() => hand_over(run, item).await?,
        Some(_) => answer_threads(run).await?,
        None => apply(run).await?,
    }
    // Those that came since: nobody hears them after the end.
    commands::hear_orders(run).await?;
    run.reporter.show_final(&mut run.claim, State::Done).await?;
    let text = comments::done(&run.claim.record, &run.claim.services.settings);
    run.reporter.say(&mut run.claim, "final", &text).await?;
    if let Some(item) = &item {
        run.reporter.take_trigger_off(item).await?;
    }
    let carried = match &item {
        Some(item) => Carried::Read(&item.labels),
        None => Carried::Unread,
    };
    run.reporter.show_label(&mut run.claim, State::Done, carried).await?;
    follow_up::register_follow_up(&run.claim, &run.reporter).await?;
    Ok(Signal::Finished)
}

/// Records in the journal what the result changes, once for each result. The delivery does not
/// depend on it.
async fn note_difference(run: &mut Run) {
    let (Some(base), Some(head)) = (
        run.claim.record.planned.base.clone(),
        run.claim.record.delivered.head.clone(),
    ) else {
        return;
    };
    if *base.pushed_up_to() == head || run.claim.record.delivered.noted.as_ref() == Some(&head) {
        return;
    }
    let told = async {
        let mirror = source::mirror_at_hand(run).await?;
        Ok::<_, Interruption>(mirror.diff(base.pushed_up_to(), &head, LONGEST_DOCUMENT).await?)
    };
    match told.await {
        Ok((difference, is_cut)) => {
            run.claim.note(Fact::DifferenceMade {
                commit: head.as_str().to_owned(),
                difference,
                is_cut,
            });
            run.claim.record.delivered.noted = Some(head);
        }
        Err(error) => {
            tracing::warn!(task = %run.claim.lease.task, "the difference could not be recorded: {error:?}");
        }
    }
}

/// Hands the result over: pushes it, and opens the request or brings the item's own in step with
/// it. Where people have it already it is not pushed again: they may have gone on with its branch
/// meanwhile, or merged and deleted it.
async fn hand_over(run: &mut Run, item: &Item) -> Result<(), Interruption> {
    let (Some(mut base), Some(head)) = (
        run.claim.record.planned.base.clone(),
        run.claim.record.delivered.head.clone(),
    ) else {
        return Ok(());
    };
    let ReportTarget::Item { forge, .. } = &run.reporter.destination else {
        return Ok(());
    };
    let forge = Arc::clone(forge);
    let is_to_be_opened = item.change.is_none() && run.claim.record.delivered.change.is_none();
    if is_to_be_opened {
        // Nothing is pushed that cannot be merged into anything.
        base.branch = target::branch(run, &forge, item, &base).await?;
    }
    if !run.claim.record.is_handed_over() {
        push(run, item, &base, &head).await?;
    }
    if item.change.is_some() {
        note_handed_over(run);
        run.claim.save().await?;
        in_step::after_round(run, &forge, item).await?;
        return threads::answer(run, &forge).await;
    }
    if is_to_be_opened {
        open_change(run, &forge, base).await?;
    }
    furnishing::furnish(run, &forge).await
}

fn note_handed_over(run: &mut Run) {
    let delivered = &mut run.claim.record.delivered;
    delivered.handed_over.clone_from(&delivered.head);
    run.inbox.mailbox.note_handed_over();
}

async fn push(run: &mut Run, item: &Item, base: &Base, head: &CommitId) -> Result<(), Interruption> {
    confidentiality::may_be_published(&run.claim, item)?;
    // Once more: it may be the default branch by now, or protected.
    may_be_pushed(&run.claim, &run.reporter, item).await?;
    let source = source::source(run, Some(item)).await?;
    let Some(remote) = &source.remote else { return Ok(()) };
    let branch = &base.head_branch;
    let pushable = source.mirror.pushable(&run.claim.lease.run.to_string(), head).await?;
    let login = remote.login.as_ref();
    let on_forge = run.claim.on_forge.clone();
    let fenced = fenced(on_forge.as_deref(), pushable, &item.clone_url).await?;
    let pushed = if item.change.is_some() {
        reached(head, fenced.pushable.advance(login, base.pushed_up_to(), branch).await)?
    } else {
        // The finished work need not be a descendant of the unfinished commit that was pushed.
        set_branch(&mut run.claim, &fenced.pushable, login, branch).await?
    };
    let Some(pushed) = pushed else {
        drop(fenced);
        // The branch was moved, or the claim.
        if let Some(on_forge) = &on_forge {
            on_forge.confirm_now().await?;
        }
        return Err(source::why_moved(&run.claim, remote, branch).await?);
    };
    fenced.passed();
    run.claim.note(Fact::Pushed {
        branch: branch.clone(),
        commit: pushed.as_str().to_owned(),
    });
    run.claim.record.delivered.pushed = Some(PushedResult {
        result: head.clone(),
        commit: pushed,
    });
    leftover_branches::clear_unfinished(&mut run.claim, item, &source).await;
    Ok(())
}

async fn answer_threads(run: &mut Run) -> Result<(), Interruption> {
    let ReportTarget::Item { forge, .. } = &run.reporter.destination else {
        return Ok(());
    };
    let forge = Arc::clone(forge);
    threads::answer(run, &forge).await
}

/// Opens the request, or brings the one that is open in step with the result.
async fn open_change(run: &mut Run, forge: &Arc<dyn Forge>, base: Base) -> Result<(), Interruption> {
    let task = run.claim.lease.task.clone();
    let title = message::title(&run.claim.record.request.title);
    let kind = forge
        .change_id(&task, 0)
        .and_then(|change| change.item().map(|item| item.kind));
    let template = match kind.filter(|_| run.claim.services.settings.change_requests.template) {
        Some(kind) => project_template::read(run, kind).await?,
        None => None,
    };
    let sections = in_step::Sections::of_issue(&run.claim, &title);
    let redactor = &run.claim.services.redactor;
    let mut new = NewChange {
        title: redactor.clean(&title),
        body: redactor.clean(&sections.text(template.as_deref(), redactor)),
        head: base.head_branch.clone(),
        base: base.branch.clone(),
        is_draft: !run.claim.record.is_verified(),
    };
    // A forge may need a minute to see the branch. This may be interrupted, because opening first
    // searches for an open request.
    let opened = run.claim.unless_stopped(forge.open_change(&task, &new)).await;
    let Opened { change, is_new } = match opened {
        Err(Interruption::Failed(failure)) => {
            // What was known of the repository may be some minutes old.
            forge.repository_now(&task).await?;
            let item = forge.item(&task).await?;
            let branch = target::branch(run, forge, &item, &base).await?;
            if branch == new.base {
                return Err(Interruption::Failed(failure));
            }
            new.base = branch;
            run.claim.unless_stopped(forge.open_change(&task, &new)).await?
        }
        opened => opened?,
    };
    if is_new {
        run.claim.note(Fact::ChangeOpened {
            number: change.number,
            url: change.url.clone(),
        });
    } else {
        // What people took off a request since it was opened is not put on again.
        let is_own = in_step::renew(run, forge, change.number, &title).await?;
        run.claim.record.delivered.is_furnished = !is_own;
    }
    run.claim.record.delivered.change = Some(change);
    note_handed_over(run);
    run.claim.save().await?;
    // Registered before the end of this run, so that a follow-up run requested from now on waits
    // for it.
    follow_up::register_follow_up(&run.claim, &run.reporter).await
}

/// Applies the result to the task's folder, unless it is a dry run.
async fn apply(run: &mut Run) -> Result<(), Interruption> {
    let (Some(local), Some(base), Some(head)) = (
        &run.claim.record.request.local,
        &run.claim.record.planned.base,
        &run.claim.record.delivered.head,
    ) else {
        return Ok(());
    };
    if local.dry_run || base.commit == *head {
        return Ok(());
    }
    let (folder, base, head) = (local.folder.clone(), base.commit.clone(), head.clone());
    let source = source::source(run, None).await?;
    Ok(source.mirror.apply(&base, &head, &folder).await?)
}
