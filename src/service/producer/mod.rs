//! The producer: finds what people have asked for and writes it into the store, each item once.

mod asking; // mentions and assignments
pub(super) mod claiming; // other installations leave it alone
mod origin; // what a request of the program's own takes over from its issue
mod known; // a run that there is already
pub(super) mod renamed; // items whose repository has another name now
mod following; // reviews and checks of what was delivered
pub mod searches; // whether the forges can be read

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::TimeDelta;
use uuid::Uuid;

use self::claiming::Entrance;
use self::searches::Searched;
use super::forges::Connected;
use super::{Broken, Service, isolated};
use crate::agent::claim::on_forge::ClaimError;
use crate::agent::record::Record;
use crate::agent::record::follow_up::Notes;
use crate::agent::record::saved::Unreadable;
use crate::agent::record::sections::{RequestRecord, StartedBy, ThreadRecord, WrittenClaim};
use crate::agent::record::vouched::VouchedItem;
use crate::agent::text::replies;
use crate::agent::workspace::confidentiality::neutral_title;
use crate::forge::{CommentKey, Discretion, ForgeError, FoundItem, Item, ItemEvent};
use crate::journal::fact::{Fact, Subject};
use crate::store::{Admission, StoreError, Turn};
use crate::task::id::{RunId, TaskId};
use crate::task::state::State;

/// Time after which another machine searches a forge whose searcher has not come to an end.
const LONGEST_SEARCH: Duration = Duration::from_mins(10);

/// Time after which what is missing in an item's history, a label or an assignment, will not appear
/// there any more.
pub(super) const HISTORY_COMES: TimeDelta = TimeDelta::minutes(5);

/// The share of the pause between two searches for which the last one keeps other machines from one
/// of their own. The rest is for the machine that searched, whose next one is a moment late.
const SHARE_OF_PAUSE: f64 = 0.9;

/// What forges are searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occasion {
    /// The usual pause is over. Of machines that share the store one searches then.
    Pause,
    /// A command, or a delivery that says that something happened.
    Asked,
}

/// Who searches a forge, and follows what was opened there.
enum Searching {
    Here(Turns),
    Elsewhere,
}

/// The turns of a process that searches, where other machines might.
#[derive(Default)]
struct Turns {
    search: Option<Turn>,
    /// The one of the pause, which outlasts the search: without it each machine would search in
    /// each pause, one after the other.
    pause: Option<Turn>,
}

/// How somebody who may asked for work on an item, and the claim on it.
struct WorkRequest {
    by: StartedBy,
    event: ItemEvent,
    claimed: Option<WrittenClaim>,
}

/// The result of one search of all forges.
#[derive(Debug, Default)]
pub struct SearchResult {
    pub admitted: Vec<RunId>,
    /// A sentence for each thing that went wrong. The items concerned are found again by the next
    /// search.
    pub faults: Vec<String>,
}

impl Service {
    /// Searches all forges once, and follows what was opened there. One that cannot be read does
    /// not keep the others from being searched.
    pub(super) async fn produce(&self, occasion: Occasion) -> SearchResult {
        let mut result = SearchResult::default();
        for connected in self.forges.all() {
            let turns = match self.turns_to_search(connected, occasion).await {
                Ok(Searching::Here(turns)) => turns,
                Ok(Searching::Elsewhere) => continue,
                Err(error) => {
                    result.faults.push(error.to_string());
                    continue;
                }
            };
            let forge = connected.forge.name();
            let faults_before = result.faults.len();
            let searched = isolated(self.search_one(connected, &mut result)).await;
            let is_read = searched.unwrap_or_else(|broken| {
                result.faults.push(format!("searching {forge}: {broken}"));
                false
            });
            let searched = match (is_read, result.faults.len() > faults_before) {
                (false, _) => Searched::Failed,
                (true, true) => Searched::Incomplete,
                (true, false) => Searched::Complete,
            };
            self.searches.ended(forge, searched);
            let followed = Box::pin(self.follow_up(connected, turns.search.as_ref())).await;
            result.admitted.extend(followed);
            self.end_turn(turns.search).await;
            if searched == Searched::Failed {
                // Another machine may reach the forge.
                self.end_turn(turns.pause).await;
            }
            if self.stop.asked.is_cancelled() {
                return result;
            }
        }
        for fault in &result.faults {
            tracing::error!("{fault}");
            self.services
                .journal
                .record(&Subject::default(), Fact::Warned { text: fault.clone() });
        }
        result
    }

    /// Searches one forge, and admits what is found; returns whether all could be read.
    async fn search_one(&self, connected: &Connected, result: &mut SearchResult) -> bool {
        self.present_names.forget();
        let search = connected.forge.triggered().await;
        let is_read = search.errors.is_empty();
        connected.remember(&self.services.store).await;
        result.faults.extend(search.errors.iter().map(ToString::to_string));
        for item in search.items {
            if self.stop.asked.is_cancelled() {
                return is_read;
            }
            let admitted = isolated(self.admit(connected, &item)).await;
            match admitted.unwrap_or_else(|broken| Err(broken.into())) {
                Ok(Some(run)) => result.admitted.push(run),
                Ok(None) => {}
                Err(reason) => result.faults.push(format!("{}: {reason}", item.task)),
            }
        }
        Box::pin(self.look_for_start_requests(connected, result)).await && is_read
    }

    /// Takes the turns to search a forge and to follow what was opened there, which one machine at
    /// a time has: more would ask the forge the same, use up its limit of requests, and say the
    /// same to people, since none finds what the other is about to say.
    async fn turns_to_search(&self, connected: &Connected, occasion: Occasion) -> Result<Searching, StoreError> {
        let store = &self.services.store;
        if store.rung().is_none() {
            // The processes of one machine share what the forge has answered.
            return Ok(Searching::Here(Turns::default()));
        }
        let mut turns = Turns::default();
        if occasion == Occasion::Pause {
            let pause = Duration::from_secs(self.config.producer.interval_seconds).mul_f64(SHARE_OF_PAUSE);
            turns.pause = store.take_turn(&connected.memory_of("pause"), 1, pause).await?;
            if turns.pause.is_none() {
                return Ok(Searching::Elsewhere);
            }
        }
        turns.search = store
            .take_turn(&connected.memory_of("search"), 1, LONGEST_SEARCH)
            .await?;
        Ok(if turns.search.is_some() {
            Searching::Here(turns)
        } else {
            Searching::Elsewhere
        })
    }

    /// Extends the turn after a part of the work that may have taken long; returns false if another
    /// machine has it now, or nobody knows.
    async fn may_go_on(&self, turn: Option<&Turn>) -> bool {
        let Some(turn) = turn else { return true };
        let kept = self.services.store.keep_turn(turn, LONGEST_SEARCH).await;
        kept.unwrap_or_else(|error| {
            tracing::warn!("the opened changes are left to the next search: {error}");
            false
        })
    }

    async fn end_turn(&self, turn: Option<Turn>) {
        let Some(turn) = turn else { return };
        if let Err(error) = self.services.store.end_turn(&turn).await {
            tracing::warn!("a turn to search runs out by itself: {error}");
        }
    }

    /// Admits a labelled item, if whoever put the label on may have the program work.
    async fn admit(&self, connected: &Connected, item: &FoundItem) -> Result<Option<RunId>, AdmitError> {
        let item = &self.as_known(connected, item).await?;
        if self.is_left_over(connected, item).await? {
            return Ok(None);
        }
        // What is asked for now is another run: the trigger stays until a search after the end of
        // that one admits it.
        if let Some(ending) = self.ending_of(&item.task).await? {
            self.show_end_at_once(connected, item, &ending).await?;
            return Ok(None);
        }
        let Some(trigger) = self.let_in(connected, item).await? else {
            return Ok(None);
        };
        let Entrance::Open(entry) = self.claim_item(connected, &item.task, &trigger).await? else {
            return Ok(None);
        };
        // After the label: what is changed from here on shows, and what was changed before the
        // forge tells of.
        let seen = connected.forge.item(&item.task).await?;
        if !claiming::still_asks(connected, &seen) {
            entry.give_back().await;
            return Ok(None);
        }
        let asked = WorkRequest {
            by: StartedBy::Label,
            event: trigger,
            claimed: entry.claimed,
        };
        self.take_up(connected, &item.task, asked, &seen).await
    }

    /// Writes a run down for an item on which somebody asked for work who may.
    ///
    /// The trigger goes last: an item is found again until it stands in the store and shows it, and
    /// is admitted no second time. The new label comes first: where labels may not be written
    /// nothing was begun.
    async fn take_up(
        &self,
        connected: &Connected,
        task: &TaskId,
        asked: WorkRequest,
        seen: &Item,
    ) -> Result<Option<RunId>, AdmitError> {
        let title = match seen.discretion {
            Discretion::NotNeeded => self.services.redactor.clean(&seen.title).into_string(),
            Discretion::NeutralNames => neutral_title(task.number()),
            Discretion::Refused => {
                self.decline(connected, task, asked.by, &asked.event).await?;
                return Ok(None);
            }
        };
        let record = self.first_record(connected, &title, asked, seen).await?;
        let (forge, store) = (&connected.forge, &self.services.store);
        forge.add_label(task, &connected.labels.processing).await?;
        // All that goes with a run is done while the trigger is there, for a known one too: a
        // process that was killed in between, or that the forge refused, has left it undone. The
        // run begins after another one that works on the same branch has ended. That one goes on
        // here if it waits for people: they look at this item now, and would not see that it waits.
        for other in store.beside(task).await? {
            self.let_go_on(other).await?;
        }
        // An end that was decided since the item was found: the trigger stays, as it does there.
        if self.ending_of(task).await?.is_some() {
            return Ok(None);
        }
        let mut admission = store.admit(task, &title, &record).await?;
        self.follow_again(task).await?;
        // Whoever puts the trigger on a run that waits wants it to go on.
        let asked = match admission {
            Admission::Known(run) => self.let_go_on(run).await?,
            Admission::New(_) => None,
        };
        let asked = asked.as_deref();
        // Where it has ended without that, another one was asked for.
        admission = self.unless_over(admission, asked, task, &title, &record).await?;
        self.tell_of_pause(connected, task, admission).await?;
        forge.remove_label(task, &connected.labels.trigger).await?;
        // Once more: that may have taken long, and nothing would take the label off again.
        admission = self.unless_over(admission, asked, task, &title, &record).await?;
        self.wake_ups.wake_one();
        match admission {
            Admission::Known(_) => Ok(None),
            Admission::New(run) => {
                self.record(task, Some(run), Fact::Admitted { title });
                Ok(Some(run))
            }
        }
    }

    /// Tells people whose run has not begun that all runs are paused, where they are; once. The run
    /// is there also where the forge takes no comment.
    async fn tell_of_pause(
        &self,
        connected: &Connected,
        task: &TaskId,
        admission: Admission,
    ) -> Result<(), StoreError> {
        let (Admission::New(run) | Admission::Known(run)) = admission;
        let store = &self.services.store;
        let stored = store.run(run).await?;
        if !store.is_paused().await? || stored.is_none_or(|run| run.state != State::Queued) {
            return Ok(());
        }
        let name = run.to_string();
        let told = self
            .say(connected, task, ("paused", &name), &replies::BEGINS_LATER.into())
            .await;
        if let Err(error) = told {
            tracing::warn!(%task, "people could not be told that all runs are paused: {error}");
        }
        Ok(())
    }

    /// Returns the record of a run that begins.
    async fn first_record(
        &self,
        connected: &Connected,
        title: &str,
        asked: WorkRequest,
        seen: &Item,
    ) -> Result<serde_json::Value, AdmitError> {
        let from_origin = self.taken_over(connected, &seen.task).await?;
        let record = Record {
            request: RequestRecord {
                title: title.to_owned(),
                is_discreet: seen.discretion != Discretion::NotNeeded,
                trigger: Some(asked.event),
                started_by: asked.by,
                claimed: asked.claimed,
                vouched: Some(VouchedItem::of(seen)),
                local_only: from_origin.local_only,
                model: self.model_for(&seen.task).await?.or(from_origin.model),
                ..RequestRecord::default()
            },
            thread: ThreadRecord {
                heard: self.heard_before(&seen.task).await?,
                was_assigned: asking::is_assigned(connected, seen).await?,
                ..ThreadRecord::default()
            },
            ..Record::default()
        };
        record.to_saved().map_err(AdmitError::record)
    }

    /// Returns the comments that the previous run has read: a command in one of them is not
    /// executed again.
    pub(super) async fn heard_before(&self, task: &TaskId) -> Result<BTreeMap<CommentKey, Uuid>, AdmitError> {
        let before = self.services.store.runs(Some(task), 1).await?.pop();
        let record = before.map(|run| Record::read(&run)).transpose()?;
        let mut heard = record.map(|record| record.thread.heard).unwrap_or_default();
        // Or while nobody worked on it.
        let followed = self.services.store.followed(task).await?;
        let notes = followed.and_then(|followed| serde_json::from_value::<Notes>(followed.notes).ok());
        heard.extend(notes.map(|notes| notes.heard).unwrap_or_default());
        Ok(heard)
    }

    /// Returns true if the item is no longer open or labelled. Lists may be older than the labels,
    /// so an item that was worked on before is read itself; a stale list would start a second run.
    async fn is_left_over(&self, connected: &Connected, item: &FoundItem) -> Result<bool, AdmitError> {
        if self.services.store.runs(Some(&item.task), 1).await?.is_empty() {
            return Ok(false);
        }
        let fresh = connected.forge.item(&item.task).await?;
        Ok(!claiming::still_asks(connected, &fresh))
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum AdmitError {
    #[error(transparent)]
    Forge(#[from] ForgeError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error(transparent)]
    Broken(#[from] Broken),
    #[error("the forge does not tell yet who put the label on; the next search asks again")]
    Untold,
    #[error("the forge does not tell yet who assigned it; the next search asks again")]
    Unassigned,
    #[error("the run could not be written down: {0}")]
    Record(String),
}

impl AdmitError {
    #[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
    pub(super) fn record(error: serde_json::Error) -> Self {
        Self::Record(error.to_string())
    }
}
