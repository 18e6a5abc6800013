//! Deletes finished work after its time, and everything of a task that is to be forgotten.
//!
//! The rows of a store are deleted by one machine for all that share it, and what lies on a
//! machine's own disk by each for itself.

mod finished;
mod notes;

use std::time::Duration;

use anyhow::Context;
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::Service;
use crate::agent::record::sections::KEPT_PLANS;
use crate::forge::ForgeError;
use crate::index;
use crate::journal::erasing::{self, Names};
use crate::repository::mirror::Mirror;
use crate::repository::retention::Prune;
use crate::store::{FactFilter, StoreError};
use crate::task::id::{RunId, TaskId};
use crate::task::state::State;
use notes::Note;

/// Interval between deletions of old work. The store has the time of the last one of rows, for all
/// processes, and the state folder that of the last one on this machine's disk.
const EVERY: TimeDelta = TimeDelta::hours(1);
/// Runs that are deleted in one transaction: nobody else can write meanwhile.
const BATCH: u32 = 50;
/// Facts that are read at once.
const MOST_FACTS: u32 = 500;
/// Maximum number of batches in a round; the rest waits for the next.
const MOST_BATCHES: usize = 20;
/// Maximum number of requests that are checked for being open in one round.
const MOST_ASKED: u32 = 20;
/// Key in the store for the time of the last deletion of rows.
const DONE_AT: &str = "retention was kept";
/// File in the state folder with the time of the last deletion on this machine's disk.
const TIDIED_AT: &str = "retention";
/// Prefix of the keys under which forges' answers are stored.
const ANSWERS: &str = "answers of ";
const DAY: Duration = Duration::from_hours(24);

/// The outcome of a request to forget a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forgotten {
    /// It was refused, because the task has an unfinished run.
    Unfinished {
        task: TaskId,
        state: State,
    },
    /// It was refused, because the worker of a run that has ended still clears up after it, and
    /// would write about it once more.
    ClearingUp {
        task: TaskId,
    },
    Erased(Erased),
}

/// The amount of data that was erased of a task.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Erased {
    pub runs: u64,
    /// Lines of the journal and the log files.
    pub lines: u64,
    pub outputs: usize,
    /// Runs whose commits were kept in mirrors.
    pub kept: usize,
    /// Mirrors that are broken and were left as they are.
    pub broken: usize,
    /// Whether something may be left, because other processes are at work; another call erases it.
    pub is_rest_left: bool,
    /// Whether other machines may share the store, each of which erases from its own disk.
    pub is_left_to_others: bool,
}

impl Service {
    /// Deletes what is older than the configuration says, in the store and on this machine's disk,
    /// unless that was done there within the last hour. Failures are logged, and the next round
    /// tries again.
    pub async fn keep_retention(&self) {
        if let Err(error) = self.delete_expired().await {
            tracing::error!("what is older than `retention` says could not be deleted: {error:#}");
        }
        self.tidy_disk().await;
    }

    async fn delete_expired(&self) -> anyhow::Result<()> {
        let (store, now) = (&self.services.store, Utc::now());
        if is_recent(store.remembered(DONE_AT).await?.as_deref(), now) {
            return Ok(());
        }
        store.remember(DONE_AT, &now.to_rfc3339()).await?;
        let retention = &self.config.retention;
        let (expired, silent) = (
            before(now, retention.runs_days),
            before(now, retention.conversations_days),
        );
        // Each step by itself: what one of them meets again and again must not keep the others from
        // being taken.
        done(self.ask_for_quiet_requests(expired.max(silent)).await);
        let conversations = done(self.delete_conversations(silent).await);
        let runs = done(self.delete_runs(expired).await);
        done(store.erase_unfollowed(expired).await);
        done(store.erase_old_facts(expired).await);
        done(store.erase_evaluations(expired).await);
        done(store.erase_once(expired).await);
        done(store.erase_chat(silent).await);
        done(self.drop_notes(before(now, self.config.logs.retention_days)).await);
        if conversations + runs > 0 {
            store.settle().await?;
            tracing::info!(conversations, runs, "what was kept long enough was deleted");
        }
        Ok(())
    }

    /// Deletes from this machine's disk what belongs to runs that are stored no more, and what
    /// nobody has used for long, unless that was done within the last hour.
    async fn tidy_disk(&self) {
        let (file, now) = (self.config.state_dir.join(TIDIED_AT), Utc::now());
        if is_recent(tokio::fs::read_to_string(&file).await.ok().as_deref(), now) {
            return;
        }
        let noted = async {
            tokio::fs::create_dir_all(&self.config.state_dir).await?;
            tokio::fs::write(&file, now.to_rfc3339()).await
        };
        if let Err(error) = noted.await {
            tracing::warn!("{} could not be written: {error}", file.display());
        }
        if let Err(error) = self.forget_as_others().await {
            tracing::error!("what was forgotten on other machines could not be looked for: {error}");
        }
        let expired = before(now, self.config.retention.runs_days);
        if let Err(error) = self.erase_stray_outputs(expired).await {
            tracing::error!("the outputs of runs that were deleted could not be removed: {error:#}");
        }
        let mirrors = self.tidy_mirrors().await;
        if mirrors > 0 {
            tracing::info!(mirrors, "what nobody has used for long was deleted");
        }
    }

    /// Removes outputs from before then of runs that are not in the store: another machine may have
    /// deleted these.
    async fn erase_stray_outputs(&self, before: DateTime<Utc>) -> anyhow::Result<()> {
        let logs = self.config.logs.clone();
        let old = tokio::task::spawn_blocking(move || erasing::outputs_before(&logs, before)).await?;
        let mut stray = Vec::new();
        for run in old.iter().filter_map(|name| name.parse::<RunId>().ok()) {
            if !self.services.store.has_run(run).await? {
                stray.push(run);
            }
        }
        self.erase_outputs(&stray).await?;
        Ok(())
    }

    /// Stops following requests that were merged or closed, which nobody may have noticed because a
    /// request is only followed for a while.
    async fn ask_for_quiet_requests(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        for task in self.services.store.quiet_since(before, MOST_ASKED).await? {
            let Some(connected) = self.forges.of(&task) else {
                continue;
            };
            match connected.forge.item(&task).await {
                Ok(item) if item.is_open => {}
                Ok(_) | Err(ForgeError::Gone { .. }) => self.services.store.unfollow(&task).await?,
                // It may be open: what belongs to it stays.
                Err(error) => tracing::warn!(%task, "it could not be asked whether it is open: {error}"),
            }
        }
        Ok(())
    }

    async fn delete_conversations(&self, before: DateTime<Utc>) -> Result<usize, StoreError> {
        let (store, mut count) = (&self.services.store, 0);
        for _ in 0..MOST_BATCHES {
            let runs = store.expired_conversations(before, BATCH).await?;
            if runs.is_empty() || self.stop.asked.is_cancelled() {
                break;
            }
            store.drop_conversations(&runs).await?;
            count += runs.len();
        }
        Ok(count)
    }

    async fn delete_runs(&self, before: DateTime<Utc>) -> Result<usize, StoreError> {
        let (store, mut count) = (&self.services.store, 0);
        for _ in 0..MOST_BATCHES {
            let runs = store.expired_runs(before, BATCH).await?;
            if runs.is_empty() || self.stop.asked.is_cancelled() {
                break;
            }
            // The rows go last: a crash before leaves them for the next round.
            if let Err(error) = self.erase_outputs(&runs).await {
                tracing::warn!("outputs of old runs are left over: {error:#}");
            }
            store.erase_runs(&runs).await?;
            count += runs.len();
        }
        Ok(count)
    }

    /// Deletes what mirrors keep of deleted runs, and mirrors that nobody uses. Returns the number
    /// of removed mirrors.
    async fn tidy_mirrors(&self) -> usize {
        let settings = &self.services.settings;
        let unused = DAY * self.config.retention.mirrors_unused_days;
        let mut removed = 0;
        for mirror in Mirror::all(&settings.repository, &settings.state_dir) {
            if self.stop.asked.is_cancelled() {
                break;
            }
            // One broken mirror must not keep the others from being looked after.
            match self.tidy_mirror(&mirror, unused).await {
                Ok(is_removed) => removed += usize::from(is_removed),
                Err(error) => tracing::warn!(mirror = %mirror.path().display(), "it could not be tidied: {error:#}"),
            }
        }
        // Nobody's work is in the copy of a folder that somebody searched.
        let copies = Mirror::locals(&settings.state_dir).into_iter();
        for name in copies.filter(|name| name.starts_with(index::FOLDER)) {
            let copy = Mirror::of_folder(&settings.repository, &settings.state_dir, &name);
            match copy.remove_unused(unused).await {
                Ok(is_removed) => removed += usize::from(is_removed),
                Err(error) => tracing::warn!(mirror = %copy.path().display(), "it could not be removed: {error}"),
            }
        }
        removed
    }

    async fn tidy_mirror(&self, mirror: &Mirror, unused: Duration) -> anyhow::Result<bool> {
        let mut is_needed = false;
        for name in mirror.kept_runs().await? {
            let run = match name.parse::<RunId>() {
                Ok(run) => self.services.store.run(run).await?,
                Err(_) => None,
            };
            match run {
                Some(run) => is_needed |= !run.state.is_final(),
                None => mirror.forget(&name).await?,
            }
        }
        Ok(!is_needed && mirror.remove_unused(unused).await?)
    }

    /// Erases everything that is stored of a finished task and of the requests that were opened for
    /// it. The rows of the store, by which all the rest is found, are deleted last, so that another
    /// call completes what a crash interrupts. Other machines that share the store find a note, and
    /// erase what lies on their own disks.
    pub async fn forget(&self, task: &TaskId) -> anyhow::Result<Forgotten> {
        let store = &self.services.store;
        let mut tasks = vec![task.clone()];
        tasks.extend(store.opened_for(task).await?);
        let mut runs = Vec::new();
        for task in &tasks {
            match self.finished_runs(task).await? {
                Ok(finished) => runs.extend(finished),
                Err(refusal) => return Ok(refusal),
            }
        }
        let mut conversations = Vec::new();
        for task in &tasks {
            let asked_in = store.asked_for_in(task).await?;
            conversations.extend(asked_in.map(|session| (task, session)));
        }
        let sessions = conversations.iter().map(|(_, session)| session.clone()).collect();
        let note = self.leave_note(Note::new(&tasks, &runs, sessions)).await?;
        self.erase_facts(&note.names()).await?;
        let here = self.erase_here(&note, NaiveDate::MAX).await?;
        let erased = store.erase_runs(&runs).await?;
        for task in &tasks {
            store.erase_followed(task).await?;
        }
        store.erase_remembered(ANSWERS).await?;
        // They are made again, and do not say whose they are.
        store.erase_remembered(KEPT_PLANS).await?;
        self.forget_start_requests(&tasks).await?;
        self.forget_requests(&tasks).await?;
        for (task, session) in &conversations {
            store.erase_conversation(task, session, &runs).await?;
        }
        let is_settled = store.settle().await?;
        Ok(Forgotten::Erased(Erased {
            runs: erased,
            is_rest_left: here.is_rest_left || !is_settled,
            ..here
        }))
    }

    /// Erases the facts that mention one of `names`, those of other tasks included.
    async fn erase_facts(&self, names: &Names) -> anyhow::Result<()> {
        let (store, mut after) = (&self.services.store, 0);
        loop {
            let facts = store.facts(after, &FactFilter::All, MOST_FACTS).await?;
            let Some(last) = facts.last() else { return Ok(()) };
            after = last.sequence;
            let mentioning = facts.iter().filter(|fact| names.are_in(&fact.document));
            let sequences: Vec<u64> = mentioning.map(|fact| fact.sequence).collect();
            if !sequences.is_empty() {
                store.erase_facts(&sequences).await?;
            }
        }
    }

    async fn erase_lines(&self, names: Names, last: NaiveDate) -> anyhow::Result<u64> {
        let logs = self.config.logs.clone();
        let erasing = tokio::task::spawn_blocking(move || erasing::erase_until(&logs, &names, last));
        erasing.await?.context("erasing lines of the journal and the logs")
    }

    /// Removes the kept outputs of these runs from this machine's disk, also behind one of which
    /// they cannot be removed. Returns how many had any.
    async fn erase_outputs(&self, runs: &[RunId]) -> anyhow::Result<usize> {
        let (logs, runs) = (self.config.logs.clone(), runs.to_vec());
        let erasing = tokio::task::spawn_blocking(move || {
            let (mut erased, mut failure) = (0, None);
            for run in runs {
                match erasing::erase_outputs(&logs, &run.to_string()) {
                    Ok(was_there) => erased += usize::from(was_there),
                    Err(error) => failure = Some((run, error)),
                }
            }
            match failure {
                Some((run, error)) => Err(error).with_context(|| format!("removing the outputs of the run {run}")),
                None => Ok(erased),
            }
        });
        erasing.await?
    }

    /// Deletes the commits of runs in all mirrors. Returns the number of runs that had any, and of
    /// broken mirrors.
    async fn forget_commits(
        &self,
        repository: Option<&str>,
        runs: &[RunId],
        prune: Prune,
    ) -> anyhow::Result<(usize, usize)> {
        let settings = &self.services.settings;
        let runs: Vec<String> = runs.iter().map(ToString::to_string).collect();
        let (mut kept, mut broken) = (0, 0);
        for mirror in Mirror::all(&settings.repository, &settings.state_dir) {
            let is_own = repository.is_some_and(|name| mirror.is_called(name));
            match mirror.forget_all(&runs, is_own, prune).await {
                Ok(count) => kept += count,
                // One broken mirror must not keep the rest from being erased.
                Err(error) if !mirror.is_sound().await => {
                    tracing::warn!(mirror = %mirror.path().display(), "it is broken and was left as it is: {error}");
                    broken += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok((kept, broken))
    }
}

/// Returns what a step of the deletion did; a failure is logged.
fn done<T: Default>(step: Result<T, StoreError>) -> T {
    step.unwrap_or_else(|error| {
        tracing::error!("what is older than `retention` says could not be deleted: {error}");
        T::default()
    })
}

/// Tells whether this time, if it is one, is less than [`EVERY`] ago.
fn is_recent(at: Option<&str>, now: DateTime<Utc>) -> bool {
    let at = at.and_then(|at| at.parse::<DateTime<Utc>>().ok());
    at.is_some_and(|at| now - at < EVERY)
}

/// Returns the time so many days before `now`, or the beginning of 1970, before which nothing was
/// stored.
fn before(now: DateTime<Utc>, days: u32) -> DateTime<Utc> {
    let before = now.checked_sub_signed(TimeDelta::days(days.into()));
    before.map_or(DateTime::UNIX_EPOCH, |before| before.max(DateTime::UNIX_EPOCH))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_days_than_a_calendar_has_keep_everything() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(20_000);
        assert_eq!(before(now, 19_999), DateTime::UNIX_EPOCH + TimeDelta::days(1));
        for days in [20_001, 99_999_999, u32::MAX] {
            assert_eq!(before(now, days), DateTime::UNIX_EPOCH);
        }
    }
}
