//! Real files, several workers. Each opened store is a worker of its own, as each process is.

mod growth;
mod history;
mod opening;
mod retention;
mod turns;

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Admission, Lease, Store, StoreError, try_exclusive};
use crate::conversation::Message;
use crate::task::id::{RunId, TaskId};
use crate::task::state::{Stage, State};

const TTL: Duration = Duration::from_mins(1);

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

async fn open(folder: &tempfile::TempDir) -> Store {
    Store::open(folder.path()).await.unwrap()
}

fn issue(number: u64) -> TaskId {
    format!("github:owner/repo#{number}").parse().unwrap()
}

async fn admit(store: &Store, number: u64) -> RunId {
    match store
        .admit(&issue(number), "Greet the reader", &Value::Null)
        .await
        .unwrap()
    {
        Admission::New(run) => run,
        Admission::Known(run) => panic!("{run} is known already"),
    }
}

async fn claim(store: &Store) -> Lease {
    store.claim(TTL).await.unwrap().expect("a run to claim").0
}

/// What a killed process leaves behind: its file, unlocked.
fn kill(store: Store, folder: &Path) {
    let file = folder.join("workers").join(format!("{}.lock", store.worker.id));
    drop(store);
    std::fs::write(file, "").unwrap();
}

#[tokio::test]
async fn a_task_has_one_unfinished_run_and_a_new_one_afterwards() {
    let folder = folder();
    let store = open(&folder).await;
    let first = admit(&store, 1).await;
    let again = store.admit(&issue(1), "Greet the reader", &Value::Null).await.unwrap();
    assert_eq!(again, Admission::Known(first));

    let lease = claim(&store).await;
    store
        .save(&lease, State::Done, &json!({"pull_request": 7}))
        .await
        .unwrap();
    let second = admit(&store, 1).await;

    let runs = store.runs(Some(&issue(1)), 10).await.unwrap();
    let seen: Vec<_> = runs.iter().map(|run| (run.id, run.state, run.record.clone())).collect();
    assert_eq!(
        seen,
        [
            (second, State::Queued, Value::Null),
            (first, State::Done, json!({"pull_request": 7})),
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_share_two_hundred_runs_and_work_on_each_once() {
    let folder = folder();
    let stores = [open(&folder).await, open(&folder).await];
    for number in 0..200 {
        admit(&stores[0], number).await;
    }
    let mut consumers = tokio::task::JoinSet::new();
    for consumer in 0..6 {
        let store = stores[consumer % 2].clone();
        consumers.spawn(async move {
            let mut worked = Vec::new();
            while let Some((lease, run)) = store.claim(TTL).await.unwrap() {
                store.save(&lease, State::Done, &Value::Null).await.unwrap();
                worked.push(run.id);
            }
            worked
        });
    }
    let mut worked: Vec<_> = consumers.join_all().await.into_iter().flatten().collect();
    let total = worked.len();
    worked.sort();
    worked.dedup();
    assert_eq!((total, worked.len()), (200, 200));
}

#[tokio::test(flavor = "multi_thread")]
async fn first_starts_at_the_same_moment_make_the_tables_once() {
    let folder = folder();
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
async fn the_run_of_a_killed_worker_is_claimed_at_once() {
    let folder = folder();
    let killed = open(&folder).await;
    let survivor = open(&folder).await;
    let run = admit(&killed, 1).await;
    let orphan = killed
        .claim(Duration::from_hours(24 * 365 * 100))
        .await
        .unwrap()
        .unwrap()
        .0;
    assert_eq!(survivor.held_elsewhere().await.unwrap(), [run]);
    kill(killed, folder.path());

    assert!(survivor.held_elsewhere().await.unwrap().is_empty());
    assert_eq!(claim(&survivor).await.run, run);
    let workers = std::fs::read_dir(folder.path().join("workers")).unwrap();
    let locks = workers.filter(|file| {
        let name = file.as_ref().unwrap().file_name();
        Path::new(&name)
            .extension()
            .is_some_and(|extension| extension == "lock")
    });
    assert_eq!(locks.count(), 1, "the dead worker's file is removed");
    drop(orphan);
}

#[tokio::test]
async fn a_worker_in_another_process_holds_its_run_until_the_process_is_killed() {
    let folder = folder();
    let store = open(&folder).await;
    let run = admit(&store, 1).await;
    let other = Uuid::new_v4();
    // `cat` starts when `flock` has the lock, and answers then.
    let mut process = Command::new("flock")
        .arg("--no-fork")
        .arg(folder.path().join("workers").join(format!("{other}.lock")))
        .arg("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    process.stdin.as_mut().unwrap().write_all(b"?").unwrap();
    process.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    sqlx::query("UPDATE runs SET lease_token = $1, lease_worker = $2, lease_host = $3, lease_expires_at = 0")
        .bind(Uuid::new_v4().to_string())
        .bind(other.to_string())
        .bind(&store.worker.host)
        .execute(&store.pool)
        .await
        .unwrap();
    assert!(store.claim(TTL).await.unwrap().is_none());
    assert_eq!(store.held_elsewhere().await.unwrap(), [run]);

    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(claim(&store).await.run, run);
}

#[tokio::test]
async fn a_worker_that_ended_in_order_leaves_its_run_to_the_next() {
    let folder = folder();
    let first = open(&folder).await;
    let run = admit(&first, 1).await;
    let _lease = claim(&first).await;
    drop(first);
    assert_eq!(claim(&open(&folder).await).await.run, run);
}

#[tokio::test]
async fn a_living_worker_keeps_its_run_whatever_the_clock_says() {
    let folder = folder();
    let (slow, other) = (open(&folder).await, open(&folder).await);
    admit(&slow, 1).await;
    let lease = slow.claim(Duration::ZERO).await.unwrap().unwrap().0;
    assert!(other.claim(TTL).await.unwrap().is_none());
    assert!(slow.claim(TTL).await.unwrap().is_none());
    slow.save(&lease, State::Planning, &Value::Null).await.unwrap();
}

#[tokio::test]
async fn a_worker_on_another_machine_is_believed_until_its_lease_expires() {
    let folder = folder();
    let store = open(&folder).await;
    let run = admit(&store, 1).await;
    let elsewhere = |expires_at: i64| {
        sqlx::query(
            "UPDATE runs SET lease_token = $1, lease_worker = $2, lease_host = 'another', lease_expires_at = $3",
        )
        .bind(Uuid::new_v4().to_string())
        .bind(Uuid::new_v4().to_string())
        .bind(expires_at)
        .execute(&store.pool)
    };
    elsewhere(i64::MAX).await.unwrap();
    assert!(store.claim(TTL).await.unwrap().is_none());
    assert_eq!(store.held_elsewhere().await.unwrap(), [run]);
    elsewhere(0).await.unwrap();
    assert_eq!(claim(&store).await.run, run);
}

#[tokio::test]
async fn a_lost_lease_saves_nothing() {
    let folder = folder();
    let (lost, winner) = (open(&folder).await, open(&folder).await);
    let run = admit(&lost, 1).await;
    let old = claim(&lost).await;
    kill(lost, folder.path());
    let new = claim(&winner).await;

    let message = [Message::User {
        text: "too late".to_owned(),
    }];
    for result in [
        winner.save(&old, State::Failed, &Value::Null).await,
        winner.append(&old, &Value::Null, &message).await,
        winner.heartbeat(&old, TTL).await,
        winner.release(&old, None).await,
    ] {
        assert!(
            matches!(result, Err(StoreError::LeaseLost(lost)) if lost == run),
            "{result:?}"
        );
    }
    assert!(winner.messages(run).await.unwrap().is_empty());
    winner.save(&new, State::Planning, &Value::Null).await.unwrap();
}

#[tokio::test]
async fn a_lease_dropped_by_a_panic_comes_back_in_the_same_process() {
    let folder = folder();
    let store = open(&folder).await;
    let run = admit(&store, 1).await;
    let consumer = store.clone();
    let panicked = tokio::spawn(async move {
        let _lease = claim(&consumer).await;
        panic!("a fault in the program");
    });
    assert!(panicked.await.is_err());
    assert_eq!(claim(&store).await.run, run);
}

#[tokio::test]
async fn a_paused_run_waits_for_a_person_and_a_parked_one_for_its_time() {
    let folder = folder();
    let store = open(&folder).await;
    let run = admit(&store, 1).await;
    let lease = claim(&store).await;
    store
        .save(&lease, State::Paused(Stage::Working), &Value::Null)
        .await
        .unwrap();
    store.release(&lease, None).await.unwrap();
    assert!(store.claim(TTL).await.unwrap().is_none());
    assert_eq!(store.set_aside().await.unwrap(), [run]);

    let (lease, paused) = store.claim_run(run, TTL).await.unwrap().unwrap();
    assert_eq!(paused.state, State::Paused(Stage::Working));
    assert!(store.claim_run(run, TTL).await.unwrap().is_none(), "held");
    store.save(&lease, State::Working, &Value::Null).await.unwrap();
    let due = Utc::now() + TimeDelta::hours(1);
    store.release(&lease, Some(due)).await.unwrap();
    assert!(store.claim(TTL).await.unwrap().is_none());
    assert_eq!(store.set_aside().await.unwrap(), []);
    assert_eq!(store.parked(Utc::now()).await.unwrap(), [run]);
    assert_eq!(store.parked(due).await.unwrap(), []);
    let parked = store.unfinished_of(&issue(1)).await.unwrap().unwrap();
    assert_eq!(
        parked.not_before.map(|due| due.timestamp_micros()),
        Some(due.timestamp_micros())
    );

    let (lease, parked) = store.claim_run(run, TTL).await.unwrap().unwrap();
    assert_eq!(
        (parked.state, parked.not_before.is_some()),
        (State::Working, true),
        "as it was"
    );
    store
        .release(&lease, Some(Utc::now() - TimeDelta::seconds(1)))
        .await
        .unwrap();
    let lease = claim(&store).await;
    assert_eq!(lease.run, run);

    // Whoever asks again does not want to wait.
    store.release(&lease, Some(due)).await.unwrap();
    store.admit(&issue(1), "Greet the reader", &Value::Null).await.unwrap();
    assert_eq!(claim(&store).await.run, run);
}

#[tokio::test]
async fn the_end_of_a_run_ends_its_lease_and_a_late_heartbeat_is_no_fault() {
    let folder = folder();
    let store = open(&folder).await;
    let run = admit(&store, 1).await;
    let lease = claim(&store).await;
    store.save(&lease, State::Stopped, &Value::Null).await.unwrap();

    store.heartbeat(&lease, TTL).await.unwrap();
    assert!(matches!(
        store.save(&lease, State::Working, &Value::Null).await,
        Err(StoreError::LeaseLost(_))
    ));
    store.release(&lease, None).await.unwrap();
    assert!(store.claim_run(run, TTL).await.unwrap().is_none());
    assert!(store.unfinished().await.unwrap().is_empty());
    assert_eq!(store.run(run).await.unwrap().map(|run| run.state), Some(State::Stopped));
}

#[tokio::test]
async fn a_long_conversation_is_read_back_in_its_order() {
    let folder = folder();
    let store = open(&folder).await;
    let run = admit(&store, 1).await;
    let lease = claim(&store).await;
    let said: Vec<_> = (0..2_000)
        .map(|number| Message::User {
            text: format!("line {number}\u{0} 日本語"),
        })
        .collect();
    for (turn, pair) in said.chunks(2).enumerate() {
        store.append(&lease, &json!({ "turns": turn }), pair).await.unwrap();
    }
    assert_eq!(store.messages(run).await.unwrap(), said);
    let saved = store.run(run).await.unwrap().unwrap();
    assert_eq!((saved.record, saved.state), (json!({ "turns": 999 }), State::Queued));
}

#[tokio::test]
async fn a_request_stays_until_it_was_acted_on() {
    let folder = folder();
    let (worker, command_line) = (open(&folder).await, open(&folder).await);
    let run = admit(&worker, 1).await;
    command_line.ask(run, "pause").await.unwrap();
    command_line.ask(run, "stop").await.unwrap();
    let requests = worker.requests(run).await.unwrap();
    let texts: Vec<_> = requests.iter().map(|request| request.text.as_str()).collect();
    assert_eq!(texts, ["pause", "stop"]);
    worker.answered(requests[0].id).await.unwrap();
    assert_eq!(worker.requests(run).await.unwrap(), requests[1..]);
}

#[tokio::test]
async fn what_is_remembered_can_be_replaced() {
    let folder = folder();
    let store = open(&folder).await;
    assert_eq!(store.remembered("issues").await.unwrap(), None);
    store.remember("issues", "old").await.unwrap();
    store.remember("issues", "new").await.unwrap();
    assert_eq!(store.remembered("issues").await.unwrap().as_deref(), Some("new"));
}

#[test]
fn a_second_run_on_the_same_folder_finds_it_taken() {
    let folder = folder();
    let first = try_exclusive(folder.path()).unwrap();
    assert!(first.is_some());
    assert!(try_exclusive(folder.path()).unwrap().is_none());
    drop(first);
    assert!(try_exclusive(folder.path()).unwrap().is_some());
}
