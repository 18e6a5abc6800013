//! Runs as they are listed for people: newest first, a page at a time, by state and repository.
//! Without their records, so that a page costs the same behind a hundred thousand runs.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::store::sql::{Row, Statement};
use crate::store::{Store, StoreError};
use crate::task::id::{RunId, TaskId};
use crate::task::state::State;

/// Key in the store for the run up to which the history is hidden. Behind it are the runs before it
/// that were unfinished then, oldest first, divided by spaces: these are shown when they have
/// ended, too.
const HIDDEN: &str = "history is hidden up to";

/// Number of those that one question asks for.
const SPARED: usize = 16;

/// The question for a page of runs for which this is so, as SQL: `$1` is the run that they are
/// older than, and `$2` the most that are wanted.
macro_rules! page {
    ($condition:literal) => {
        concat!(
            "SELECT id, task, title, state, created_at, updated_at, finished_at FROM runs WHERE ",
            $condition,
            " ORDER BY id DESC LIMIT $2"
        )
    };
}

/// A choice of runs for a list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Runs older than this one.
    pub before: Option<RunId>,
    /// The first word of the state, such as `done`, `paused` or `awaiting_approval`; empty for all.
    pub state: String,
    /// The beginning of the task's id, such as `github:owner/repo`; empty for all.
    pub repository: String,
    /// Also those that were hidden.
    pub with_hidden: bool,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub id: RunId,
    pub task: TaskId,
    pub title: String,
    pub state: State,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
}

/// Returns the id that all wanted runs are before: without a bound a text behind every id, so that
/// the rows are found by their index.
fn before(wanted: &Wanted) -> String {
    wanted.before.map_or_else(|| "~".to_owned(), |run| run.to_string())
}

/// Returns the question for those of these runs that have ended and are wanted, [`SPARED`] at most,
/// each of which is found by its id.
fn spared_page(runs: &[&str], wanted: &Wanted, most: u32) -> Statement {
    let query = Statement::new(page!(
        "finished_at IS NOT NULL AND id < $1
         AND id IN ($5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
         AND ($3 = '' OR state = $3)
         AND ($4 = '' OR RTRIM(task, '0123456789') IN ($4 || '#', $4 || '!'))"
    ));
    let query = query.with(before(wanted)).with(most);
    let query = query.with(wanted.state.as_str()).with(wanted.repository.as_str());
    // No id is empty.
    let places = runs.iter().copied().chain(std::iter::repeat("")).take(SPARED);
    places.fold(query, Statement::with)
}

impl Listed {
    fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.parsed(0)?,
            task: row.parsed(1)?,
            title: row.text(2)?.to_owned(),
            state: row.parsed(3)?,
            created_at: row.time(4)?.unwrap_or_default(),
            updated_at: row.time(5)?.unwrap_or_default(),
            finished_at: row.time(6)?,
        })
    }
}

/// Sorts the answers to several questions, the one for unfinished runs first. A run that ended
/// between two of them is in both; it counts as ended.
fn newest_first(mut found: Vec<Listed>, most: u32) -> Vec<Listed> {
    found.sort_by_key(|run| Reverse(run.id));
    found.dedup_by(|later, kept| {
        let is_same = later.id == kept.id;
        if is_same {
            std::mem::swap(later, kept);
        }
        is_same
    });
    found.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    found
}

impl Store {
    /// Returns up to `most` runs, newest first. Unfinished ones are never hidden.
    pub async fn history(&self, wanted: &Wanted, most: u32) -> Result<Vec<Listed>, StoreError> {
        let mut found = self.unfinished_page(wanted, most).await?;
        for query in self.ended_pages(wanted, most).await? {
            let rows = self.fetch(query).await?;
            found.extend(rows.iter().map(Listed::read).collect::<Result<Vec<_>, _>>()?);
        }
        Ok(newest_first(found, most))
    }

    async fn unfinished_page(&self, wanted: &Wanted, most: u32) -> Result<Vec<Listed>, StoreError> {
        let query = Statement::new(page!(
            "finished_at IS NULL AND id < $1
             AND ($3 = '' OR state = $3 OR SUBSTR(state, 1, LENGTH($3) + 1) = $3 || ':')
             AND ($4 = '' OR RTRIM(task, '0123456789') IN ($4 || '#', $4 || '!'))"
        ));
        let query = query.with(before(wanted)).with(most);
        let rows = self.fetch(query.with(wanted.state.as_str()).with(wanted.repository.as_str()));
        rows.await?.iter().map(Listed::read).collect()
    }

    /// Returns the questions for ended runs, each of which one index answers: one question for all
    /// filters would look at every run there is where few are wanted.
    async fn ended_pages(&self, wanted: &Wanted, most: u32) -> Result<Vec<Statement>, StoreError> {
        let state = wanted.state.as_str();
        let is_of_unfinished = !state.parse::<State>().is_ok_and(State::is_final);
        if !state.is_empty() && is_of_unfinished {
            return Ok(Vec::new());
        }
        let hidden = if wanted.with_hidden {
            None
        } else {
            self.remembered(HIDDEN).await?
        };
        let hidden = hidden.unwrap_or_default();
        let mut hidden = hidden.split_whitespace();
        let newest_hidden = hidden.next().unwrap_or_default();
        let spared: Vec<&str> = hidden.collect();
        let mut queries: Vec<_> = spared
            .chunks(SPARED)
            .map(|runs| spared_page(runs, wanted, most))
            .collect();
        let ended = |text| {
            let query = Statement::new(text).with(before(wanted)).with(most);
            query.with(newest_hidden)
        };
        if wanted.repository.is_empty() {
            queries.push(if state.is_empty() {
                ended(page!("finished_at IS NOT NULL AND id < $1 AND id > $3"))
            } else {
                ended(page!("finished_at IS NOT NULL AND id < $1 AND id > $3 AND state = $4")).with(state)
            });
            return Ok(queries);
        }
        // Issues, and requests of GitLab.
        queries.extend(['#', '!'].map(|kind| {
            let tasks = format!("{}{kind}", wanted.repository);
            if state.is_empty() {
                let query = ended(page!(
                    "finished_at IS NOT NULL AND id < $1 AND id > $3 AND RTRIM(task, '0123456789') = $4"
                ));
                query.with(tasks)
            } else {
                let query = ended(page!(
                    "finished_at IS NOT NULL AND id < $1 AND id > $3 AND RTRIM(task, '0123456789') = $4 AND state = $5"
                ));
                query.with(tasks).with(state)
            }
        }));
        Ok(queries)
    }

    /// Hides the finished runs that there are from the history. Nothing is deleted.
    pub async fn hide_history(&self) -> Result<(), StoreError> {
        let newest = Statement::new("SELECT COALESCE(MAX(id), '') FROM runs");
        let Some(row) = self.fetch_first(newest).await? else {
            return Ok(());
        };
        let newest = row.text(0)?;
        // Afterwards: a run that is admitted between the two is newer than what is hidden.
        let unfinished = Statement::new("SELECT id FROM runs WHERE finished_at IS NULL AND id <= $1 ORDER BY id");
        let rows = self.fetch(unfinished.with(newest)).await?;
        let mut hidden = vec![newest];
        for row in &rows {
            hidden.push(row.text(0)?);
        }
        self.remember(HIDDEN, &hidden.join(" ")).await
    }

    /// Counts the unfinished runs by their states. Counted here: a database that groups by state
    /// reads the finished runs as well.
    pub async fn unfinished_by_state(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        let query = Statement::new("SELECT id, state FROM runs WHERE finished_at IS NULL ORDER BY id");
        let mut counts = BTreeMap::new();
        for row in self.fetch(query).await? {
            *counts.entry(row.text(1)?.to_owned()).or_default() += 1;
        }
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(id: RunId, state: State) -> Listed {
        let now = Utc::now();
        Listed {
            id,
            task: "github:acme/widgets#7".parse().unwrap(),
            title: "Greet".to_owned(),
            finished_at: state.is_final().then_some(now),
            state,
            created_at: now,
            updated_at: now,
        }
    }

    #[test]
    fn a_run_that_ended_between_two_questions_is_listed_once_and_as_ended() {
        let mut ids = [RunId::new(), RunId::new(), RunId::new()];
        ids.sort();
        let [first, second, third] = ids;
        let found = vec![
            listed(third, State::Queued),
            listed(second, State::Queued),
            listed(second, State::Done),
            listed(first, State::Done),
        ];
        let shown = newest_first(found, 2);
        let shown: Vec<_> = shown.into_iter().map(|run| (run.id, run.state)).collect();
        assert_eq!(shown, [(third, State::Queued), (second, State::Done)]);
    }
}
