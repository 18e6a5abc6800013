//! The fourth stage: the program, not the model, decides whether the work is done.

mod check_container; // a new container for the checks
mod checks; // runs the checks and compares them with the base

use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::stages::working;
use crate::agent::text::verification;
use crate::agent::workspace::open;
use crate::agent::workspace::snapshots;
use crate::agent::workspace::source;
use crate::evidence::difference::{self, Finding};
use crate::evidence::digest::digest;
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
    let question = asks.then(|| difference::question(&run.claim.record.verified.findings));
    let text = match (verdict, question) {
        (Verdict::Repair, question) => [Some(digest(&run.claim.record.verified.checks)), question],
        (Verdict::Passed, Some(question)) => [None, Some(question)],
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
