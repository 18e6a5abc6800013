//! Entries that take effect once, and runs and evaluations as people list them.

use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};
use uuid::Uuid;

use super::retention::finished;
use super::{TTL, admit, place};
use crate::store::{StoredEvaluation, Wanted};
use crate::task::state::State;

#[tokio::test]
async fn a_name_counts_once_for_all_workers_until_it_is_old() {
    let place = place();
    let (one, other) = (place.open().await, place.open().await);
    assert!(one.first_time("delivery 1", "a").await.unwrap());
    assert!(!other.first_time("delivery 1", "b").await.unwrap());
    assert_eq!(other.noted_once("delivery 1").await.unwrap().as_deref(), Some("a"));
    other.note_once("delivery 1", "c").await.unwrap();
    assert_eq!(one.noted_once("delivery 1").await.unwrap().as_deref(), Some("c"));
    one.erase_once(Utc::now() - TimeDelta::days(1)).await.unwrap();
    assert!(one.noted_once("delivery 1").await.unwrap().is_some());
    one.erase_once(Utc::now() + TimeDelta::seconds(1)).await.unwrap();
    assert_eq!(one.noted_once("delivery 1").await.unwrap(), None);
    // Of many at once only one is the first.
    let many = (0..20).map(|_| one.first_time("delivery 2", ""));
    let firsts = futures_util::future::join_all(many).await;
    assert_eq!(firsts.into_iter().filter(|first| *first.as_ref().unwrap()).count(), 1);
}

#[tokio::test]
async fn entries_with_a_word_are_deleted_where_it_stands_between_spaces() {
    let place = place();
    let store = place.open().await;
    for (name, value) in [
        ("task a", "digest github:acme/widgets#1 https://forge.example/1"),
        ("task b", "digest github:acme/widgets#12 https://forge.example/12"),
        ("other", "digest github:acme/widgets#1 https://forge.example/1"),
    ] {
        store.note_once(name, value).await.unwrap();
    }
    store.erase_once_with("task ", "github:acme/widgets#1").await.unwrap();
    let mut left = Vec::new();
    for name in ["task a", "task b", "other"] {
        left.push(store.noted_once(name).await.unwrap().is_some());
    }
    assert_eq!(left, [false, true, true]);
}

#[tokio::test]
async fn a_request_has_the_name_of_whoever_asked() {
    let place = place();
    let store = place.open().await;
    let run = admit(&store, 1).await;
    store.ask(run, "pause", None).await.unwrap();
    store.ask(run, "stop", Some("alice")).await.unwrap();
    let requests = store.requests(run).await.unwrap();
    let names: Vec<_> = requests.iter().map(|request| request.by.as_deref()).collect();
    assert_eq!(names, [None, Some("alice")]);
}

#[tokio::test]
async fn runs_are_listed_by_state_and_repository_and_finished_ones_can_be_hidden() {
    let place = place();
    let store = place.open().await;
    let old = finished(&store, 1, "old").await;
    let open = admit(&store, 2).await;
    let listed = async |wanted: &Wanted| -> Vec<_> {
        let runs = store.history(wanted, 10).await.unwrap();
        runs.iter().map(|run| run.id).collect()
    };
    let all = Wanted::default();
    assert_eq!(listed(&all).await, [open, old]);
    let of_state = |state: &str| Wanted {
        state: state.to_owned(),
        ..Wanted::default()
    };
    assert_eq!(listed(&of_state("queued")).await, [open]);
    assert_eq!(listed(&of_state("queue")).await, []);
    assert_eq!(listed(&of_state("%")).await, []);
    let before = Wanted {
        before: Some(open),
        ..Wanted::default()
    };
    assert_eq!(listed(&before).await, [old]);
    let task = store.run(open).await.unwrap().unwrap().task.to_string();
    let (repository, _) = task.split_once('#').unwrap();
    let of_repository = |repository: &str| Wanted {
        repository: repository.to_owned(),
        ..Wanted::default()
    };
    assert_eq!(listed(&of_repository(repository)).await, [open, old]);
    let shorter = &repository[..repository.len() - 1];
    assert_eq!(listed(&of_repository(shorter)).await, []);

    store.hide_history().await.unwrap();
    assert_eq!(listed(&all).await, [open], "what is unfinished stays");
    let hidden = Wanted {
        with_hidden: true,
        ..Wanted::default()
    };
    assert_eq!(listed(&hidden).await, [open, old]);

    let (lease, _) = store.claim_run(open, TTL).await.unwrap().unwrap();
    store.save(&lease, State::Done, &Value::Null).await.unwrap();
    let new = finished(&store, 3, "new").await;
    assert_eq!(listed(&all).await, [new, open], "it ended later");
    assert_eq!(listed(&of_state("done")).await, [new, open]);
    assert_eq!(listed(&of_state("failed")).await, []);
    assert_eq!(listed(&of_repository(repository)).await, [new, open]);
    assert_eq!(listed(&of_repository(shorter)).await, []);
    let before = Wanted {
        before: Some(new),
        ..Wanted::default()
    };
    assert_eq!(listed(&before).await, [open]);
    store.hide_history().await.unwrap();
    assert_eq!(listed(&all).await, [], "now they are over");
}

#[tokio::test]
async fn of_many_runs_that_were_unfinished_when_others_were_hidden_each_is_listed_at_its_end() {
    let place = place();
    let store = place.open().await;
    finished(&store, 100, "old").await;
    for number in 0..40 {
        admit(&store, number).await;
    }
    store.hide_history().await.unwrap();
    let mut ended = Vec::new();
    while let Some((lease, run)) = store.claim(TTL).await.unwrap() {
        store.save(&lease, State::Done, &Value::Null).await.unwrap();
        ended.push(run.id);
    }
    assert_eq!(ended.len(), 40);
    ended.reverse();
    let mut pages = Vec::new();
    let mut wanted = Wanted::default();
    for _ in 0..4 {
        let page = store.history(&wanted, 10).await.unwrap();
        wanted.before = page.last().map(|run| run.id);
        pages.extend(page.iter().map(|run| run.id));
    }
    assert_eq!(pages, ended);
    assert_eq!(store.history(&wanted, 10).await.unwrap(), []);
}

#[tokio::test]
async fn evaluations_that_have_ended_or_were_broken_off_can_be_hidden() {
    let place = place();
    let store = place.open().await;
    let ids = |found: Vec<StoredEvaluation>| found.iter().map(|one| one.id).collect::<Vec<_>>();
    store.hide_evaluations(|_| true).await.unwrap();
    let (over, open) = (Uuid::now_v7(), Uuid::now_v7());
    for id in [over, open] {
        store.begin_evaluation(id, &json!({})).await.unwrap();
    }
    store.end_evaluation(over, &json!({})).await.unwrap();
    assert_eq!(ids(store.shown_evaluations(10).await.unwrap()), [open, over]);
    assert_eq!(ids(store.open_evaluations(10).await.unwrap()), [open]);
    store.hide_evaluations(|_| true).await.unwrap();
    assert_eq!(ids(store.shown_evaluations(10).await.unwrap()), [open]);
    store.end_evaluation(open, &json!({})).await.unwrap();
    assert_eq!(
        ids(store.shown_evaluations(10).await.unwrap()),
        [open],
        "it ended later"
    );
    assert_eq!(ids(store.evaluations(10).await.unwrap()), [open, over]);
    assert!(store.open_evaluations(10).await.unwrap().is_empty());

    let broken_off = [Uuid::now_v7(), Uuid::now_v7()];
    let running = Uuid::now_v7();
    for id in [broken_off[0], broken_off[1], running] {
        store.begin_evaluation(id, &json!({})).await.unwrap();
    }
    store.hide_evaluations(|one| one.id == running).await.unwrap();
    assert_eq!(ids(store.shown_evaluations(10).await.unwrap()), [running]);
    store.end_evaluation(broken_off[0], &json!({})).await.unwrap();
    assert_eq!(
        ids(store.shown_evaluations(10).await.unwrap()),
        [running, broken_off[0]],
        "it was not broken off after all"
    );
    assert_eq!(store.evaluations(10).await.unwrap().len(), 5);
}
