//! Checks a result before it leaves the worker: for secrets in each of its commits, and for
//! protected files.

use std::collections::HashSet;

use uuid::Uuid;

use crate::agent::approval::automatic_pass::{self, Outcome};
use crate::agent::approval::question;
use crate::agent::claim::Claim;
use crate::agent::record::hold_reason::{HoldReason, HoldReasons};
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::workspace::source;
use crate::approval::Question;
use crate::approval::automatic::Started;
use crate::approval::config::Results;
use crate::approval::digest::Digest;
use crate::journal::fact::Fact;
use crate::repository::CommitId;
use crate::repository::mirror::Mirror;
use crate::repository::reading::objects::ObjectKind;
use crate::rules::Protection;
use crate::secret::Leak;

/// Maximum number of leaks that are told apart.
const MOST_LEAKS: usize = 1000;

/// Returns true if delivery needs a person's approval, and asks for it. For a local task people see
/// the result before it leaves their machine, so they only get a remark.
pub(crate) async fn needs_approval(run: &mut Run) -> Result<bool, Interruption> {
    let (Some(base), Some(head)) = (
        run.claim.record.planned.base.clone(),
        run.claim.record.delivered.head.clone(),
    ) else {
        return Ok(false);
    };
    if !run.claim.record.has_changes() {
        return Ok(false);
    }
    let mirror = source::mirror_at_hand(run).await?;
    let objections = objections(&run.claim, &mirror, base.pushed_up_to(), &head).await?;
    if run.claim.record.request.local.is_some() {
        for line in objections.lines() {
            run.claim.warn(format!("Look at this: {line}."));
        }
        return Ok(false);
    }
    let objections = with_configured_hold(&run.claim, objections);
    if objections.shown.is_empty() {
        return Ok(false);
    }
    let digest = question::digest_of(&mirror, base.pushed_up_to(), &head).await?;
    if run
        .claim
        .record
        .delivered
        .approval
        .as_ref()
        .is_some_and(|grant| grant.digest == digest)
    {
        return Ok(false);
    }
    let range = (base.pushed_up_to(), &head);
    let obstacles = match automatic_pass::judge(run, &mirror, range, &objections).await? {
        Outcome::Off => Vec::new(),
        Outcome::Held(obstacles) => obstacles,
        Outcome::Passed(started) => {
            pass(&mut run.claim, &started, digest, &head);
            return Ok(false);
        }
    };
    note_objections(&mut run.claim, &head, &objections);
    question::put_question(&mut run.claim, &mirror, range, digest, (objections, obstacles)).await?;
    Ok(true)
}

/// Puts the question whether a result that did not pass its review is delivered all the same. It
/// names everything else that speaks against the result, too: the answer is to all of it.
pub(crate) async fn ask_about_review(
    claim: &mut Claim,
    mirror: &Mirror,
    (base, head): (&CommitId, &CommitId),
    why: String,
) -> Result<(), Interruption> {
    let mut all = protected(claim, mirror, base, head).await?;
    all.extend(secrets(claim, mirror, base, head).await?);
    all.push(HoldReason::Unready { why });
    let objections = HoldReasons::of(all);
    let digest = question::digest_of(mirror, base, head).await?;
    note_objections(claim, head, &objections);
    question::put_question(claim, mirror, (base, head), digest, (objections, Vec::new())).await
}

/// Adds the reason to wait that lies in the configuration, not in the result.
fn with_configured_hold(claim: &Claim, mut objections: HoldReasons) -> HoldReasons {
    let is_asked_for = claim.services.settings.approval.results() == Results::Always;
    if is_asked_for && objections.shown.is_empty() {
        objections = objections.with(HoldReason::Always);
    }
    objections
}

/// Records that a result passed without a person, once for each result. This is no approval: the
/// next process judges anew, so that it ends with the moment in which it is switched off.
fn pass(claim: &mut Claim, started: &Started, digest: Digest, head: &CommitId) {
    let before = claim.record.delivered.passed.as_ref();
    if before.is_some_and(|passed| passed.digest == digest) {
        return;
    }
    let passed = Question::new(digest, head.as_str()).granted(&started.by);
    claim.note(Fact::ApprovalAutoApproved {
        id: passed.id,
        approver: passed.by.clone(),
        digest: passed.digest.as_str().to_owned(),
    });
    claim.record.delivered.passed = Some(passed);
}

/// Returns true if unfinished work may be pushed to a branch; otherwise it stays in the mirror.
pub(crate) async fn may_be_shown(claim: &mut Claim, mirror: &Mirror, base: &CommitId, head: &CommitId) -> bool {
    let Ok(all) = objections(claim, mirror, base, head).await else {
        return false;
    };
    note_objections(claim, head, &all);
    let all = with_configured_hold(claim, all);
    if let Some(objection) = all.shown.first() {
        claim.warn(format!("The work so far is not shown on a branch: {objection}."));
    }
    all.shown.is_empty()
}

/// Writes down why a commit is not pushed, once: it is judged again after its question was denied.
fn note_objections(claim: &mut Claim, head: &CommitId, objections: &HoldReasons) {
    let found = objections.shown.iter().filter(|reason| **reason != HoldReason::Always);
    let found: Vec<&HoldReason> = found.collect();
    if found.is_empty() || claim.record.delivered.withheld.as_ref() == Some(head) {
        return;
    }
    claim.record.delivered.withheld = Some(head.clone());
    for objection in found {
        claim.note(Fact::PolicyRefused {
            rule: objection.rule().to_owned(),
            reason: format!("not pushed without a person's word: {objection}"),
        });
    }
    if let Some(more) = objections.more.said() {
        let rule = if objections.more.protected > 0 {
            "protected_path"
        } else {
            "secret"
        };
        claim.note(Fact::PolicyRefused {
            rule: rule.to_owned(),
            reason: format!("not pushed without a person's word: {more}"),
        });
    }
}

/// Returns the reasons why `base..head` is not pushed without approval.
async fn objections(
    claim: &Claim,
    mirror: &Mirror,
    base: &CommitId,
    head: &CommitId,
) -> Result<HoldReasons, Interruption> {
    let mut all = protected(claim, mirror, base, head).await?;
    all.extend(secrets(claim, mirror, base, head).await?);
    Ok(HoldReasons::of(all))
}

async fn protected(
    claim: &Claim,
    mirror: &Mirror,
    base: &CommitId,
    head: &CommitId,
) -> Result<Vec<HoldReason>, Interruption> {
    let settings = &claim.services.settings.repository;
    let protection = Protection::new(&settings.protected_paths, &settings.unprotected_paths);
    let changed = mirror.changed(base, head).await?;
    let touched = changed.into_iter().map(|changed| changed.path);
    Ok(touched
        .filter(|path| protection.covers(path))
        .map(|path| HoldReason::Protected {
            path: claim.services.redactor.clean(&path).into_string(),
        })
        .collect())
}

async fn secrets(
    claim: &Claim,
    mirror: &Mirror,
    base: &CommitId,
    head: &CommitId,
) -> Result<Vec<HoldReason>, Interruption> {
    let redactor = &claim.services.redactor;
    let mut known = HashSet::new();
    let mut found = leaks_beside(&known, claim, mirror, (base, head)).await?;
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let is_full = found.len() == MOST_LEAKS;
    // Content that existed before is no leak of this result, such as a moved file or a made-up key.
    mirror
        .each_replaced(base, head, |object| {
            let leaks = redactor.leaks_in(object.content);
            known.extend(leaks.into_iter().map(|leak| leak.fingerprint));
        })
        .await?;
    if is_full || found.iter().any(|(kind, ..)| *kind == ObjectKind::Folder) {
        // A changed folder lists all of its names again, old ones included.
        let (files, _) = mirror.files(base, usize::MAX).await?;
        let leaks = files.iter().flat_map(|file| redactor.leaks(&file.path));
        known.extend(leaks.map(|leak| leak.fingerprint));
    }
    if is_full {
        // Looked for anew: those that are known must not fill the list before a new one comes.
        found = leaks_beside(&known, claim, mirror, (base, head)).await?;
    } else {
        found.retain(|(_, _, leak)| !known.contains(&leak.fingerprint));
    }
    // A path may itself contain the secret.
    let shown = |path: String| redactor.clean(&path).into_string();
    let mut all: Vec<HoldReason> = found
        .into_iter()
        .map(|(kind, path, leak)| match kind {
            ObjectKind::Folder => HoldReason::Name {
                folder: shown(path),
                kind: leak.kind,
            },
            ObjectKind::Commit | ObjectKind::File => HoldReason::Secret {
                path: shown(path),
                line: leak.line,
                kind: leak.kind,
            },
        })
        .collect();
    all.sort();
    all.dedup();
    Ok(all)
}

/// Returns the leaks in what `base..head` adds that are not among `known`, each with the kind and
/// the path of its object; at most [`MOST_LEAKS`].
async fn leaks_beside(
    known: &HashSet<Uuid>,
    claim: &Claim,
    mirror: &Mirror,
    (base, head): (&CommitId, &CommitId),
) -> Result<Vec<(ObjectKind, String, Leak)>, Interruption> {
    let redactor = &claim.services.redactor;
    let mut found: Vec<(ObjectKind, String, Leak)> = Vec::new();
    mirror
        .each_added(base, head, |object| {
            let room = MOST_LEAKS.saturating_sub(found.len());
            let leaks = redactor.leaks_in(object.content).into_iter();
            let unknown = leaks.filter(|leak| !known.contains(&leak.fingerprint));
            let place = |leak| (object.kind, object.path.to_owned(), leak);
            found.extend(unknown.take(room).map(place));
        })
        .await?;
    Ok(found)
}
