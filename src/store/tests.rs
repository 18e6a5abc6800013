//! The suite that every engine passes, through the store's public interface.
//!
//! Each opened store is a worker of its own, as each process is. What only one engine has (its
//! files, its locks, its errors) is tested in that engine's folder.

mod alternation;
mod facts;
mod once;
mod history;
mod leases;
mod records;
pub(super) mod retention;
mod automatic_approval;
mod chat;
mod switches;
mod turns;
mod unfinished_work;
mod usage;

use std::time::Duration;

use async_trait::async_trait;
use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use super::sql::Statement;
use super::{Admission, Lease, Run, Store, StoreError, postgres, sqlite, try_exclusive};
use crate::conversation::Message;
use crate::task::id::{RunId, TaskId};
use crate::task::state::{Judged, Stage, State};

pub(super) const TTL: Duration = Duration::from_mins(1);

/// The storage that several workers share, such as a folder. Everything in it is removed with it.
#[async_trait]
pub(super) trait Place: Send + Sync {
    /// Opens the store, as another process does.
    async fn open(&self) -> Store;

    /// Ends a worker as the death of its process does.
    async fn kill(&self, store: Store);

    /// Returns a worker of which only the expiry of its lease tells whether it is alive.
    async fn distant_worker(&self) -> Uuid;
}

/// Returns a place of the engine that is tested: a file, or where the variable names one, a server.
#[expect(
    clippy::disallowed_methods,
    reason = "`make test-postgres` names the server in a variable"
)]
pub(super) fn place() -> Box<dyn Place> {
    match std::env::var(postgres::tests::SERVER) {
        Ok(server) => Box::new(postgres::tests::Schema::on(&server)),
        Err(_) => Box::new(sqlite::tests::Folder::new()),
    }
}

/// Has a worker that cannot be seen from here hold every run, until then.
async fn lend(place: &dyn Place, store: &Store, expires_at: i64) {
    let worker = place.distant_worker().await;
    let update = Statement::new(
        "UPDATE runs SET lease_token = $1, lease_worker = $2, lease_host = 'another', lease_expires_at = $3",
    );
    let update = update.with(Uuid::new_v4()).with(worker).with(expires_at);
    store.execute(update).await.unwrap();
}

pub(super) fn issue(number: u64) -> TaskId {
    format!("github:owner/repo#{number}").parse().unwrap()
}

pub(super) async fn admit(store: &Store, number: u64) -> RunId {
    match store
        .admit(&issue(number), "Greet the reader", &Value::Null)
        .await
        .unwrap()
    {
        Admission::New(run) => run,
        Admission::Known(run) => panic!("{run} is known already"),
    }
}

pub(super) async fn claim(store: &Store) -> Lease {
    store.claim(TTL).await.unwrap().expect("a run to claim").0
}

fn ids(runs: &[Run]) -> Vec<RunId> {
    runs.iter().map(|run| run.id).collect()
}

#[tokio::test]
async fn a_task_has_one_unfinished_run_and_a_new_one_afterwards() {
    let place = place();
    let store = place.open().await;
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
    let place = place();
    let stores = [place.open().await, place.open().await];
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

#[tokio::test]
async fn the_run_of_a_killed_worker_is_claimed_at_once() {
    let place = place();
    let killed = place.open().await;
    let survivor = place.open().await;
    let run = admit(&killed, 1).await;
    let orphan = killed
        .claim(Duration::from_hours(24 * 365 * 100))
        .await
        .unwrap()
        .unwrap()
        .0;
    assert_eq!(survivor.held_elsewhere().await.unwrap(), [run]);
    place.kill(killed).await;

    assert!(survivor.held_elsewhere().await.unwrap().is_empty());
    assert_eq!(claim(&survivor).await.run, run);
    drop(orphan);
}

#[tokio::test]
async fn a_worker_that_ended_in_order_leaves_its_run_to_the_next() {
    let place = place();
    let first = place.open().await;
    let run = admit(&first, 1).await;
    let _lease = claim(&first).await;
    drop(first);
    assert_eq!(claim(&place.open().await).await.run, run);
}

#[tokio::test]
async fn a_living_worker_keeps_its_run_whatever_the_clock_says() {
    let place = place();
    let (slow, other) = (place.open().await, place.open().await);
    admit(&slow, 1).await;
    let lease = slow.claim(Duration::ZERO).await.unwrap().unwrap().0;
    assert_eq!(slow.held_anywhere().await.unwrap(), [lease.run]);
    assert!(other.claim(TTL).await.unwrap().is_none());
    assert!(slow.claim(TTL).await.unwrap().is_none());
    slow.save(&lease, State::Planning, &Value::Null).await.unwrap();
}

#[tokio::test]
async fn a_worker_on_another_machine_is_believed_until_its_lease_expires() {
    let place = place();
    let store = place.open().await;
    let run = admit(&store, 1).await;
    lend(&*place, &store, i64::MAX).await;
    assert!(store.claim(TTL).await.unwrap().is_none());
    assert_eq!(store.held_elsewhere().await.unwrap(), [run]);
    lend(&*place, &store, 0).await;
    assert_eq!(claim(&store).await.run, run);
}

#[tokio::test]
async fn a_lost_lease_saves_nothing() {
    let place = place();
    let (lost, winner) = (place.open().await, place.open().await);
    let run = admit(&lost, 1).await;
    let old = claim(&lost).await;
    place.kill(lost).await;
    let new = claim(&winner).await;

    let message = [Message::User {
        text: "too late".to_owned(),
        pictures: Vec::new(),
    }];
    for result in [
        winner.save(&old, State::Failed, &Value::Null).await,
        winner.append(&old, &Value::Null, 0, &message).await,
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
    let place = place();
    let store = place.open().await;
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
async fn every_state_is_read_back_and_only_those_that_wait_for_people_are_left_alone() {
    let place = place();
    let store = place.open().await;
    let run = admit(&store, 1).await;
    let worked_on = [
        Stage::Planning,
        Stage::Reviewing(Judged::Plan),
        Stage::Preparing,
        Stage::Working,
        Stage::Verifying,
        Stage::Reviewing(Judged::Result),
        Stage::Delivering,
    ];
    let mut states = vec![State::AwaitingAnswer];
    states.extend([Judged::Plan, Judged::Result].map(State::AwaitingApproval));
    states.extend(worked_on.map(State::from));
    states.extend(worked_on.map(State::Paused));
    for state in states {
        let (lease, _) = store.claim_run(run, TTL).await.unwrap().unwrap();
        store.save(&lease, state, &Value::Null).await.unwrap();
        store.release(&lease, None).await.unwrap();
        assert_eq!(store.run(run).await.unwrap().map(|run| run.state), Some(state));
        let claimed = store.claim(TTL).await.unwrap();
        assert_eq!(claimed.is_none(), state.is_set_aside(), "{state}");
        if let Some((lease, _)) = claimed {
            store.release(&lease, None).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_paused_run_waits_for_a_person_and_a_parked_one_for_its_time() {
    let place = place();
    let store = place.open().await;
    let run = admit(&store, 1).await;
    let lease = claim(&store).await;
    store
        .save(&lease, State::Paused(Stage::Working), &Value::Null)
        .await
        .unwrap();
    store.release(&lease, None).await.unwrap();
    assert!(store.claim(TTL).await.unwrap().is_none());
    assert_eq!(ids(&store.set_aside().await.unwrap()), [run]);

    let (lease, paused) = store.claim_run(run, TTL).await.unwrap().unwrap();
    assert_eq!(paused.state, State::Paused(Stage::Working));
    assert!(store.claim_run(run, TTL).await.unwrap().is_none(), "held");
    store.save(&lease, State::Working, &Value::Null).await.unwrap();
    let due = Utc::now() + TimeDelta::hours(1);
    store.release(&lease, Some(due)).await.unwrap();
    assert!(store.claim(TTL).await.unwrap().is_none());
    assert_eq!(ids(&store.set_aside().await.unwrap()), []);
    assert_eq!(ids(&store.parked(Utc::now()).await.unwrap()), [run]);
    assert_eq!(ids(&store.parked(due).await.unwrap()), []);
    assert_eq!(ids(&store.due_again(Utc::now()).await.unwrap()), []);
    assert_eq!(ids(&store.due_again(due).await.unwrap()), [run]);
    let parked = store.unfinished_of(&issue(1)).await.unwrap().unwrap();
    assert_eq!(
        parked.not_before.map(|due| due.timestamp_micros()),
        Some(due.timestamp_micros())
    );
    let make_due = async || store.make_due(run).await.unwrap();
    assert_eq!([make_due().await, make_due().await], [true, false]);

    let (lease, parked) = store.claim_run(run, TTL).await.unwrap().unwrap();
    assert_eq!(
        (parked.state, parked.not_before.is_some()),
        (State::Working, true),
        "as it was"
    );
    assert!(!make_due().await, "held");
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
    let place = place();
    let store = place.open().await;
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
    let place = place();
    let store = place.open().await;
    let run = admit(&store, 1).await;
    let lease = claim(&store).await;
    let said: Vec<_> = (0..2_000)
        .map(|number| Message::User {
            text: format!("line {number}\u{0} 日本語"),
            pictures: Vec::new(),
        })
        .collect();
    for (turn, pair) in said.chunks(2).enumerate() {
        let record = json!({ "turns": turn });
        store.append(&lease, &record, 2 * turn, pair).await.unwrap();
    }
    assert_eq!(store.messages(run).await.unwrap(), said);
    let saved = store.run(run).await.unwrap().unwrap();
    assert_eq!((saved.record, saved.state), (json!({ "turns": 999 }), State::Queued));
}

#[tokio::test]
async fn a_request_stays_until_it_was_acted_on() {
    let place = place();
    let (worker, command_line) = (place.open().await, place.open().await);
    let run = admit(&worker, 1).await;
    command_line.ask(run, "pause", None).await.unwrap();
    command_line.ask(run, "stop", None).await.unwrap();
    let requests = worker.requests(run).await.unwrap();
    let texts: Vec<_> = requests.iter().map(|request| request.text.as_str()).collect();
    assert_eq!(texts, ["pause", "stop"]);
    worker.answered(requests[0].id).await.unwrap();
    assert_eq!(worker.requests(run).await.unwrap(), requests[1..]);
}

#[test]
fn a_second_run_on_the_same_folder_finds_it_taken() {
    let folder = tempfile::tempdir().unwrap();
    let first = try_exclusive(folder.path()).unwrap();
    assert!(first.is_some());
    assert!(try_exclusive(folder.path()).unwrap().is_none());
    drop(first);
    assert!(try_exclusive(folder.path()).unwrap().is_some());
}
