//! The heart: one stage after the other until the run ends, is set aside or has to be put down.

use std::sync::Arc;

use tokio_util::task::AbortOnDropHandle;

use super::ending::Ending;
use super::listening::{Ear, NearEar};
use super::record::FailureKind;
use super::run::Run;
use super::setback::Setback;
use super::{delivering, planning, preparing, putting_down, verifying, working};
use crate::task::state::{Signal, State};

/// How often a run may lose its container and get a new one.
const MOST_LOSSES: u32 = 3;

impl Run {
    /// Works on the run until it ends, waits for somebody, or the program stops. The lease is given
    /// back in every case.
    pub async fn advance(mut self) -> Ending {
        let _listening = (
            AbortOnDropHandle::new(tokio::spawn(NearEar::listen(Arc::clone(&self.near_ear)))),
            AbortOnDropHandle::new(tokio::spawn(Ear::listen(Arc::clone(&self.ear)))),
        );
        if let Some(failure) = self.record.failure.clone() {
            // It failed before, and only saying so did not succeed.
            return putting_down::put_down(self, Setback::Failed(failure)).await;
        }
        if self.was_taken_up {
            self.listen_now().await;
            self.show_that_it_goes_on().await;
        }
        let setback = loop {
            if let Some(ending) = self.final_ending() {
                self.leave().await;
                return ending;
            }
            if self.state.is_set_aside() {
                return putting_down::set_aside(self).await;
            }
            let stepped = match self.stage().await {
                Ok(signal) => self.step(signal).await,
                Err(setback) => Err(setback),
            };
            match stepped {
                Ok(()) => {}
                Err(Setback::WorkspaceLost(reason)) if self.record.losses < MOST_LOSSES => {
                    // The stage begins again in a new container, with the work as it was last kept.
                    self.record.losses += 1;
                    self.warn(format!("The container was lost ({reason}); a new one took its place."));
                    self.leave().await;
                }
                // The token that was cancelled may have been the run's own: the mailbox knows who
                // did it.
                Err(Setback::Interrupted) => break self.mailbox.verdict().unwrap_or(Setback::Interrupted),
                Err(setback) => break setback,
            }
        };
        putting_down::put_down(self, setback).await
    }

    async fn stage(&mut self) -> Result<Signal, Setback> {
        match self.state {
            State::Planning => planning::plan(self).await,
            State::Preparing => preparing::prepare(self).await,
            State::Working => working::work(self).await,
            State::Verifying => match verifying::verify(self).await? {
                // The last moment at which words can still change the result.
                Signal::Finished if self.has_news().await => Ok(Signal::RepairNeeded),
                signal => Ok(signal),
            },
            State::Delivering => delivering::deliver(self).await,
            // Nobody reviews plans yet.
            State::Reviewing => Ok(Signal::Finished),
            State::Queued
            | State::AwaitingApproval(_)
            | State::AwaitingAnswer
            | State::Paused(_)
            | State::Done
            | State::Stopped
            | State::Failed => Ok(Signal::Claimed),
        }
    }

    fn final_ending(&self) -> Option<Ending> {
        match self.state {
            State::Done => Some(Ending::Done {
                is_verified: self.record.is_verified(),
            }),
            State::Stopped => Some(Ending::Stopped),
            State::Failed => Some(Ending::Failed(
                self.record
                    .failure
                    .as_ref()
                    .map_or(FailureKind::Task, |failure| failure.kind),
            )),
            _ => None,
        }
    }
}
