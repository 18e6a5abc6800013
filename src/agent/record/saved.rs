//! Records as they are saved: with the version of their form, and read in no other way than here.
//!
//! An unreadable record is an error that names run and field. An empty one in its place would
//! answer comments, push or pay a second time.

use serde_json::{Map, Value};

use crate::agent::record::Record;
use crate::store::{Run as StoredRun, Store, StoreError};
use crate::task::id::RunId;

/// Turns a record of one version into one of the next.
type Step = fn(&mut Value);

/// The steps from each version to the next, the first from the records of 0.1.0, which had no
/// number. A change to the form of [`Record`] that old records do not read as adds one here.
const STEPS: [Step; 2] = [|_| {}, into_sections];

/// The section that each field of version 1 went to.
const SECTIONS: [(&str, &[&str]); 8] = [
    (
        "request",
        &[
            "title",
            "trigger",
            "vouched",
            "is_discreet",
            "round",
            "local",
            "local_only",
        ],
    ),
    (
        "planned",
        &[
            "started_at",
            "fork",
            "base",
            "plan",
            "former_plans",
            "environment",
            "task_text",
            "rules",
            "dependencies",
        ],
    ),
    (
        "prepared",
        &["setup", "set_up_milliseconds", "container", "is_replacement", "losses"],
    ),
    (
        "worked",
        &[
            "native",
            "doing",
            "turns",
            "usage",
            "worked_seconds",
            "installed",
            "added_set_up",
            "reminders",
            "refusals",
            "refused",
            "summary",
            "finished_subtasks",
        ],
    ),
    (
        "verified",
        &[
            "checks",
            "checked",
            "checked_in",
            "before",
            "repair",
            "sent_back_at",
            "findings",
            "asked_about_findings",
        ],
    ),
    ("delivered", &["head", "approval", "denial", "change", "unfinished"]),
    (
        "waiting",
        &[
            "postponed",
            "parked_since",
            "parked",
            "paused",
            "set_aside",
            "allowance",
        ],
    ),
    ("thread", &["comments", "heard", "shown", "notes"]),
];

/// Moves the fields of version 1, which stood side by side, into their sections.
fn into_sections(saved: &mut Value) {
    let Some(flat) = saved.as_object_mut() else { return };
    for (section, fields) in SECTIONS {
        let fields = fields.iter().filter_map(|field| flat.remove_entry(*field));
        let fields: Map<String, Value> = fields.collect();
        flat.insert(section.to_owned(), fields.into());
    }
}

/// The version of the records that this program writes.
const VERSION: u64 = STEPS.len() as u64;

/// A record that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "what was saved of the run {run} cannot be read at `{field}` ({reason}); was it written by a newer version of the program?"
)]
pub struct Unreadable {
    pub run: RunId,
    pub field: String,
    pub reason: String,
}

impl Record {
    /// Reads the saved record of a run.
    pub fn read(run: &StoredRun) -> Result<Self, Unreadable> {
        let unreadable = |field: &str, reason: String| Unreadable {
            run: run.id,
            field: field.to_owned(),
            reason,
        };
        let mut saved = run.record.clone();
        // A process of the version before may have written it after the others were brought up to
        // date.
        bring_up_to_date(&mut saved);
        match version(&saved) {
            Some(VERSION) => {}
            Some(newer) => {
                let reason = format!("it is {newer}, and this program reads {VERSION}");
                return Err(unreadable("version", reason));
            }
            None => return Err(unreadable("version", "it is no number".to_owned())),
        }
        serde_path_to_error::deserialize(saved)
            .map_err(|error| unreadable(&error.path().to_string(), error.inner().to_string()))
    }

    /// Returns the record as it is saved.
    pub fn to_saved(&self) -> Result<Value, serde_json::Error> {
        let mut saved = serde_json::to_value(self)?;
        saved["version"] = VERSION.into();
        Ok(saved)
    }
}

/// Updates the records of all runs to the current version, once for each version.
pub async fn bring_all_up_to_date(store: &Store) -> Result<u64, StoreError> {
    store.upgrade_records(VERSION, bring_up_to_date).await
}

/// Returns the version of a record; `None` if it is not a number.
fn version(saved: &Value) -> Option<u64> {
    saved.get("version").map_or(Some(0), Value::as_u64)
}

/// Updates a record to the current version; returns whether anything was changed. A record of an
/// unknown version stays as it is.
fn bring_up_to_date(saved: &mut Value) -> bool {
    let Some(version) = version(saved).filter(|version| *version < VERSION && saved.is_object()) else {
        return false;
    };
    for step in STEPS.iter().skip(usize::try_from(version).unwrap_or(usize::MAX)) {
        step(saved);
    }
    saved["version"] = VERSION.into();
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::state::State;
    use serde_json::json;

    fn stored(record: Value) -> StoredRun {
        StoredRun {
            id: RunId::new(),
            task: "github:acme/widgets#1".parse().unwrap(),
            title: "Greet".to_owned(),
            state: State::Working,
            record,
            created_at: chrono::Utc::now(),
            updated_at: chrono::Utc::now(),
            not_before: None,
        }
    }

    fn unreadable(record: Value) -> String {
        let run = stored(record);
        let error = Record::read(&run).unwrap_err();
        assert_eq!(error.run, run.id);
        error.field
    }

    #[test]
    fn what_is_saved_is_read_back_and_a_record_without_a_version_is_the_first() {
        let mut record = Record::default();
        record.worked.turns = 3;
        let saved = record.to_saved().unwrap();
        assert_eq!(saved["version"], VERSION);
        for saved in [saved, json!({ "turns": 3 })] {
            assert_eq!(Record::read(&stored(saved)).unwrap().worked.turns, 3);
        }
    }

    #[test]
    fn what_cannot_be_read_is_named_and_never_empty() {
        assert_eq!(unreadable(json!({ "turns": "many" })), "worked.turns");
        assert_eq!(unreadable(json!({ "base": { "commit": 7 } })), "planned.base.commit");
        assert_eq!(unreadable(json!({ "version": VERSION + 1 })), "version");
        assert_eq!(unreadable(json!({ "version": "new" })), "version");
        assert_eq!(unreadable(json!([])), "version");
    }

    #[tokio::test]
    async fn the_records_of_all_runs_are_brought_up_to_date_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path()).await.unwrap();
        for number in 0..250 {
            let task = format!("github:acme/widgets#{number}").parse().unwrap();
            store.admit(&task, "Old", &json!({ "turns": 3 })).await.unwrap();
        }
        assert_eq!(bring_all_up_to_date(&store).await.unwrap(), 250);
        assert_eq!(bring_all_up_to_date(&store).await.unwrap(), 0);
        for run in store.unfinished().await.unwrap() {
            assert_eq!(run.record["worked"], json!({ "turns": 3 }));
            assert_eq!(run.record["version"], VERSION);
        }
    }
}
