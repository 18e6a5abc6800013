//! Copies of unfinished work: whole or not at all, and no longer than the run.

use super::*;

/// Writes the parts of an upload; returns its id.
async fn upload(store: &Store, lease: &Lease, parts: &[&str]) -> Uuid {
    let upload = Uuid::now_v7();
    for (position, part) in (0..).zip(parts) {
        let part = part.as_bytes().to_vec();
        store.add_work_part(lease, upload, position, part).await.unwrap();
    }
    upload
}

/// Reads the work of a run: the owner's document, and the parts.
async fn read(store: &Store, run: RunId) -> Option<(Value, String)> {
    let work = store.work_of(run).await.unwrap()?;
    let mut text = String::new();
    for position in 0.. {
        let Some(part) = store.work_part(&work, position).await.unwrap() else {
            break;
        };
        text += std::str::from_utf8(&part).unwrap();
    }
    Some((work.about, text))
}

#[tokio::test]
async fn an_upload_counts_once_it_is_complete() {
    let place = place();
    let store = place.open().await;
    admit(&store, 1).await;
    let lease = claim(&store).await;
    upload(&store, &lease, &["lost"]).await;
    assert_eq!(read(&store, lease.run).await, None);

    let first = upload(&store, &lease, &["on", "e"]).await;
    store.complete_work(&lease, first, &json!(1)).await.unwrap();
    upload(&store, &lease, &["cut off"]).await;
    assert_eq!(read(&store, lease.run).await, Some((json!(1), "one".to_owned())));

    let second = upload(&store, &lease, &["two"]).await;
    for _ in 0..2 {
        store.complete_work(&lease, second, &json!(2)).await.unwrap();
        let other = place.open().await;
        assert_eq!(read(&other, lease.run).await, Some((json!(2), "two".to_owned())));
    }
    let parts = store
        .fetch(Statement::new("SELECT position FROM unfinished_parts"))
        .await;
    assert_eq!(parts.unwrap().len(), 1);
}

#[tokio::test]
async fn it_goes_with_the_end_of_the_run_and_is_nobody_else_s_to_write() {
    let place = place();
    let store = place.open().await;
    admit(&store, 1).await;
    let lease = claim(&store).await;
    let first = upload(&store, &lease, &["one"]).await;
    store.complete_work(&lease, first, &json!(1)).await.unwrap();
    store.save(&lease, State::Done, &Value::Null).await.unwrap();
    assert_eq!(read(&store, lease.run).await, None);

    let part = store.add_work_part(&lease, first, 1, vec![1]).await;
    assert!(matches!(part, Err(StoreError::LeaseLost(_))), "{part:?}");
    let complete = store.complete_work(&lease, first, &json!(1)).await;
    assert!(matches!(complete, Err(StoreError::LeaseLost(_))), "{complete:?}");
    assert_eq!(store.erase_runs(&[lease.run]).await.unwrap(), 1);
}
