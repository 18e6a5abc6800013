//! The comments that the model may read: those of people who may write to the repository.
//!
//! The item's text and the commits of a change request are vouched for by the person who sets the
//! label, even if a stranger wrote them; later changes by strangers are not. Other people's
//! comments are left out, or quoted if the operator configured that.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::agent::claim::Claim;
use crate::agent::inbox::Inbox;
use crate::agent::inbox::authority::Authority;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::sections::StartedBy;
use crate::agent::reporter::destination::ReportTarget;
use crate::agent::run::Run;
use crate::agent::settings::OtherComments;
use crate::forge::item::account::Account;
use crate::forge::{Comment, CommentKind, Edit, EditedPart, Item, Permissions};
use crate::journal::fact::Fact;
use crate::markdown::visible;
use crate::repository::CommitId;

/// Comments sorted by the authority of their authors.
#[derive(Debug, Default)]
pub(crate) struct FilteredComments {
    /// Comments of people who may steer the run.
    pub comments: Vec<Comment>,
    /// Comments of others, if they are to be quoted.
    pub others: Vec<Comment>,
}

/// Refuses an item that somebody without write permission changed after the label was set. Each
/// change is judged by itself: a later one by an authorized person does not cover those before.
///
/// A round on the program's own change request has no label that would vouch for its text, so all
/// changes count; they only hide that text, because the task is in the comments and checks. Returns
/// whether the item's own text may be shown to the model.
pub(crate) async fn require_vouched(run: &Run, item: &Item) -> Result<bool, Interruption> {
    let ReportTarget::Item { forge, .. } = &run.reporter.destination else {
        return Ok(true);
    };
    let since = match (&run.claim.record.request.trigger, &run.claim.record.request.round) {
        (Some(trigger), _) => trigger.at,
        (None, Some(_)) => DateTime::UNIX_EPOCH,
        (None, None) => return Ok(true),
    };
    let is_round = run.claim.record.request.trigger.is_none();
    let is_fork = item.change.as_ref().is_some_and(|change| change.is_fork);
    let started_by = run.claim.record.request.started_by;
    let mut edits = forge.edits_since(item, since).await?;
    // Whoever pushed to a branch of the repository itself had write permission then, which
    // suffices.
    edits.retain(|edit| edit.what == EditedPart::Text || is_fork);
    for edit in &edits {
        if !may_change(&run.inbox, forge.as_ref(), edit.event.who()).await? {
            if is_round {
                return Ok(false);
            }
            return Err(Interruption::refused_by_policy(changed_by(edit, started_by)));
        }
    }
    let vouched = run.claim.record.request.vouched.as_ref();
    if vouched.is_some_and(|vouched| vouched.words_changed_silently(item, &edits)) {
        return Err(Interruption::refused_by_policy(changed_silently(started_by)));
    }
    Ok(true)
}

/// Refuses a fork's branch that moved after the label was accepted, unless the fork's owner may
/// write to the repository. If authorized people moved the branch, a remark tells so; only they can
/// move a branch of the repository itself.
pub(crate) async fn require_vouched_head(run: &mut Run, item: &Item, commit: &CommitId) -> Result<(), Interruption> {
    let (Some(change), Some(vouched), ReportTarget::Item { forge, .. }) = (
        &item.change,
        &run.claim.record.request.vouched,
        &run.reporter.destination,
    ) else {
        return Ok(());
    };
    if !vouched.has_another_head(commit.as_str()) {
        return Ok(());
    }
    let started_by = run.claim.record.request.started_by;
    let owner = change.owner();
    // The clone address contains the account's name but not its id.
    let who = Account { login: owner, id: None };
    if change.is_fork && !may_change(&run.inbox, forge.as_ref(), who).await? {
        return Err(Interruption::refused_by_policy(moved(owner, started_by)));
    }
    run.claim.warn(format!(
        "The branch `{}` moved after {}, by people who may write to the repository; the work begins at its newest commit.",
        change.head_branch,
        accepted(started_by)
    ));
    Ok(())
}

/// Returns true if an account's changes are accepted: it may write, or is the program's own.
async fn may_change(inbox: &Inbox, forge: &dyn Permissions, who: Account<'_>) -> Result<bool, Interruption> {
    let is_own = !who.login.is_empty() && forge.bot_name().await?.eq_ignore_ascii_case(who.login);
    Ok(is_own || is_authorised(inbox, forge, who).await?)
}

/// Sorts comments by the authority of their authors, and drops those that may not be read.
pub(crate) async fn filter_comments(run: &Run, comments: Vec<Comment>) -> Result<FilteredComments, Interruption> {
    let mut said = FilteredComments::default();
    let ReportTarget::Item { forge, .. } = &run.reporter.destination else {
        return Ok(said);
    };
    let forge = Arc::clone(forge);
    let quotes = run.claim.services.settings.steering.other_comments == OtherComments::Quote;
    run.inbox.thread_watcher.lock().await.forget_rights();
    for comment in comments {
        if run
            .inbox
            .thread_watcher
            .lock()
            .await
            .may_steer(forge.as_ref(), &comment)
            .await?
        {
            said.comments.push(comment);
        } else if quotes && trigger_at(&run.claim).is_some_and(|at| stood_before(&comment, at)) {
            said.others.push(comment);
        } else {
            run.claim.note(Fact::Ignored {
                author: comment.author.clone(),
                reason: format!(
                    "the comment {} is of {}",
                    comment.key,
                    Authority::of(forge.as_ref(), &comment).described()
                ),
            });
        }
    }
    Ok(said)
}

fn trigger_at(claim: &Claim) -> Option<DateTime<Utc>> {
    claim.record.request.trigger.as_ref().map(|trigger| trigger.at)
}

async fn is_authorised(inbox: &Inbox, forge: &dyn Permissions, who: Account<'_>) -> Result<bool, Interruption> {
    Ok(inbox.thread_watcher.lock().await.is_authorised(forge, who).await?)
}

/// Returns true if the person who set the label saw the comment in its present form. For the text
/// of a review this cannot be determined.
fn stood_before(comment: &Comment, trigger: DateTime<Utc>) -> bool {
    comment.created_at < trigger && comment.updated_at < trigger && comment.key.kind != CommentKind::Review
}

const AGAIN: &str = "read it again, and put the label on once more if it still says what is wanted";

const LOOK: &str = "look at its commits, and put the label on once more if they are wanted";

fn changed_silently(started_by: StartedBy) -> String {
    let accepted = accepted(started_by);
    format!("its title or text is not what it was when {accepted}, and the forge does not tell who changed it; {AGAIN}")
}

fn changed_by(edit: &Edit, started_by: StartedBy) -> String {
    let by = account(&edit.event.by);
    let asked = asked(started_by);
    match edit.what {
        EditedPart::Text => format!(
            "its title or text was changed by {by}, who may not write to the repository, after {asked}; {AGAIN}"
        ),
        EditedPart::Head => format!(
            "commits were pushed to its branch by {by}, who may not write to the repository, after {asked}; {LOOK}"
        ),
    }
}

fn moved(owner: &str, started_by: StartedBy) -> String {
    let (owner, asked) = (account(owner), asked(started_by));
    format!("its branch, in the fork of {owner}, who may not write to the repository, moved after {asked}; {LOOK}")
}

/// Says what the text and the head of an item were recorded at, for people.
fn accepted(started_by: StartedBy) -> &'static str {
    match started_by {
        StartedBy::Label => "the label was accepted",
        StartedBy::Mention | StartedBy::Assignment => "the work was asked for",
    }
}

/// Says how the work began, for people.
fn asked(started_by: StartedBy) -> &'static str {
    match started_by {
        StartedBy::Label => "the label was put on",
        StartedBy::Mention | StartedBy::Assignment => "the work was asked for",
    }
}

/// Returns the name of an account; for a deleted one forges report no name.
fn account(name: &str) -> String {
    match visible::line(name) {
        name if name.is_empty() => "an account that is gone".to_owned(),
        name => name,
    }
}
