//! What cannot be opened is said in a sentence a person can act on.

use std::path::Path;

use super::Folder;
use crate::store::sql::Statement;
use crate::store::tests::Place as _;
use crate::store::{Store, StoreError};

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
