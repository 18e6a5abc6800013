//! Records change their form with the program.

use serde_json::Value;

use super::{admit, place};

#[tokio::test]
async fn records_are_brought_up_to_date_once_for_each_version() {
    let place = place();
    let store = place.open().await;
    let runs = [admit(&store, 1).await, admit(&store, 2).await];
    let upgrade = |record: &mut Value| {
        *record = "new".into();
        true
    };
    assert_eq!(store.upgrade_records(1, upgrade).await.unwrap(), 2);
    assert_eq!(store.upgrade_records(1, upgrade).await.unwrap(), 0);
    assert_eq!(store.upgrade_records(2, |_| false).await.unwrap(), 0);
    assert_eq!(store.upgrade_records(3, upgrade).await.unwrap(), 2);
    for run in runs {
        assert_eq!(store.run(run).await.unwrap().unwrap().record, "new");
    }
}
