//! The fourth stage: the program, not the model, decides whether the work is done.

mod check_container; // a new container for the checks
mod checks; // runs the checks and compares them with the base

use crate::agent::dialogue::ReplyForm;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::sections::VerificationRecord;
use crate::agent::run::Run;
use crate::agent::stages::working;
use crate::agent::text::verification;
use crate::agent::workspace::open;
use crate::agent::workspace::snapshots;
use crate::agent::workspace::source;
use crate::evidence::check::{Checked, Excuse};
use crate::evidence::difference::{self, Finding};
use crate::evidence::digest::{self, digest};
use crate::evidence::repair::{Limits, Verdict};
use crate::journal::fact::Fact;
use crate::repository::CommitId;
use crate::task::state::Signal;

/// Maximum size of a diff that is searched for findings, in bytes.
const LARGEST_DIFFERENCE: usize = 4 * 1024 * 1024;

/// Runs the checks and saves their outcomes. Sends the model back to work while it may repair, and
/// once to justify findings in its diff.
pub(crate) async fn verify(run: &mut Run) -> Result<Signal, Interruption> {
    let settings = run.claim.services.settings.planning.verification.clone();
    if !settings.enabled {
        run.claim.record.verified.checks.clear();
        return Ok(Signal::Finished);
    }
    if run.claim.record.verified.sent_back_at == Some(run.claim.record.worked.turns) {
        // The model was told, and the process ended before the next state was saved.
        return Ok(Signal::RepairNeeded);
    }
    open::ensure_open(run).await?;
    // The checks are the program's heaviest commands; if one crashes the container, the work must
    // not be lost with it.
    snapshots::snapshot_before_checks(run).await?;
    // Committed first: the state that passes is delivered, without anything that the checks create.
    let head = snapshots::commit_result(run).await?;
    checks::check(run, &head).await?;
    run.claim.record.verified.findings = findings(run, &head).await?;
    let limits = Limits {
        max_rounds: settings.max_rounds,
        max_failures: settings.max_failures,
    };
    let verdict = run
        .claim
        .record
        .verified
        .repair
        .judge(&run.claim.record.verified.checks, limits);
    if let Some(end) = run.claim.record.verified.repair.end {
        run.claim.note(Fact::RepairEnded {
            reason: verification::why_ended(end, &run.claim.record.verified.repair),
        });
    }
    let asks = settings.max_rounds > 0
        && !run.claim.record.verified.findings.is_empty()
        && !run.claim.record.verified.asked_about_findings;
    let findings = asks.then(|| difference::question(&run.claim.record.verified.findings));
    let old = (settings.max_rounds > 0 && verdict == Verdict::Passed)
        .then(|| old_failures(&mut run.claim.record.verified, settings.max_rounds))
        .flatten();
    let question = match (old, findings) {
        (Some(old), Some(findings)) => Some(format!("{old}\n\n{findings}")),
        (old, findings) => old.or(findings),
    };
    let text = match (verdict, question) {
        (Verdict::Repair, question) => [Some(digest(&run.claim.record.verified.checks)), question],
        (Verdict::Passed, Some(question)) => [None, Some(question)],
        (Verdict::Passed, None) if changed_nothing_and_fails(run, &head).await? => {
            return Err(Interruption::failed(
                "the model changed nothing, and the project's tests fail as before; a larger model may do better",
            ));
        }
        (Verdict::Passed, None) | (Verdict::Ended, _) => return Ok(Signal::Finished),
    };
    if asks {
        run.claim.record.verified.asked_about_findings = true;
        run.claim.note(Fact::Questioned {
            findings: run.claim.record.verified.findings.len(),
        });
    }
    let text = text.into_iter().flatten().collect::<Vec<_>>().join("\n\n");
    working::send_back(run, &text, |record| {
        record.verified.sent_back_at = Some(record.worked.turns);
    })
    .await?;
    Ok(Signal::RepairNeeded)
}

/// Tells whether a model that writes whole files as text left everything as it was, although tests
/// fail. Models that small say of anything that it is right.
async fn changed_nothing_and_fails(run: &mut Run, head: &CommitId) -> Result<bool, Interruption> {
    let fails = |checked: &Checked| checked.excuse == Some(Excuse::FailedBefore);
    if ReplyForm::of(&run.claim) != ReplyForm::Files || !run.claim.record.verified.checks.iter().any(fails) {
        return Ok(false);
    }
    let project = run.workspace.opened()?.project.clone();
    let mirror = project.mirror();
    Ok(mirror.tree(head).await? == mirror.tree(project.base()).await?)
}

/// Returns the question about tests that failed before the work and still fail, unless it was asked
/// often enough or about the same files.
///
/// Such a failure does not count against the work, since it need not belong to the task. Often it
/// is just what the task is about, and a model that was never told of it ends with it unmended.
fn old_failures(verified: &mut VerificationRecord, most: u32) -> Option<String> {
    let work = verified.checked.clone()?;
    let asked = &verified.asked_about_old_failures;
    let is_asked = asked.iter().any(|asked| asked.tree == work.tree);
    if is_asked || asked.len() >= usize::try_from(most).unwrap_or(usize::MAX) {
        return None;
    }
    let question = digest::old_failures(&verified.checks)?;
    verified.asked_about_old_failures.push(work);
    Some(question)
}

/// Returns the findings in the diff from the base to `head` that the task did not ask for.
pub(crate) async fn findings(run: &mut Run, head: &CommitId) -> Result<Vec<Finding>, Interruption> {
    let Some(base) = run.claim.record.planned.base.as_ref().map(|base| base.commit.clone()) else {
        return Ok(Vec::new());
    };
    let mirror = source::mirror_at_hand(run).await?;
    let (diff, was_cut) = mirror.diff(&base, head, LARGEST_DIFFERENCE).await?;
    if was_cut {
        run.claim.warn("The change is too large to be looked through whole: placeholders and weakened tests may be in the rest of it.");
    }
    let findings = difference::inspect(&run.claim.services.redactor.clean(&diff).into_string());
    Ok(findings)
}
