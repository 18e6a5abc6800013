//! `SQLite`'s own behaviour: a file, its locks, and what its errors mean. All else is in the suite
//! of the store.

mod growth;
mod opening;

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use async_trait::async_trait;
use uuid::Uuid;

use super::worker::lock_file;
use crate::store::Store;
use crate::store::sql::Statement;
use crate::store::tests::retention::finished;
use crate::store::tests::{Place, TTL, admit, claim};

/// A state folder.
pub(in crate::store) struct Folder(tempfile::TempDir);

impl Folder {
    pub(in crate::store) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn workers(&self) -> std::path::PathBuf {
        self.path().join("workers")
    }
}

#[async_trait]
impl Place for Folder {
    async fn open(&self) -> Store {
        Store::open(self.path()).await.unwrap()
    }

    /// Its file stays, unlocked.
    async fn kill(&self, store: Store) {
        let file = lock_file(&self.workers(), store.worker());
        drop(store);
        std::fs::write(file, "").unwrap();
    }

    /// Returns a worker without a file here, as those of other machines are.
    async fn distant_worker(&self) -> Uuid {
        Uuid::new_v4()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn first_starts_at_the_same_moment_make_the_tables_once() {
    let folder = Folder::new();
    let mut starts = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let path = folder.path().to_owned();
        starts.spawn(async move { Store::open(&path).await.map(drop) });
    }
    for start in starts.join_all().await {
        start.unwrap();
    }
}

#[tokio::test]
async fn the_file_of_a_killed_worker_is_removed_when_its_runs_are_free() {
    let folder = Folder::new();
    let (killed, survivor) = (folder.open().await, folder.open().await);
    admit(&killed, 1).await;
    let _orphan = claim(&killed).await;
    folder.kill(killed).await;
    claim(&survivor).await;
    let files = std::fs::read_dir(folder.workers()).unwrap();
    let is_lock = |path: &std::path::PathBuf| path.extension().is_some_and(|extension| extension == "lock");
    let locks: Vec<_> = files.map(|file| file.unwrap().path()).filter(is_lock).collect();
    assert_eq!(locks, [lock_file(&folder.workers(), survivor.worker())]);
}

#[tokio::test]
async fn a_worker_in_another_process_holds_its_run_until_the_process_is_killed() {
    let folder = Folder::new();
    let store = folder.open().await;
    let run = admit(&store, 1).await;
    let other = Uuid::new_v4();
    // `cat` starts when `flock` has the lock, and answers then.
    let mut process = Command::new("flock")
        .arg("--no-fork")
        .arg(lock_file(&folder.workers(), other))
        .arg("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    process.stdin.as_mut().unwrap().write_all(b"?").unwrap();
    process.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let lend =
        Statement::new("UPDATE runs SET lease_token = $1, lease_worker = $2, lease_host = $3, lease_expires_at = 0");
    let host = store.engine.liveness().host();
    store
        .execute(lend.with(Uuid::new_v4()).with(other).with(host))
        .await
        .unwrap();
    assert!(store.claim(TTL).await.unwrap().is_none());
    assert_eq!(store.held_elsewhere().await.unwrap(), [run]);

    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(claim(&store).await.run, run);
}

#[tokio::test]
async fn what_is_erased_is_in_none_of_the_store_s_files() {
    let folder = Folder::new();
    let (store, other) = (folder.open().await, folder.open().await);
    let run = finished(&store, 1, "whisper").await;
    other.ask(run, "stop whisper", None).await.unwrap();
    let holds = || {
        let files = std::fs::read_dir(folder.path()).unwrap();
        let is_there = |path: std::path::PathBuf| {
            path.is_file() && String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains("whisper")
        };
        files.map(|file| file.unwrap().path()).any(is_there)
    };
    assert!(holds());
    store.erase_runs(&[run]).await.unwrap();
    assert!(store.settle().await.unwrap());
    assert!(!holds());
}

#[tokio::test]
async fn a_pause_file_of_an_earlier_version_counts_once() {
    let folder = Folder::new();
    let file = folder.path().join("pause");
    std::fs::write(&file, "").unwrap();
    let store = folder.open().await;
    assert!(store.is_paused().await.unwrap() && !file.exists());
    store.resume_all().await.unwrap();
    assert!(!folder.open().await.is_paused().await.unwrap());
}
