//! Runs that nobody works on: people can still speak to them, and some go on by themselves.

use chrono::{DateTime, TimeDelta, Utc};

use super::answers;
use super::ending::Ending;
use super::listening::pause_file;
use super::mailbox::Mail;
use super::order::{Order, Words};
use super::putting_down;
use super::record::PausedBy;
use super::run::Run;
use super::setback::Setback;
use crate::task::command::Command;
use crate::task::state::{Signal, State};

/// What became of a run that was looked after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attended {
    /// It stays as it was.
    Stays,
    /// It is due now.
    GoesOn,
    Ended(Ending),
}

impl Run {
    /// Hears what people say to the run, and lets it go on or ends it. One that is put back until
    /// `not_before` goes on earlier only when somebody says so. The lease is given back in every
    /// case.
    pub async fn attend(mut self, not_before: Option<DateTime<Utc>>) -> Attended {
        let put_back = not_before.filter(|until| *until > Utc::now() && !self.state.is_set_aside());
        self.ear.lock().await.open(self.record.heard.clone());
        self.listen_now().await;
        match self.mailbox.verdict() {
            // It is set aside already; a person is told so, the pause file needs no answer.
            Some(Setback::Paused { order: None, .. }) if self.state.is_set_aside() => {}
            Some(Setback::Paused { order: Some(order), .. }) if self.state.is_set_aside() => {
                let answered = self.answer(&order, &answers::ALREADY_PAUSED.into()).await;
                self.log(answered);
            }
            Some(verdict) => return Attended::Ended(putting_down::put_down(self, verdict).await),
            None => {}
        }
        if self.is_expired() {
            let days = self.workshop.settings.steering.expire_days;
            let verdict = Setback::Withdrawn {
                reason: format!("nobody let it go on for {days} days"),
                item_exists: true,
            };
            return Attended::Ended(putting_down::put_down(self, verdict).await);
        }
        let goes_on = match self.follow(put_back.is_some()).await {
            Ok(goes_on) => goes_on,
            Err(setback) => return Attended::Ended(putting_down::put_down(self, setback).await),
        };
        if !goes_on && self.state.is_set_aside() && !self.is_shown(self.state) {
            // The process that set it aside was killed on the way.
            self.remove_left_container().await;
            putting_down::show_set_aside(&mut self).await;
        }
        let due = put_back.filter(|_| !goes_on);
        if let Err(error) = self.workshop.store.release(&self.lease, due).await {
            tracing::error!(task = %self.lease.task, "the lease could not be given back, it runs out by itself: {error}");
        }
        if goes_on { Attended::GoesOn } else { Attended::Stays }
    }

    /// Follows what was ordered and said; returns whether the run goes on.
    async fn follow(&mut self, is_put_back: bool) -> Result<bool, Setback> {
        let Mail { orders, words } = self.mailbox.take();
        let mut goes_on = !self.state.is_set_aside() && !is_put_back;
        for order in orders {
            if let (State::AwaitingApproval(_), Command::Deny(reason)) = (self.state, &order.command) {
                match self.hear_denial(&order, reason.as_deref()) {
                    Ok(()) => return Err(Setback::Stopped { order }),
                    Err(answer) => self.answer(&order, &answer).await?,
                }
                continue;
            }
            goes_on |= self.follow_order(&order).await?;
        }
        // Allowed by a process that was killed before it could let the run go on.
        goes_on |= matches!(self.state, State::AwaitingApproval(_)) && self.record.approval.is_some();
        // What people wrote is heard again, and read, by the worker that takes the run up.
        goes_on |= self.state == State::AwaitingAnswer && words.iter().any(Words::is_answer);
        let was_for_file = matches!(&self.record.paused, Some(paused) if paused.by == PausedBy::File);
        let has_file = pause_file(&self.workshop.settings.state_dir).exists();
        goes_on |= was_for_file && !has_file;
        if goes_on && !has_file && self.state.is_set_aside() {
            self.go_on().await?;
            return Ok(true);
        }
        Ok(goes_on && !has_file)
    }

    async fn follow_order(&mut self, order: &Order) -> Result<bool, Setback> {
        let is_limited = matches!(&self.record.paused, Some(paused) if matches!(paused.by, PausedBy::Limit(_)));
        let is_for_approval = matches!(self.state, State::AwaitingApproval(_));
        let is_held = pause_file(&self.workshop.settings.state_dir).exists();
        let (goes_on, answer) = match &order.command {
            Command::Resume | Command::Approve(_) if is_held => (false, answers::ALL_PAUSED.into()),
            // The budget that stopped it would stop it again at once.
            Command::Resume if is_limited => (false, answers::NEEDS_BUDGET.into()),
            Command::Resume if is_for_approval => (false, answers::NEEDS_APPROVAL.into()),
            Command::Resume => (true, answers::RESUMED.into()),
            Command::Budget(tokens) => {
                self.allow(*tokens);
                (is_limited, answers::allowed(*tokens))
            }
            Command::Approve(given) if is_for_approval => self.hear_approval(order, given.as_ref()),
            Command::Approve(_) | Command::Deny(_) => (false, answers::NOTHING_TO_APPROVE.into()),
            Command::Help | Command::Unknown(_) | Command::Stop | Command::Pause => {
                (false, answers::help(&order.command))
            }
        };
        self.answer(order, &answer).await?;
        Ok(goes_on)
    }

    /// Takes the run back to the stage it left.
    async fn go_on(&mut self) -> Result<(), Setback> {
        let signal = match self.state {
            State::AwaitingAnswer => Signal::Answered,
            State::AwaitingApproval(_) => Signal::Approved,
            _ => Signal::Resumed,
        };
        self.record.paused = None;
        self.step(signal).await?;
        let shown = self.show_label(self.state, None).await;
        self.log(shown);
        self.save().await
    }

    fn is_expired(&self) -> bool {
        let days = TimeDelta::days(i64::from(self.workshop.settings.steering.expire_days));
        let since = self.record.paused.as_ref().map(|paused| paused.at);
        self.state.is_set_aside() && since.is_some_and(|since| Utc::now() - since > days)
    }

    fn log(&self, outcome: Result<(), Setback>) {
        if let Err(setback) = outcome {
            tracing::warn!(task = %self.lease.task, "people could not be told: {setback:?}");
        }
    }
}
