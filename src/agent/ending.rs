//! How a run is put down when it cannot go on: nothing is lost, people are told, the lease is given back.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::record::Failure;
use super::run::{Ending, Run};
use super::setback::Setback;
use super::source::branch_name;
use super::talk;
use super::thread::Thread;
use crate::journal::fact::Fact;
use crate::repository::RepositoryError;
use crate::task::state::{Signal, State};

/// How often in a row a run is put back before it fails.
const MOST_POSTPONEMENTS: u32 = 50;
/// Longest time between two tries, unless the outside names a later one.
const LONGEST_WAIT_MINUTES: i64 = 60;
/// How long a run waits whose store could not be written, so that the model is not paid for the same step again and again.
const UNSAVED_WAIT_MINUTES: i64 = 2;
/// How long saving the work may take when a run is put down.
const RESCUE_TIME: Duration = Duration::from_mins(1);

/// Ends the work on the run for now or for good.
pub(super) async fn put_down(mut run: Run, setback: Setback) -> Ending {
    let ending = match setback {
        Setback::Disowned(error) => {
            // Another worker may use the container at this moment: nothing is touched.
            tracing::error!(task = %run.lease.task, "the run was given up: {error}");
            run.desk = None;
            return Ending::Disowned;
        }
        Setback::Unsaved(error) => {
            tracing::error!(task = %run.lease.task, "the run could not be saved and is put down: {error}");
            unsaved(&mut run).await
        }
        Setback::Interrupted => interrupt(&mut run).await,
        Setback::Postponed { until, reason } => postpone(&mut run, until, &reason).await,
        Setback::Withdrawn { reason, item_exists } => withdraw(&mut run, &reason, item_exists).await,
        Setback::Failed(failure) => fail(&mut run, failure).await,
        Setback::WorkspaceLost(text) | Setback::NoNativeCalls(text) => {
            let Setback::Failed(failure) = Setback::failed(text) else {
                return Ending::Disowned;
            };
            fail(&mut run, failure).await
        }
    };
    run.leave().await;
    let until = match &ending {
        Ending::Postponed(until) => Some(*until),
        Ending::Unsaved => Some(Utc::now() + TimeDelta::minutes(UNSAVED_WAIT_MINUTES)),
        _ => None,
    };
    if let Err(error) = run.workshop.store.release(&run.lease, until).await {
        tracing::error!(task = %run.lease.task, "the lease could not be given back, it runs out by itself: {error}");
    }
    ending
}

/// The container holds more than the store knows, so it stays for whoever takes the run up. A local task's has no heir.
async fn unsaved(run: &mut Run) -> Ending {
    if run.record.local.is_none() {
        run.leave_container().await;
    }
    Ending::Unsaved
}

/// Keeps the work for the next process. A local task has none: it ends with the command that gave it.
async fn interrupt(run: &mut Run) -> Ending {
    if run.record.local.is_some() {
        return conclude(run, Signal::StopAsked, Ending::Interrupted).await;
    }
    save_or_log(run).await;
    keep_work(run).await;
    run.note(Fact::Interrupted);
    Ending::Interrupted
}

async fn postpone(run: &mut Run, until: DateTime<Utc>, reason: &str) -> Ending {
    if run.record.local.is_some() || run.record.postponed >= MOST_POSTPONEMENTS {
        let Setback::Failed(failure) = Setback::failed(reason) else {
            return Ending::Disowned;
        };
        return Box::pin(fail(run, failure)).await;
    }
    run.record.postponed += 1;
    let wait = (1_i64 << run.record.postponed.min(10)).min(LONGEST_WAIT_MINUTES);
    let until = until.max(Utc::now() + TimeDelta::minutes(wait));
    save_or_log(run).await;
    keep_work(run).await;
    run.note(Fact::Postponed {
        until,
        reason: reason.to_owned(),
    });
    run.say_postponed(reason).await;
    Ending::Postponed(until)
}

/// The item was closed, deleted or taken back: what was done is kept on a branch only if somebody can still see it.
async fn withdraw(run: &mut Run, reason: &str, item_exists: bool) -> Ending {
    run.note(Fact::Warned {
        text: format!("stopped: {reason}"),
    });
    if item_exists && let Thread::Item { labels, .. } = &run.thread {
        let text = talk::withdrawn(reason, &labels.trigger);
        let told = async {
            run.show_final(State::Stopped).await?;
            run.say("final", &text).await?;
            run.show_label(State::Stopped, None).await
        };
        if let Err(setback) = told.await {
            tracing::warn!(task = %run.lease.task, "the end could not be shown on the item: {setback:?}");
        }
    }
    conclude(run, Signal::StopAsked, Ending::Stopped).await
}

async fn fail(run: &mut Run, failure: Failure) -> Ending {
    let failure = Failure {
        text: run.workshop.redactor.clean(&failure.text).into_string(),
        ..failure
    };
    run.note(Fact::Failed {
        reason: failure.text.clone(),
    });
    run.record.failure = Some(failure.clone());
    save_or_log(run).await;
    if let Err(setback) = show_failure(run, &failure).await {
        if let Setback::Postponed { until, reason } = setback {
            // The failure is in the record: the next claim only has to say it.
            tracing::warn!(task = %run.lease.task, "the failure could not be shown yet: {reason}");
            return Ending::Postponed(until);
        }
        tracing::error!(task = %run.lease.task, "the failure could not be shown on the item: {setback:?}");
    }
    conclude(run, Signal::Broke, Ending::Failed(failure.kind)).await
}

async fn show_failure(run: &mut Run, failure: &Failure) -> Result<(), Setback> {
    let Thread::Item { labels, .. } = &run.thread else {
        // The command shows what was done so far, so that a failure after real work loses nothing.
        if tokio::time::timeout(RESCUE_TIME, take_result(run)).await.is_ok() {
            run.save().await?;
        }
        return Ok(());
    };
    let trigger = labels.trigger.clone();
    let saved = rescue(run).await;
    let text = talk::failed(failure, &run.record, &run.workshop.settings, &trigger, saved.as_deref());
    run.show_final(State::Failed).await?;
    run.say("final", &text).await?;
    run.show_label(State::Failed, None).await
}

/// Pushes what was done so far to a branch of the program's own, so that a failure after real work loses nothing. Where
/// somebody else's commits are on that branch already, it goes beside it.
async fn rescue(run: &mut Run) -> Option<String> {
    let rescued = async {
        let base = run.record.base.clone()?;
        take_result(run).await;
        let head = run.record.head.clone().filter(|head| *head != base.commit)?;
        let item = run.item().await.ok()??;
        let mirror = run.source(Some(&item)).await.ok()?.mirror;
        let home = run.home(&item).await.ok()?;
        let beside = format!("{}-unfinished", branch_name(&run.lease.task, &run.record.title));
        let own = (item.change.is_none()).then_some(base.head_branch);
        let last_resort = format!("{beside}-{}", run.lease.run);
        for branch in own.into_iter().chain([beside, last_resort]) {
            match mirror.push(&home, &head, &branch).await {
                Ok(()) => {
                    run.note(Fact::Pushed {
                        branch: branch.clone(),
                        commit: head.as_str().to_owned(),
                    });
                    return Some(branch);
                }
                Err(RepositoryError::Moved { .. }) => {}
                Err(error) => {
                    tracing::warn!(task = %run.lease.task, "the work so far could not be pushed: {error}");
                    return None;
                }
            }
        }
        None
    };
    tokio::time::timeout(RESCUE_TIME, rescued).await.ok().flatten()
}

/// Takes the commits out of the workspace unless that was done before.
async fn take_result(run: &mut Run) {
    let Some(desk) = run.desk.as_ref().filter(|_| run.record.head.is_none()) else {
        return;
    };
    match desk
        .workspace
        .take_back(&run.record.title, &run.record.rules.files)
        .await
    {
        Ok(accepted) => run.record.head = Some(accepted.head),
        Err(setback) => tracing::warn!(task = %run.lease.task, "the work so far could not be taken out: {setback:?}"),
    }
}

async fn conclude(run: &mut Run, signal: Signal, ending: Ending) -> Ending {
    match run.step(signal).await {
        Ok(()) => ending,
        Err(setback) => {
            tracing::error!(task = %run.lease.task, "the end of the run could not be saved: {setback:?}");
            match setback {
                Setback::Unsaved(_) => Ending::Unsaved,
                _ => Ending::Disowned,
            }
        }
    }
}

/// Keeps the workspace in the mirror, so that another container can go on with it.
async fn keep_work(run: &mut Run) {
    let is_worth_it = match run.state {
        State::Working | State::Verifying => true,
        State::Delivering => run.record.head.is_none(),
        _ => false,
    };
    let Some(desk) = run.desk.as_mut().filter(|_| is_worth_it) else {
        return;
    };
    desk.keeping.finish().await;
    match tokio::time::timeout(RESCUE_TIME, desk.workspace.keep()).await {
        Ok(Ok(())) => return,
        Ok(Err(setback)) => tracing::warn!(task = %run.lease.task, "the work could not be kept: {setback:?}"),
        Err(_) => tracing::warn!(task = %run.lease.task, "the work could not be kept in time"),
    }
    // It is nowhere but in the container, which stays for whoever takes the run up.
    run.leave_container().await;
}

async fn save_or_log(run: &mut Run) {
    let chat = run.desk.as_mut().and_then(|desk| desk.chat.take());
    let saved = match chat {
        Some(mut chat) => run.save_conversation(&mut chat).await,
        None => run.save().await,
    };
    if let Err(setback) = saved {
        tracing::error!(task = %run.lease.task, "the run could not be saved: {setback:?}");
    }
}
