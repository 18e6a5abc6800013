//! Retention: the deletion of finished work.

use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};

use super::{TTL, admit, claim, issue, place};
use crate::conversation::Message;
use crate::store::Store;
use crate::task::id::{RunId, TaskId};
use crate::task::state::State;

/// Admits a run, lets it say something and ends it.
pub(in crate::store) async fn finished(store: &Store, number: u64, word: &str) -> RunId {
    let run = admit(store, number).await;
    let lease = claim(store).await;
    let said = [Message::User {
        text: word.repeat(3_000),
        pictures: Vec::new(),
    }];
    let record = json!({ "task": word });
    store.append(&lease, &record, 0, &said).await.unwrap();
    store.save(&lease, State::Done, &json!({ "task": word })).await.unwrap();
    run
}

#[tokio::test]
async fn runs_expire_by_their_end_and_not_while_their_request_is_looked_after() {
    let place = place();
    let store = place.open().await;
    let old = finished(&store, 1, "x").await;
    let shown = finished(&store, 2, "x").await;
    let waiting = admit(&store, 3).await;
    let request: TaskId = "github:acme/widgets#9".parse().unwrap();
    store.follow(&request, &issue(2), &Value::Null).await.unwrap();
    let now = Utc::now() + TimeDelta::seconds(1);

    assert_eq!(store.expired_runs(now - TimeDelta::hours(1), 9).await.unwrap(), []);
    assert_eq!(store.expired_runs(now, 9).await.unwrap(), [old]);
    assert_eq!(store.expired_conversations(now, 9).await.unwrap(), [old]);
    assert_eq!(
        store.opened_for(&issue(2)).await.unwrap(),
        std::slice::from_ref(&request)
    );
    store.drop_conversations(&[old]).await.unwrap();
    assert_eq!(store.expired_conversations(now, 9).await.unwrap(), []);
    assert_eq!(store.erase_runs(&[old, waiting]).await.unwrap(), 1);
    assert!(store.run(old).await.unwrap().is_none());
    assert!(!store.has_run(old).await.unwrap() && store.has_run(shown).await.unwrap());
    assert!(store.run(waiting).await.unwrap().is_some(), "it is unfinished");

    store.unfollow(&request).await.unwrap();
    assert_eq!(store.expired_runs(now, 9).await.unwrap(), [shown]);
    store.erase_unfollowed(now).await.unwrap();
    assert!(store.followed(&request).await.unwrap().is_none());
    assert!(store.claim_run(waiting, TTL).await.unwrap().is_some());
}
