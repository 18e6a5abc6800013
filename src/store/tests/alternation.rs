//! Turns, which only a few workers have at once.

use std::time::Duration;

use super::{TTL, place};

#[tokio::test]
async fn a_turn_is_had_by_so_many_and_ends_with_its_time_or_its_worker() {
    let place = place();
    let (one, other) = (place.open().await, place.open().await);
    let first = one.take_turn("model", 2, TTL).await.unwrap().unwrap();
    let second = other.take_turn("model", 2, TTL).await.unwrap().unwrap();
    assert_eq!(one.take_turn("model", 2, TTL).await.unwrap(), None);
    assert!(one.take_turn("another", 1, TTL).await.unwrap().is_some());
    assert!(one.keep_turn(&first, TTL).await.unwrap());

    one.end_turn(&first).await.unwrap();
    let short = one.take_turn("model", 2, Duration::ZERO).await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(2)).await;
    let next = one.take_turn("model", 2, TTL).await.unwrap().unwrap();
    assert!(!one.keep_turn(&short, TTL).await.unwrap(), "it went to another");
    one.end_turn(&short).await.unwrap();
    assert_eq!(
        one.take_turn("model", 2, TTL).await.unwrap(),
        None,
        "only its own is ended"
    );

    place.kill(other).await;
    assert!(one.take_turn("model", 2, TTL).await.unwrap().is_some());
    assert!(!one.keep_turn(&second, TTL).await.unwrap());
    one.end_turn(&next).await.unwrap();
}
