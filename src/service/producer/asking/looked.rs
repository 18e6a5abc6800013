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
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Seen {
    /// By the forge's clock.
    updated_at: DateTime<Utc>,
    at: DateTime<Utc>,
}

impl Looked {
    pub(super) async fn recall(connected: &Connected, store: &Store) -> Result<Self, AdmitError> {
        let text = store.remembered(&connected.memory_of(STORED_AS)).await?;
        text.map_or_else(
            || Ok(Self::default()),
            |text| serde_json::from_str(&text).map_err(AdmitError::record),
        )
    }

    pub(super) async fn keep(&self, connected: &Connected, store: &Store) -> Result<(), AdmitError> {
        let text = serde_json::to_string(self).map_err(AdmitError::record)?;
        Ok(store.remember(&connected.memory_of(STORED_AS), &text).await?)
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
    pub(super) fn forget(&mut self, tasks: &[TaskId]) -> bool {
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
