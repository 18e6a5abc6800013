//! Chat: people ask for work in Slack and LINE, and are told there what came of it.
//!
//! A message is heard only from people whom the configuration names, and stored, without secrets,
//! before the messenger is told that it came. What becomes of it is decided in [`crate::routing`];
//! what it does is what the person's account on the forge may do at that moment. CODE opens an
//! issue: there is no other way to start a run. What is said goes through an outbox, in one
//! transaction with the end of the message that it answers, so that a kill at any moment loses
//! nothing and says nothing twice; the one exception stands in `sending`. One process at a time
//! answers, of all that share a store.
//!
//! Modules in reading order.

mod phrases; // the program's own words, in English and Japanese
mod session; // what is known of a conversation
mod watched; // a task that a conversation follows
mod services; // what answering needs: store, journal, models
mod hearing; // whose words are taken
mod sayings; // texts on their way into the outbox
mod sending; // out of the outbox
mod answers; // answers to questions of runs, as people give them
mod approving; // what comes of them
mod watching; // the progress of runs
mod pictures; // pictures that people send
mod routes; // what each route does
mod handling; // one message, from its route to its answer
mod answering; // one message, which may be an answer itself
mod under_way; // which messages are being answered

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::agent::record::stop::Stop;
use crate::messenger::place::Incoming;
use crate::service::{Service, isolated};
use crate::store::{ChatMessage, StoreError, Turn};
pub use hearing::{Heard, NotKept};
use services::ChatServices;
use under_way::UnderWay;

/// Longest time between two looks at the store, which another process may have written.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long a process that was killed is waited for, where nobody can see that it was.
const TURN: Duration = Duration::from_secs(15);
/// Messages that are looked at together.
const MOST_OPEN: u32 = 200;
/// Pause after a round that a fault of this program broke off.
const REST: Duration = Duration::from_secs(10);

/// People in messengers.
pub struct Chat {
    services: Arc<ChatServices>,
    /// The right to answer, while this process has it.
    turn: Mutex<Option<Turn>>,
}

impl Chat {
    /// Prepares the connections to the configured messengers, without a request; `None` where
    /// there is none.
    pub fn new(service: &Arc<Service>) -> anyhow::Result<Option<Self>> {
        if !service.config().chat.is_used() {
            return Ok(None);
        }
        Ok(Some(Self {
            services: Arc::new(ChatServices::new(service)?),
            turn: Mutex::default(),
        }))
    }

    /// Stores what came from LINE over HTTP, whose signature was judged before.
    pub async fn take_from_line(&self, incoming: Vec<Incoming>) -> Result<Vec<Heard>, NotKept> {
        self.services.take_all(incoming).await
    }

    /// Stores what came from Slack over HTTP, likewise.
    pub async fn take_from_slack(&self, payload: &Value) -> Result<Vec<Heard>, NotKept> {
        self.services.take_from_slack(payload).await
    }

    /// Hears and answers until `stop`.
    pub async fn run(&self, stop: &Stop) {
        let listening = async {
            match &self.services.slack {
                Some(slack) if slack.has_socket() => {
                    let keep = async |payload: &Value| {
                        let taken = self.services.take_from_slack(payload).await;
                        if let Err(reason) = &taken {
                            tracing::warn!("what Slack told is not kept: {reason}");
                        }
                        taken.is_ok()
                    };
                    slack.listen(keep).await;
                }
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            () = stop.asked.cancelled() => {}
            () = listening => {}
            () = self.take_turns() => {}
        }
        // The next process need not wait until it is clear that this one is gone.
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(turn) = turn
            && let Err(error) = self.services.store().end_turn(&turn).await
        {
            tracing::warn!("messengers: {error}");
        }
    }

    /// Answers while it is this process's turn.
    async fn take_turns(&self) {
        loop {
            let begun = Instant::now();
            match self.services.store().take_turn("chat", 1, TURN).await {
                Ok(Some(turn)) => {
                    *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = Some(turn.clone());
                    let extend = async || self.services.store().keep_turn(&turn, TURN).await;
                    let is_first = AtomicBool::new(true);
                    let watch = async || {
                        let looked = watching::look_at_all(&self.services, is_first.load(Ordering::Relaxed)).await;
                        is_first.fetch_and(looked.is_err(), Ordering::Relaxed);
                        looked
                    };
                    tokio::select! {
                        lost = keep(TURN, begun, extend) => match lost {
                            LostTurn::ToAnother => tracing::warn!("another process answers in the messengers now"),
                            LostTurn::RunOut => tracing::warn!("the turn at the messengers was not extended in time"),
                        },
                        () = self.answer_all() => {}
                        () = again_and_again(async || sending::send_all(&self.services).await) => {}
                        () = again_and_again(watch) => {}
                    }
                }
                Ok(None) => {}
                Err(error) => tracing::warn!("messengers: {error}"),
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Answers messages as they come: those of one conversation one after the other.
    async fn answer_all(&self) {
        let mut under_way = UnderWay::default();
        let mut tasks: JoinSet<Result<(), StoreError>> = JoinSet::new();
        loop {
            match self.services.store().open_chat_messages(MOST_OPEN).await {
                Ok(open) => {
                    for message in open {
                        if !under_way.may_begin(&message) {
                            continue;
                        }
                        let (services, told) = (Arc::clone(&self.services), message.clone());
                        let is_given_up = under_way.is_given_up(&message);
                        let task = tasks.spawn(async move {
                            if is_given_up {
                                return answering::give_up(&services, message).await;
                            }
                            Box::pin(answering::answer(&services, message)).await
                        });
                        under_way.began(task.id(), told);
                    }
                }
                Err(error) => tracing::warn!("messages could not be read: {error}"),
            }
            tokio::select! {
                Some(ended) = tasks.join_next_with_id() => match ended {
                    Ok((task, Ok(()))) => under_way.answered(task),
                    Ok((task, Err(reason))) => {
                        if let Some(ChatMessage { session, .. }) = under_way.failed(task) {
                            tracing::warn!(session, "a message could not be answered yet: {reason}");
                        }
                    }
                    Err(fault) => {
                        if let Some(ChatMessage { session, .. }) = under_way.broke_off(fault.id()) {
                            tracing::error!(session, "a message was not answered because of a fault: {fault}");
                        }
                    }
                },
                () = self.services.service.somebody_speaks() => {}
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
        }
    }
}

/// Why a process may answer no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LostTurn {
    ToAnother,
    /// It could not be extended, and another process may take it.
    RunOut,
}

/// The times of a turn: when it runs out, and when it is extended next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lasting {
    time: Duration,
    until: Instant,
    next: Instant,
}

impl Lasting {
    /// Returns the times of a turn that lasts for `time` from `at` on.
    fn since(at: Instant, time: Duration) -> Self {
        Self {
            time,
            until: at + time,
            next: at + time / 3,
        }
    }

    /// Returns the times after an attempt to extend the turn, which was begun and answered at these
    /// moments, or why it is lost. `None` stands for an answer that did not come until it ran out.
    fn after(
        self,
        (begun, answered): (Instant, Instant),
        answer: Option<Result<bool, StoreError>>,
    ) -> Result<Self, LostTurn> {
        match answer {
            Some(Ok(true)) => Ok(Self::since(begun, self.time)),
            Some(Ok(false)) => Err(LostTurn::ToAnother),
            Some(Err(error)) if answered < self.until => {
                tracing::warn!("the turn at the messengers is not extended yet: {error}");
                let next = answered + self.time / 15;
                Ok(Self { next, ..self })
            }
            Some(Err(_)) | None => Err(LostTurn::RunOut),
        }
    }
}

/// Extends a turn again and again, which lasts for `time` from the last extension on, and from
/// `taken` on before the first; returns why it is lost. Where the store gives no good answer, that
/// is when it has run out. Ended sooner, an error that is over in a moment would break off all that
/// is being answered, commands included; later, another process would answer as well.
async fn keep(time: Duration, taken: Instant, extend: impl AsyncFn() -> Result<bool, StoreError>) -> LostTurn {
    let mut turn = Lasting::since(taken, time);
    loop {
        sleep_until(turn.next.min(turn.until)).await;
        let begun = Instant::now();
        let answer = timeout_at(turn.until, extend()).await.ok();
        turn = match turn.after((begun, Instant::now()), answer) {
            Ok(turn) => turn,
            Err(lost) => return lost,
        };
    }
}

/// Does a round over and over; one that fails is logged, and another follows. One that breaks off
/// ends neither the process nor the runs in it.
async fn again_and_again(round: impl AsyncFn() -> Result<(), StoreError>) {
    loop {
        match isolated(round()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("messengers: {error}"),
            Err(fault) => {
                tracing::error!("messengers: {fault}");
                tokio::time::sleep(REST).await;
            }
        }
        tokio::time::sleep(LOOK_EVERY / 4).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    fn away() -> StoreError {
        StoreError::Away {
            store: "s".to_owned(),
            reason: "r".to_owned(),
        }
    }

    #[test]
    fn a_turn_outlasts_a_store_that_is_away_for_a_moment() {
        let taken = Instant::now();
        let at = |seconds| taken + Duration::from_secs(seconds);
        let turn = Lasting::since(taken, Duration::from_secs(15));
        assert_eq!((turn.next, turn.until), (at(5), at(15)));
        let turn = turn.after((at(5), at(6)), Some(Err(away()))).unwrap();
        assert_eq!((turn.next, turn.until), (at(7), at(15)), "it is soon tried again");
        let turn = turn.after((at(7), at(14)), Some(Err(away()))).unwrap();
        assert_eq!((turn.next, turn.until), (at(15), at(15)));
        let extended = turn.after((at(14), at(15)), Some(Ok(true))).unwrap();
        assert_eq!(extended, Lasting::since(at(14), Duration::from_secs(15)));
        for (answered, answer, lost) in [
            (14, Some(Ok(false)), LostTurn::ToAnother),
            (15, Some(Err(away())), LostTurn::RunOut),
            (15, None, LostTurn::RunOut),
        ] {
            assert_eq!(turn.after((at(14), at(answered)), answer), Err(lost));
        }
    }

    #[tokio::test]
    async fn a_turn_is_asked_for_until_another_process_has_it() {
        // An answer that is there counts however late it is, and so may the machine be.
        let answers = Mutex::new(vec![Ok(false), Ok(true), Ok(true)]);
        let extend = async || answers.lock().unwrap().pop().unwrap();
        let lost = keep(Duration::from_millis(30), Instant::now(), extend).await;
        assert_eq!(lost, LostTurn::ToAnother);
        assert!(answers.lock().unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_turn_ends_with_its_time_where_the_store_gives_no_answer() {
        let time = Duration::from_millis(100);
        let silent = keep(time, Instant::now(), async || std::future::pending().await);
        assert_eq!(tokio::time::timeout(PATIENCE, silent).await, Ok(LostTurn::RunOut));
        let broken = keep(time, Instant::now(), async || Err(away()));
        assert_eq!(tokio::time::timeout(PATIENCE, broken).await, Ok(LostTurn::RunOut));
    }
}
