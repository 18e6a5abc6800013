//! Switches and other values that hold for the whole installation.

use super::place;
use crate::store::Store;

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

#[tokio::test]
async fn what_is_remembered_can_be_replaced() {
    let place = place();
    let store = place.open().await;
    assert_eq!(store.remembered("issues").await.unwrap(), None);
    store.remember("issues", "old").await.unwrap();
    store.remember("issues", "new").await.unwrap();
    assert_eq!(store.remembered("issues").await.unwrap().as_deref(), Some("new"));
}

#[tokio::test]
async fn what_is_remembered_is_replaced_once_by_those_who_have_read_the_same() {
    let place = place();
    let (one, other) = (place.open().await, place.open().await);
    let replaced = async |store: &Store, before: Option<&str>, value: &str| {
        store.remember_unless_changed("issues", before, value).await.unwrap()
    };
    assert!(!replaced(&one, Some("old"), "new").await, "nothing is there");
    assert!(replaced(&one, None, "old").await);
    assert!(!replaced(&other, None, "other").await);
    assert!(replaced(&other, Some("old"), "new").await);
    assert!(!replaced(&one, Some("old"), "newer").await);
    assert_eq!(one.remembered("issues").await.unwrap().as_deref(), Some("new"));
}
