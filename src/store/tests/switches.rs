//! Switches that hold for the whole installation.

use super::place;

#[tokio::test]
async fn a_pause_holds_for_all_workers_and_the_next_ones() {
    let place = place();
    let (one, other) = (place.open().await, place.open().await);
    assert!(!other.is_paused().await.unwrap());
    assert!(!one.resume_all().await.unwrap());
    assert!(one.pause_all().await.unwrap());
    assert!(!one.pause_all().await.unwrap());
    assert!(other.is_paused().await.unwrap());
    assert!(place.open().await.is_paused().await.unwrap());
    assert!(other.resume_all().await.unwrap());
    assert!(!one.is_paused().await.unwrap());
}
