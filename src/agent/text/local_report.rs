//! The report at the end of a local task: what was changed, how it was verified, what it cost.

use std::fmt::Write as _;
use std::path::Path;

use crate::agent::record::outcome::RunOutcome;
use crate::agent::record::{Failure, LocalTask, Record};
use crate::agent::services::Settings;
use crate::agent::text::refused_hosts;
use crate::agent::text::reviews;
use crate::agent::text::verification;
use crate::agent::text::{comments, usage};
use crate::plain::counted;
use crate::repository::reading::files::{ChangeKind, ChangedFile};

/// Maximum number of files that are listed.
const MOST_FILES: usize = 30;

/// Returns the report. `kept` is the patch with changes that the folder does not have.
pub fn local(
    record: &Record,
    settings: &Settings,
    ending: &RunOutcome,
    changed: &[ChangedFile],
    kept: Option<&Path>,
) -> String {
    let Some(local) = &record.request.local else {
        return String::new();
    };
    let is_done = matches!(ending, RunOutcome::Done { .. });
    let mut text = headline(record, local, ending, changed);
    files(&mut text, changed);
    // An error may have named the patch already, together with instructions.
    if let Some(kept) = kept
        .map(|kept| kept.display().to_string())
        .filter(|kept| !text.contains(kept))
    {
        let _ = writeln!(text, "The changes are kept in {kept}.");
    }
    if let Some(summary) = record.worked.summary.as_deref().filter(|_| is_done) {
        let whose = if changed.is_empty() { "The model says: " } else { "" };
        let _ = writeln!(text, "\n{whose}{}\n", summary.trim());
    }
    if is_done {
        if record.verified.checks.is_empty() {
            text.push_str("No check was run.\n");
        }
        for check in &record.verified.checks {
            let (outcome, limit) = (verification::outcome(check), verification::limit(check));
            let _ = writeln!(text, "Check `{}` {outcome}{limit}.", check.command);
        }
    }
    let reviewed = [("plan", &record.reviewed.plan), ("result", &record.reviewed.result)];
    for (what, rounds) in reviewed {
        if let Some(scores) = reviews::scores(rounds) {
            let _ = writeln!(text, "Review of the {what}: {scores}");
        }
    }
    for unmentioned in &record.verified.unmentioned {
        let _ = writeln!(text, "{}", verification::not_mentioned(unmentioned));
    }
    for finding in &record.verified.findings {
        let _ = writeln!(text, "Look at {}", verification::looked_at(finding));
    }
    for refusal in &record.worked.refused {
        let _ = writeln!(text, "Not let out to {}", refused_hosts::line(refusal));
    }
    for note in &record.thread.notes {
        let _ = writeln!(text, "Note: {note}");
    }
    text.push_str(&usage::spent(record, settings));
    text
}

fn headline(record: &Record, local: &LocalTask, ending: &RunOutcome, changed: &[ChangedFile]) -> String {
    let folder = local.folder.display();
    let files = counted(changed.len(), "file");
    let done = if record.is_checked() { "Done" } else { "Done, unchecked" };
    match ending {
        RunOutcome::Done { .. } if changed.is_empty() => format!("Nothing was changed in {folder}.\n"),
        RunOutcome::Done { is_verified: false } if local.dry_run => {
            format!(
                "{files} would change, but {}; {folder} is as it was.\n",
                verification::what_is_wrong(record)
            )
        }
        RunOutcome::Done { .. } if local.dry_run => format!("{done}: {files} would change; {folder} is as it was.\n"),
        RunOutcome::Done { is_verified: false } => {
            format!(
                "{files} changed in {folder}, but {}:\n",
                verification::what_is_wrong(record)
            )
        }
        RunOutcome::Done { is_verified: true } => format!("{done}: {files} changed in {folder}:\n"),
        RunOutcome::Interrupted => format!("Stopped; {folder} is as it was.\n"),
        RunOutcome::Failed(_) => {
            let reason = record.failure.as_ref().map(Failure::in_words).unwrap_or_default();
            format!("This could not be done: {}\n", comments::sentence(&reason))
        }
        RunOutcome::Stopped
        | RunOutcome::Paused { .. }
        | RunOutcome::Waiting { .. }
        | RunOutcome::Postponed { .. }
        | RunOutcome::Disowned
        | RunOutcome::Unsaved => {
            format!("This was {ending}; {folder} is as it was.\n")
        }
    }
}

fn files(text: &mut String, changed: &[ChangedFile]) {
    for file in changed.iter().take(MOST_FILES) {
        let how = match file.how {
            ChangeKind::Created => "created",
            ChangeKind::Changed => "changed",
            ChangeKind::Deleted => "deleted",
        };
        let _ = writeln!(text, "  {how}  {}", file.path);
    }
    if changed.len() > MOST_FILES {
        let _ = writeln!(text, "  and {} more", changed.len() - MOST_FILES);
    }
}
