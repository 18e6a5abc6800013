//! The memory of looks for mentions and assignments, which also the next look of another process
//! uses.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

use crate::forge::FoundItem;
use crate::service::forges::Connected;
use crate::service::producer::AdmitError;
use crate::store::Store;
use crate::task::id::TaskId;

/// The furthest that a look goes back, be it the first one or one after a time without looks. Older
/// events count for nothing.
const FURTHEST_BACK: TimeDelta = TimeDelta::days(1);
/// Lists may be some seconds old, and clocks differ by some minutes.
const OVERLAP: TimeDelta = TimeDelta::minutes(10);
/// GitLab does not say of a comment within a minute after another change that something changed.
const UNREST: TimeDelta = TimeDelta::minutes(2);
/// Time for which a request that was acted on is remembered. Its item is not found after that
/// without a run that has read it, or another request.
const REMEMBERED: TimeDelta = TimeDelta::days(90);
/// Most requests that are remembered, more than people have in that time. The oldest are forgotten
/// first.
const MOST: usize = 2_000;

/// The name under which the store keeps this memory.
const STORED_AS: &str = "wishes";

/// The items that were looked at and the requests that were acted on, as they are stored.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Looked {
    /// The time up to which everything was looked at.
    until: Option<DateTime<Utc>>,
    /// The items that were looked at, by task.
    items: BTreeMap<String, Seen>,
    /// When a request was acted on, by task and the request's name.
    #[serde(rename = "wishes")]
    requests: BTreeMap<String, DateTime<Utc>>,
    /// The text in the store that it was made of.
    #[serde(skip)]
    recalled: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Seen {
    /// By the forge's clock.
    updated_at: DateTime<Utc>,
    at: DateTime<Utc>,
}

impl Looked {
    /// Returns the key under which the store has the memory of looks at a forge.
    pub(super) fn key(connected: &Connected) -> String {
        connected.memory_of(STORED_AS)
    }

    pub(super) async fn recall(key: &str, store: &Store) -> Result<Self, AdmitError> {
        let recalled = store.remembered(key).await?;
        let looked = Self::read(recalled.as_deref())?;
        Ok(Self { recalled, ..looked })
    }

    fn read(text: Option<&str>) -> Result<Self, AdmitError> {
        text.map_or_else(
            || Ok(Self::default()),
            |text| serde_json::from_str(text).map_err(AdmitError::record),
        )
    }

    /// Stores it, without what another process has made the store forget since it was recalled.
    pub(super) async fn keep(&mut self, key: &str, store: &Store) -> Result<(), AdmitError> {
        while !self.keep_unless_changed(key, store).await? {
            let before = Self::read(self.recalled.as_deref())?;
            let now = Self::recall(key, store).await?;
            self.items
                .retain(|task, _| now.items.contains_key(task) || !before.items.contains_key(task));
            self.requests
                .retain(|name, _| now.requests.contains_key(name) || !before.requests.contains_key(name));
            self.recalled = now.recalled;
        }
        Ok(())
    }

    /// Stores it if the store still has what it was made of; returns whether it does.
    async fn keep_unless_changed(&self, key: &str, store: &Store) -> Result<bool, AdmitError> {
        let text = serde_json::to_string(self).map_err(AdmitError::record)?;
        let before = self.recalled.as_deref();
        Ok(store.remember_unless_changed(key, before, &text).await?)
    }

    /// Drops what the store has of these tasks.
    pub(super) async fn forget_stored(tasks: &[TaskId], key: &str, store: &Store) -> Result<(), AdmitError> {
        loop {
            let mut looked = Self::recall(key, store).await?;
            if !looked.forget(tasks) || looked.keep_unless_changed(key, store).await? {
                return Ok(());
            }
        }
    }

    /// Returns since when a look that begins now has to look.
    pub(super) fn since(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        let furthest = now - FURTHEST_BACK;
        self.until.map_or(furthest, |until| until.max(furthest))
    }

    /// Tells whether nothing happened to an item since it was looked at.
    pub(super) fn is_known(&self, item: &FoundItem) -> bool {
        let seen = self.items.get(&item.task.to_string());
        seen.is_some_and(|seen| seen.updated_at == item.updated_at && seen.at >= item.updated_at + UNREST)
    }

    pub(super) fn saw(&mut self, item: &FoundItem, at: DateTime<Utc>) {
        let updated_at = item.updated_at;
        self.items.insert(item.task.to_string(), Seen { updated_at, at });
    }

    pub(super) fn knows(&self, task: &TaskId, request: &str) -> bool {
        self.requests.contains_key(&name(task, request))
    }

    pub(super) fn acted_on(&mut self, task: &TaskId, request: &str, at: DateTime<Utc>) {
        self.requests.insert(name(task, request), at);
    }

    /// Drops what is known of these tasks; returns whether there was something.
    fn forget(&mut self, tasks: &[TaskId]) -> bool {
        let before = self.items.len() + self.requests.len();
        for task in tasks {
            self.items.remove(&task.to_string());
            let beginning = name(task, "");
            self.requests.retain(|request, _| !request.starts_with(&beginning));
        }
        self.items.len() + self.requests.len() < before
    }

    /// Ends the look that began at `began`. One that could not read everything is done again.
    pub(super) fn end(&mut self, began: DateTime<Utc>, is_whole: bool) {
        let until = if is_whole { began - OVERLAP } else { self.since(began) };
        self.until = Some(until);
        self.items.retain(|_, seen| seen.updated_at >= until - OVERLAP);
        self.requests.retain(|_, at| *at >= began - REMEMBERED);
        while self.requests.len() > MOST {
            let oldest = self.requests.iter().min_by_key(|(_, at)| **at);
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else {
                break;
            };
            self.requests.remove(&oldest);
        }
    }
}

fn name(task: &TaskId, request: &str) -> String {
    format!("{task} {request}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::days(400) + TimeDelta::minutes(minute)
    }

    fn item(updated: i64) -> FoundItem {
        FoundItem {
            task: "github:acme/widgets#1".parse().unwrap(),
            title: "Greet".to_owned(),
            updated_at: at(updated),
        }
    }

    #[test]
    fn a_look_begins_some_minutes_before_the_last_whole_one() {
        let mut looked = Looked::default();
        assert_eq!(looked.since(at(0)), at(0) - FURTHEST_BACK);
        looked.end(at(0), false);
        assert_eq!(looked.since(at(60)), at(0) - FURTHEST_BACK + TimeDelta::minutes(60));
        looked.end(at(60), true);
        assert_eq!(looked.since(at(120)), at(50));
    }

    #[test]
    fn an_item_is_known_once_it_is_quiet_and_until_something_happens() {
        let mut looked = Looked::default();
        assert!(!looked.is_known(&item(0)));
        looked.saw(&item(0), at(1));
        assert!(!looked.is_known(&item(0)));
        looked.saw(&item(0), at(3));
        assert!(looked.is_known(&item(0)) && !looked.is_known(&item(1)));
    }

    #[test]
    fn a_memory_of_an_earlier_version_is_read() {
        let task = item(0).task;
        let stored =
            r#"{"until": null, "items": {}, "wishes": {"github:acme/widgets#1 text": "1971-02-05T00:00:00Z"}}"#;
        let looked: Looked = serde_json::from_str(stored).unwrap();
        assert!(looked.knows(&task, "text") && !looked.knows(&task, "comment-1"));
    }

    #[tokio::test]
    async fn a_look_does_not_write_back_what_was_forgotten_meanwhile() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).await.unwrap();
        let recall = async || Looked::recall(STORED_AS, &store).await.unwrap();
        let task = item(0).task;
        let other: TaskId = "github:acme/widgets#2".parse().unwrap();
        let mut first = recall().await;
        first.saw(&item(0), at(3));
        first.acted_on(&task, "comment-1", at(3));
        first.acted_on(&other, "comment-2", at(3));
        first.keep(STORED_AS, &store).await.unwrap();

        let mut second = recall().await;
        second.saw(&item(5), at(9));
        second.acted_on(&other, "comment-3", at(9));
        Looked::forget_stored(std::slice::from_ref(&task), STORED_AS, &store)
            .await
            .unwrap();
        second.keep(STORED_AS, &store).await.unwrap();

        let kept = recall().await;
        assert!(kept.items.is_empty() && !kept.knows(&task, "comment-1"), "{kept:?}");
        assert!(
            kept.knows(&other, "comment-2") && kept.knows(&other, "comment-3"),
            "{kept:?}"
        );
    }

    #[test]
    fn requests_are_remembered_for_long_but_not_without_bound() {
        let mut looked = Looked::default();
        let task = item(0).task;
        for number in 0..MOST + 5 {
            let request = format!("comment-{number}");
            looked.acted_on(&task, &request, at(i64::try_from(number).unwrap()));
        }
        looked.end(at(5_000), true);
        assert_eq!(looked.requests.len(), MOST);
        assert!(!looked.knows(&task, "comment-4") && looked.knows(&task, "comment-5"));
        assert!(!looked.forget(&["github:acme/widgets#11".parse().unwrap()]));
        looked.end(at(0) + TimeDelta::days(91), true);
        assert_eq!(looked.requests.len(), MOST + 5 - 1_440);
        assert!(looked.forget(&[task]) && looked.requests.is_empty());
    }
}
