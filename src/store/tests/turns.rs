//! An issue and the pull/merge request that was opened for it share a branch, and an item of a
//! renamed repository may be known by another name.

use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};

use super::{TTL, admit, claim, issue, place};
use crate::store::Admission;
use crate::task::id::TaskId;
use crate::task::state::{Stage, State};

#[tokio::test]
async fn runs_on_one_branch_take_turns() {
    let place = place();
    let store = place.open().await;
    let origin = admit(&store, 1).await;
    let lease = claim(&store).await;
    store.follow(&issue(2), &issue(1), &Value::Null).await.unwrap();
    let on_request = admit(&store, 2).await;
    let other = admit(&store, 3).await;
    assert_eq!(store.beside(&issue(1)).await.unwrap(), [on_request]);
    assert_eq!(store.beside(&issue(2)).await.unwrap(), [origin]);
    assert_eq!(store.beside(&issue(3)).await.unwrap(), []);

    // Also before its first stage is saved, and while it waits for people or for its time.
    let held = claim(&store).await;
    assert_eq!(held.run, other);
    assert!(store.claim(TTL).await.unwrap().is_none());
    let paused = State::Paused(Stage::Working);
    store.save(&lease, paused, &Value::Null).await.unwrap();
    store
        .release(&lease, Some(Utc::now() + TimeDelta::hours(1)))
        .await
        .unwrap();
    assert!(store.claim(TTL).await.unwrap().is_none());
    // Of two that were begun, by a version that did not look or by a person's command, the older
    // goes first.
    let (younger, _) = store.claim_run(on_request, TTL).await.unwrap().unwrap();
    store.save(&younger, State::Working, &Value::Null).await.unwrap();
    store.release(&younger, None).await.unwrap();
    assert!(store.claim(TTL).await.unwrap().is_none());

    let (lease, _) = store.claim_run(origin, TTL).await.unwrap().unwrap();
    store.save(&lease, State::Working, &Value::Null).await.unwrap();
    store.release(&lease, None).await.unwrap();
    let lease = claim(&store).await;
    assert_eq!(lease.run, origin);
    store.save(&lease, State::Done, &Value::Null).await.unwrap();
    let lease = claim(&store).await;
    assert_eq!(lease.run, on_request);
}

#[tokio::test]
async fn notes_on_a_request_that_were_replaced_are_not_replaced_by_older_ones() {
    let place = place();
    let (one, other) = (place.open().await, place.open().await);
    let request = issue(2);
    one.follow(&request, &issue(1), &json!({ "round": 1 })).await.unwrap();
    let read = one.followed(&request).await.unwrap().unwrap();
    other.follow(&request, &issue(1), &json!({ "round": 2 })).await.unwrap();

    let older = json!({ "round": 1, "heard": 5 });
    assert!(!one.note_followed(&read, &older).await.unwrap());
    let newer = one.followed(&request).await.unwrap().unwrap();
    assert_eq!(newer.notes, json!({ "round": 2 }));
    assert_ne!(newer, read);
    assert!(one.note_followed(&newer, &json!({ "round": 3 })).await.unwrap());
    let newest = other.followed(&request).await.unwrap().unwrap();
    assert_eq!(newest.notes, json!({ "round": 3 }));
}

#[tokio::test]
async fn what_may_be_the_same_item_in_a_renamed_repository_is_under_way_or_was_followed() {
    let place = place();
    let store = place.open().await;
    let named = |name: &str| -> TaskId { name.parse().unwrap() };
    for (name, is_over) in [
        ("github:acme/old#12", false),
        ("github:acme/new#12", false),
        ("github:acme/other#112", false),
        ("gitlab:acme/old#12", false),
        ("github:acme/finished#12", true),
    ] {
        let admitted = store.admit(&named(name), "Greet", &Value::Null).await.unwrap();
        if let (Admission::New(run), true) = (admitted, is_over) {
            let (lease, _) = store.claim_run(run, TTL).await.unwrap().unwrap();
            store.save(&lease, State::Done, &Value::Null).await.unwrap();
        }
    }
    for (name, origin) in [
        ("github:acme/followed#12", "github:acme/followed#3"),
        ("github:acme/opened#4", "github:acme/opened#12"),
        ("github:acme/old#12", "github:acme/old#2"),
    ] {
        store.follow(&named(name), &named(origin), &Value::Null).await.unwrap();
    }
    store.unfollow(&named("github:acme/followed#12")).await.unwrap();

    let found = store
        .namesakes(named("github:acme/new#12").item().unwrap())
        .await
        .unwrap();

    let found: Vec<_> = found.iter().map(ToString::to_string).collect();
    let expected = ["github:acme/old#12", "github:acme/followed#12", "github:acme/opened#12"];
    assert_eq!(found, expected);
}
