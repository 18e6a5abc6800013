//! The tokens that are used on a day.

use chrono::NaiveDate;

use super::place;
use crate::conversation::Usage;

#[tokio::test]
async fn the_calls_of_a_day_add_up_by_model() {
    let place = place();
    let store = place.open().await;
    let day = NaiveDate::from_ymd_opt(2026, 11, 27).unwrap();
    let one = Usage {
        input: 100,
        output: 10,
        cached: 40,
        cache_written: 20,
    };
    for model in ["far", "near", "far"] {
        store.use_on(day, model, &one).await.unwrap();
    }
    let mut two = one;
    two += one;
    let expected = [("far".to_owned(), two), ("near".to_owned(), one)];
    assert_eq!(store.used_on(day).await.unwrap(), expected);
    let next = day.succ_opt().unwrap();
    assert!(store.used_on(next).await.unwrap().is_empty());
}
