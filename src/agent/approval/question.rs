//! The question whether a result may be delivered, and the orders that answer it.

use std::collections::BTreeSet;

use crate::agent::claim::Claim;
use crate::agent::record::hold_reason::{HoldReason, HoldReasons};
use crate::agent::record::interruption::Interruption;
use crate::agent::record::message::{Order, OrderSource};
use crate::agent::record::{HeldResult, Paused, PausedBy, Unseen};
use crate::agent::text::replies;
use crate::agent::workspace::open;
use crate::approval::digest::{Beginning, Digest, Hashing};
use crate::approval::extent::{Extent, Touched, changed_lines, in_order};
use crate::approval::{Question, Word};
use crate::forge::CommentKind;
use crate::journal::fact::Fact;
use crate::markdown::compose::Page;
use crate::repository::CommitId;
use crate::repository::mirror::Mirror;

/// Maximum bytes of the diff that is shown.
const LONGEST_DIFFERENCE: usize = 20 * 1024;
/// Maximum number of files whose diff is shown.
const MOST_FILES: usize = 100;

/// Returns the digest of everything that would be pushed.
pub(crate) async fn digest_of(mirror: &Mirror, base: &CommitId, head: &CommitId) -> Result<Digest, Interruption> {
    let mut hashing = Hashing::default();
    mirror.each_step(base, head, |bytes| hashing.add(bytes)).await?;
    Ok(hashing.finish())
}

/// Records the question that must be answered before the result is delivered.
pub(crate) async fn put_question(
    claim: &mut Claim,
    mirror: &Mirror,
    (base, head): (&CommitId, &CommitId),
    digest: Digest,
    (objections, obstacles): (HoldReasons, Vec<String>),
) -> Result<(), Interruption> {
    let touched = mirror.touched(base, head).await?;
    let extent = Extent {
        commits: mirror.count(base, head).await?,
        files: touched.len(),
        lines: touched.iter().map(|(_, lines)| lines).sum(),
    };
    let objected: BTreeSet<&str> = objections.shown.iter().filter_map(HoldReason::path).collect();
    let touched = touched
        .into_iter()
        .map(|(path, lines)| Touched { path, lines })
        .collect();
    let files = in_order(touched, |path| objected.contains(path));
    let (diff, unseen) = excerpt(claim, mirror, (base, head), &files).await?;
    let question = Question::new(digest, head.as_str());
    // What was allowed before was another result, or it would not be asked again.
    let void = claim.record.delivered.approval.take();
    let changed = match &void {
        Some(grant) => changed_since(mirror, &grant.commit, head).await,
        None => Vec::new(),
    };
    let environment = open::environment(claim).map_or(String::new(), |(name, _)| name);
    claim.note(Fact::ApprovalRequested {
        id: question.id,
        digest: question.digest.as_str().to_owned(),
    });
    let at = question.at;
    claim.record.waiting.paused = Some(Paused {
        by: PausedBy::Objections(Box::new(HeldResult {
            is_void: void.is_some(),
            changed,
            environment,
            question: Some(question),
            objections: objections.shown,
            more: objections.more,
            obstacles,
            extent,
            diff,
            unseen,
        })),
        at,
        saved: None,
    });
    claim.record.waiting.set_aside += 1;
    Ok(())
}

/// Returns the part of the diff that is shown, and the size of the rest.
async fn excerpt(
    claim: &Claim,
    mirror: &Mirror,
    range: (&CommitId, &CommitId),
    files: &[Touched],
) -> Result<(String, Unseen), Interruption> {
    let mut text = String::new();
    let mut unseen = Unseen {
        files: files.len(),
        lines: files.iter().map(|file| file.lines).sum(),
    };
    for file in files.iter().take(MOST_FILES) {
        let room = LONGEST_DIFFERENCE.saturating_sub(text.len());
        if room == 0 {
            break;
        }
        let (difference, is_cut) = mirror.difference_of(range, &file.path, room).await?;
        unseen.lines = unseen.lines.saturating_sub(changed_lines(&difference));
        if !is_cut && !difference.is_empty() {
            unseen.files -= 1;
        }
        text.push_str(&difference);
    }
    Ok((claim.services.redactor.clean(&text).into_string(), unseen))
}

/// Applies an approval; returns whether the run resumes, and the reply.
pub(crate) fn hear_approval(claim: &mut Claim, order: &Order, given: Option<&Beginning>) -> (bool, Page) {
    // A run that an earlier version paused has no question yet; it resumes to be asked properly.
    let Some(question) = open_question(claim).cloned() else {
        return (true, replies::RESUMED.into());
    };
    if claim.record.delivered.approval.is_some() {
        // The one before is the one that counts.
        return (true, replies::ALREADY_DECIDED.into());
    }
    let word = Word {
        digest: given,
        is_later: is_later(claim, order, &question),
    };
    match question.takes(word) {
        Ok(()) => {
            let grant = question.granted(&order.by);
            claim.note(Fact::ApprovalGranted {
                id: grant.id,
                approver: grant.by.clone(),
                digest: grant.digest.as_str().to_owned(),
            });
            claim.record.delivered.approval = Some(grant);
            (true, replies::approved(order.has_words()))
        }
        Err(refusal) => (false, replies::not_approved(refusal, &question.digest)),
    }
}

/// Applies a denial; returns the reply if it does not count. It also takes an approval back on
/// which the run did not go on yet.
pub(crate) fn hear_denial(
    claim: &mut Claim,
    order: &Order,
    given: Option<&Beginning>,
    reason: Option<&str>,
) -> Result<(), Page> {
    if let Some(question) = open_question(claim).cloned() {
        let word = Word {
            digest: given,
            is_later: is_later(claim, order, &question),
        };
        question.takes(word).map_err(replies::not_denied)?;
        claim.note(Fact::ApprovalDenied {
            id: question.id,
            approver: order.by.clone(),
            digest: question.digest.as_str().to_owned(),
            reason: reason.unwrap_or_default().to_owned(),
        });
    }
    claim.record.delivered.approval = None;
    claim.record.delivered.denial = reason.map(|reason| claim.services.redactor.clean(reason).into_string());
    Ok(())
}

fn open_question(claim: &Claim) -> Option<&Question> {
    match &claim.record.waiting.paused.as_ref()?.by {
        PausedBy::Objections(held) => held.question.as_ref(),
        PausedBy::Person(_) | PausedBy::AllRuns | PausedBy::Limit(_) | PausedBy::Question(_) | PausedBy::Plan(_) => {
            None
        }
    }
}

/// Returns true if an order was certainly given after the question was put. The clocks of forge and
/// worker differ, so comments are compared by their numbers, which the forge assigns in order; this
/// holds for plain comments only, since other kinds are numbered separately.
pub(crate) fn is_later(claim: &Claim, order: &Order, question: &Question) -> bool {
    match order.origin {
        OrderSource::Request(request) => {
            let made = request.get_timestamp().map(|time| time.to_unix());
            let asked = u64::try_from(question.at.timestamp()).unwrap_or_default();
            made.is_some_and(|(seconds, _)| seconds >= asked)
        }
        OrderSource::Comment(heard) | OrderSource::AboveWords(heard) => {
            let put = claim.comment(&claim.record.waiting.comment());
            heard.key.kind == CommentKind::Comment && put.is_some_and(|put| heard.key.number > put.0)
        }
    }
}

/// Returns the files in which two results differ; empty if the old one is gone or is the same.
async fn changed_since(mirror: &Mirror, before: &str, now: &CommitId) -> Vec<String> {
    let Ok(before) = before.parse::<CommitId>() else {
        return Vec::new();
    };
    let touched = mirror.touched(&before, now).await.unwrap_or_default();
    touched.into_iter().map(|(path, _)| path).collect()
}
