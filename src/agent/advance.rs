//! The loop over the stages: one after the other until the run ends, is paused or is interrupted.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::AbortOnDropHandle;

use crate::agent::claim::Claim;
use crate::agent::claim::on_forge;
use crate::agent::dialogue::health;
use crate::agent::record::FailureKind;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::outcome::RunOutcome;
use crate::agent::run::Run;
use crate::agent::stages::closing;
use crate::agent::stages::delivering;
use crate::agent::stages::finishing;
use crate::agent::stages::planning;
use crate::agent::stages::preparing;
use crate::agent::stages::reviewing;
use crate::agent::stages::verifying;
use crate::agent::stages::working;
use crate::agent::text::comments;
use crate::task::state::{Judged, Signal, State};

/// Maximum number of lost containers that a run replaces.
const MOST_LOSSES: u32 = 3;
/// Interval at which the claim on the item is renewed, a third of its time.
const RENEW_EVERY: Duration = Duration::from_mins(5);

/// Works on the run until it ends, waits for somebody, or the program stops. The lease is released
/// in every case.
pub async fn advance(mut run: Run) -> RunOutcome {
    if let Some(end) = Interruption::of_decided_end(&run.claim.record) {
        return finishing::show_decided(run, end).await;
    }
    // Before anything is shown.
    if let Err(interruption) = Box::pin(run.claim.begin_item()).await {
        return finishing::finish(run, interruption).await;
    }
    let _keeping = keep_item(&run);
    let _watching = run.inbox.watch();
    if run.claim.was_taken_up {
        run.inbox.listen_now().await;
        run.reporter.show_that_it_goes_on(&mut run.claim).await;
    }
    run.reporter.follow_progress(&run.claim).await;
    let mut is_ready = false;
    let interruption = loop {
        if let Some(ending) = final_ending(&run.claim) {
            run.claim.end_item().await;
            closing::leave(&mut run).await;
            return ending;
        }
        if run.claim.state.is_set_aside() {
            return finishing::set_aside(run).await;
        }
        let stepped = match Box::pin(stage_when_ready(&mut run, &mut is_ready)).await {
            Ok(signal) => step(&mut run, signal).await,
            Err(interruption) => Err(interruption),
        };
        match stepped {
            Ok(()) => {}
            Err(Interruption::WorkspaceLost(reason)) if run.claim.record.prepared.losses < MOST_LOSSES => {
                // The stage starts again in a new container, with the last saved work.
                run.claim.record.prepared.losses += 1;
                run.claim
                    .warn(format!("The container was lost ({reason}); a new one took its place."));
                closing::leave(&mut run).await;
            }
            // The cancelled token may have been the run's own: the mailbox knows the reason.
            Err(Interruption::Cancelled) => break run.inbox.mailbox.take_verdict().unwrap_or(Interruption::Cancelled),
            Err(interruption) => break interruption,
        }
    };
    finishing::finish(run, interruption).await
}

/// Renews the claim on the item at intervals, and interrupts the run if it is lost.
fn keep_item(run: &Run) -> Option<AbortOnDropHandle<()>> {
    let (on_forge, mailbox) = (run.claim.on_forge.clone()?, Arc::clone(&run.inbox.mailbox));
    let task = run.claim.lease.task.clone();
    let keeping = async move {
        loop {
            tokio::time::sleep(RENEW_EVERY).await;
            match on_forge.renew().await {
                Ok(true) => {}
                Ok(false) => return mailbox.interrupt_now(on_forge::lost()),
                // It is tried again in time, and whoever cannot renew it cannot push either.
                Err(error) => tracing::warn!(%task, "the claim on the item could not be renewed: {error}"),
            }
        }
    };
    Some(AbortOnDropHandle::new(tokio::spawn(keeping)))
}

/// Runs the stage; before the first one in this process, the servers of the run's models are made
/// ready.
async fn stage_when_ready(run: &mut Run, is_ready: &mut bool) -> Result<Signal, Interruption> {
    if !*is_ready && run.claim.state.stage().is_some() {
        health::ensure_ready(&run.claim).await?;
        *is_ready = true;
    }
    stage(run).await
}

/// Runs the stage that the run is in, and returns the signal that leads on.
async fn stage(run: &mut Run) -> Result<Signal, Interruption> {
    match run.claim.state {
        State::Planning => match planning::plan(run).await? {
            Signal::Finished if reviewing::is_due(&run.claim, Judged::Plan) => Ok(Signal::ReviewNeeded),
            signal => Ok(signal),
        },
        State::Preparing => preparing::prepare(run).await,
        State::Working => {
            // Tests that fail are told to models that run none. Boxed, as below.
            Box::pin(verifying::before_work(run)).await?;
            working::work(run).await
        }
        // Boxed, because calls to the engine are large.
        State::Verifying => match Box::pin(verifying::verify(run)).await? {
            // The last moment at which new comments can still change the result.
            Signal::Finished if run.inbox.has_news().await => Ok(Signal::RepairNeeded),
            Signal::Finished if reviewing::is_due(&run.claim, Judged::Result) => Ok(Signal::ReviewNeeded),
            signal => Ok(signal),
        },
        State::Reviewing(judged) => match reviewing::review(run, judged).await? {
            Signal::Finished if judged == Judged::Result && run.inbox.has_news().await => Ok(Signal::RevisionNeeded),
            signal => Ok(signal),
        },
        State::Delivering => delivering::deliver(run).await,
        State::Queued
        | State::AwaitingApproval(_)
        | State::AwaitingAnswer
        | State::Paused(_)
        | State::Done
        | State::Stopped
        | State::Failed => Ok(Signal::Claimed),
    }
}

/// Saves the state that follows `signal`, and prints the new stage in the terminal of a local task.
async fn step(run: &mut Run, signal: Signal) -> Result<(), Interruption> {
    run.claim.step(signal).await?;
    if !run.claim.state.is_final() {
        run.reporter
            .tell_terminal(&run.claim, comments::headline(run.claim.state));
    }
    Ok(())
}

fn final_ending(claim: &Claim) -> Option<RunOutcome> {
    match claim.state {
        State::Done => Some(RunOutcome::Done {
            is_verified: claim.record.is_verified(),
        }),
        State::Stopped => Some(RunOutcome::Stopped),
        State::Failed => Some(RunOutcome::Failed(
            claim
                .record
                .failure
                .as_ref()
                .map_or(FailureKind::Task, |failure| failure.kind),
        )),
        _ => None,
    }
}
