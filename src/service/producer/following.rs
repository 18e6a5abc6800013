//! Follows the pull/merge requests that the program opened: what reviewers and checks say about
//! them becomes a run.
//!
//! A poll costs one list for each repository, mostly confirmed unchanged. Comments are read while
//! the last change of a request is recent, checks until they have ended. A request that was closed,
//! or whose round a person stopped, costs nothing more.

mod news;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};

use super::AdmitError;
use crate::agent::record::Record;
use crate::agent::record::follow_up::{Kind, Notes, Read, Round, Seen};
use crate::agent::record::message::HeardComment;
use crate::agent::record::sections::{RequestRecord, ThreadRecord};
use crate::agent::text::comments;
use crate::agent::text::replies;
use crate::forge::item::change::OpenChange;
use crate::forge::item::checks::{Checks, FailedCheck};
use crate::forge::{Comment, CommentKey, ForgeError, Reaction};
use crate::journal::fact::Fact;
use crate::service::forges::Connected;
use crate::service::{Service, isolated};
use crate::store::{Admission, Followed, Run, StoreError, Turn};
use crate::task::command::Command;
use crate::task::id::{HostName, RunId, TaskId};
use crate::task::state::State;

/// Time without a run after which a request is no longer followed.
pub(super) const FOLLOWED: TimeDelta = TimeDelta::days(30);
/// More runs of a change than any limit of rounds allows for.
const MOST_RUNS: u32 = 100;

impl Service {
    /// Polls the requests of a forge that are followed, while this process has the turn; returns
    /// the runs that were begun. One that fails is polled again next time.
    pub(super) async fn follow_up(&self, connected: &Connected, turn: Option<&Turn>) -> Vec<RunId> {
        let mut admitted = Vec::new();
        if !self.config.follow_up.enabled {
            return admitted;
        }
        let followed = match self.services.store.followed_since(Utc::now() - FOLLOWED).await {
            Ok(followed) => followed,
            Err(error) => {
                tracing::error!("the opened changes could not be looked after: {error}");
                return admitted;
            }
        };
        for group in by_repository(followed, connected.forge.name()) {
            if self.stop.asked.is_cancelled() || !self.may_go_on(turn).await {
                return admitted;
            }
            let looked = isolated(self.follow_repository(connected, &group, &mut admitted)).await;
            if let Err(error) = looked.unwrap_or_else(|broken| Err(broken.into())) {
                tracing::warn!("opened changes could not be looked after: {error}");
            }
        }
        admitted
    }

    async fn follow_repository(
        &self,
        connected: &Connected,
        group: &[Followed],
        admitted: &mut Vec<RunId>,
    ) -> Result<(), AdmitError> {
        let tasks: Vec<TaskId> = group.iter().map(|followed| followed.task.clone()).collect();
        let open = connected.forge.open_changes(&tasks).await?;
        for followed in group {
            let look = async {
                match open.iter().find(|change| change.task == followed.task) {
                    Some(change) => self.follow(connected, change, followed).await,
                    None => self.see_off(connected, &followed.task).await.map(|()| None),
                }
            };
            match isolated(look).await.unwrap_or_else(|broken| Err(broken.into())) {
                Ok(run) => admitted.extend(run),
                Err(error) => tracing::warn!(task = %followed.task, "it could not be looked after: {error}"),
            }
        }
        Ok(())
    }

    /// Stops following a request if it is closed. The item itself is read, because lists may be
    /// stale.
    async fn see_off(&self, connected: &Connected, task: &TaskId) -> Result<(), AdmitError> {
        let is_open = match connected.forge.item(task).await {
            Ok(item) => item.is_open,
            Err(ForgeError::Gone { .. }) => false,
            Err(error) => return Err(error.into()),
        };
        if !is_open {
            self.services.store.unfollow(task).await?;
        }
        Ok(())
    }

    async fn follow(
        &self,
        connected: &Connected,
        change: &OpenChange,
        followed: &Followed,
    ) -> Result<Option<RunId>, AdmitError> {
        let store = &self.services.store;
        let mut notes: Notes = serde_json::from_value(followed.notes.clone()).map_err(AdmitError::record)?;
        // Whoever is at work on the branch hears what people say. Two on one branch would be in
        // each other's way.
        for task in [&change.task, &notes.origin] {
            if store.unfinished_of(task).await?.is_some() {
                return Ok(None);
            }
        }
        // A run that has ended since the notes were read may have replaced them, and pushed another
        // head than the one that was listed: the next poll reads both.
        if store.followed(&change.task).await?.as_ref() != Some(followed) {
            return Ok(None);
        }
        let before = notes.clone();
        let outcome = self.look(connected, change, &mut notes).await;
        if notes != before {
            let notes = serde_json::to_value(&notes).map_err(AdmitError::record)?;
            if !store.note_followed(followed, &notes).await? {
                tracing::info!(task = %change.task, "others noted something meanwhile, the next poll reads it");
            }
        }
        outcome
    }

    async fn look(
        &self,
        connected: &Connected,
        change: &OpenChange,
        notes: &mut Notes,
    ) -> Result<Option<RunId>, AdmitError> {
        let now = Utc::now();
        if notes.may_have_news(change.updated_at) {
            let runs = self.runs_since(&change.task, notes.since).await?;
            if runs.first().is_some_and(|run| run.state == State::Stopped) {
                self.services.store.unfollow(&change.task).await?;
                return Ok(None);
            }
            let news = self.news(connected, &change.task, notes).await?;
            if let Some((stop, by)) = news.stop {
                self.end(connected, &change.task, stop.key, &by).await?;
                notes.heard.insert(stop.key, stop.fingerprint);
                return Ok(None);
            }
            let newest = news.words.iter().map(|comment| comment.updated_at).max();
            let is_waiting = newest.is_some_and(|newest| now - newest < self.config.follow_up.debounce());
            let read = Some(Read {
                updated_at: change.updated_at,
                at: now,
                is_waiting,
            });
            if newest.is_some() && !is_waiting {
                let run = self.begin_review(connected, change, notes, news.words).await?;
                // Only now: where the round cannot begin, the next poll reads its comments again.
                notes.read = read;
                return Ok(run);
            }
            notes.read = read;
            if is_waiting {
                return Ok(None);
            }
        }
        self.look_at_checks(connected, change, notes, now).await
    }

    /// Returns the runs of a request since people last asked for work, newest first.
    async fn runs_since(&self, task: &TaskId, since: DateTime<Utc>) -> Result<Vec<Run>, StoreError> {
        let mut runs = self.services.store.runs(Some(task), MOST_RUNS).await?;
        runs.retain(|run| run.created_at >= since);
        Ok(runs)
    }

    async fn begin_review(
        &self,
        connected: &Connected,
        change: &OpenChange,
        notes: &mut Notes,
        words: Vec<Comment>,
    ) -> Result<Option<RunId>, AdmitError> {
        let Some(number) = self.next_round(change, notes, Kind::Review).await? else {
            self.hand_over(connected, change, notes, Kind::Review).await?;
            // Nobody reads comments any more, so nothing is to be looked for.
            self.services.store.unfollow(&change.task).await?;
            return Ok(None);
        };
        let round = Round {
            kind: Kind::Review,
            number,
            comments: words.iter().map(|comment| comment.key).collect(),
            failed: Vec::new(),
        };
        let run = self.begin(connected, change, round).await?;
        for comment in words {
            if let Err(error) = connected.forge.react(&change.task, comment.key, Reaction::Seen).await {
                tracing::warn!(task = %change.task, "the reaction to {} could not be given: {error}", comment.key);
            }
            // Also where the run fails before it reads them, it was told of them.
            let heard = HeardComment::of(&comment);
            notes.heard.insert(heard.key, heard.fingerprint);
        }
        Ok(run)
    }

    async fn look_at_checks(
        &self,
        connected: &Connected,
        change: &OpenChange,
        notes: &mut Notes,
        now: DateTime<Utc>,
    ) -> Result<Option<RunId>, AdmitError> {
        let is_wanted = self.config.follow_up.most(Kind::Checks) > 0 && !notes.told.contains(&Kind::Checks);
        if !is_wanted || !notes.may_have_checks(&change.head, now) {
            return Ok(None);
        }
        let known = notes.known_failures(&change.head);
        let failed = match connected.forge.checks(&change.task, &change.head, &known).await? {
            Checks::Failed(failed) if failed.is_empty() => {
                notes.saw_checks(&change.head, now, Seen::End);
                return Ok(None);
            }
            Checks::Failed(failed) => failed,
            Checks::None => {
                notes.saw_checks(&change.head, now, Seen::Nothing);
                return Ok(None);
            }
            Checks::Running => {
                notes.saw_checks(&change.head, now, Seen::Running);
                return Ok(None);
            }
            Checks::Passed => {
                notes.saw_checks(&change.head, now, Seen::End);
                return Ok(None);
            }
        };
        let Some(number) = self.next_round(change, notes, Kind::Checks).await? else {
            self.hand_over(connected, change, notes, Kind::Checks).await?;
            return Ok(None);
        };
        // The record is shown and kept.
        let clean = |text: &str| self.services.redactor.clean(text).into_string();
        let keys: Vec<String> = failed.iter().map(|check| check.key.clone()).collect();
        let failed = failed.into_iter().map(|check| FailedCheck {
            key: check.key,
            name: clean(&check.name),
            log: check.log.as_deref().map(clean),
        });
        let round = Round {
            kind: Kind::Checks,
            number,
            comments: BTreeSet::new(),
            failed: failed.collect(),
        };
        let run = self.begin(connected, change, round).await?;
        notes.saw_checks(&change.head, now, Seen::End);
        notes.know_failures(keys);
        Ok(run)
    }

    /// Returns the number of the next round of this kind; `None` if the maximum was reached.
    async fn next_round(&self, change: &OpenChange, notes: &Notes, kind: Kind) -> Result<Option<u32>, AdmitError> {
        let runs = self.runs_since(&change.task, notes.since).await?;
        let mut rounds = 0_u32;
        for run in &runs {
            let round = Record::read(run)?.request.round;
            rounds += u32::from(round.is_some_and(|round| round.kind == kind));
        }
        let number = rounds.saturating_add(1);
        Ok((number <= self.config.follow_up.most(kind)).then_some(number))
    }

    /// Sets the label and admits the run, in this order, as the producer does.
    async fn begin(
        &self,
        connected: &Connected,
        change: &OpenChange,
        round: Round,
    ) -> Result<Option<RunId>, AdmitError> {
        let mut heard = self.heard_before(&change.task).await?;
        heard.retain(|key, _| !round.comments.contains(key));
        let begun = Fact::FollowedUp {
            kind: round.kind.to_string(),
            round: round.number,
        };
        let title = self.services.redactor.clean(&change.title).into_string();
        let from_origin = self.taken_over(connected, &change.task).await?;
        let record = Record {
            request: RequestRecord {
                title: title.clone(),
                round: Some(round),
                local_only: from_origin.local_only,
                model: from_origin.model,
                ..RequestRecord::default()
            },
            thread: ThreadRecord {
                heard,
                ..ThreadRecord::default()
            },
            ..Record::default()
        };
        let record = record.to_saved().map_err(AdmitError::record)?;
        connected
            .forge
            .add_label(&change.task, &connected.labels.processing)
            .await?;
        let admission = self.services.store.admit(&change.task, &title, &record).await?;
        self.wake_ups.wake_one();
        match admission {
            // Somebody was faster, and reads the same comments.
            Admission::Known(_) => Ok(None),
            Admission::New(run) => {
                self.record(&change.task, Some(run), begun);
                Ok(Some(run))
            }
        }
    }

    /// Comments, once, that people are needed.
    async fn hand_over(
        &self,
        connected: &Connected,
        change: &OpenChange,
        notes: &mut Notes,
        kind: Kind,
    ) -> Result<(), AdmitError> {
        if notes.told.contains(&kind) {
            return Ok(());
        }
        let most = self.config.follow_up.most(kind);
        let text = comments::needs_people(kind, most, &connected.labels.trigger);
        let what = format!("{kind}-{}", notes.since.timestamp());
        self.say(connected, &change.task, ("follow", &what), &text).await?;
        notes.told.insert(kind);
        Ok(())
    }

    async fn end(&self, connected: &Connected, task: &TaskId, comment: CommentKey, by: &str) -> Result<(), AdmitError> {
        let text = replies::no_longer_followed(by, &connected.labels.trigger);
        self.say(connected, task, ("follow", &format!("stop-{comment}")), &text)
            .await?;
        self.services.store.unfollow(task).await?;
        let command = Command::Stop.to_string();
        let by = format!("@{by}");
        self.record(task, None, Fact::Ordered { by, command });
        Ok(())
    }

    /// Follows a request again, with all its rounds, because people asked for work on it.
    pub(super) async fn follow_again(&self, task: &TaskId) -> Result<(), AdmitError> {
        let store = &self.services.store;
        let Some(followed) = store.followed(task).await? else {
            return Ok(());
        };
        let mut notes: Notes = serde_json::from_value(followed.notes).map_err(AdmitError::record)?;
        notes.begin_again();
        let origin = notes.origin.clone();
        let notes = serde_json::to_value(notes).map_err(AdmitError::record)?;
        Ok(store.follow(task, &origin, &notes).await?)
    }
}

/// Returns the requests of one host, those of each repository together.
fn by_repository(followed: Vec<Followed>, host: &HostName) -> Vec<Vec<Followed>> {
    let mut groups: BTreeMap<String, Vec<Followed>> = BTreeMap::new();
    for one in followed {
        let Some(item) = one.task.item().filter(|item| item.host == *host) else {
            continue;
        };
        let repository = item.repository.clone();
        groups.entry(repository).or_default().push(one);
    }
    groups.into_values().collect()
}
