//! Facts are numbered once, and read from any number on.

use chrono::{DateTime, TimeDelta, Utc};

use super::retention::finished;
use super::{admit, issue, place};
use crate::store::{FactFilter, NewFact, Store};
use crate::task::id::RunId;

fn fact(run: Option<RunId>, number: u64, document: &str, at: DateTime<Utc>) -> NewFact {
    NewFact {
        at,
        run,
        task: run.map(|_| issue(number)),
        document: document.to_owned(),
    }
}

async fn told(store: &Store, after: u64, filter: FactFilter) -> Vec<String> {
    let facts = store.facts(after, &filter, 1_000).await.unwrap();
    facts.into_iter().map(|fact| fact.document).collect()
}

#[tokio::test]
async fn facts_are_read_behind_a_number_by_run_and_by_task() {
    let place = place();
    let store = place.open().await;
    let (one, other) = (admit(&store, 1).await, admit(&store, 2).await);
    let now = Utc::now();
    assert_eq!(store.newest_fact().await.unwrap(), 0);
    let written = [
        fact(Some(one), 1, "a", now),
        fact(Some(other), 2, "b", now),
        fact(None, 0, "c", now),
        fact(Some(one), 1, "d", now),
    ];
    let newest = store.add_facts(&written).await.unwrap();
    assert_eq!(store.newest_fact().await.unwrap(), newest);

    assert_eq!(told(&store, 0, FactFilter::All).await, ["a", "b", "c", "d"]);
    assert_eq!(told(&store, 0, FactFilter::OfRun(one)).await, ["a", "d"]);
    assert_eq!(told(&store, 0, FactFilter::OfTask(issue(2))).await, ["b"]);
    let first = store.facts(0, &FactFilter::All, 1).await.unwrap().remove(0);
    assert_eq!(told(&store, first.sequence, FactFilter::OfRun(one)).await, ["d"]);

    // A number is given once, also when the newest facts are gone.
    store.erase_facts(&[newest]).await.unwrap();
    assert!(store.add_facts(&written[..1]).await.unwrap() > newest);
    assert_eq!(told(&store, newest, FactFilter::All).await, ["a"]);
}

#[tokio::test]
async fn many_facts_are_numbered_in_their_order() {
    let place = place();
    let store = place.open().await;
    let texts: Vec<String> = (0..27).map(|number| format!("{number}")).collect();
    let facts: Vec<NewFact> = texts.iter().map(|text| fact(None, 0, text, Utc::now())).collect();
    assert_eq!(
        store.add_facts(&facts).await.unwrap(),
        store.newest_fact().await.unwrap()
    );
    assert_eq!(told(&store, 0, FactFilter::All).await, texts);
    assert_eq!(store.add_facts(&[]).await.unwrap(), 0);
}

#[tokio::test]
async fn facts_of_which_nobody_knows_whether_they_were_kept_are_written_once() {
    let place = place();
    let store = place.open().await;
    let before = Utc::now() - TimeDelta::seconds(1);
    let earlier = store.add_facts(&[fact(None, 0, "x", before)]).await.unwrap();
    let facts = ["w", "x"].map(|text| fact(None, 0, text, Utc::now()));
    // The attempt before has kept nothing, then everything.
    let newest = store.add_facts_again(&facts, earlier).await.unwrap();
    assert_eq!(store.add_facts_again(&facts, earlier).await.unwrap(), newest);
    assert_eq!(told(&store, 0, FactFilter::All).await, ["x", "w", "x"]);
    // The same said once more later is another fact.
    assert!(store.add_facts_again(&facts, newest).await.unwrap() > newest);
    assert_eq!(store.add_facts_again(&[], newest).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_misses_nothing_of_what_several_workers_write() {
    let place = place();
    let stores = [place.open().await, place.open().await];
    let reader = place.open().await;
    let mut writers = tokio::task::JoinSet::new();
    for store in stores {
        writers.spawn(async move {
            for number in 0..50 {
                let facts = ["x", "y"].map(|text| fact(None, number, text, Utc::now()));
                store.add_facts(&facts).await.unwrap();
            }
        });
    }
    let (mut read, mut last) = (0, 0);
    while read < 200 {
        let facts = reader.facts(last, &FactFilter::All, 7).await.unwrap();
        read += facts.len();
        for fact in facts {
            assert!(fact.sequence > last);
            last = fact.sequence;
        }
    }
    writers.join_all().await;
    assert_eq!(told(&reader, last, FactFilter::All).await, [""; 0]);
}

#[tokio::test]
async fn facts_go_with_their_run_and_the_others_by_their_age() {
    let place = place();
    let store = place.open().await;
    let over = finished(&store, 1, "x").await;
    let waiting = admit(&store, 2).await;
    let (now, old) = (Utc::now(), Utc::now() - TimeDelta::days(100));
    let written = [
        fact(Some(over), 1, "of a run that is over", old),
        fact(Some(waiting), 2, "of one that waits", old),
        fact(Some(RunId::new()), 3, "of one that nobody knows", old),
        fact(None, 0, "of the worker, long ago", old),
        fact(None, 0, "of the worker", now),
    ];
    store.add_facts(&written).await.unwrap();
    store.erase_old_facts(now - TimeDelta::days(90)).await.unwrap();
    let left = ["of a run that is over", "of one that waits", "of the worker"];
    assert_eq!(told(&store, 0, FactFilter::All).await, left);
    store.erase_runs(&[over, waiting]).await.unwrap();
    assert_eq!(told(&store, 0, FactFilter::All).await, left[1..]);
}
