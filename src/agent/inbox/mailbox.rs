//! Messages to a run at work: the watchers add them, the run takes them at its next safe point.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::agent::inbox::command_table::{Effect, Standing, effect};
use crate::agent::record::PausedBy;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::message::{Order, UserMessage};
use crate::agent::record::stop::Stop;

/// Messages that arrived and were not taken yet, in order of arrival.
#[derive(Debug, Default)]
pub struct Messages {
    pub orders: Vec<Order>,
    pub words: Vec<UserMessage>,
}

/// Messages of one run, and the reason to interrupt it, if there is one.
pub struct Mailbox {
    mail: Mutex<Messages>,
    verdict: Mutex<Option<Interruption>>,
    /// Whether people have the result of the run.
    is_handed_over: AtomicBool,
    /// Whether the run is set aside.
    is_set_aside: AtomicBool,
    stop: Stop,
}

impl Mailbox {
    /// Creates an empty mailbox. `stop` belongs to the run; cancelling it wakes the run from
    /// whatever it waits for.
    pub fn new(stop: Stop) -> Self {
        Self {
            mail: Mutex::default(),
            verdict: Mutex::default(),
            is_handed_over: AtomicBool::default(),
            is_set_aside: AtomicBool::default(),
            stop,
        }
    }

    /// Accepts an order: a stop or pause interrupts the run, others wait for the next safe point. A
    /// pause of a run that is set aside keeps its place among them: the last one counts.
    pub fn put_order(&self, order: Order) {
        match effect(&order.command, Standing::AtWork) {
            Effect::Stop => self.interrupt_now(Interruption::Stopped { order }),
            Effect::Pause if !self.is_set_aside.load(Ordering::Relaxed) => self.interrupt_soon(Interruption::Paused {
                by: PausedBy::Person(order.by.clone()),
                order: Some(Box::new(order)),
            }),
            _ => lock(&self.mail).orders.push(order),
        }
    }

    pub fn put_words(&self, words: UserMessage) {
        let mut mail = lock(&self.mail);
        // An edit replaces the earlier text if that is still unread.
        mail.words.retain(|unread| unread.heard.key != words.heard.key);
        mail.words.push(words);
    }

    pub fn take(&self) -> Messages {
        std::mem::take(&mut *lock(&self.mail))
    }

    /// Takes the orders alone, and leaves the words.
    pub fn take_orders(&self) -> Vec<Order> {
        std::mem::take(&mut lock(&self.mail).orders)
    }

    pub fn has_words(&self) -> bool {
        !lock(&self.mail).words.is_empty()
    }

    /// Interrupts the run at its next safe point; a running tool call may finish. The first reason
    /// counts, but that a person's pause takes the place of a pause of all runs: with the end of
    /// that one the run would go on.
    ///
    /// A run that is set aside is paused already.
    pub fn interrupt_soon(&self, verdict: Interruption) {
        if self.is_set_aside.load(Ordering::Relaxed) && matches!(verdict, Interruption::Paused { .. }) {
            return;
        }
        let mut first = lock(&self.verdict);
        let is_of_all = matches!(&*first, Some(Interruption::Paused { order: None, .. }));
        let is_of_person = matches!(verdict, Interruption::Paused { order: Some(_), .. });
        if first.is_none() || (is_of_all && is_of_person) {
            *first = Some(verdict);
        }
        drop(first);
        self.stop.asked.cancel();
    }

    /// Interrupts the run at once, even in a tool call. Replaces any earlier reason.
    pub fn interrupt_now(&self, verdict: Interruption) {
        *lock(&self.verdict) = Some(verdict);
        self.stop.asked.cancel();
        self.stop.deadline.cancel();
    }

    /// Notes that people have the result: who merges it closes the item, which is no reason to
    /// interrupt the run any more.
    pub fn note_handed_over(&self) {
        self.is_handed_over.store(true, Ordering::Relaxed);
    }

    pub fn is_handed_over(&self) -> bool {
        self.is_handed_over.load(Ordering::Relaxed)
    }

    /// Notes that the run is set aside: it is not interrupted by a pause.
    pub fn note_set_aside(&self) {
        self.is_set_aside.store(true, Ordering::Relaxed);
    }

    /// Takes the reason for the interruption; `None` if the stop of the program was the cause.
    pub fn take_verdict(&self) -> Option<Interruption> {
        lock(&self.verdict).take()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::record::message::OrderSource;
    use crate::task::command::Command;
    use uuid::Uuid;

    #[test]
    fn an_edit_overtakes_the_text_that_nobody_read_yet() {
        let mailbox = Mailbox::new(Stop::default());
        for (number, body) in [(1, "red"), (2, "and round"), (1, "blue")] {
            mailbox.put_words(UserMessage::of_alice(number, body));
        }
        let bodies: Vec<_> = mailbox
            .take()
            .words
            .into_iter()
            .map(|words| words.comment.body)
            .collect();
        assert_eq!(bodies, ["and round", "blue"]);
        assert!(!mailbox.has_words());
    }

    #[test]
    fn the_stricter_verdict_counts() {
        let mailbox = Mailbox::new(Stop::default());
        mailbox.interrupt_soon(Interruption::failed("mild"));
        assert!(!mailbox.stop.deadline.is_cancelled());
        mailbox.interrupt_now(Interruption::failed("strict"));
        mailbox.interrupt_soon(Interruption::failed("late"));
        let verdict = mailbox.take_verdict();
        assert!(matches!(verdict, Some(Interruption::Failed(failure)) if failure.text == "strict"));
        assert!(mailbox.stop.deadline.is_cancelled());
    }

    #[test]
    fn a_persons_pause_outlasts_one_of_all_runs_whichever_comes_first() {
        for is_first in [true, false] {
            let mailbox = Mailbox::new(Stop::default());
            let all_runs = || Interruption::Paused {
                by: PausedBy::AllRuns,
                order: None,
            };
            if is_first {
                mailbox.interrupt_soon(all_runs());
            }
            mailbox.put_order(Order {
                command: Command::Pause,
                by: "@alice".to_owned(),
                origin: OrderSource::Request(Uuid::nil()),
            });
            mailbox.interrupt_soon(all_runs());
            let verdict = mailbox.take_verdict();
            let by_alice = PausedBy::Person("@alice".to_owned());
            assert!(matches!(verdict, Some(Interruption::Paused { by, order: Some(_) }) if by == by_alice));
        }
    }

    #[test]
    fn a_pause_of_a_run_that_is_set_aside_keeps_its_place_among_the_orders() {
        let mailbox = Mailbox::new(Stop::default());
        mailbox.note_set_aside();
        let given = [Command::Approve(None), Command::Pause, Command::Resume];
        for command in given.clone() {
            mailbox.put_order(Order {
                command,
                by: "@alice".to_owned(),
                origin: OrderSource::Request(Uuid::nil()),
            });
        }
        mailbox.interrupt_soon(Interruption::Paused {
            by: PausedBy::AllRuns,
            order: None,
        });
        assert!(mailbox.take_verdict().is_none());
        assert!(!mailbox.stop.asked.is_cancelled());
        let heard: Vec<_> = mailbox.take().orders.into_iter().map(|order| order.command).collect();
        assert_eq!(heard, given);
    }
}
