//! Notes, labels and merge requests: each written once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use secrecy::ExposeSecret;
use serde_json::{Value, json};

use super::{TOKEN, gitlab, issue, item, merge_request, note, refused, short, unknown};
use crate::forge::gitlab::GitLab;
use crate::forge::test_server::{Reply, Server};
use crate::forge::{CodeHost, CommentId, ForgeError, NewChange, Post, TaskSource};
use crate::secret::Redactor;

async fn post(gitlab: &GitLab, body: &str) -> Result<CommentId, ForgeError> {
    let body = Redactor::default().clean(body);
    let post = Post {
        marker: "run:final",
        body: &body,
        search_first: false,
    };
    gitlab.comment(&issue(), &post).await
}

fn new_change() -> NewChange {
    NewChange {
        title: Redactor::default().clean("Greet"),
        body: Redactor::default().clean("Closes #1"),
        head: "fix".to_owned(),
        base: "main".to_owned(),
        is_draft: true,
    }
}

#[tokio::test]
async fn a_note_whose_answer_was_lost_is_found_instead_of_written_twice() {
    let written: Arc<Mutex<Vec<Value>>> = Arc::default();
    let store = Arc::clone(&written);
    let server = Server::start(move |asked| match short(asked).as_str() {
        "POST /issues/1/notes" => {
            store
                .lock()
                .unwrap()
                .push(note(9, "bot", &asked.field("body").unwrap()));
            refused(500, "oops")
        }
        "GET /issues/1/notes" => Reply::json(200, &store.lock().unwrap().clone().into()),
        _ => unknown(asked),
    })
    .await;
    let gitlab = gitlab(&server).await;
    assert_eq!(post(&gitlab, "Done.\n/close").await.unwrap(), CommentId(9));
    assert_eq!(written.lock().unwrap().len(), 1);
    assert_eq!(
        written.lock().unwrap()[0]["body"],
        "Done.\n\\/close\n\n<!-- coding-agent:run:final -->"
    );
}

#[tokio::test]
async fn a_write_that_a_limit_stopped_is_made_after_the_wait() {
    let tried = AtomicUsize::new(0);
    let server = Server::start(move |_| match tried.fetch_add(1, Ordering::Relaxed) {
        0 => refused(429, "Retry later").with("retry-after", "1"),
        _ => Reply::json(201, &note(3, "bot", "")),
    })
    .await;
    assert_eq!(post(&gitlab(&server).await, "x").await.unwrap(), CommentId(3));
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn single_labels_are_put_on_and_taken_off() {
    let server = Server::start(|asked| match short(asked).as_str() {
        "GET /labels" => Reply::json(200, &json!([{"id": 1, "name": "coding agent"}])),
        "POST /labels" => {
            assert_eq!(asked.field("color").as_deref(), Some("#0e8a16"));
            refused(409, "Label already exists")
        }
        "PUT /merge_requests/2" => Reply::json(200, &item(2, '!')),
        _ => unknown(asked),
    })
    .await;
    let gitlab = gitlab(&server).await;
    gitlab.add_label(&merge_request(), "coding agent done").await.unwrap();
    gitlab.remove_label(&merge_request(), "coding agent").await.unwrap();
    let edits: Vec<String> = server
        .asked()
        .into_iter()
        .map(|asked| asked.body)
        .filter(|body| body.contains("_labels"))
        .collect();
    assert_eq!(edits, ["add_labels=coding+agent+done", "remove_labels=coding+agent"]);
}

#[tokio::test]
async fn a_merge_request_that_exists_is_returned_and_not_opened_again() {
    let looked = AtomicUsize::new(0);
    let server = Server::start(move |asked| match short(asked).as_str() {
        "GET /merge_requests" => {
            assert_eq!(asked.field("source_branch").as_deref(), Some("fix"));
            let mut foreign = item(7, '!');
            foreign["source_project_id"] = 6.into();
            match looked.fetch_add(1, Ordering::Relaxed) {
                0 => Reply::json(200, &json!([foreign])),
                _ => Reply::json(200, &json!([foreign, item(8, '!')])),
            }
        }
        "POST /merge_requests" => {
            assert_eq!(asked.field("title").as_deref(), Some("Draft: Greet"));
            let message = ["Another open merge request already exists for this source branch: !8"];
            Reply::json(409, &json!({"message": message}))
        }
        _ => unknown(asked),
    })
    .await;
    let gitlab = gitlab(&server).await;
    let change = gitlab.open_change(&issue(), &new_change()).await.unwrap().change;
    assert_eq!(change.number, 8);
    assert_eq!(gitlab.change_from(&issue(), "fix").await.unwrap(), Some(change));
}

#[tokio::test]
async fn git_gets_the_token_as_a_password() {
    let server = Server::start(unknown).await;
    let credentials = gitlab(&server).await.git_credentials(&issue()).await.unwrap();
    assert_eq!(
        (credentials.username.as_str(), credentials.password.expose_secret()),
        ("oauth2", TOKEN)
    );
    assert!(!format!("{credentials:?}").contains(TOKEN));
}
