//! Applies people's messages: text goes to the model before its next call, orders are executed.

use std::collections::BTreeMap;

use chrono::Utc;
use uuid::Uuid;

use crate::agent::claim::Claim;
use crate::agent::dialogue::{self, room};
use crate::agent::inbox::command_table::{Effect, Standing, effect};
use crate::agent::pictures;
use crate::agent::prompt;
use crate::agent::record::budget::Allowance;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::message::{HeardComment, Order, OrderSource, UserMessage};
use crate::agent::record::redaction::CleanExcerpts;
use crate::agent::record::sections::{LinkedPicture, ThreadRecord};
use crate::agent::record::{LastWord, PausedBy, Record};
use crate::agent::reporter::Reporter;
use crate::agent::reporter::destination::ReportTarget;
use crate::agent::run::Run;
use crate::agent::text::replies;
use crate::forge::CommentKey;
use crate::journal::fact::Fact;
use crate::llm::chat::Chat;
use crate::markdown::compose::Page;
use crate::secret::Clean;
use crate::task::state::State;

/// Messages of people, as they were passed on to the model.
pub(crate) struct PassedOn {
    text: Clean,
    /// The pictures in it.
    pictures: Vec<LinkedPicture>,
    /// The comments that it is made of.
    comments: Vec<CommentKey>,
}

/// Executes new orders and passes new text to the model, each once. Returns what was passed on, if
/// there was anything.
///
/// Text that comes before the model's first reply also becomes part of the task. Until then nothing
/// of the conversation is saved, but a run that is put back or paused saves that the text was
/// heard: the conversation that begins after the wait would lack it.
pub(crate) async fn hear(run: &mut Run, chat: &mut Chat) -> Result<Option<PassedOn>, Interruption> {
    let passed_on = pass_on(run, chat).await?;
    if let Some(passed_on) = passed_on.as_ref().filter(|_| !dialogue::is_begun(chat)) {
        add_to_task(&mut run.claim.record, passed_on);
    }
    Ok(passed_on)
}

/// Executes new orders and passes new text to the planner. The text always becomes part of the
/// task, for the planner and for the work: the conversation with the planner is not saved at all.
pub(crate) async fn hear_while_planning(run: &mut Run, chat: &mut Chat) -> Result<(), Interruption> {
    if let Some(passed_on) = pass_on(run, chat).await? {
        add_to_task(&mut run.claim.record, &passed_on);
    }
    Ok(())
}

/// Executes new orders where the model is not asked any more; new text stays unread.
pub(crate) async fn hear_orders(run: &mut Run) -> Result<(), Interruption> {
    for order in run.inbox.mailbox.take_orders() {
        execute(&mut run.claim, &mut run.reporter, order).await?;
    }
    Ok(())
}

/// Executes new orders, and adds new text to the conversation.
async fn pass_on(run: &mut Run, chat: &mut Chat) -> Result<Option<PassedOn>, Interruption> {
    let mail = run.inbox.mailbox.take();
    for order in mail.orders {
        execute(&mut run.claim, &mut run.reporter, order).await?;
    }
    if mail.words.is_empty() {
        return Ok(None);
    }
    let said = mail.words.iter().map(|words| &words.comment);
    let pictures = pictures::linked(said.map(|comment| (comment.author.as_str(), comment.body.as_str())));
    let sight = pictures::sight(&run.claim, &run.reporter, &pictures, chat).await;
    let fence = prompt::fence(run.claim.lease.run);
    let redactor = &run.claim.services.redactor;
    let excerpts = CleanExcerpts {
        redactor,
        max_bytes: room::bytes_of_words(&run.claim),
    };
    let text = prompt::words(&fence, &mail.words, excerpts);
    let shown = redactor.clean(&(text.clone() + &sight.words));
    chat.send_pictures(&shown, sight.pictures);
    // Saved together with the conversation or the task that contains them.
    let mut comments = Vec::new();
    for words in mail.words {
        comments.push(words.heard.key);
        run.claim
            .record
            .thread
            .heard
            .insert(words.heard.key, words.heard.fingerprint);
    }
    Ok(Some(PassedOn {
        text: run.claim.services.redactor.clean(&text),
        pictures,
        comments,
    }))
}

/// Makes text part of the task. In a round of follow-up work it also belongs to what the round is
/// about: planning that begins anew leaves out what was heard and belongs to no round.
fn add_to_task(record: &mut Record, passed_on: &PassedOn) {
    record.planned.task_text.push('\n');
    record.planned.task_text.push_str(passed_on.text.as_str());
    record.planned.pictures.extend(passed_on.pictures.iter().cloned());
    if let Some(round) = &mut record.request.round {
        round.comments.extend(passed_on.comments.iter().copied());
    }
}

/// Executes an order that does not interrupt the run.
async fn execute(claim: &mut Claim, reporter: &mut Reporter, order: Order) -> Result<(), Interruption> {
    let page = match effect(&order.command, Standing::AtWork) {
        Effect::Answer(page) | Effect::Resume(page) => page,
        Effect::Allow { tokens, .. } => allow(claim, tokens),
        Effect::EndAutomaticApproval => end_automatic_approval(claim, &order.by).await?,
        // Interruptions of the work, which do not come as orders, and decisions on a waiting run.
        Effect::Stop | Effect::Pause | Effect::Approve(_) | Effect::Deny { .. } => replies::help(&order.command),
    };
    answer(claim, reporter, &order, &page).await
}

/// Restarts the budgets with this number of tokens; returns the answer.
pub(crate) fn allow(claim: &mut Claim, tokens: u64) -> Page {
    let spent = claim.spent();
    claim.record.waiting.allowance = Some(Allowance { tokens, spent });
    replies::allowed(tokens)
}

/// Lets nothing pass any more without a person, in any run; returns the answer. The watcher that
/// heard the order has done it already, unless the store could not be written.
pub(crate) async fn end_automatic_approval(claim: &Claim, by: &str) -> Result<Page, Interruption> {
    if claim.services.store.end_automatic_approval().await? {
        claim.note(Fact::AutomaticApprovalEnded { by: by.to_owned() });
    }
    Ok(replies::NOTHING_PASSES.into())
}

/// Pauses a run that is set aside, and says so; `words` is what people said to it that nobody has
/// read. The pause is executed once, whether people can be told of it or not: repeated, it would
/// count after what people ordered since.
pub(crate) async fn pause_set_aside(
    claim: &mut Claim,
    reporter: &mut Reporter,
    order: &Order,
    words: &[UserMessage],
) -> Result<(), Interruption> {
    note_pause(claim.state, &mut claim.record, order, words);
    if let Err(interruption) = reply(claim, reporter, order, &replies::ALREADY_PAUSED.into()).await {
        tracing::warn!(task = %claim.lease.task, "people could not be told that the run waits: {interruption:?}");
    }
    record_executed(claim, order).await
}

/// Notes that a person pauses a run that is set aside: it goes on no more with the end of a pause
/// of all runs, nor because of what people said before. One that waits for a budget waits for that.
pub(crate) fn note_pause(state: State, record: &mut Record, order: &Order, words: &[UserMessage]) {
    if matches!(state, State::Paused(_)) {
        let paused = record.waiting.paused.as_mut();
        if let Some(paused) = paused.filter(|paused| paused.by == PausedBy::AllRuns) {
            paused.by = PausedBy::Person(order.by.clone());
            // From now on it waits for people.
            paused.at = Utc::now();
        }
    } else if state.is_set_aside() {
        let at = match record.waiting.last_word {
            Some(LastWord::Pause { at, .. }) => at,
            Some(LastWord::GoOn) | None => Utc::now(),
        };
        let answers = match state {
            State::AwaitingAnswer => answers_before(&record.thread, order, words),
            _ => BTreeMap::new(),
        };
        record.waiting.last_word = Some(LastWord::Pause { at, answers });
    }
}

/// Returns the answers that people gave before an order, and nobody has read: those among `words`,
/// and those that earlier visits have heard, since the thread cannot always be read when an order
/// is executed.
fn answers_before(thread: &ThreadRecord, order: &Order, words: &[UserMessage]) -> BTreeMap<CommentKey, Uuid> {
    let seen = thread.seen.iter().filter(|(_, seen)| seen.has_words);
    let seen = seen.map(|(key, seen)| HeardComment {
        key: *key,
        fingerprint: seen.fingerprint,
    });
    let unread = seen.filter(|seen| !seen.is_in(&thread.heard));
    let answers = words.iter().filter(|words| words.is_answer()).map(|words| words.heard);
    // The later one counts: an edit since the visit.
    let all = unread.chain(answers).filter(|answer| !answer.is_after(order));
    all.map(|answer| (answer.key, answer.fingerprint)).collect()
}

/// Replies to an order on the item, and records that it was executed.
pub(crate) async fn answer(
    claim: &mut Claim,
    reporter: &mut Reporter,
    order: &Order,
    page: &Page,
) -> Result<(), Interruption> {
    reply(claim, reporter, order, page).await?;
    record_executed(claim, order).await
}

/// Replies to an order on the item, once.
async fn reply(claim: &mut Claim, reporter: &mut Reporter, order: &Order, page: &Page) -> Result<(), Interruption> {
    if let OrderSource::Comment(heard) | OrderSource::AboveWords(heard) = order.origin
        && matches!(reporter.destination, ReportTarget::Item { .. })
    {
        reporter.say(claim, &format!("reply-{}", heard.key), page).await?;
    }
    Ok(())
}

/// Records that an order was executed. A crash before this repeats it, which changes nothing.
async fn record_executed(claim: &mut Claim, order: &Order) -> Result<(), Interruption> {
    note_executed(claim, order);
    claim.save().await?;
    tick_off(claim, order).await
}

/// Notes in the record that an order is executed. It counts with the next save, which a caller
/// makes together with the effect of the order.
pub(crate) fn note_executed(claim: &mut Claim, order: &Order) {
    claim.note(Fact::Ordered {
        by: order.by.clone(),
        command: order.command.to_string(),
    });
    if let OrderSource::Comment(heard) | OrderSource::AboveWords(heard) = order.origin {
        claim.record.thread.heard.insert(heard.key, heard.fingerprint);
    }
}

/// Removes an order from the store, where another process left it, once its effect is saved.
pub(crate) async fn tick_off(claim: &Claim, order: &Order) -> Result<(), Interruption> {
    if let OrderSource::Request(request) = order.origin {
        claim.services.store.answered(request).await?;
    }
    Ok(())
}
