//! Stores that cannot be opened: each is reported in a sentence a person can act on.

use std::path::Path;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};

use super::Folder;
use crate::store::sql::Statement;
use crate::store::tests::{Place as _, issue};
use crate::store::{Store, StoreError};
use crate::task::id::RunId;
use crate::task::state::{Judged, Stage, State};

async fn sentence(path: &Path) -> String {
    match Store::open(path).await {
        Ok(_) => panic!("opened"),
        Err(error @ StoreError::Unusable { .. }) => error.to_string(),
        Err(error) => panic!("not explained: {error}"),
    }
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_said_with_the_setting_to_change() {
    let said = sentence(Path::new("/proc/no-such-place/state")).await;
    assert!(said.contains("`state_dir`"), "{said}");
}

#[tokio::test]
async fn a_damaged_file_is_said_with_what_to_do() {
    let folder = Folder::new();
    std::fs::write(
        folder.path().join("coding-agent.db"),
        "not a database at all".repeat(100),
    )
    .unwrap();
    let said = sentence(folder.path()).await;
    assert!(said.contains("move it away"), "{said}");
}

#[tokio::test]
async fn a_file_of_a_newer_version_is_refused() {
    let folder = Folder::new();
    let store = folder.open().await;
    let step = Statement::new(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (99, 'from the future', TRUE, x'00', 0)",
    );
    store.execute(step).await.unwrap();
    drop(store);
    let said = sentence(folder.path()).await;
    assert!(said.contains("newer version"), "{said}");
}

/// The store that version 0.1.0 left; its tables come first.
const OLD: &str = include_str!("../../../../tests/data/store-0.1.0.sql");

#[tokio::test]
async fn the_states_of_an_earlier_version_are_read() {
    let folder = Folder::new();
    let tables = OLD.split("-- left: ").next().unwrap();
    let file = SqliteConnectOptions::new().filename(folder.path().join("coding-agent.db"));
    let mut old = file.create_if_missing(true).connect().await.unwrap();
    old.execute(AssertSqlSafe(tables.to_owned())).await.unwrap();
    let states = [
        "reviewing",
        "awaiting_approval",
        "awaiting_approval:delivering",
        "paused:reviewing",
    ];
    for (number, state) in states.iter().enumerate() {
        let task = issue(number as u64).to_string();
        let insert =
            sqlx::query("INSERT INTO runs VALUES ($1, $2, 'Old', $3, '{}', 0, 0, NULL, NULL, NULL, NULL, NULL, NULL)");
        let insert = insert.bind(RunId::new().to_string()).bind(task).bind(*state);
        insert.execute(&mut old).await.unwrap();
    }
    old.close().await.unwrap();

    let mut runs = folder.open().await.unfinished().await.unwrap();
    runs.sort_by_key(|run| run.task.number());
    let read: Vec<State> = runs.into_iter().map(|run| run.state).collect();
    let expected = [
        State::Reviewing(Judged::Plan),
        State::AwaitingApproval(Judged::Plan),
        State::AwaitingApproval(Judged::Result),
        State::Paused(Stage::Reviewing(Judged::Plan)),
    ];
    assert_eq!(read, expected);
}
