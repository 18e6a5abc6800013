//! The fourth stage: the program, not the model, decides whether the work is done.

mod check_container; // a new container for the checks
mod checks; // runs the checks and compares them with the base
mod unfit_work; // work that cannot be taken as it is
mod test_lines; // the lines of tests at which checks failed
mod before_work; // the tests that fail before a model works that cannot run them
mod second_look; // the task once more, for a model that says done
mod unmentioned; // what of the task no test mentions

pub(crate) use before_work::before_work;

use crate::agent::claim::Claim;
use crate::agent::dialogue::ReplyForm;
use crate::agent::record::Work;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::sections::VerificationRecord;
use crate::agent::run::Run;
use crate::agent::settings::Verification;
use crate::agent::stages::working;
use crate::agent::stages::working::another_try::{self, CarriedOut};
use crate::agent::text::verification;
use crate::agent::workspace::open;
use crate::agent::workspace::snapshots;
use crate::agent::workspace::source;
use crate::evidence::check::{Checked, Excuse};
use crate::evidence::difference::{self, Finding};
use crate::evidence::digest::{self, digest};
use crate::evidence::missing_imports;
use crate::evidence::repair::{Limits, Verdict};
use crate::journal::fact::Fact;
use crate::repository::CommitId;
use crate::secret::Redactor;
use crate::task::state::Signal;
use crate::workspace::scripts::PROJECT;

/// Maximum size of a diff that is searched for findings, in bytes.
const LARGEST_DIFFERENCE: usize = 4 * 1024 * 1024;

/// Commits the work, runs the checks and saves their outcomes. Sends the model back to work if its
/// work cannot be taken as it is, while it may repair, and once to justify findings in its diff.
pub(crate) async fn verify(run: &mut Run) -> Result<Signal, Interruption> {
    let settings = run.claim.services.settings.planning.verification.clone();
    if settings.enabled && another_try::carry_out(run).await? == Some(CarriedOut::BegunAgain) {
        return Ok(Signal::RepairNeeded);
    }
    if run.claim.record.verified.sent_back_at == Some(run.claim.record.worked.turns) {
        // The model was told, and the process ended before the next state was saved.
        return Ok(Signal::RepairNeeded);
    }
    open::ensure_open(run).await?;
    if !settings.enabled {
        run.claim.record.verified.checks.clear();
        let committed = unfit_work::commit_or_send_back(run).await?;
        return Ok(committed.map_or(Signal::RepairNeeded, |_| Signal::Finished));
    }
    loop {
        let Some(head) = judged(run).await? else {
            return Ok(Signal::RepairNeeded);
        };
        let came_to_nothing = fails_as_before_the_work(&run.claim) && !changes_something(run, &head).await?;
        another_try::note(&mut run.claim, &head, came_to_nothing);
        if let Some(text) = message(run, &head, &settings).await? {
            working::send_back(run, &text, |record| {
                record.verified.sent_back_at = Some(record.worked.turns);
            })
            .await?;
            return Ok(Signal::RepairNeeded);
        }
        match another_try::after_checks(run).await? {
            Some(CarriedOut::BegunAgain) => return Ok(Signal::RepairNeeded),
            Some(CarriedOut::TakenBack) => {}
            None if came_to_nothing => {
                return Err(Interruption::failed(
                    "the model changed nothing, and the project's tests fail as before; a larger model may do better",
                ));
            }
            None => {
                run.claim.record.verified.unmentioned = unmentioned::parts(run, &head).await?;
                return Ok(Signal::Finished);
            }
        }
    }
}

/// Commits the work, runs the checks on it and looks through its changes. Returns the commit;
/// `None` if its work cannot be taken as it is, and the model goes on or tries again.
async fn judged(run: &mut Run) -> Result<Option<CommitId>, Interruption> {
    // The checks are the program's heaviest commands; if one crashes the container, the work must
    // not be lost with it.
    snapshots::snapshot_now(run).await?;
    // Committed first: the state that passes is delivered, without anything that the checks create.
    let Some(head) = unfit_work::commit_or_send_back(run).await? else {
        return Ok(None);
    };
    checks::check(run, &head).await?;
    run.claim.record.verified.findings = findings(run, &head).await?;
    Ok(Some(head))
}

/// Decides whether the model may repair what the checks found, and records why not.
fn repair_verdict(run: &mut Run, settings: &Verification) -> Verdict {
    let limits = Limits {
        max_rounds: settings.max_rounds,
        max_failures: settings.max_failures,
    };
    let verified = &mut run.claim.record.verified;
    let verdict = verified.repair.judge(&verified.checks, limits);
    if let Some(end) = verified.repair.end {
        let reason = verification::why_ended(end, &verified.repair);
        run.claim.note(Fact::RepairEnded { reason });
    }
    verdict
}

/// Tells whether the task is begun again rather than a failing result repaired: in every try but
/// the first and the last, unless a line can be told that mends it.
///
/// A repair has the failure and all that was said before it in its request, and such a model
/// repeats itself in its reply: three or four new tries can be made in the same time.
fn is_better_begun_again(claim: &Claim) -> bool {
    let checks = &claim.record.verified.checks;
    claim.record.worked.tries.failed() > 0
        && another_try::is_another_left(claim)
        && checks.iter().any(|check| check.is_open() || fails_as_before(check))
        && missing_imports::told(checks, PROJECT).is_empty()
}

/// Returns what the model is told of its result, if it has to go on: what fails, and else what
/// failed before and still fails; what was found in the diff; and the task once more. Of the result
/// of an earlier try it has heard already.
async fn message(run: &mut Run, head: &CommitId, settings: &Verification) -> Result<Option<String>, Interruption> {
    let worked = &run.claim.record.worked;
    if worked.tries.is_taken_back(worked.turns) {
        return Ok(None);
    }
    if is_better_begun_again(&run.claim) {
        return Ok(None);
    }
    let verdict = repair_verdict(run, settings);
    let most = run.claim.services.settings.planning.verification.max_rounds;
    let verified = &run.claim.record.verified;
    let told = |is_told: fn(&Checked) -> bool| verified.checks.iter().filter(|check| is_told(check)).cloned().collect();
    let checks: Vec<Checked> = match verdict {
        Verdict::Ended => return Ok(None),
        Verdict::Repair => told(Checked::is_open),
        Verdict::Passed if may_hear_of_old_failures(verified, most) => told(fails_as_before),
        Verdict::Passed => Vec::new(),
    };
    let lines = test_lines::unseen(run, head, &checks).await?;
    let notes = format!("{lines}{}", missing_imports::told(&checks, PROJECT));
    let of_checks = match verdict {
        Verdict::Repair => Some(digest(&checks, &notes)),
        Verdict::Passed | Verdict::Ended => digest::old_failures(&checks, &notes),
    };
    let verified = &mut run.claim.record.verified;
    if verdict == Verdict::Passed && of_checks.is_some() {
        verified.asked_about_old_failures.extend(verified.checked.clone());
    }
    let texts: Vec<String> = of_checks.into_iter().chain(about_findings(run, most)).collect();
    if !texts.is_empty() {
        return Ok(Some(texts.join("\n\n")));
    }
    second_look::question(run, head).await
}

/// Returns the question about findings in the diff, which is asked once.
fn about_findings(run: &mut Run, most: u32) -> Option<String> {
    let verified = &mut run.claim.record.verified;
    if most == 0 || verified.findings.is_empty() || verified.asked_about_findings {
        return None;
    }
    verified.asked_about_findings = true;
    let question = difference::question(&verified.findings);
    let findings = verified.findings.len();
    run.claim.note(Fact::Questioned { findings });
    Some(question)
}

/// Tells whether tests fail as they did before a model that writes whole files as text worked.
/// Models that small say of anything that it is right.
fn fails_as_before_the_work(claim: &Claim) -> bool {
    ReplyForm::of(claim) == ReplyForm::Files && claim.record.verified.checks.iter().any(fails_as_before)
}

/// Tells whether `head` differs from the base.
async fn changes_something(run: &mut Run, head: &CommitId) -> Result<bool, Interruption> {
    let project = run.workspace.opened()?.project.clone();
    let mirror = project.mirror();
    Ok(mirror.tree(head).await? != mirror.tree(project.base()).await?)
}

fn fails_as_before(check: &Checked) -> bool {
    check.excuse == Some(Excuse::FailedBefore)
}

/// Tells whether the model may be asked about tests that failed before the work and still fail: it
/// was not asked often enough, nor about the same files.
///
/// Such a failure does not count against the work, since it need not belong to the task. Often it
/// is just what the task is about, and a model that was never told of it ends with it unmended.
fn may_hear_of_old_failures(verified: &VerificationRecord, most: u32) -> bool {
    let asked = &verified.asked_about_old_failures;
    let is_asked = |work: &Work| asked.iter().any(|asked| asked.tree == work.tree);
    let is_open = verified.checked.as_ref().is_some_and(|work| !is_asked(work));
    is_open && asked.len() < usize::try_from(most).unwrap_or(usize::MAX)
}

/// Returns the findings in what the push of `head` adds that the task did not ask for, and the
/// tests that earlier runs took away and that are still missing: the result lacks them, too.
async fn findings(run: &mut Run, head: &CommitId) -> Result<Vec<Finding>, Interruption> {
    let Some(base) = run.claim.record.planned.base.clone() else {
        return Ok(Vec::new());
    };
    let mut findings = findings_since(run, base.pushed_up_to(), head).await?;
    if base.before_work() != base.pushed_up_to() {
        let all = findings_since(run, base.before_work(), head).await?;
        let is_missing = |finding: &Finding| finding.kind.takes_tests_away() && !findings.contains(finding);
        let missing: Vec<Finding> = all.into_iter().filter(is_missing).collect();
        findings.extend(missing);
    }
    Ok(findings)
}

async fn findings_since(run: &mut Run, from: &CommitId, head: &CommitId) -> Result<Vec<Finding>, Interruption> {
    let mirror = source::mirror_at_hand(run).await?;
    let (diff, was_cut) = mirror.diff(from, head, LARGEST_DIFFERENCE).await?;
    if was_cut {
        run.claim.warn("The change is too large to be looked through whole: placeholders and weakened tests may be in the rest of it.");
    }
    Ok(difference::inspect(&without_secrets(
        &run.claim.services.redactor,
        &diff,
    )))
}

/// Returns a diff without secrets. Each of its lines stays the one that it was: the heads of a diff
/// count the lines below them.
fn without_secrets(redactor: &Redactor, diff: &str) -> String {
    difference::with_signs(diff, redactor.clean_in_lines(diff).as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::difference::Touched;

    #[test]
    fn what_stands_behind_a_private_key_in_a_diff_is_seen() {
        let frame = |word: &str| format!("-----{word} {}-----", "PRIVATE KEY");
        let (first, piece, last) = (frame("BEGIN"), "x0".repeat(32), frame("END"));
        let key = [first.as_str(), &piece, &piece, &last];
        let signed = |sign: &str| key.map(|line| format!("{sign}{line}\n")).concat();
        let gone = |path: &str, count: usize, lines: &str| {
            format!("diff --git a/{path} b/{path}\n--- a/{path}\n+++ /dev/null\n@@ -1,{count} +0,0 @@\n{lines}")
        };
        let diff = [
            gone("certs/dev.key", 4, &signed("-")),
            gone("tests/test_tls.py", 2, "-def test_tls():\n-    assert tls()\n"),
            "diff --git a/app.py b/app.py\n--- a/app.py\n+++ b/app.py\n@@ -1,2 +1,7 @@\n".to_owned(),
            format!(" KEY = (\n{}+)\n-use(KEY)\n+# TODO use it\n", signed("+")),
        ]
        .concat();
        let clean = without_secrets(&Redactor::default(), &diff);
        assert!(!clean.contains(&piece), "{clean}");
        let seen: Vec<_> = difference::inspect(&clean).iter().map(Finding::heading).collect();
        assert_eq!(
            seen,
            [
                ("tests/test_tls.py".to_owned(), "a test was deleted"),
                ("app.py:7".to_owned(), "a placeholder is left"),
            ]
        );
        let counts = |file: &Touched| (file.added, file.removed);
        let touched: Vec<_> = difference::touched(&clean).iter().map(counts).collect();
        assert_eq!(touched, [(0, 4), (0, 2), (6, 1)]);
    }
}
