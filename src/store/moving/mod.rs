//! Copies a store into another one, table by table, and compares the two.
//!
//! It can be broken off at any moment: the next call goes on behind the last row that is there, and
//! begins anew where the source has changed since, but not where somebody has worked with the
//! target. The source is left as it was. Nobody may work with either meanwhile.

mod tables;

use sha2::{Digest as _, Sha256};

use super::engine::Purpose;
use super::sql::{Cell, Row, Statement};
use super::{Store, StoreError};
use tables::{Kind, TABLES, TIMES, Table};

/// The table that whoever opens a store writes to, so that it says nothing of its use.
const REMEMBERED: &str = "remembered";

/// Name of the entry in the target that says that a copy was begun, of which source, and of which
/// time the newest rows there were.
const BEGUN: &str = "moved from";

/// The result of copying a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Names of tables, with the rows that both stores have in each.
    pub tables: Vec<(&'static str, u64)>,
}

/// The reason why a store was not copied.
#[derive(Debug, thiserror::Error)]
pub enum MoveError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0} is in use: stop all workers on it, and call this again")]
    InUse(&'static str),
    #[error("the target has {0} of its own; {mend}name an empty database, or a schema of its own", mend = mend(.0))]
    NotEmpty(&'static str),
    #[error(
        "an earlier copy was broken off, and the target's table {0} has what the source has not, as where somebody has \
         worked with the target since; nothing there was deleted. If it may go, empty the database and call this \
         again, or else name another one, or a schema of its own"
    )]
    WorkedWith(&'static str),
    #[error(
        "the table {table} differs after copying: {source_rows} rows here, {target_rows} there; see that nobody writes to \
         either of them, empty the database, and call this again"
    )]
    Differs {
        table: &'static str,
        source_rows: u64,
        target_rows: u64,
    },
}

impl MoveError {
    /// Tells whether what an earlier call has copied has changed since, or what refers to it finds
    /// it no more.
    fn is_of_a_change(&self) -> bool {
        match self {
            Self::Differs { .. } => true,
            Self::Store(error) => error.is_of_a_constraint(),
            Self::InUse(_) | Self::NotEmpty(_) | Self::WorkedWith(_) => false,
        }
    }
}

/// Returns what else helps where a target has rows in a table.
fn mend(table: &str) -> &'static str {
    match table {
        "switches" => "end its pause of all runs with `coding-agent resume --all`, or ",
        _ => "",
    }
}

/// Copies `source`, which is called `name`, into `target`; tells `progress` of each table that is
/// done.
pub async fn move_all(
    source: &Store,
    name: &str,
    target: &Store,
    mut progress: impl FnMut(&str, u64) + Send,
) -> Result<Moved, MoveError> {
    refuse_other_workers(source, target).await?;
    let begun = target.remembered(BEGUN).await?;
    let earlier = begun.and_then(|mark| newest_of(&mark, name));
    if let Some(time) = earlier {
        refuse_work(source, target, time).await?;
    } else if let Some(table) = in_use(target).await? {
        return Err(MoveError::NotEmpty(table));
    }
    let time = newest(source).await?.max(earlier.unwrap_or_default());
    target.remember(BEGUN, &mark(name, time)).await?;
    let tables = match copied(source, target, &mut progress).await {
        Err(error) if error.is_of_a_change() => {
            refuse_other_workers(source, target).await?;
            refuse_work(source, target, time).await?;
            empty(target).await?;
            copied(source, target, &mut progress).await?
        }
        tables => tables?,
    };
    target.erase_remembered(BEGUN).await?;
    Ok(Moved { tables })
}

async fn refuse_other_workers(source: &Store, target: &Store) -> Result<(), MoveError> {
    if source.has_other_workers().await? {
        return Err(MoveError::InUse("the store in the file"));
    }
    if target.has_other_workers().await? {
        return Err(MoveError::InUse("the target"));
    }
    Ok(())
}

/// Returns what the target says of a copy from the source of this name, whose newest rows are of
/// this time.
fn mark(name: &str, time: i64) -> String {
    format!("{name} {time}")
}

/// Reads the time in a [`mark`]; `None` if it is that of another source.
fn newest_of(mark: &str, name: &str) -> Option<i64> {
    mark.strip_prefix(name)?.strip_prefix(' ')?.parse().ok()
}

/// Returns the time of a store's newest row, in microseconds.
async fn newest(store: &Store) -> Result<i64, StoreError> {
    let mut newest = 0;
    for (_, query) in TIMES {
        newest = newest.max(time(store, query).await?);
    }
    Ok(newest)
}

/// Runs a query of [`TIMES`].
async fn time(store: &Store, query: &'static str) -> Result<i64, StoreError> {
    let row = store.fetch_first(Statement::new(query)).await?;
    Ok(row.map(|row| row.number(0)).transpose()?.unwrap_or_default())
}

/// Refuses a target that has more than an earlier copy of rows up to this time has left there. A
/// finished run that the source lacks may have been deleted there, and is no reason.
async fn refuse_work(source: &Store, target: &Store, up_to: i64) -> Result<(), MoveError> {
    for (table, query) in TIMES {
        if time(target, query).await? > up_to {
            return Err(MoveError::WorkedWith(table));
        }
    }
    let unfinished = Statement::new("SELECT id FROM runs WHERE finished_at IS NULL");
    for row in target.fetch(unfinished).await? {
        let same = Statement::new("SELECT id FROM runs WHERE id = $1").with(row.text(0)?);
        if source.fetch_first(same).await?.is_none() {
            return Err(MoveError::WorkedWith("runs"));
        }
    }
    Ok(())
}

/// Copies what the target does not have yet, and returns the tables with the number of their rows,
/// which are the same in both stores.
async fn copied(
    source: &Store,
    target: &Store,
    progress: &mut (impl FnMut(&str, u64) + Send),
) -> Result<Vec<(&'static str, u64)>, MoveError> {
    // Whoever opens a store writes there, and what is there already would not be replaced.
    let opened = Statement::new("DELETE FROM remembered WHERE name <> $1").with(BEGUN);
    target.execute(opened).await?;
    for table in &TABLES {
        let copied = copy(source, target, table).await?;
        progress(table.name, copied);
    }
    target.engine.count_on().await?;
    let mut tables = Vec::new();
    for table in &TABLES {
        let (here, there) = (sum(source, table).await?, sum(target, table).await?);
        if here != there {
            return Err(MoveError::Differs {
                table: table.name,
                source_rows: here.0,
                target_rows: there.0,
            });
        }
        tables.push((table.name, here.0));
    }
    Ok(tables)
}

/// Returns a table of a store that has rows, if there is one.
async fn in_use(store: &Store) -> Result<Option<&'static str>, StoreError> {
    for table in TABLES.iter().filter(|table| table.name != REMEMBERED) {
        if store.fetch_first(Statement::new(table.last)).await?.is_some() {
            return Ok(Some(table.name));
        }
    }
    Ok(None)
}

/// Deletes all rows but what is remembered.
async fn empty(target: &Store) -> Result<(), StoreError> {
    // What refers to others goes first.
    for table in TABLES.iter().rev().filter(|table| table.name != REMEMBERED) {
        while target.execute(Statement::new(table.empty)).await? > 0 {}
    }
    Ok(())
}

/// Copies the rows that the target does not have yet; returns how many these were.
async fn copy(source: &Store, target: &Store, table: &'static Table) -> Result<u64, StoreError> {
    // What is remembered is written by whoever opens a store; it is little, and copied whole.
    let mut key = if table.name == REMEMBERED {
        first(table)
    } else {
        let last = target.fetch_first(Statement::new(table.last)).await?;
        last.map_or_else(|| first(table), |row| row.cells)
    };
    let mut copied = 0;
    loop {
        let page = page(source, table, &key).await?;
        let Some(last) = page.last() else { return Ok(copied) };
        let behind = last.cells[..table.key.len()].to_vec();
        let mut transaction = target.engine.begin(Purpose::Write).await?;
        for row in page {
            let values = row.cells.into_iter();
            let insert = Statement {
                text: table.insert,
                values: values.collect(),
            };
            copied += transaction.execute(insert).await?;
        }
        transaction.commit().await?;
        key = behind;
    }
}

/// Counts the rows of a table and computes a digest of their values.
async fn sum(store: &Store, table: &'static Table) -> Result<(u64, [u8; 32]), StoreError> {
    let (mut rows, mut digest, mut key) = (0, Sha256::new(), first(table));
    loop {
        let page = page(store, table, &key).await?;
        let Some(last) = page.last() else {
            return Ok((rows, digest.finalize().into()));
        };
        key = last.cells[..table.key.len()].to_vec();
        for row in &page {
            if is_of_the_store_itself(table, row) {
                continue;
            }
            rows += 1;
            for cell in &row.cells {
                add(&mut digest, cell);
            }
        }
    }
}

/// Tells whether a row says something about the copying alone.
fn is_of_the_store_itself(table: &Table, row: &Row) -> bool {
    table.name == REMEMBERED && row.text(0).is_ok_and(|name| name == BEGUN)
}

/// Adds a value with its kind and length, so that no two rows read alike.
fn add(digest: &mut Sha256, cell: &Cell) {
    let (kind, bytes): (u8, &[u8]) = match cell {
        Cell::Null => (0, &[]),
        Cell::Text(text) => (1, text.as_bytes()),
        Cell::Number(number) => (2, &number.to_be_bytes()),
        Cell::Bytes(bytes) => (3, bytes),
    };
    digest.update([kind]);
    digest.update((bytes.len() as u64).to_be_bytes());
    digest.update(bytes);
}

/// Returns a key before all others.
fn first(table: &Table) -> Vec<Cell> {
    let before = |kind: &Kind| match kind {
        Kind::Text => Cell::Text(String::new()),
        Kind::Number => Cell::Number(-1),
    };
    table.key.iter().map(before).collect()
}

async fn page(store: &Store, table: &'static Table, key: &[Cell]) -> Result<Vec<Row>, StoreError> {
    let query = Statement {
        text: table.page,
        values: key.to_vec(),
    };
    let mut rows = store.fetch(query).await?;
    // Servers keep no NUL in a text; what is compared is what can be kept.
    for cell in rows.iter_mut().flat_map(|row| &mut row.cells) {
        if let Cell::Text(text) = cell
            && text.contains('\0')
        {
            *text = text.replace('\0', "\u{fffd}");
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::tables::LEFT_OUT;
    use super::*;
    use crate::conversation::{Message, Usage};
    use crate::store::tests::{Place as _, TTL, admit, claim, issue, place};
    use crate::store::{FactFilter, NewFact, sqlite};
    use crate::task::state::State;

    #[tokio::test]
    async fn every_table_and_every_column_is_copied() {
        let folder = sqlite::tests::Folder::new();
        let store = folder.open().await;
        let query = "SELECT sqlite_master.name, columns.name FROM sqlite_master, pragma_table_info(sqlite_master.name) AS columns
                     WHERE sqlite_master.type = 'table' AND sqlite_master.name NOT LIKE 'sqlite_%'
                     AND sqlite_master.name <> '_sqlx_migrations'";
        for row in store.fetch(Statement::new(query)).await.unwrap() {
            let (table, column) = (row.text(0).unwrap(), row.text(1).unwrap());
            if LEFT_OUT.contains(&table) {
                continue;
            }
            let known = TABLES.iter().find(|known| known.name == table);
            let known = known.unwrap_or_else(|| panic!("`store migrate` forgets the table {table}"));
            assert!(
                known.insert.contains(column),
                "`store migrate` forgets {table}.{column}"
            );
        }
    }

    /// Fills a store with something in every table.
    async fn fill(store: &Store) {
        for number in 0..250 {
            admit(store, number).await;
        }
        let lease = claim(store).await;
        let said: Vec<_> = (0..450)
            .map(|number| Message::User {
                text: format!("line {number} 日本語"),
                pictures: Vec::new(),
            })
            .collect();
        store.append(&lease, &json!({ "a": 1 }), 0, &said).await.unwrap();
        store.ask(lease.run, "pause", None).await.unwrap();
        let upload = uuid::Uuid::now_v7();
        for position in 0..20 {
            store
                .add_work_part(&lease, upload, position, vec![7; 1_000])
                .await
                .unwrap();
        }
        store.complete_work(&lease, upload, &json!(1)).await.unwrap();
        store.release(&lease, None).await.unwrap();
        let (lease, _) = store.claim(TTL).await.unwrap().unwrap();
        store
            .save(&lease, State::Working, &json!({ "nul": "\u{0}" }))
            .await
            .unwrap();
        let fact = |number: i32| NewFact {
            at: chrono::Utc::now(),
            run: None,
            task: Some(issue(1)),
            document: format!("{{\"n\":{number}}}"),
        };
        let facts: Vec<_> = (0..700).map(fact).collect();
        store.add_facts(&facts).await.unwrap();
        store.follow(&issue(900), &issue(1), &Value::Null).await.unwrap();
        store.pause_all().await.unwrap();
        store.remember("answers", "some").await.unwrap();
        let day = chrono::Utc::now().date_naive();
        store.use_on(day, "near", &Usage::default()).await.unwrap();
        store
            .start_automatic_approval("alice", chrono::TimeDelta::minutes(5))
            .await
            .unwrap();
        store.begin_evaluation(uuid::Uuid::now_v7(), &json!({})).await.unwrap();
    }

    /// Copies so many tables and no more, as a process does that is killed then.
    async fn break_off(source: &Store, target: &Store, tables: usize) {
        let time = newest(source).await.unwrap();
        target.remember(BEGUN, &mark("the file", time)).await.unwrap();
        for table in &TABLES[..tables] {
            copy(source, target, table).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_store_is_copied_whole_goes_on_where_it_was_broken_off_and_is_compared() {
        let (file, other) = (sqlite::tests::Folder::new(), place());
        let source = file.open().await;
        fill(&source).await;
        let target = other.open().await;
        break_off(&source, &target, 2).await;
        let mut told = Vec::new();
        let moved = move_all(&source, "the file", &target, |table, rows| {
            told.push((table.to_owned(), rows));
        });
        let moved = moved.await.unwrap();
        assert!(told.contains(&("messages".to_owned(), 0)), "{told:?}");
        assert!(
            moved.tables.contains(&("runs", 250)) && moved.tables.contains(&("facts", 700)),
            "{moved:?}"
        );

        assert!(target.is_paused().await.unwrap());
        let newest = source.newest_fact().await.unwrap();
        assert_eq!(target.newest_fact().await.unwrap(), newest);
        let number = target.add_facts(&source_fact()).await.unwrap();
        assert!(number > newest, "numbers go on");
        let facts = target.facts(0, &FactFilter::All, 10_000).await.unwrap();
        assert_eq!(facts.len(), 701);
        let again = move_all(&source, "the file", &target, |_, _| ()).await;
        assert!(matches!(again, Err(MoveError::NotEmpty("runs"))), "{again:?}");
    }

    fn source_fact() -> [NewFact; 1] {
        [NewFact {
            at: chrono::Utc::now(),
            run: None,
            task: None,
            document: "{}".to_owned(),
        }]
    }

    #[tokio::test]
    async fn stores_in_use_are_refused() {
        let (file, other) = (sqlite::tests::Folder::new(), place());
        let (source, worker) = (file.open().await, file.open().await);
        let target = other.open().await;
        let moved = move_all(&source, "the file", &target, |_, _| ()).await;
        assert!(matches!(moved, Err(MoveError::InUse(_))), "{moved:?}");
        drop(worker);

        target.pause_all().await.unwrap();
        let moved = move_all(&source, "the file", &target, |_, _| ()).await;
        let said = moved.unwrap_err().to_string();
        assert!(said.contains("switches") && said.contains("resume --all"), "{said}");
        target.resume_all().await.unwrap();
        // Whoever opens a store writes there.
        target.installation().await.unwrap();
        source.installation().await.unwrap();
        let mut told = Vec::new();
        let moved = move_all(&source, "the file", &target, |table, _| told.push(table.to_owned()));
        moved.await.unwrap();
        assert_eq!(told.len(), TABLES.len(), "all is copied once: {told:?}");
        assert_eq!(
            target.installation().await.unwrap(),
            source.installation().await.unwrap()
        );
    }

    #[tokio::test]
    async fn what_has_changed_since_a_copy_was_broken_off_is_copied_again() {
        let (file, other) = (sqlite::tests::Folder::new(), place());
        let source = file.open().await;
        fill(&source).await;
        let target = other.open().await;
        break_off(&source, &target, 4).await;
        for change in [
            "UPDATE runs SET title = 'Another'",
            "INSERT INTO messages (run, position, message) SELECT run, 1000, message FROM messages WHERE position = 0",
            "DELETE FROM requests",
            "UPDATE remembered SET value = 'others' WHERE name = 'answers'",
        ] {
            assert!(source.execute(Statement::new(change)).await.unwrap() > 0, "{change}");
        }

        let moved = move_all(&source, "the file", &target, |_, _| ()).await.unwrap();

        for counted in [("runs", 250), ("messages", 451), ("requests", 0)] {
            assert!(moved.tables.contains(&counted), "{moved:?}");
        }
        assert_eq!(target.runs(None, 1).await.unwrap()[0].title, "Another");
        assert_eq!(target.remembered("answers").await.unwrap().as_deref(), Some("others"));
        let again = move_all(&source, "the file", &target, |_, _| ()).await;
        assert!(matches!(again, Err(MoveError::NotEmpty("runs"))), "{again:?}");
    }

    #[tokio::test]
    async fn work_in_the_target_of_a_copy_that_was_broken_off_is_kept() {
        let (file, other) = (sqlite::tests::Folder::new(), place());
        let source = file.open().await;
        fill(&source).await;
        let target = other.open().await;
        break_off(&source, &target, 4).await;
        let refused = async |work: &str| {
            let moved = move_all(&source, "the file", &target, |_, _| ()).await;
            assert!(matches!(moved, Err(MoveError::WorkedWith("runs"))), "{work}: {moved:?}");
            let said = moved.unwrap_err().to_string();
            assert!(said.contains("empty the database and call this again"), "{said}");
        };

        let run = admit(&target, 1_000).await;
        refused("a new run").await;
        let age = Statement::new("UPDATE runs SET created_at = 1, updated_at = 1 WHERE id = $1").with(run);
        target.execute(age).await.unwrap();
        refused("a new run by a clock that is behind").await;
        assert!(target.run(run).await.unwrap().is_some());
        let remove = Statement::new("DELETE FROM runs WHERE id = $1").with(run);
        target.execute(remove).await.unwrap();
        let lease = claim(&target).await;
        target.save(&lease, State::Planning, &json!({ "b": 2 })).await.unwrap();
        refused("a run that was copied and worked on").await;
        let run = target.run(lease.run).await.unwrap().unwrap();
        assert_eq!((run.state, run.record), (State::Planning, json!({ "b": 2 })));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn nothing_is_deleted_where_a_worker_came_while_it_was_copied() {
        let (file, other) = (sqlite::tests::Folder::new(), place());
        let source = file.open().await;
        fill(&source).await;
        let target = other.open().await;
        break_off(&source, &target, 4).await;
        let change = Statement::new("UPDATE runs SET title = 'Another'");
        source.execute(change).await.unwrap();
        let (mut worker, mut told) = (None, Vec::new());

        let moved = move_all(&source, "the file", &target, |table, _| {
            told.push(table.to_owned());
            if worker.is_none() {
                let opening = || tokio::runtime::Handle::current().block_on(file.open());
                worker = Some(tokio::task::block_in_place(opening));
            }
        });
        let moved = moved.await;

        assert!(
            matches!(moved, Err(MoveError::InUse("the store in the file"))),
            "{moved:?}"
        );
        assert_eq!(told.iter().filter(|table| *table == "runs").count(), 1, "{told:?}");
        let left = Statement::new("SELECT COUNT(*) FROM runs");
        assert_eq!(target.fetch_count(left).await.unwrap(), 250);
    }

    #[tokio::test]
    async fn a_copy_begins_anew_where_what_refers_to_a_row_does_not_find_it() {
        let (file, other) = (sqlite::tests::Folder::new(), place());
        let source = file.open().await;
        fill(&source).await;
        let target = other.open().await;
        break_off(&source, &target, 1).await;
        // Before all that was copied.
        for change in [
            "INSERT INTO runs (id, task, title, state, record, created_at, updated_at, finished_at)
             SELECT '00000000-0000-7000-8000-000000000000', task, title, 'done', record, created_at, updated_at,
                 updated_at FROM runs ORDER BY id LIMIT 1",
            "INSERT INTO messages (run, position, message)
             SELECT '00000000-0000-7000-8000-000000000000', 0, message FROM messages WHERE position = 0",
        ] {
            assert_eq!(source.execute(Statement::new(change)).await.unwrap(), 1, "{change}");
        }

        let moved = move_all(&source, "the file", &target, |_, _| ()).await.unwrap();

        assert!(
            moved.tables.contains(&("runs", 251)) && moved.tables.contains(&("messages", 451)),
            "{moved:?}"
        );
    }

    #[tokio::test]
    async fn another_error_of_the_database_ends_a_copy_and_deletes_nothing() {
        let (file, other) = (sqlite::tests::Folder::new(), place());
        let source = file.open().await;
        fill(&source).await;
        let target = other.open().await;
        break_off(&source, &target, 4).await;
        let change = Statement::new("ALTER TABLE automatic_approval RENAME COLUMN started_by TO another");
        target.execute(change).await.unwrap();
        let mut told = Vec::new();

        let moved = move_all(&source, "the file", &target, |table, rows| {
            told.push((table.to_owned(), rows));
        });
        let moved = moved.await;

        assert!(
            matches!(moved, Err(MoveError::Store(StoreError::Database { .. }))),
            "{moved:?}"
        );
        let of_runs: Vec<_> = told.iter().filter(|(table, _)| table == "runs").collect();
        assert_eq!(of_runs, [&("runs".to_owned(), 0)]);
    }
}
