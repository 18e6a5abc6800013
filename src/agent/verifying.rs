//! The fourth stage: the program, not the model, decides whether the work is done.

use super::proof;
use super::run::Run;
use super::setback::Setback;
use crate::evidence::difference::{self, Finding};
use crate::evidence::digest::digest;
use crate::evidence::repair::{Limits, Verdict};
use crate::journal::fact::Fact;
use crate::repository::CommitId;
use crate::task::state::Signal;

/// Most of a difference that is looked through.
const LARGEST_DIFFERENCE: usize = 4 * 1024 * 1024;

/// Leaves the outcome of every check in the record; sends the model back to work while it may still
/// repair, and once for what its changes show besides.
pub(super) async fn verify(run: &mut Run) -> Result<Signal, Setback> {
    let settings = run.workshop.settings.planning.verification.clone();
    if !settings.enabled {
        run.record.checks.clear();
        return Ok(Signal::Finished);
    }
    if run.record.sent_back_at == Some(run.record.turns) {
        // The model was told, and the process ended before that was saved as the next stage.
        return Ok(Signal::RepairNeeded);
    }
    // The checks are the program's heaviest commands; a container that they take down must not take
    // the work along.
    run.keep_before_checks().await?;
    // Committed first: what passes is what is delivered, and nothing that the checks leave behind.
    let head = run.commit_result().await?;
    run.check(&head).await?;
    run.record.findings = run.findings(&head).await?;
    let limits = Limits {
        max_rounds: settings.max_rounds,
        max_failures: settings.max_failures,
    };
    let verdict = run.record.repair.judge(&run.record.checks, limits);
    if let Some(end) = run.record.repair.end {
        run.note(Fact::RepairEnded {
            reason: proof::why_ended(end, &run.record.repair),
        });
    }
    let asks = settings.max_rounds > 0 && !run.record.findings.is_empty() && !run.record.asked_about_findings;
    let question = asks.then(|| difference::question(&run.record.findings));
    let text = match (verdict, question) {
        (Verdict::Repair, question) => [Some(digest(&run.record.checks)), question],
        (Verdict::Passed, Some(question)) => [None, Some(question)],
        (Verdict::Passed, None) | (Verdict::Ended, _) => return Ok(Signal::Finished),
    };
    if asks {
        run.record.asked_about_findings = true;
        run.note(Fact::Questioned {
            findings: run.record.findings.len(),
        });
    }
    let text = text.into_iter().flatten().collect::<Vec<_>>().join("\n\n");
    send_back(run, &text).await?;
    Ok(Signal::RepairNeeded)
}

async fn send_back(run: &mut Run, text: &str) -> Result<(), Setback> {
    let mut chat = run.open_chat().await?;
    chat.send_user_message(&run.workshop.redactor.clean(text));
    run.record.sent_back_at = Some(run.record.turns);
    run.save_conversation(&mut chat).await?;
    if let Some(desk) = &mut run.desk {
        desk.chat = Some(chat);
    }
    Ok(())
}

impl Run {
    /// Returns what the difference between the base and `head` shows besides what was asked for.
    pub(super) async fn findings(&mut self, head: &CommitId) -> Result<Vec<Finding>, Setback> {
        let Some(base) = self.record.base.as_ref().map(|base| base.commit.clone()) else {
            return Ok(Vec::new());
        };
        let mirror = self.mirror_at_hand().await?;
        let (diff, was_cut) = mirror.diff(&base, head, LARGEST_DIFFERENCE).await?;
        if was_cut {
            self.warn("The change is too large to be looked through whole: placeholders and weakened tests may be in the rest of it.");
        }
        let findings = difference::inspect(&self.workshop.redactor.clean(&diff).into_string());
        Ok(findings)
    }
}
