//! Another try at the task, from the base, where a model that writes whole files as text came to
//! nothing, or to a result whose checks fail.

use std::sync::Arc;

use crate::agent::claim::Claim;
use crate::agent::dialogue::{self, ReplyForm};
use crate::agent::prompt::fresh_start;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::sections::VerificationRecord;
use crate::agent::record::{FailureKind, PausedBy};
use crate::agent::run::Run;
use crate::agent::stages::working;
use crate::conversation::Message;
use crate::conversation::compaction::HEAD;
use crate::evidence::tries::{Next, Try};
use crate::journal::fact::Fact;
use crate::journal::fact::reply::BegunAgain;
use crate::llm::chat::Chat;
use crate::repository::{CommitId, NotACommitId};
use crate::task::state::Signal;

/// What follows checks about which the model hears nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decided {
    /// The result is what it is.
    Deliver,
    /// The project is as it was at the base, and the conversation begins again.
    BeginAgain,
    /// The project is as an earlier try left it, and is checked once more.
    CheckAgain,
}

/// Decides what follows the checks of `head`, which differs from the base if it `is_change`.
pub(crate) async fn after_checks(run: &mut Run, head: &CommitId, is_change: bool) -> Result<Decided, Interruption> {
    if !may_try_again(&run.claim) {
        return Ok(Decided::Deliver);
    }
    let record = &run.claim.record;
    let ended = if is_change {
        Try::checked(head.as_str(), &record.verified.checks, record.worked.summary.clone())
    } else {
        Try::default()
    };
    match next(run, ended).await? {
        Next::Deliver => Ok(Decided::Deliver),
        Next::BeginAgain => {
            let mut chat = working::open_chat(run).await?;
            begin_again(run, &mut chat).await?;
            if run.workspace.open.is_some() {
                run.dialogue.chat = Some(chat);
            }
            Ok(Decided::BeginAgain)
        }
        Next::TakeBack(best) => {
            take_back(run, &best).await?;
            Ok(Decided::CheckAgain)
        }
    }
}

/// Decides what follows a failure of the work, or a limit that ended it; `None` if the task begins
/// again in `chat`.
///
/// # Errors
/// The interruption itself, if no try came to a result and there is no other.
pub(super) async fn after_failure(
    run: &mut Run,
    chat: &mut Chat,
    interruption: Interruption,
) -> Result<Option<Signal>, Interruption> {
    let has_reply = |message: &Message| matches!(message, Message::Assistant { .. });
    if !may_try_again(&run.claim) || !chat.messages().iter().any(has_reply) {
        return Err(interruption);
    }
    match interruption {
        Interruption::Failed(failure) if failure.kind != FailureKind::Policy => {
            match next(run, Try::default()).await? {
                Next::Deliver => Err(Interruption::Failed(failure)),
                Next::BeginAgain => {
                    begin_again(run, chat).await?;
                    Ok(None)
                }
                Next::TakeBack(best) => {
                    take_back(run, &best).await?;
                    Ok(Some(Signal::Finished))
                }
            }
        }
        // Without another try its result would have been delivered already.
        Interruption::Paused {
            by: PausedBy::Limit(reason),
            order,
        } => match run.claim.record.worked.tries.best().cloned() {
            Some(best) if !run.claim.record.worked.tries.are_over() => {
                run.claim.record.worked.tries.cut_off();
                take_back(run, &best).await?;
                run.claim.warn(format!(
                    "The work ended at a limit, and an earlier try is delivered: {reason}"
                ));
                Ok(Some(Signal::Finished))
            }
            _ => Err(Interruption::Paused {
                by: PausedBy::Limit(reason),
                order,
            }),
        },
        other => Err(other),
    }
}

/// Tells whether another try is of use: later rounds build on what people have seen, and a model
/// that calls tools mends its own work.
fn may_try_again(claim: &Claim) -> bool {
    let verification = &claim.services.settings.planning.verification;
    verification.enabled
        && verification.max_tries > 1
        && claim.record.request.round.is_none()
        && ReplyForm::of(claim) == ReplyForm::Files
}

/// Records how a try ended, and what follows it, before anything is done: a process that is ended
/// in between begins with the checks of what is there.
async fn next(run: &mut Run, ended: Try) -> Result<Next, Interruption> {
    let most = run.claim.services.settings.planning.verification.max_tries;
    let next = run.claim.record.worked.tries.after(ended, most);
    run.claim.save().await?;
    Ok(next)
}

/// Puts the project back to the base, and the conversation to the task.
async fn begin_again(run: &mut Run, chat: &mut Chat) -> Result<(), Interruption> {
    dialogue::save(&mut run.claim, chat).await?;
    let project = Arc::clone(&run.workspace.opened()?.project);
    project.start_from(project.base()).await?;
    let replaces = chat.messages().len().saturating_sub(HEAD);
    let record = &mut run.claim.record;
    record.delivered.head = None;
    record.worked.summary = None;
    record.worked.reminders = 0;
    record.verified = VerificationRecord {
        before: record.verified.before.take(),
        checked_in: record.verified.checked_in.take(),
        sent_back_at: Some(record.worked.turns),
        ..VerificationRecord::default()
    };
    let message = Message::Summary {
        replaces,
        text: fresh_start::from_the_base(),
    };
    let written = run.claim.written_record()?;
    let store = &run.claim.services.store;
    store
        .append(&run.claim.lease, &written, std::slice::from_ref(&message))
        .await?;
    chat.compact(message);
    chat.ask_for_another();
    let failed = run.claim.record.worked.tries.failed();
    run.claim.note(Fact::BegunAgain(BegunAgain { failed }));
    Ok(())
}

/// Makes an earlier try the result.
async fn take_back(run: &mut Run, best: &Try) -> Result<(), Interruption> {
    let Some(head) = &best.head else { return Ok(()) };
    let head: CommitId = head
        .parse()
        .map_err(|error: NotACommitId| Interruption::failed(error.to_string()))?;
    let project = Arc::clone(&run.workspace.opened()?.project);
    project.start_from(&head).await?;
    let record = &mut run.claim.record;
    record.delivered.head = None;
    record.worked.summary.clone_from(&best.summary);
    record.worked.tries.take_back();
    // What it was told last was about another result.
    record.verified.sent_back_at = None;
    run.claim.save().await
}
