//! The task of a run that follows up on the program's own pull/merge request.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::agent::claim::Claim;
use crate::agent::prompt;
use crate::agent::record::follow_up::{Kind, Notes, Round};
use crate::agent::record::interruption::Interruption;
use crate::agent::record::message;
use crate::agent::record::redaction::CleanExcerpts;
use crate::agent::reporter::Reporter;
use crate::agent::reporter::destination::ReportTarget;
use crate::agent::run::Run;
use crate::forge::item::checks::FailedCheck;
use crate::forge::{Comment, Item};
use crate::markdown::{owned, visible};

/// Returns the comments of authorized people since the last run: those that started the round, and
/// later ones. `None` if the run is not a follow-up.
pub(crate) async fn words_of_round(run: &mut Run, comments: &[Comment]) -> Result<Option<Vec<Comment>>, Interruption> {
    let (Some(mut round), ReportTarget::Item { forge, .. }) =
        (run.claim.record.request.round.clone(), &run.reporter.destination)
    else {
        return Ok(None);
    };
    let forge = Arc::clone(forge);
    let mut words = Vec::new();
    for comment in comments {
        let is_new = !message::HeardComment::of(comment).is_in(&run.claim.record.thread.heard);
        let is_wanted = round.comments.contains(&comment.key) || is_new;
        let Some(said) = message::for_model(comment).filter(|_| is_wanted && !comment.is_approval) else {
            continue;
        };
        if run
            .inbox
            .thread_watcher
            .lock()
            .await
            .may_steer(forge.as_ref(), comment)
            .await?
        {
            round.comments.insert(comment.key);
            words.push(said);
        }
    }
    // Recorded, so that a process that plans again after a crash knows which comments are new.
    run.claim.record.request.round = Some(round);
    Ok(Some(words))
}

/// Registers the opened pull/merge request to be watched. Idempotent.
pub(crate) async fn register_follow_up(claim: &Claim, reporter: &Reporter) -> Result<(), Interruption> {
    let store = &claim.services.store;
    let number = claim.record.delivered.change.as_ref().map(|change| change.number);
    let (Some(number), ReportTarget::Item { forge, .. }) = (number, &reporter.destination) else {
        return Ok(());
    };
    let Some(change) = forge.change_id(&claim.lease.task, number) else {
        return Ok(());
    };
    let known = store.followed(&change).await?;
    let known = known.and_then(|followed| serde_json::from_value::<Notes>(followed.notes).ok());
    let mut notes = known.unwrap_or_else(|| Notes::new(claim.lease.task.clone()));
    notes.begin_again();
    let request = &claim.record.request;
    notes.made_under(request.local_only.as_deref(), request.model.as_deref());
    let notes = serde_json::to_value(notes).map_err(|error| Interruption::failed(error.to_string()))?;
    Ok(store.follow(&change, &claim.lease.task, &notes).await?)
}

/// Returns the task of a round for the model, in little more than the room of one of `excerpts`.
pub(crate) fn task(fence: &str, item: &Item, round: &Round, words: &[Comment], excerpts: CleanExcerpts<'_>) -> String {
    let mut text = format!(
        "This is your own change request, {}. {}.\n<{fence}>\nTitle: {}\n",
        item.task,
        instruction(round),
        visible::line(&item.title)
    );
    if let Some(change) = &item.change {
        text.push_str(&prompt::branches(change));
    }
    let body = visible::markdown(&owned::unmarked(&item.body));
    let _ = writeln!(text, "\n{}", excerpts.shared_by(4).of(body.trim()));
    if !words.is_empty() {
        let words: String = words.iter().map(|comment| prompt::comment(comment, None)).collect();
        let words = excerpts.shared_by(2).of(&words);
        let _ = write!(text, "\nWhat people said, oldest first:\n{words}");
    }
    let excerpts_of_checks = excerpts.shared_by(4).shared_by(round.failed.len());
    for check in &round.failed {
        let _ = write!(text, "\n{}", failed(check, excerpts_of_checks));
    }
    let _ = writeln!(text, "</{fence}>");
    text
}

/// Returns what is to be done in a round, without the full stop.
fn instruction(round: &Round) -> &'static str {
    let has_logs = round.failed.iter().any(|check| check.log.is_some());
    match round.kind {
        Kind::Review => {
            "People reviewed it. Do what they ask for below, on the same branch; questions are answered in your last comment"
        }
        Kind::Checks if has_logs => {
            "Its checks failed. Find out why from the logs below, and mend it on the same branch"
        }
        Kind::Checks => {
            "Its checks failed, and their logs cannot be read. Find out why by what they run, and mend it on the same branch"
        }
    }
}

/// Returns a failed check for the model. Its log is cut at the front, since the cause is at the
/// end.
fn failed(check: &FailedCheck, excerpts: CleanExcerpts<'_>) -> String {
    let Some(log) = &check.log else {
        return format!(
            "The check `{}` failed; its log cannot be read.\n",
            visible::line(&check.name)
        );
    };
    format!(
        "The check `{}` failed; the end of its log:\n{}\n",
        visible::line(&check.name),
        excerpts.of_end(&visible::plain(log)).trim()
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn logs_are_named_only_where_one_can_be_read() {
        let check = |log: Option<&str>| FailedCheck {
            key: String::new(),
            name: "test".to_owned(),
            log: log.map(str::to_owned),
        };
        let said = |failed: Vec<FailedCheck>| {
            instruction(&Round {
                kind: Kind::Checks,
                number: 1,
                comments: BTreeSet::new(),
                failed,
            })
        };
        assert!(said(vec![check(None), check(Some("E"))]).contains("from the logs below"));
        let unread = said(vec![check(None)]);
        assert!(
            unread.contains("cannot be read") && !unread.contains("below"),
            "{unread}"
        );
    }
}
