//! Another try at the task, from the base, where a model that writes whole files as text came to
//! nothing, or to a result whose checks fail.
//!
//! The next step is decided and saved first, and carried out then, in a new container: nothing
//! that a try has installed, started or left behind reaches the next. A process that is killed in
//! between carries it out when it takes the run up again.

use crate::agent::claim::Claim;
use crate::agent::dialogue::{self, ReplyForm};
use crate::agent::prompt::fresh_start;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::redaction;
use crate::agent::record::sections::VerificationRecord;
use crate::agent::record::{FailureKind, PausedBy};
use crate::agent::run::Run;
use crate::agent::stages::working;
use crate::agent::workspace::open;
use crate::agent::workspace::source;
use crate::agent::workspace::unfinished_work::WorkCopy;
use crate::conversation::Message;
use crate::conversation::compaction::HEAD;
use crate::evidence::difference;
use crate::evidence::tries::{Next, Tries, Try};
use crate::journal::fact::Fact;
use crate::journal::fact::reply::BegunAgain;
use crate::llm::chat::Chat;
use crate::repository::{CommitId, NotACommitId};

/// Maximum size of a diff whose files are named, in bytes.
const LARGEST_DIFFERENCE: usize = 1024 * 1024;

/// A decision that was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CarriedOut {
    /// The project is as it was at the base, and the conversation begins again.
    BegunAgain,
    /// The project is as an earlier try left it.
    TakenBack,
}

/// Notes how the checks of `head` went, for what follows; `is_nothing` of a try that came to
/// nothing.
pub(crate) fn note(claim: &mut Claim, head: &CommitId, is_nothing: bool) {
    let record = &mut claim.record;
    let current = if is_nothing {
        Try::default()
    } else {
        Try::checked(head.as_str(), &record.verified.checks, record.worked.summary.clone())
    };
    record.worked.tries.note(current);
}

/// Decides what follows checks about which the model hears nothing more; `None` if the result is to
/// be delivered.
pub(crate) async fn after_checks(run: &mut Run) -> Result<Option<CarriedOut>, Interruption> {
    // What people have just asked for goes on from this result.
    if !may_try_again(&run.claim) || run.inbox.has_news().await {
        return Ok(None);
    }
    let most = most_tries(&run.claim);
    keep_best_of(run, |tries| tries.decide(most, "the checks of its result fail")).await?;
    carry_out(run).await
}

/// Decides what follows a failure of the work, or a limit that ended it.
///
/// # Errors
/// The interruption itself, if nothing follows it.
pub(super) async fn after_failure(run: &mut Run, chat: &Chat, interruption: Interruption) -> Result<(), Interruption> {
    let is_begun = chat.messages().len() > HEAD;
    if !may_try_again(&run.claim) || !is_begun {
        return Err(interruption);
    }
    let follows = match &interruption {
        Interruption::Failed(failure) if failure.kind != FailureKind::Policy => {
            after_failed_try(run, &failure.text).await?
        }
        // Without another try, the result of the one before would have been delivered already.
        Interruption::Paused {
            by: PausedBy::Limit(reason),
            ..
        } if run.claim.record.worked.tries.may_be_cut_off() => {
            let text = format!("The work ended at a limit, and the best of its tries is delivered: {reason}");
            run.claim.warn(text);
            keep_best_of(run, Tries::cut_off).await? != Next::Deliver
        }
        _ => false,
    };
    if follows { Ok(()) } else { Err(interruption) }
}

/// Decides what follows a try that failed for this reason; returns whether anything does.
pub(crate) async fn after_failed_try(run: &mut Run, reason: &str) -> Result<bool, Interruption> {
    if !may_try_again(&run.claim) {
        return Ok(false);
    }
    let reason = run.claim.services.redactor.clean(reason).into_string();
    let most = most_tries(&run.claim);
    let next = keep_best_of(run, |tries| tries.decide_after_failure(most, &reason)).await?;
    if matches!(next, Next::TakeBack(_)) {
        let text = format!("The last try failed, and the best of its tries is delivered: {reason}");
        run.claim.warn(text);
    }
    Ok(next != Next::Deliver)
}

/// Tells whether another try is of use: later rounds build on what people have seen, and a model
/// that calls tools mends its own work.
fn may_try_again(claim: &Claim) -> bool {
    claim.services.settings.planning.verification.enabled
        && most_tries(claim) > 1
        && claim.record.request.round.is_none()
        && ReplyForm::of(claim) == ReplyForm::Files
}

/// Tells whether the task may begin again if this try comes to nothing good: then little is spent
/// on mending it, since what such a model writes anew is as good as what it mends.
pub(crate) fn is_another_left(claim: &Claim) -> bool {
    may_try_again(claim) && claim.record.worked.tries.is_another_left(most_tries(claim))
}

fn most_tries(claim: &Claim) -> u32 {
    claim.services.settings.planning.verification.max_tries
}

/// Saves what is decided, and keeps the best result so far: the next try is accepted in its place.
async fn keep_best_of(run: &mut Run, decide: impl FnOnce(&mut Tries) -> Next) -> Result<Next, Interruption> {
    let tries = &mut run.claim.record.worked.tries;
    let before = tries.best().cloned();
    let next = decide(tries);
    let best = tries.best().cloned();
    if best != before
        && let Some(head) = best.and_then(|best| best.head)
    {
        let mirror = source::mirror_at_hand(run).await?;
        let name = run.claim.lease.run.to_string();
        mirror.keep_best(&name, &commit(&head)?).await?;
    }
    run.claim.save().await?;
    Ok(next)
}

/// Carries out what was decided, if there is anything.
pub(crate) async fn carry_out(run: &mut Run) -> Result<Option<CarriedOut>, Interruption> {
    match run.claim.record.worked.tries.pending().cloned() {
        Some(Next::BeginAgain(reason)) => begin_again(run, reason).await.map(Some),
        Some(Next::TakeBack(best)) => take_back(run, &best).await.map(Some),
        Some(Next::Deliver) | None => Ok(None),
    }
}

/// Puts the project back to the base, and the conversation to the task.
async fn begin_again(run: &mut Run, reason: String) -> Result<CarriedOut, Interruption> {
    let mirror = source::mirror_at_hand(run).await?;
    let base = run.claim.record.planned.base.as_ref().map(|base| base.commit.clone());
    let base = base.ok_or_else(|| Interruption::failed("the work has no base"))?;
    mirror.begin_again(&base, &run.claim.lease.run.to_string()).await?;
    open_anew(run).await?;
    let mut chat = working::open_chat(run).await?;
    let planned = &run.claim.record.planned;
    let new_plan = planned.plan.as_ref().filter(|_| !planned.former_plans.is_empty());
    let text = fresh_start::from_the_base(new_plan);
    let worked = &mut run.claim.record.worked;
    worked.tries.has_begun_again();
    worked.reminders = 0;
    worked.finished_subtasks.clear();
    let failed = worked.tries.failed();
    begin_from(run, &mut chat, text, None).await?;
    chat.ask_for_another(failed);
    run.dialogue.chat = Some(chat);
    run.claim.note(Fact::BegunAgain(BegunAgain { failed, reason }));
    Ok(CarriedOut::BegunAgain)
}

/// Makes the result of an earlier try the work again. Where it is gone, since another machine or
/// another mirror has it, the last try stays.
async fn take_back(run: &mut Run, best: &Try) -> Result<CarriedOut, Interruption> {
    let mirror = source::mirror_at_hand(run).await?;
    let head = commit(best.head.as_deref().unwrap_or_default())?;
    if !mirror.take_best(&run.claim.lease.run.to_string(), &head).await? {
        run.claim.record.worked.tries.cannot_take_back();
        run.claim.warn(
            "An earlier try had fewer failures, but its result is not on this machine, so the last one is delivered.",
        );
        run.claim.save().await?;
        return Ok(CarriedOut::TakenBack);
    }
    open_anew(run).await?;
    let mut chat = working::open_chat(run).await?;
    let diff = match &run.claim.record.planned.base {
        Some(base) => mirror.diff(&base.commit, &head, LARGEST_DIFFERENCE).await?.0,
        None => String::new(),
    };
    let text = fresh_start::taken_back(best.summary.as_deref(), &difference::touched(&diff));
    let worked = &mut run.claim.record.worked;
    worked.tries.has_taken_back(worked.turns);
    begin_from(run, &mut chat, text, best.summary.clone()).await?;
    run.dialogue.chat = Some(chat);
    Ok(CarriedOut::TakenBack)
}

/// Opens the workspace in a new container, with the work that the mirror has.
async fn open_anew(run: &mut Run) -> Result<(), Interruption> {
    if let Some(mut chat) = run.dialogue.chat.take() {
        dialogue::save(&mut run.claim, &mut chat).await?;
    }
    if let Some(opened) = run.workspace.open.take() {
        let container = opened.clear().await;
        run.claim.note(Fact::EnvironmentRemoved { container });
    } else {
        open::remove_left_container(&run.claim).await;
    }
    if let (Some(copy), Some(mirror)) = (WorkCopy::of(&run.claim), &run.workspace.mirror) {
        _ = copy.write(mirror).await;
    }
    open::ensure_open(run).await?;
    // The model is told of another beginning, and not of another container.
    run.claim.record.prepared.is_replacement = false;
    Ok(())
}

/// Saves what is known of the work as of nothing checked, together with the message `text` in the
/// place of everything behind the task.
async fn begin_from(run: &mut Run, chat: &mut Chat, text: String, summary: Option<String>) -> Result<(), Interruption> {
    let record = &mut run.claim.record;
    record.delivered.head = None;
    record.worked.summary = summary;
    record.verified = VerificationRecord {
        before: record.verified.before.take(),
        refusals: record.verified.refusals,
        ..VerificationRecord::default()
    };
    let redactor = &run.claim.services.redactor;
    let message = Message::Summary {
        replaces: chat.messages().len().saturating_sub(HEAD),
        text: redactor.clean(&text).into_string(),
    };
    // The task, if no reply to it was ever saved, and what was said when the conversation was
    // opened again: it is counted among what is replaced. Without it, whoever takes the run up
    // would find fewer messages than that, and would replace none.
    let mut messages = chat.unsaved().to_vec();
    for unsaved in &mut messages {
        redaction::clean_message(redactor, unsaved);
    }
    messages.push(message.clone());
    let written = run.claim.written_record()?;
    let store = &run.claim.services.store;
    store
        .append(&run.claim.lease, &written, chat.stored(), &messages)
        .await?;
    chat.note_saved();
    chat.compact(message, Vec::new());
    Ok(())
}

fn commit(id: &str) -> Result<CommitId, Interruption> {
    id.parse()
        .map_err(|error: NotACommitId| Interruption::failed(error.to_string()))
}
