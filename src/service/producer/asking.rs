//! Finds items on which somebody asked for work without the label: by mentioning the bot's account,
//! or by assigning the item to it.
//!
//! Unlike a label, neither can be taken away when it was acted on. So each is remembered by its
//! name, and does not count where a run has read it or ended after it. What happened long before
//! the first look was not meant for a program that did not listen yet.

mod looked;

use std::collections::BTreeSet;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};

use self::looked::Looked;
use super::claiming::Entrance;
use super::following::FOLLOWED;
use super::{AdmitError, HISTORY_COMES, SearchResult, WorkRequest};
use crate::agent::inbox::authority::{Authority, KnownRights};
use crate::agent::record::Record;
use crate::agent::record::sections::StartedBy;
use crate::agent::text::comments;
use crate::forge::{CLOCKS_DIFFER, Comment, CommentKey, ForgeError, FoundItem, Item, ItemEvent, Reaction};
use crate::journal::fact::Fact;
use crate::markdown::visible;
use crate::service::forges::Connected;
use crate::service::{Service, isolated};
use crate::store::Run;
use crate::task::command::Said;
use crate::task::id::{RunId, TaskId};

/// Difference below which two clocks agree: forges tell whole seconds, and their answers take a
/// while.
const CLOCKS_AGREE: TimeDelta = TimeDelta::seconds(5);

/// The name of an assignment that the forge names nobody for.
const UNTOLD: &str = "assignment";

/// Somebody's request that a run start on an item, made without the label.
struct StartRequest {
    /// Tells it from every other one on the item.
    name: String,
    by: StartedBy,
    /// `None` where the forge does not tell who.
    event: Option<ItemEvent>,
    /// The comment that it stands in.
    comment: Option<Comment>,
}

impl Service {
    /// Looks at the items of a forge that something happened to since the last look. Returns
    /// whether they could be asked for.
    pub(super) async fn look_for_start_requests(&self, connected: &Connected, result: &mut SearchResult) -> bool {
        if !connected.forge.trigger().is_more_than_label() {
            return true;
        }
        self.look_at_touched(connected, result).await.unwrap_or_else(|error| {
            result.faults.push(error.to_string());
            // A fault of this machine, such as a full disk, says nothing about the forge.
            !matches!(error, AdmitError::Forge(_))
        })
    }

    async fn look_at_touched(&self, connected: &Connected, result: &mut SearchResult) -> Result<bool, AdmitError> {
        let store = &self.services.store;
        let began = Utc::now();
        let key = Looked::key(connected);
        let mut looked = Looked::recall(&key, store).await?;
        let since = looked.since(began);
        let search = connected.forge.touched_since(since).await;
        let is_read = search.errors.is_empty();
        let mut is_whole = is_read;
        result.faults.extend(search.errors.iter().map(ToString::to_string));
        let followed = self.followed_now().await?;
        for item in search.items {
            if self.stop.asked.is_cancelled() {
                return Ok(is_read);
            }
            if looked.is_known(&item) {
                continue;
            }
            let heard = isolated(self.hear_start_requests(connected, &item, (since, &followed), &mut looked)).await;
            match heard.unwrap_or_else(|broken| Err(broken.into())) {
                Ok(Heard::All(run)) => {
                    result.admitted.extend(run);
                    looked.saw(&item, began);
                }
                Ok(Heard::ByItsRun) => {}
                Err(error) => {
                    is_whole = false;
                    result.faults.push(format!("{}: {error}", item.task));
                }
            }
        }
        looked.end(began, is_whole);
        looked.keep(&key, store).await?;
        Ok(is_read)
    }

    /// Forgets what was acted on of these tasks.
    pub(in crate::service) async fn forget_start_requests(&self, tasks: &[TaskId]) -> Result<(), AdmitError> {
        let store = &self.services.store;
        for connected in self.forges.all() {
            Looked::forget_stored(tasks, &Looked::key(connected), store).await?;
        }
        Ok(())
    }

    async fn followed_now(&self) -> Result<BTreeSet<TaskId>, AdmitError> {
        if !self.config.follow_up.enabled {
            return Ok(BTreeSet::new());
        }
        let followed = self.services.store.followed_since(Utc::now() - FOLLOWED).await?;
        Ok(followed.into_iter().map(|followed| followed.task).collect())
    }

    /// Acts on the first request of somebody who may have the program work; those who may not are
    /// told once on an item. What people say on one that is followed is heard by those who follow
    /// it.
    async fn hear_start_requests(
        &self,
        connected: &Connected,
        found: &FoundItem,
        (since, followed): (DateTime<Utc>, &BTreeSet<TaskId>),
        looked: &mut Looked,
    ) -> Result<Heard, AdmitError> {
        if followed.contains(&found.task) {
            return Ok(Heard::ByItsRun);
        }
        let Some(heard) = self.start_requests_on(connected, &found.task, since, looked).await? else {
            return Ok(Heard::ByItsRun);
        };
        if heard.1.is_empty() {
            return Ok(Heard::All(None));
        }
        // Only now, because the forge may have to be asked.
        let known = self.as_known(connected, found).await?;
        if followed.contains(&known.task) {
            return Ok(Heard::ByItsRun);
        }
        let heard = if known.task == found.task {
            Some(heard)
        } else {
            self.start_requests_on(connected, &known.task, since, looked).await?
        };
        let Some((item, requests)) = heard else {
            return Ok(Heard::ByItsRun);
        };
        let task = &known.task;
        let mut refused = None;
        let mut begun = None;
        for request in &requests {
            if !self.may_start(connected, task, request).await? {
                refused.get_or_insert(request);
                continue;
            }
            let Some(event) = &request.event else { continue };
            let entry = match self.claim_item(connected, task, event).await? {
                Entrance::Open(entry) => entry,
                Entrance::Held => return Ok(Heard::ByItsRun),
                Entrance::Served => {
                    refused = None;
                    break;
                }
            };
            let asked = WorkRequest {
                by: request.by,
                event: event.clone(),
                claimed: entry.claimed,
            };
            begun = self.take_up(connected, task, asked, &item).await?;
            if let Some(comment) = &request.comment {
                self.acknowledge(connected, task, comment.key).await;
            }
            refused = None;
            break;
        }
        if let Some(request) = refused {
            self.say_no(connected, task, request).await?;
        }
        for request in &requests {
            looked.acted_on(task, &request.name, Utc::now());
        }
        Ok(Heard::All(begun))
    }

    /// Returns the item with the requests on it that nothing was done about yet; `None` where its
    /// run hears them.
    async fn start_requests_on(
        &self,
        connected: &Connected,
        task: &TaskId,
        since: DateTime<Utc>,
        looked: &Looked,
    ) -> Result<Option<(Item, Vec<StartRequest>)>, AdmitError> {
        let newest = self.services.store.runs(Some(task), 1).await?.pop();
        if newest.as_ref().is_some_and(|run| !run.state.is_final()) {
            return Ok(None);
        }
        let item = connected.forge.item(task).await?;
        if !item.is_open {
            return Ok(Some((item, Vec::new())));
        }
        let mut requests = self.mentions(connected, &item, newest.as_ref(), since).await?;
        requests.extend(assignment(connected, &item, newest.as_ref(), (since, looked)).await?);
        requests.retain(|request| !looked.knows(task, &request.name));
        Ok(Some((item, requests)))
    }

    /// Returns the mentions that no run has read, oldest first.
    async fn mentions(
        &self,
        connected: &Connected,
        item: &Item,
        newest: Option<&Run>,
        since: DateTime<Utc>,
    ) -> Result<Vec<StartRequest>, AdmitError> {
        let mut requests = Vec::new();
        if !connected.forge.trigger().mention {
            return Ok(requests);
        }
        let bot = connected.forge.bot_name().await?;
        let since = newest.map_or(since, |run| run.created_at - CLOCKS_DIFFER);
        let is_own = item.author.eq_ignore_ascii_case(&bot);
        if newest.is_none() && item.created_at >= since && !is_own && visible::mentions(&item.body, &bot) {
            requests.push(StartRequest {
                name: "text".to_owned(),
                by: StartedBy::Mention,
                event: Some(ItemEvent {
                    by: item.author.clone(),
                    by_id: item.author_id,
                    at: item.created_at,
                }),
                comment: None,
            });
        }
        let heard = self.heard_before(&item.task).await?;
        for comment in connected.forge.comments(&item.task).await? {
            // One that a run has read may be edited later.
            let is_old = comment.created_at < since || heard.contains_key(&comment.key);
            let is_command = Said::of(&comment.body).command.is_some();
            if is_old || is_command || !visible::mentions(&comment.body, &bot) {
                continue;
            }
            requests.push(StartRequest {
                name: comment.key.to_string(),
                by: StartedBy::Mention,
                event: Some(ItemEvent {
                    by: comment.author.clone(),
                    by_id: comment.author_id,
                    at: comment.created_at,
                }),
                comment: Some(comment),
            });
        }
        Ok(requests)
    }

    /// Asks the forge anew: a right that was taken away meanwhile is none.
    async fn may_start(
        &self,
        connected: &Connected,
        task: &TaskId,
        request: &StartRequest,
    ) -> Result<bool, AdmitError> {
        let forge = connected.forge.as_ref();
        Ok(match (&request.comment, &request.event) {
            (Some(comment), _) => KnownRights::default().has(forge, task, comment, true).await?,
            (None, Some(event)) => forge.is_authorised(task, event.who()).await?,
            (None, None) => false,
        })
    }

    async fn acknowledge(&self, connected: &Connected, task: &TaskId, comment: CommentKey) {
        if let Err(error) = connected.forge.react(task, comment, Reaction::Seen).await {
            tracing::warn!(%task, "the reaction to {comment} could not be given: {error}");
        }
    }

    /// Says once on an item that it is not worked on. Programs are not answered: they might answer
    /// back.
    async fn say_no(&self, connected: &Connected, task: &TaskId, request: &StartRequest) -> Result<(), AdmitError> {
        let by = request.event.as_ref().map(|event| event.by.as_str());
        let is_program = request
            .comment
            .as_ref()
            .is_some_and(|comment| Authority::of(connected.forge.as_ref(), comment) == Authority::Never);
        if !is_program {
            let text = comments::not_begun(by, &connected.labels.trigger);
            self.say(connected, task, ("gate", "asked"), &text).await?;
        }
        self.record(
            task,
            None,
            Fact::Ignored {
                author: by.unwrap_or_default().to_owned(),
                reason: format!(
                    "{} asks for work in the name of nobody who may write to the repository",
                    request.name
                ),
            },
        );
        Ok(())
    }
}

/// Whether an item was looked at.
enum Heard {
    /// Yes; with the run that began.
    All(Option<RunId>),
    /// A run is at work on it, or it is followed: what is said there is heard by those.
    ByItsRun,
}

/// Tells whether an item is assigned to the bot's account.
pub(super) async fn is_assigned(connected: &Connected, item: &Item) -> Result<bool, ForgeError> {
    if item.assignees.is_empty() {
        return Ok(false);
    }
    let bot = connected.forge.bot_name().await?;
    Ok(item.assignees.iter().any(|login| login.eq_ignore_ascii_case(&bot)))
}

/// Returns the request of whoever assigned the item to the bot's account, unless a run has begun,
/// or its end was decided, since. When that was shown does not matter: it may have been late.
async fn assignment(
    connected: &Connected,
    item: &Item,
    newest: Option<&Run>,
    (since, looked): (DateTime<Utc>, &Looked),
) -> Result<Option<StartRequest>, AdmitError> {
    if !connected.forge.trigger().assignment || !is_assigned(connected, item).await? {
        return Ok(None);
    }
    let request = |name: String, event| StartRequest {
        name,
        by: StartedBy::Assignment,
        event,
        comment: None,
    };
    let Some(event) = connected.forge.assigned_by(&item.task).await? else {
        if newest.is_some() || looked.knows(&item.task, UNTOLD) {
            return Ok(None);
        }
        // The history may come a moment after the change.
        if Utc::now() - item.updated_at < HISTORY_COMES {
            return Err(AdmitError::Unassigned);
        }
        return Ok(Some(request(UNTOLD.to_owned(), None)));
    };
    let since = match newest {
        Some(run) => {
            let ended = Record::read(run)?.waiting.ended_at.unwrap_or(run.updated_at);
            let forge_now = connected.forge.now(&item.task).await?;
            // Forges may count whole seconds.
            by_its_clock(ended, Utc::now(), forge_now).trunc_subsecs(0)
        }
        None => since,
    };
    let is_told = !event.by.is_empty();
    let name = format!("assignment-{}-{}", event.at.timestamp_micros(), event.by);
    Ok((event.at >= since).then(|| request(name, is_told.then_some(event))))
}

/// Returns a time of this machine's clock as the forge's clock shows it: the end of a run is a time
/// of this machine's clock, and an assignment is one of the forge's. Unlike for mentions a
/// tolerance of minutes is no help, since what was assigned shortly before the end was known to the
/// run.
pub(super) fn by_its_clock(time: DateTime<Utc>, now: DateTime<Utc>, forge_now: DateTime<Utc>) -> DateTime<Utc> {
    let ahead = now - forge_now;
    if ahead.abs() < CLOCKS_AGREE {
        return time;
    }
    time - ahead
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_run_is_told_by_the_clock_of_the_forge() {
        let at = |second| DateTime::UNIX_EPOCH + TimeDelta::seconds(second);
        let (end, now) = (at(1_000), at(1_060));
        // The same but for what an answer takes; this machine ahead; the forge ahead.
        let told = [1_057, 760, 1_360].map(|forge_now| by_its_clock(end, now, at(forge_now)));
        assert_eq!(told, [end, at(700), at(1_300)]);
    }
}
