//! Automatic approval is on for a time, and off for all at once.

use chrono::TimeDelta;

use super::place;

#[tokio::test]
async fn it_is_on_for_all_workers_until_it_ends_or_is_switched_off() {
    let place = place();
    let (one, other) = (place.open().await, place.open().await);
    assert_eq!(one.automatic_approval().await.unwrap(), None);
    assert!(!one.end_automatic_approval().await.unwrap());

    one.start_automatic_approval("alice", TimeDelta::minutes(5))
        .await
        .unwrap();
    let until = other
        .start_automatic_approval("bob", TimeDelta::minutes(10))
        .await
        .unwrap();
    let started = one.automatic_approval().await.unwrap().unwrap();
    assert_eq!(
        (started.by.as_str(), started.until.timestamp()),
        ("bob", until.timestamp())
    );
    assert!(one.end_automatic_approval().await.unwrap());
    assert_eq!(other.automatic_approval().await.unwrap(), None);

    // What has run out is off, and not switched off once more.
    one.start_automatic_approval("alice", TimeDelta::zero()).await.unwrap();
    assert_eq!(other.automatic_approval().await.unwrap(), None);
    assert!(!other.end_automatic_approval().await.unwrap());
}
