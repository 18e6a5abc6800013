//! A request to the model that is repeated until the reply can be parsed.

use std::time::{Duration, Instant};

use chrono::{Days, NaiveTime, Utc};

use crate::agent::claim::Claim;
use crate::agent::dialogue::health;
use crate::agent::dialogue::room;
use crate::agent::dialogue::{self, ReplyForm};
use crate::agent::record::budget::PerDay;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::redaction;
use crate::agent::record::usage::{self, ModelCall};
use crate::conversation::decode::Unreadable;
use crate::conversation::repetition::Repetition;
use crate::conversation::{Message, Reply, Turn, Usage};
use crate::journal::fact::Fact;
use crate::journal::fact::reply::Repeated;
use crate::llm::chat::{Chat, PaidReply};
use crate::llm::config::role::Role;
use crate::llm::error::LlmError;
use crate::task::state::State;

/// Time after which a reply is long.
const FIRST_SIGN: Duration = Duration::from_secs(10);
/// Longest time between two notes on the same reply; each pause is twice as long as the one before.
const RAREST_SIGN: Duration = Duration::from_mins(5);
/// Maximum number of repetitions after a reply that cannot be parsed.
pub(crate) const RE_ASKS: u32 = 5;

/// Asks the model for its next turn, and saves the turn before the journal records it: readers of
/// that fact find the turn, and what the model is doing, in the store. A reply that cannot be
/// parsed is asked for again `re_asks` times at most.
pub(crate) async fn ask_for_turn(claim: &mut Claim, chat: &mut Chat, re_asks: u32) -> Result<Turn, Interruption> {
    let form = ReplyForm::of(claim);
    let shown = form.shown(claim, chat.messages());
    let (turn, called) = read_reply(claim, chat, |reply| form.turn(reply, &shown), re_asks).await?;
    claim.record.worked.doing = claim.services.redactor.clean(turn.comment.trim()).into_string();
    let saved = dialogue::save(claim, chat).await;
    claim.note(called);
    saved.map(|()| turn)
}

/// Asks the model and parses its reply with `read`; if that fails, asks again and quotes the error.
///
/// # Errors
/// If the reply still cannot be parsed after five repetitions, if a limit on tokens, time, cost or
/// turns is reached, or if the model's server fails.
pub(crate) async fn ask<T>(
    claim: &mut Claim,
    chat: &mut Chat,
    read: impl Fn(&Reply) -> Result<T, Unreadable>,
) -> Result<T, Interruption> {
    ask_again(claim, chat, read, RE_ASKS).await
}

/// Like [`ask`], with another maximum of repetitions.
pub(crate) async fn ask_again<T>(
    claim: &mut Claim,
    chat: &mut Chat,
    read: impl Fn(&Reply) -> Result<T, Unreadable>,
    re_asks: u32,
) -> Result<T, Interruption> {
    let (answer, called) = read_reply(claim, chat, read, re_asks).await?;
    claim.note(called);
    Ok(answer)
}

/// Returns the parsed reply with the fact of the call, which is still to be recorded.
async fn read_reply<T>(
    claim: &mut Claim,
    chat: &mut Chat,
    read: impl Fn(&Reply) -> Result<T, Unreadable>,
    re_asks: u32,
) -> Result<(T, Fact), Interruption> {
    let mut attempt = 0;
    loop {
        let (reply, called) = call(claim, chat).await?;
        let unreadable = match read(&reply) {
            Ok(answer) => return Ok((answer, called)),
            Err(unreadable) => unreadable,
        };
        claim.note(called);
        attempt += 1;
        claim.note(Fact::ReplyUnreadable {
            attempt,
            reason: unreadable.to_string(),
        });
        if attempt > re_asks {
            let text = format!(
                "the model's replies could not be read, {re_asks} re-asks included; the last error was: {}",
                unreadable.what
            );
            let remedy = remedy(&reply, claim.state, chat.could_be_held(), &chat.room_hint());
            return Err(Interruption::unreadable(text, remedy));
        }
        let quoted = take_out_if_long(claim, chat, reply.cut);
        let question = format!("{quoted}Your reply could not be used: {unreadable}\nReply again.");
        chat.send_user_message(&claim.services.redactor.clean(&question));
    }
}

/// Returns what the operator can do about replies that cannot be read. `could_be_held` tells
/// whether the configuration could have the server hold them to their form, and `room_hint` what
/// gives them more room.
fn remedy(reply: &Reply, state: State, could_be_held: bool, room_hint: &str) -> String {
    // One that was ended because it repeats itself would only repeat itself for longer.
    if reply.cut && reply.is_only_thought() && reply.repetition.is_none() {
        return format!(" (the model thinks until its replies are cut: {room_hint})");
    }
    let mut remedies = vec!["a larger model may do better"];
    if could_be_held {
        remedies.push("replies that are held to their form (llm.constrained_replies: true)");
    }
    if state == State::Planning {
        remedies.push("work without a plan (planning.enabled: false)");
    }
    format!("; {}", remedies.join(", or "))
}

/// Takes the last reply, which cannot be read, out of the conversation if it is long and was cut,
/// or leaves the window nearly full; returns words that quote its beginning and end. Servers of
/// local models end a reply where the window is full: with the whole of it, nothing could be asked
/// any more. Native calls stay while there is room, since those that came whole are to be sent
/// again.
fn take_out_if_long(claim: &Claim, chat: &mut Chat, is_cut: bool) -> String {
    let Some(Message::Assistant { text, calls, .. }) = chat.messages().last() else {
        return String::new();
    };
    let most = room::bytes_of_unread(claim);
    let args = calls.iter().map(|call| serde_json::to_string(&call.args));
    let args: usize = args.map(|args| args.unwrap_or_default().len()).sum();
    let is_useless = is_cut && calls.is_empty();
    if text.len() + args <= most || !(is_useless || chat.fullness() >= room::NEARLY_FULL) {
        return String::new();
    }
    let quoted = redaction::clean_cut(&claim.services.redactor, text.trim(), most);
    *chat = chat.beginning(chat.messages().len() - 1);
    format!("Your last reply was too long to be kept whole:\n{quoted}\n\n")
}

/// Asks the model once, and returns its reply as it is.
pub(crate) async fn get_response(claim: &mut Claim, chat: &mut Chat) -> Result<Reply, Interruption> {
    let (reply, called) = call(claim, chat).await?;
    claim.note(called);
    Ok(reply)
}

/// Calls the model; returns its reply with the fact of the call.
async fn call(claim: &mut Claim, chat: &mut Chat) -> Result<(Reply, Fact), Interruption> {
    if claim.stop.asked.is_cancelled() {
        return Err(Interruption::Cancelled);
    }
    check_limits(claim).await?;
    let begun = Instant::now();
    let reply = long_reply(claim, chat).await;
    for PaidReply { model, usage, took } in chat.take_unused() {
        // It is paid like any other, and no turn.
        let called = book(claim, (&model, chat.role()), usage, took).await?;
        claim.note(called);
    }
    let reply = match reply {
        Err(error @ LlmError::Unreachable { .. }) => {
            health::restart_after_failure(claim, chat.model()).await;
            return Err(error.into());
        }
        reply => reply?,
    };
    if let Some(Repetition { piece, times }) = &reply.repetition {
        claim.note(Fact::ReplyRepeated(Repeated {
            piece: piece.clone(),
            characters: piece.chars().count(),
            times: *times,
        }));
    }
    let called = count(claim, (chat.answered_by(), chat.role()), reply.usage, begun.elapsed()).await?;
    // The model is there: whatever the run waits for from here on, it begins to wait for.
    claim.record.waiting.postponed = 0;
    claim.record.waiting.parked_since = None;
    Ok((reply, called))
}

/// Counts a call of the model that has this role as a turn; returns the fact, which is still to be
/// noted. The time that the run has waited in vain counts on.
pub(crate) async fn count(
    claim: &mut Claim,
    (model, role): (&str, Role),
    usage: Usage,
    took: Duration,
) -> Result<Fact, Interruption> {
    claim.record.worked.turns += 1;
    book(claim, (model, role), usage, took).await
}

/// Adds what a call used to the totals of the run and of the day; returns the fact. The call is no
/// turn.
pub(crate) async fn book(
    claim: &mut Claim,
    (model, role): (&str, Role),
    usage: Usage,
    took: Duration,
) -> Result<Fact, Interruption> {
    claim.record.worked.usage += usage;
    usage::add(&mut claim.record.worked.by_model, model, role, usage);
    let call = ModelCall {
        model,
        role,
        usage,
        took,
    };
    let services = &claim.services;
    services.settings.budget.per_day.count(&services.store, &call).await?;
    Ok(call.fact(claim.record.worked.turns))
}

/// Waits for a reply, and records now and then how much of a long one has arrived.
async fn long_reply(claim: &Claim, chat: &mut Chat) -> Result<Reply, LlmError> {
    let arrived = chat.arrived();
    let asking = chat.get_response();
    tokio::pin!(asking);
    let (mut pause, mut noted) = (FIRST_SIGN, 0);
    loop {
        tokio::select! {
            biased;
            reply = &mut asking => return reply,
            () = tokio::time::sleep(pause) => {}
        }
        let tokens = *arrived.borrow();
        if tokens > 0 && tokens != noted {
            noted = tokens;
            claim.note(Fact::ReplyArriving { tokens });
            pause = (pause * 2).min(RAREST_SIGN);
        }
    }
}

/// Checks the limits of the run and of the day.
///
/// # Errors
/// If the budget of the run, or the daily budget of all runs, is used up.
pub(crate) async fn check_limits(claim: &Claim) -> Result<(), Interruption> {
    let settings = &claim.services.settings;
    let allowance = claim.record.waiting.allowance.as_ref();
    if let Some(text) = settings.budget.exceeded(settings.max_turns, &claim.spent(), allowance) {
        return Err(Interruption::limit(text));
    }
    let per_day = &settings.budget.per_day;
    if *per_day == PerDay::default() {
        return Ok(());
    }
    let now = Utc::now();
    let used = claim.services.store.used_on(now.date_naive()).await?;
    let used = used.iter().map(|(model, usage)| (model.as_str(), usage));
    let tokens = used.clone().map(|(_, usage)| usage.input + usage.output).sum();
    match per_day.exceeded(tokens, settings.prices.cost(used)) {
        Some(reason) => Err(Interruption::Postponed {
            until: (now.date_naive() + Days::new(1)).and_time(NaiveTime::MIN).and_utc(),
            reason,
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_room_is_advised_for_thoughts_that_are_cut_and_not_for_those_that_repeat_themselves() {
        let cut = Reply {
            cut: true,
            thought: true,
            ..Reply::default()
        };
        let room = "raise llm.ollama.context_length";
        assert_eq!(
            remedy(&cut, State::Working, true, room),
            format!(" (the model thinks until its replies are cut: {room})")
        );
        let repetition = Repetition {
            piece: "Wait.\n".to_owned(),
            times: 200,
        };
        let repeating = Reply {
            repetition: Some(repetition),
            ..cut
        };
        assert!(!remedy(&repeating, State::Working, true, room).contains(room));
    }

    #[test]
    fn a_setting_is_advised_only_where_it_would_change_something() {
        let of = |state, could_be_held| remedy(&Reply::default(), state, could_be_held, "");
        assert_eq!(of(State::Working, false), "; a larger model may do better");
        assert_eq!(
            of(State::Working, true),
            "; a larger model may do better, or replies that are held to their form (llm.constrained_replies: true)"
        );
        assert_eq!(
            of(State::Planning, false),
            "; a larger model may do better, or work without a plan (planning.enabled: false)"
        );
    }
}
