//! Notes of what was forgotten, in a store that several machines share: each of them erases it from
//! its own disk, whichever machine was told to forget it.
//!
//! A note has the ids of a task and of its runs. It goes when the logs that may name them have gone
//! by their age.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{EVERY, Erased};
use crate::journal::erasing::Names;
use crate::repository::retention::Prune;
use crate::service::{Service, instance};
use crate::store::StoreError;
use crate::task::id::{RunId, TaskId};

/// Prefix of the keys under which the store has the notes.
const NOTES: &str = "forget ";

/// What is to be erased.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    id: Uuid,
    at: DateTime<Utc>,
    /// The task, and the requests that were opened for it.
    tasks: Vec<TaskId>,
    runs: Vec<RunId>,
    /// The conversations in messengers in which they were asked for.
    conversations: Vec<String>,
}

impl Note {
    pub(super) fn new(tasks: &[TaskId], runs: &[RunId], conversations: Vec<String>) -> Self {
        Self {
            id: Uuid::new_v4(),
            at: Utc::now(),
            tasks: tasks.to_vec(),
            runs: runs.to_vec(),
            conversations,
        }
    }

    /// Returns the names of all that is to be erased.
    pub(super) fn names(&self) -> Names {
        let tasks = self.tasks.iter().map(ToString::to_string);
        let runs = self.runs.iter().map(ToString::to_string);
        Names::new(tasks.chain(runs).chain(self.conversations.iter().cloned()))
    }

    /// Adds what another note names.
    fn add(&mut self, other: &Self) {
        add(&mut self.tasks, &other.tasks);
        add(&mut self.runs, &other.runs);
        add(&mut self.conversations, &other.conversations);
    }

    fn key(&self) -> String {
        format!("{NOTES}{}", self.id)
    }

    /// Returns the beginning of the keys that tell which machines have erased it.
    fn erased(&self) -> String {
        format!("forgotten {} by ", self.id)
    }
}

fn add<T: Clone + PartialEq>(all: &mut Vec<T>, more: &[T]) {
    for one in more {
        if !all.contains(one) {
            all.push(one.clone());
        }
    }
}

impl Service {
    /// Leaves a note for the other machines that share the store, if there may be any, before what
    /// it was made of is deleted. Returns what is to be erased: that of earlier calls, of which the
    /// store has the note alone, is in it. It takes the place of theirs, so that each machine
    /// erases once more, also what was written there since.
    pub(super) async fn leave_note(&self, mut note: Note) -> anyhow::Result<Note> {
        let store = &self.services.store;
        if !store.is_shared() {
            return Ok(note);
        }
        let mut earlier = self.notes().await?;
        earlier.retain(|earlier| earlier.tasks.first() == note.tasks.first());
        for one in &earlier {
            note.add(one);
        }
        store.remember(&note.key(), &serde_json::to_string(&note)?).await?;
        for one in &earlier {
            self.drop_note(one).await?;
        }
        Ok(note)
    }

    /// Erases from this machine's disk what a note names, of the lines those up to a day.
    pub(super) async fn erase_here(&self, note: &Note, last: NaiveDate) -> anyhow::Result<Erased> {
        let store = &self.services.store;
        let lines = self.erase_lines(note.names(), last).await?;
        let outputs = self.erase_outputs(&note.runs).await?;
        let is_quiet = store.held_anywhere().await?.is_empty();
        let prune = if is_quiet { Prune::Now } else { Prune::Old };
        let repository = note.tasks.first().and_then(TaskId::repository);
        let (kept, broken) = self.forget_commits(repository, &note.runs, prune).await?;
        // What is pruned beside others at work is an hour old, and so is all of the note by then.
        if store.is_shared() && (is_quiet || Utc::now() - note.at > EVERY) {
            store.remember(&self.erased_here(note), "").await?;
        }
        Ok(Erased {
            lines,
            outputs,
            kept,
            broken,
            is_rest_left: !is_quiet,
            is_left_to_others: store.is_shared(),
            ..Erased::default()
        })
    }

    /// Erases from this machine's disk what was forgotten on others that share the store. Lines of
    /// later days stay: they are about new work on the task. A failure is logged, and the next call
    /// tries again.
    pub(super) async fn forget_as_others(&self) -> Result<(), StoreError> {
        let store = &self.services.store;
        if !store.is_shared() {
            return Ok(());
        }
        for note in self.notes().await? {
            if store.remembered(&self.erased_here(&note)).await?.is_some() {
                continue;
            }
            match self.erase_here(&note, note.at.date_naive()).await {
                Ok(Erased {
                    lines, outputs, kept, ..
                }) => tracing::info!(
                    lines,
                    outputs,
                    kept,
                    "what was forgotten on another machine was erased here"
                ),
                Err(error) => tracing::error!("what was forgotten on another machine is left here: {error:#}"),
            }
        }
        Ok(())
    }

    /// Deletes the notes from before then.
    pub(super) async fn drop_notes(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        for note in self.notes().await?.iter().filter(|note| note.at < before) {
            self.drop_note(note).await?;
        }
        Ok(())
    }

    async fn drop_note(&self, note: &Note) -> Result<(), StoreError> {
        let store = &self.services.store;
        store.erase_remembered(&note.key()).await?;
        store.erase_remembered(&note.erased()).await
    }

    /// Returns the notes; one that a later version wrote in another form is left to that.
    async fn notes(&self) -> Result<Vec<Note>, StoreError> {
        let notes = self.services.store.remembered_as(NOTES).await?;
        let notes = notes.iter().filter_map(|(_, text)| serde_json::from_str(text).ok());
        Ok(notes.collect())
    }

    /// Returns the key that tells that this machine has erased what a note names.
    fn erased_here(&self, note: &Note) -> String {
        format!("{}{}", note.erased(), instance(&self.config.state_dir))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(task: &str, runs: &[RunId], conversations: &[&str]) -> Note {
        let conversations = conversations.iter().map(|name| (*name).to_owned()).collect();
        Note::new(&[task.parse().unwrap()], runs, conversations)
    }

    #[test]
    fn a_note_names_what_was_added_to_it_and_is_read_as_it_was_written() {
        let (one, other) = (RunId::new(), RunId::new());
        let mut first = note("github:a/b#1", &[one], &[]);
        let second = note("github:a/b#1", &[other], &["thread"]);
        first.add(&second);
        assert_eq!((first.runs.as_slice(), first.tasks.len()), ([one, other].as_slice(), 1));
        for name in ["github:a/b#1", &one.to_string(), &other.to_string(), "thread"] {
            assert!(first.names().are_in(&format!("about {name}.")), "{name}");
        }
        let text = serde_json::to_string(&first).unwrap();
        assert_eq!(serde_json::from_str::<Note>(&text).unwrap(), first);
    }
}
