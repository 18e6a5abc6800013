//! Whether the program may push its result: to the repository at all, and to the branch that a
//! pull/merge request leads from.
//!
//! Whoever can read a repository can open a request from any of its branches, the default one
//! included. A label on that asks for work on a request; it does not ask for commits on a branch
//! that others change only through requests which people merge, and which are checked before that.

use crate::agent::claim::Claim;
use crate::agent::record::interruption::Interruption;
use crate::agent::reporter::Reporter;
use crate::agent::reporter::destination::ReportTarget;
use crate::forge::{ChangeHead, Item, PushRight};

/// Refuses a repository that the bot's account may only read, and a change from a fork that does
/// not let the program push, from the default branch, and from a protected one. It is asked before
/// any fetch or model call, so that nothing is paid for in vain, and before the push.
pub(crate) async fn may_be_pushed(claim: &Claim, reporter: &Reporter, item: &Item) -> Result<(), Interruption> {
    let ReportTarget::Item { forge, .. } = &reporter.destination else {
        return Ok(());
    };
    if let Some(change) = &item.change {
        check_fork(change)?;
        if change.is_fork {
            return Ok(());
        }
    }
    if let Some(remedy) = forge.missing_push_right(&item.task).await? {
        let repository = item.task.repository().unwrap_or_default();
        return Err(Interruption::failed(format!(
            "the program's account may not push to {repository}, so the result could not be delivered; {remedy}"
        )));
    }
    let Some(change) = &item.change else {
        return Ok(());
    };
    let head = &change.head_branch;
    if item.default_branch.as_ref() == Some(head) {
        return Err(shared(head, "the default branch of the repository", ""));
    }
    // The branch of a request that the program opened is its own, whatever all branches have to
    // keep.
    if claim.services.store.followed(&item.task).await?.is_none() && forge.is_protected(&item.task, head).await? {
        let start = format!(" and that the work starts from `{head}`");
        return Err(shared(head, "a protected branch of the repository", &start));
    }
    Ok(())
}

fn check_fork(change: &ChangeHead) -> Result<(), Interruption> {
    let remedy = match change.push {
        PushRight::Given => return Ok(()),
        PushRight::NotGiven => "let its owner allow edits by maintainers",
        PushRight::ForMergers => "let the bot's account merge into the target branch, as only those may push who can",
        PushRight::OutOfReach => {
            "an App or a fine-grained token reaches no fork of another owner, so use a classic token of an account with the role Write"
        }
    };
    Err(Interruption::refused_by_policy(format!(
        "the branch `{}` of {} may not be pushed to by this program; {remedy}, or open the change from a branch of this repository",
        change.head_branch, change.head_clone_url
    )))
}

/// Returns the refusal of a branch that is not the request's alone, with what to do instead.
fn shared(head: &str, what: &str, start: &str) -> Interruption {
    Interruption::refused_by_policy(format!(
        "this request leads from `{head}`, {what}, and the program pushes nothing there that people have not merged. Say in an \
         issue what is to be done{start}; the result is then a request to `{head}`. Or open this request from a branch of its own"
    ))
}
