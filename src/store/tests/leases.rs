//! Whose token writes, and which runs are left to whom.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use serde_json::{Value, json};

use super::{TTL, admit, claim, ids, issue, place};
use crate::conversation::Message;
use crate::store::StoreError;
use crate::store::runs::FORMAT;
use crate::store::sql::Statement;
use crate::task::state::{Judged, State};

#[tokio::test]
async fn another_worker_s_token_and_that_of_another_run_write_nothing() {
    let place = place();
    let (holder, other) = (place.open().await, place.open().await);
    let run = admit(&holder, 1).await;
    admit(&holder, 2).await;
    let lease = claim(&holder).await;
    let message = [Message::User {
        text: "not mine".to_owned(),
        pictures: Vec::new(),
    }];
    for result in [
        other.save(&lease, State::Done, &Value::Null).await,
        other.append(&lease, &Value::Null, 0, &message).await,
        other.heartbeat(&lease, TTL).await,
        other.release(&lease, None).await,
    ] {
        assert!(
            matches!(result, Err(StoreError::LeaseLost(lost)) if lost == run),
            "{result:?}"
        );
    }
    let mut second = claim(&other).await;
    let its_own = second.run;
    second.run = run;
    let saved = other.save(&second, State::Done, &Value::Null).await;
    assert!(matches!(saved, Err(StoreError::LeaseLost(_))), "{saved:?}");
    let stored = holder.run(run).await.unwrap().unwrap();
    assert!(!stored.state.is_final());
    assert!(holder.messages(run).await.unwrap().is_empty());
    holder.save(&lease, State::Planning, &Value::Null).await.unwrap();
    second.run = its_own;
    other.save(&second, State::Planning, &Value::Null).await.unwrap();
}

#[tokio::test]
async fn a_run_that_a_newer_program_has_worked_on_is_left_to_it() {
    let place = place();
    let store = place.open().await;
    let run = admit(&store, 1).await;
    let newer = Statement::new("UPDATE runs SET format = $2 WHERE id = $1");
    store.execute(newer.with(run).with(FORMAT + 1)).await.unwrap();
    assert!(store.claim(TTL).await.unwrap().is_none());
    assert!(store.claim_run(run, TTL).await.unwrap().is_none());

    // What an older program has written is understood, and marked by whoever takes it up.
    let older = Statement::new("UPDATE runs SET format = 0 WHERE id = $1");
    store.execute(older.with(run)).await.unwrap();
    let lease = claim(&store).await;
    let format = Statement::new("SELECT format FROM runs WHERE id = $1").with(run);
    assert_eq!(store.fetch(format).await.unwrap()[0].number(0).unwrap(), FORMAT);
    store.save(&lease, State::Done, &Value::Null).await.unwrap();
}

#[tokio::test]
async fn the_end_of_a_run_that_waits_for_people_is_due_at_its_time() {
    let place = place();
    let store = place.open().await;
    let run = admit(&store, 1).await;
    let lease = claim(&store).await;
    let state = State::AwaitingApproval(Judged::Result);
    store.save(&lease, state, &Value::Null).await.unwrap();
    let due = Utc::now() + TimeDelta::hours(1);
    store.release(&lease, Some(due)).await.unwrap();
    assert_eq!(ids(&store.due_again(Utc::now()).await.unwrap()), []);
    assert_eq!(ids(&store.due_again(due).await.unwrap()), [run]);

    // As after the kill of a process that was about to show it.
    let (lease, _) = store.claim_run(run, TTL).await.unwrap().unwrap();
    assert_eq!(ids(&store.due_again(due).await.unwrap()), [], "held");
    store.release(&lease, None).await.unwrap();
    for found in [store.due_again(Utc::now()).await, store.set_aside().await] {
        assert_eq!(ids(&found.unwrap()), [run]);
    }

    let newer = Statement::new("UPDATE runs SET format = $2 WHERE id = $1");
    store.execute(newer.with(run).with(FORMAT + 1)).await.unwrap();
    for found in [store.due_again(Utc::now()).await, store.set_aside().await] {
        assert_eq!(ids(&found.unwrap()), [], "left to a newer program");
    }
}

#[tokio::test]
async fn what_this_worker_holds_is_held_by_nobody_else_and_by_nobody_once_it_is_put_down() {
    let place = place();
    let (own, other) = (place.open().await, place.open().await);
    let (first, second) = (admit(&own, 1).await, admit(&own, 2).await);
    let waiting = admit(&own, 3).await;
    let (lease, _) = own.claim_run(first, TTL).await.unwrap().unwrap();
    let (elsewhere, _) = other.claim_run(second, TTL).await.unwrap().unwrap();

    assert_eq!(own.held_anywhere().await.unwrap(), [first, second]);
    assert_eq!(other.held_anywhere().await.unwrap(), [first, second]);
    assert_eq!(own.held_elsewhere().await.unwrap(), [second]);

    // A task that panicked gives nothing back.
    drop(lease);
    assert_eq!(own.held_anywhere().await.unwrap(), [second]);
    other.release(&elsewhere, None).await.unwrap();
    assert!(own.held_anywhere().await.unwrap().is_empty());
    let (again, _) = own.claim_run(waiting, TTL).await.unwrap().unwrap();
    own.save(&again, State::Done, &Value::Null).await.unwrap();
    assert!(own.held_anywhere().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_finished_run_is_held_while_its_worker_lives_and_extends_the_lease() {
    let place = place();
    let (own, other) = (place.open().await, place.open().await);
    let (first, second) = (admit(&own, 1).await, admit(&own, 2).await);
    let (lease, _) = own.claim_run(first, TTL).await.unwrap().unwrap();
    let (elsewhere, _) = other.claim_run(second, TTL).await.unwrap().unwrap();
    assert_eq!(other.held_beyond_end(&issue(1)).await.unwrap(), [], "it is unfinished");
    own.save(&lease, State::Done, &Value::Null).await.unwrap();
    other.save(&elsewhere, State::Done, &Value::Null).await.unwrap();

    for store in [&own, &other] {
        assert_eq!(store.held_beyond_end(&issue(1)).await.unwrap(), [first]);
        assert_eq!(store.held_beyond_end(&issue(2)).await.unwrap(), [second]);
        assert_eq!(store.held_beyond_end(&issue(3)).await.unwrap(), []);
    }
    own.heartbeat(&lease, Duration::ZERO).await.unwrap();
    assert_eq!(other.held_beyond_end(&issue(1)).await.unwrap(), [], "it ran out");
    own.heartbeat(&lease, TTL).await.unwrap();
    assert_eq!(other.held_beyond_end(&issue(1)).await.unwrap(), [first]);
    drop(lease);
    assert_eq!(own.held_beyond_end(&issue(1)).await.unwrap(), [], "it was put down");
    place.kill(other).await;
    assert_eq!(own.held_beyond_end(&issue(2)).await.unwrap(), [], "its worker is dead");
}

#[tokio::test]
async fn what_is_appended_again_with_more_behind_it_is_there_once() {
    let place = place();
    let store = place.open().await;
    let run = admit(&store, 1).await;
    let lease = claim(&store).await;
    let said = ["a", "b", "c"].map(|text| Message::User {
        text: text.to_owned(),
        pictures: Vec::new(),
    });
    store.append(&lease, &Value::Null, 0, &said[..2]).await.unwrap();
    // As after an answer that was lost.
    store.append(&lease, &json!({ "turns": 2 }), 0, &said).await.unwrap();
    assert_eq!(store.messages(run).await.unwrap(), said);
    assert_eq!(store.run(run).await.unwrap().unwrap().record, json!({ "turns": 2 }));
}
