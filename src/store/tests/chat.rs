//! Conversations in messengers: what comes in once, goes out once, and in which order.

use chrono::{TimeDelta, Utc};
use serde_json::json;
use uuid::Uuid;

use super::place;
use crate::store::{ChatWatch, HandedOver, NewSaying, Saying, Store};
use crate::task::id::{RunId, TaskId};

fn saying(session: &str, text: &str) -> NewSaying {
    NewSaying {
        id: Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()),
        session: session.to_owned(),
        document: json!({ "text": text }),
    }
}

/// Returns what is said next in each conversation, also where that is to wait for a while.
async fn next(store: &Store) -> Vec<Saying> {
    let later = Utc::now() + TimeDelta::hours(1);
    store.due_sayings(later, 10).await.unwrap()
}

#[tokio::test]
async fn a_message_is_taken_once_and_answered_with_its_answers_or_not_at_all() {
    let place = place();
    let (one, other) = (place.open().await, place.open().await);
    assert!(
        one.take_chat_message("m1", "s", &json!({ "text": "hello" }))
            .await
            .unwrap()
    );
    assert!(
        !other
            .take_chat_message("m1", "s", &json!({ "text": "other" }))
            .await
            .unwrap()
    );
    assert!(
        one.take_chat_message("m2", "s", &json!({ "text": "again" }))
            .await
            .unwrap()
    );
    assert_eq!(other.count_open_chat_messages("s").await.unwrap(), 2);
    let open = other.open_chat_messages(10).await.unwrap();
    let names: Vec<&str> = open.iter().map(|message| message.id.as_str()).collect();
    assert_eq!(names, ["m1", "m2"]);
    assert_eq!(open[0].document["text"], "hello");

    let answers = [saying("s", "one"), saying("s", "two")];
    let session = json!({ "near_only": true });
    // Answered twice, as after a kill in between, it is said once.
    for _ in 0..2 {
        other
            .finish_chat_message(&open[0], Some(&session), &answers)
            .await
            .unwrap();
    }
    assert_eq!(one.chat_session("s").await.unwrap(), Some(session));
    assert_eq!(one.open_chat_messages(10).await.unwrap().len(), 1);
    for text in ["one", "two"] {
        let unsaid = next(&one).await;
        assert_eq!(unsaid.len(), 1, "{unsaid:?}");
        assert_eq!(unsaid[0].document["text"], text);
        one.said(&unsaid[0], None).await.unwrap();
    }
    assert_eq!(next(&one).await, []);
    assert!(
        !one.take_chat_message("m1", "s", &json!({})).await.unwrap(),
        "it stays known"
    );
    let known = [
        one.knows_chat_message("m1").await.unwrap(),
        one.knows_chat_message("m2").await.unwrap(),
        one.knows_chat_message("m3").await.unwrap(),
    ];
    assert_eq!(known, [true, true, false]);
}

#[tokio::test]
async fn what_is_said_has_versions_and_remembers_that_it_may_have_been_said() {
    let place = place();
    let store = place.open().await;
    let first = saying("s", "progress");
    store.change_saying(&first).await.unwrap();
    store.begin_saying(first.id).await.unwrap();
    let unsaid = next(&store).await.remove(0);
    assert!(unsaid.is_begun && unsaid.wanted == 1 && unsaid.message.is_none());
    let later = Utc::now() + TimeDelta::minutes(1);
    store.say_later(first.id, Utc::now(), later, true).await.unwrap();
    let unsaid = next(&store).await.remove(0);
    assert!(unsaid.is_begun && (unsaid.not_before - later).abs() < TimeDelta::milliseconds(1));
    store.said(&unsaid, Some("ts-1")).await.unwrap();
    assert_eq!(next(&store).await, []);

    // The same text is no change; another one is the next version of what was said.
    store.change_saying(&first).await.unwrap();
    assert_eq!(next(&store).await, []);
    let second = NewSaying {
        document: json!({ "text": "more" }),
        ..first
    };
    store.change_saying(&second).await.unwrap();
    let changed = next(&store).await.remove(0);
    assert_eq!(
        (changed.wanted, changed.message.as_deref(), changed.is_begun),
        (2, Some("ts-1"), false)
    );
    // What changed while it was sent is not taken for said.
    let third = NewSaying {
        document: json!({ "text": "done" }),
        ..second
    };
    store.change_saying(&third).await.unwrap();
    store.said(&changed, None).await.unwrap();
    let last = next(&store).await.remove(0);
    assert_eq!(last.document["text"], "done");
    assert_eq!(last.message.as_deref(), Some("ts-1"));

    // What was deleted is said anew, and changed from then on.
    store.say_anew(last.id).await.unwrap();
    let anew = next(&store).await.remove(0);
    assert_eq!((anew.wanted, anew.message.as_deref(), anew.is_begun), (3, None, false));
    store.said(&anew, Some("ts-2")).await.unwrap();
    assert_eq!(next(&store).await, []);
}

#[tokio::test]
async fn what_waits_in_one_conversation_keeps_back_no_other() {
    let place = place();
    let store = place.open().await;
    let sayings = ["one", "two"].map(|text| saying("s", text));
    store.say_in_chat(&sayings).await.unwrap();
    store.say_in_chat(&[saying("t", "three")]).await.unwrap();
    let due = async || -> Vec<String> {
        let due = store.due_sayings(Utc::now(), 1).await.unwrap();
        due.iter().map(|saying| saying.document["text"].to_string()).collect()
    };
    assert_eq!(due().await, ["\"one\""]);
    let later = Utc::now() + TimeDelta::minutes(1);
    let now = Utc::now();
    store.say_later(sayings[0].id, now, later, false).await.unwrap();
    assert_eq!(
        due().await,
        ["\"three\""],
        "neither what waits nor what is behind it takes the place"
    );
    let since = next(&store).await[0].failing_since.unwrap();
    store.say_later(sayings[0].id, since, later, true).await.unwrap();
    let first = next(&store).await.remove(0);
    assert_eq!((first.failing_since, first.is_begun), (Some(since), true));
    store.said(&first, None).await.unwrap();
    assert_eq!(due().await, ["\"two\""]);
    assert_eq!(next(&store).await[0].failing_since, None);
}

#[tokio::test]
async fn the_conversation_of_a_task_is_erased_but_for_what_waits_in_it() {
    let place = place();
    let store = place.open().await;
    let task: TaskId = "github:acme/widgets#1".parse().unwrap();
    let run = RunId::new();
    for session in ["s", "t"] {
        let name = format!("m-{session}");
        store
            .take_chat_message(&name, session, &json!({ "text": "x" }))
            .await
            .unwrap();
        let message = store.open_chat_messages(10).await.unwrap().remove(0);
        let answers = [
            saying(session, &format!("said in {session}")),
            saying(session, &format!("not yet in {session}")),
        ];
        store
            .finish_chat_message(&message, Some(&json!({ "memory": "x" })), &answers)
            .await
            .unwrap();
        let unsaid = next(&store).await;
        let said = unsaid
            .iter()
            .find(|saying| saying.document["text"] == format!("said in {session}"));
        store.said(said.unwrap(), None).await.unwrap();
    }
    let watch = ChatWatch {
        task: task.clone(),
        session: "s".to_owned(),
        document: json!({ "seen": 0 }),
    };
    store.watch_in_chat(&watch).await.unwrap();
    store.unwatch_in_chat(&task).await.unwrap();
    store
        .keep_chat_answer("m-s", &json!({ "run": run }).to_string())
        .await
        .unwrap();
    let (question, at) = (Uuid::now_v7(), Utc::now());
    assert_eq!(store.shown_at(run, question).await.unwrap(), None);
    for shown in [at, at + TimeDelta::seconds(1)] {
        store.question_shown(run, question, shown).await.unwrap();
    }
    assert_eq!(
        store.shown_at(run, question).await.unwrap(),
        Some(at),
        "the first time counts"
    );
    let in_part = Uuid::now_v7();
    store.question_shown_in_part(run, in_part).await.unwrap();
    store.question_shown(run, in_part, at).await.unwrap();
    assert_eq!(store.shown_at(run, in_part).await.unwrap(), None);
    assert_eq!(
        store.asked_for_in(&task).await.unwrap().as_deref(),
        Some("s"),
        "also when it is told no more"
    );
    assert_eq!(store.count_all_open_chat_messages().await.unwrap(), 0);

    store.erase_conversation(&task, "s", &[run]).await.unwrap();
    assert_eq!(store.asked_for_in(&task).await.unwrap(), None);
    assert_eq!(store.kept_chat_answer("m-s").await.unwrap(), None);
    assert_eq!(store.shown_at(run, question).await.unwrap(), None);
    assert_eq!(store.chat_session("s").await.unwrap(), None);
    assert!(
        store.chat_session("t").await.unwrap().is_some(),
        "another conversation stays"
    );
    assert_eq!(next(&store).await.len(), 2, "what was not said yet is said");
    assert!(
        !store.take_chat_message("m-s", "s", &json!({})).await.unwrap(),
        "a repetition is told"
    );
}

#[tokio::test]
async fn tasks_are_told_in_one_conversation_and_old_things_are_forgotten() {
    let place = place();
    let store = place.open().await;
    let watch = ChatWatch {
        task: "github:acme/widgets#1".parse().unwrap(),
        session: "s".to_owned(),
        document: json!({ "seen": 0 }),
    };
    store.watch_in_chat(&watch).await.unwrap();
    let elsewhere = ChatWatch {
        session: "t".to_owned(),
        ..watch.clone()
    };
    store.watch_in_chat(&elsewhere).await.unwrap();
    store.told_in_chat(&watch.task, &json!({ "seen": 7 })).await.unwrap();
    let handed = HandedOver {
        from: "alice".to_owned(),
        pictures: Vec::new(),
    };
    assert_eq!(store.handed_over(&watch.task).await.unwrap(), HandedOver::default());
    store.hand_over(&watch.task, &handed).await.unwrap();
    assert_eq!(store.handed_over(&watch.task).await.unwrap(), handed);
    let watches = store.chat_watches(10).await.unwrap();
    assert_eq!(
        (watches.len(), watches[0].session.as_str(), &watches[0].document["seen"]),
        (1, "s", &json!(7))
    );

    store.say_in_chat(&[saying("s", "waits")]).await.unwrap();
    store
        .take_chat_message("m1", "s", &json!({ "text": "waits" }))
        .await
        .unwrap();
    store.erase_chat(Utc::now() + TimeDelta::seconds(1)).await.unwrap();
    assert_eq!(store.chat_watches(10).await.unwrap(), []);
    assert_eq!(store.handed_over(&watch.task).await.unwrap(), HandedOver::default());
    assert_eq!(next(&store).await.len(), 1, "what is not said yet is kept");
    assert_eq!(
        store.open_chat_messages(10).await.unwrap().len(),
        1,
        "so is what is not answered"
    );
}
