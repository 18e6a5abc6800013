//! The cost of finished work, which is none: neither finished runs nor the length of a conversation
//! make the store work more.
//!
//! `SQLite` runs each query as a small program and can be asked to count its steps. A query that
//! looks at every row there is takes some steps for each; one that finds its rows by an index takes
//! as many in a store of a thousand runs as in one of ten.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};

use super::super::open;
use super::Folder;
use crate::conversation::Message;
use crate::store::sql::Statement;
use crate::store::tests::{TTL, admit, claim, issue};
use crate::store::{FactFilter, Lease, NewFact, Store, Wanted};
use crate::task::id::RunId;
use crate::task::state::{Stage, State};

/// Opens the store with a counter on its one connection, so that whatever it does is counted.
async fn counted(folder: &Folder) -> (Store, Arc<AtomicU64>) {
    let engine = open(folder.path()).await.unwrap();
    let steps = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&steps);
    let mut connection = engine.pool.acquire().await.unwrap();
    connection
        .lock_handle()
        .await
        .unwrap()
        .set_progress_handler(1, move || {
            counter.fetch_add(1, Ordering::Relaxed);
            true
        });
    drop(connection);
    (Store::over(engine), steps)
}

/// Adds runs that are over, each with its conversation and a pull request that nobody looks after
/// any more, or that has been quiet for long.
async fn add_finished_runs(store: &Store, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let task = issue(number);
        store.admit(&task, "Long ago", &Value::Null).await.unwrap();
        let lease = claim(store).await;
        let words = [said("long ago")];
        store.append(&lease, &Value::Null, 0, &words).await.unwrap();
        fact(store, lease.run).await;
        store.save(&lease, State::Done, &Value::Null).await.unwrap();
        let change = issue(number + 1_000_000);
        store.follow(&change, &task, &Value::Null).await.unwrap();
        if number % 2 == 0 {
            store.unfollow(&change).await.unwrap();
        }
    }
    let age = Statement::new("UPDATE followed SET active_at = 1");
    store.execute(age).await.unwrap();
}

async fn fact(store: &Store, run: RunId) {
    let fact = NewFact {
        at: Utc::now(),
        run: Some(run),
        task: None,
        document: "{}".to_owned(),
    };
    store.add_facts(&[fact]).await.unwrap();
}

fn said(text: &str) -> Message {
    Message::User {
        text: text.to_owned(),
        pictures: Vec::new(),
    }
}

/// Goes once through everything that a service asks of its store, and returns the steps of each
/// question.
async fn steps_of_a_round(store: &Store, steps: &AtomicU64, number: u64) -> Vec<(&'static str, u64)> {
    steps.store(0, Ordering::Relaxed);
    let mut taken = Vec::new();
    let mut note = |question: &'static str| taken.push((question, steps.swap(0, Ordering::Relaxed)));
    let now = Utc::now();
    let task = issue(number);
    let run = admit(store, number).await;
    note("admit");
    admit_again(store, number).await;
    note("admit what is known");
    let lease = claim(store).await;
    note("claim");
    store.heartbeat(&lease, TTL).await.unwrap();
    note("heartbeat");
    append(store, &lease, 0).await;
    note("append");
    store.messages(run).await.unwrap();
    note("messages");
    store.ask(run, "pause", None).await.unwrap();
    store.requests(run).await.unwrap();
    note("requests");
    store.unfinished_of(&task).await.unwrap();
    note("the unfinished run of a task");
    store.unfinished().await.unwrap();
    note("unfinished");
    store.held_elsewhere().await.unwrap();
    note("held elsewhere");
    store.beside(&task).await.unwrap();
    note("beside");
    store.run(run).await.unwrap();
    store.runs(Some(&task), 20).await.unwrap();
    note("the runs of a task");
    store.runs(None, 5).await.unwrap();
    note("the newest runs");
    store.history(&Wanted::default(), 5).await.unwrap();
    let before = Wanted {
        before: Some(run),
        ..Wanted::default()
    };
    assert_eq!(store.history(&before, 5).await.unwrap().len(), 5);
    note("pages of the history");
    for (state, repository) in [
        ("failed", ""),
        ("paused", ""),
        ("done", ""),
        ("", "github:acme/others"),
        ("", "github:acme/widgets"),
        ("done", "github:acme/others"),
        ("failed", "github:acme/widgets"),
    ] {
        let wanted = Wanted {
            state: state.to_owned(),
            repository: repository.to_owned(),
            ..Wanted::default()
        };
        store.history(&wanted, 5).await.unwrap();
        note("a filtered page of the history");
    }
    store.unfinished_by_state().await.unwrap();
    store.newest_facts(&FactFilter::All, 5).await.unwrap();
    store.newest_of(run, "difference_made").await.unwrap();
    note("what is shown");
    let paused = State::Paused(Stage::Working);
    store.save(&lease, paused, &Value::Null).await.unwrap();
    store.release(&lease, None).await.unwrap();
    note("release");
    store.set_aside().await.unwrap();
    store.parked(now).await.unwrap();
    store.due_again(now).await.unwrap();
    note("what waits");
    let (lease, _) = store.claim_run(run, TTL).await.unwrap().unwrap();
    note("claim this one");
    store
        .follow(&issue(number + 1_000_000), &task, &Value::Null)
        .await
        .unwrap();
    store.followed(&issue(number + 1_000_000)).await.unwrap();
    note("followed");
    let living = store.followed_since(now - TimeDelta::days(14)).await.unwrap();
    assert_eq!(living.len(), 1);
    note("what is looked after");
    store.unfollow(&issue(number + 1_000_000)).await.unwrap();
    fact(store, run).await;
    note("a fact");
    store.facts(0, &FactFilter::OfRun(run), 10).await.unwrap();
    store.newest_fact().await.unwrap();
    assert!(!store.is_paused().await.unwrap());
    note("what happened");
    store.save(&lease, State::Done, &Value::Null).await.unwrap();
    note("the end");
    taken
}

async fn admit_again(store: &Store, number: u64) {
    store.admit(&issue(number), "Again", &Value::Null).await.unwrap();
}

async fn append(store: &Store, lease: &Lease, first: usize) {
    let record = json!({ "turns": 1 });
    let words = [said("a"), said("b")];
    store.append(lease, &record, first, &words).await.unwrap();
}

#[tokio::test]
async fn runs_that_are_over_cost_the_others_nothing() {
    let folder = Folder::new();
    let (store, steps) = counted(&folder).await;
    add_finished_runs(&store, 0..10).await;
    // The first time the queries are translated as well.
    steps_of_a_round(&store, &steps, 10_000).await;
    let among_few = steps_of_a_round(&store, &steps, 10_001).await;
    add_finished_runs(&store, 10..400).await;
    let among_many = steps_of_a_round(&store, &steps, 10_002).await;
    assert_eq!(among_many, among_few);
}

/// Hides finished runs while another one is unfinished, ends that, and returns the steps of the
/// page that has it.
async fn steps_beside_hidden_runs(hidden: u64) -> u64 {
    let folder = Folder::new();
    let (store, steps) = counted(&folder).await;
    add_finished_runs(&store, 0..hidden).await;
    let run = admit(&store, 10_000).await;
    store.hide_history().await.unwrap();
    let lease = claim(&store).await;
    store.save(&lease, State::Done, &Value::Null).await.unwrap();
    // The first time the queries are translated as well.
    for _ in 0..2 {
        steps.store(0, Ordering::Relaxed);
        let page = store.history(&Wanted::default(), 5).await.unwrap();
        assert_eq!(page.iter().map(|run| run.id).collect::<Vec<_>>(), [run]);
    }
    steps.load(Ordering::Relaxed)
}

#[tokio::test]
async fn runs_that_are_hidden_cost_the_page_of_those_that_ended_later_nothing() {
    assert_eq!(steps_beside_hidden_runs(200).await, steps_beside_hidden_runs(10).await);
}

#[tokio::test]
async fn a_message_behind_a_thousand_others_costs_what_the_first_did() {
    let folder = Folder::new();
    let (store, steps) = counted(&folder).await;
    admit(&store, 1).await;
    let lease = claim(&store).await;
    append(&store, &lease, 0).await;
    steps.store(0, Ordering::Relaxed);
    append(&store, &lease, 2).await;
    let early = steps.swap(0, Ordering::Relaxed);
    let record = json!({ "turns": 1 });
    let said: Vec<_> = (0..1_000).map(|number| said(&number.to_string())).collect();
    store.append(&lease, &record, 4, &said).await.unwrap();
    steps.store(0, Ordering::Relaxed);
    append(&store, &lease, 1_004).await;
    assert_eq!(steps.load(Ordering::Relaxed), early);
}
