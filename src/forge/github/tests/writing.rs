//! Comments, labels and pull requests: each written once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{comment, github, pull, refused, repository, task, unknown};
use crate::forge::github::GitHub;
use crate::forge::test_server::{Reply, Server};
use crate::forge::{CodeHost, CommentId, Diagnostics, ForgeError, NewChange, Post, TaskSource};
use crate::secret::Redactor;

async fn post(github: &GitHub, body: &str, search_first: bool) -> Result<CommentId, ForgeError> {
    let body = Redactor::default().clean(body);
    let post = Post {
        marker: "run:final",
        body: &body,
        search_first,
    };
    github.comment(&task(), &post).await
}

fn new_change(is_draft: bool) -> NewChange {
    NewChange {
        title: Redactor::default().clean("Greet"),
        body: Redactor::default().clean("Closes #1"),
        head: "coding-agent/1-greet".to_owned(),
        base: "main".to_owned(),
        is_draft,
    }
}

#[tokio::test]
async fn a_comment_whose_answer_was_lost_is_found_instead_of_written_twice() {
    let written: Arc<Mutex<Vec<Value>>> = Arc::default();
    let store = Arc::clone(&written);
    let server = Server::start(move |asked| match asked.line().as_str() {
        "POST /api/v3/repos/o/r/issues/1/comments" => {
            let mut store = store.lock().unwrap();
            let body = asked.json()["body"].as_str().unwrap().to_owned();
            store.push(comment(9, "bot", &body));
            refused(502, "Bad gateway")
        }
        "GET /api/v3/repos/o/r/issues/1/comments" => {
            let mut all = vec![comment(1, "eve", "<!-- coding-agent:run:final -->")];
            all.extend(store.lock().unwrap().clone());
            Reply::json(200, &all.into())
        }
        _ => unknown(asked),
    })
    .await;
    let github = github(&server).await;
    assert_eq!(post(&github, "Done.", false).await.unwrap(), CommentId(9));
    assert_eq!(post(&github, "Done.", true).await.unwrap(), CommentId(9));
    assert_eq!(
        written.lock().unwrap()[0]["body"],
        "Done.\n\n<!-- coding-agent:run:final -->"
    );
    assert_eq!(server.count("POST /api/v3/repos/o/r/issues/1/comments"), 1);
}

#[tokio::test]
async fn a_pause_that_github_asks_for_holds_for_whoever_comments() {
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |received| match received.line().as_str() {
        "POST /api/v3/repos/o/r/issues/1/comments" if asked.fetch_add(1, Ordering::Relaxed) == 0 => {
            refused(403, "You have exceeded a secondary rate limit.").with("retry-after", "3")
        }
        "POST /api/v3/repos/o/r/issues/1/comments" => Reply::json(201, &json!({"id": 3})),
        _ => unknown(received),
    })
    .await;
    let github = github(&server).await;
    // Whoever was refused has given up, and the next one does not ask before the time.
    let begun = Instant::now();
    let first = tokio::time::timeout(Duration::from_secs(1), post(&github, "Done.", false)).await;
    assert!(first.is_err(), "{first:?}");
    assert_eq!(post(&github, "Done.", false).await.unwrap(), CommentId(3));
    assert!(begun.elapsed() >= Duration::from_secs(3), "{:?}", begun.elapsed());
    assert_eq!(server.count("POST /api/v3/repos/o/r/issues/1/comments"), 2);
}

#[tokio::test]
async fn a_comment_too_long_for_github_is_cut() {
    let server = Server::start(|asked| {
        let body = asked.json()["body"].as_str().unwrap().to_owned();
        if body.chars().count() > 65_536 {
            return refused(422, "Body is too long (maximum is 65536 characters)");
        }
        assert!(body.ends_with("<!-- coding-agent:run:final -->"));
        Reply::json(201, &json!({"id": 3}))
    })
    .await;
    assert_eq!(
        post(&github(&server).await, &"long ".repeat(100_000), false)
            .await
            .unwrap(),
        CommentId(3)
    );
}

#[tokio::test]
async fn a_comment_that_someone_deleted_cannot_be_edited() {
    let server = Server::start(|_| refused(404, "Not Found")).await;
    let body = Redactor::default().clean("x");
    let post = Post {
        marker: "m",
        body: &body,
        search_first: false,
    };
    let edited = github(&server).await.edit_comment(&task(), CommentId(4), &post).await;
    assert!(matches!(edited, Err(ForgeError::Gone { .. })));
}

#[tokio::test]
async fn a_missing_label_is_made_with_its_colour_once() {
    let server = Server::start(|asked| match asked.line().as_str() {
        "GET /api/v3/repos/o/r/labels" => Reply::json(200, &json!([{"name": "Coding Agent"}])),
        "POST /api/v3/repos/o/r/labels" => {
            assert_eq!(asked.json()["color"], "fbca04");
            Reply::json(
                422,
                &json!({"message": "Validation Failed", "errors": [{"code": "already_exists"}]}),
            )
        }
        "POST /api/v3/repos/o/r/issues/1/labels" => Reply::json(200, &json!([])),
        _ => unknown(asked),
    })
    .await;
    let github = github(&server).await;
    for label in ["coding agent processing", "coding agent", "coding agent processing"] {
        github.add_label(&task(), label).await.unwrap();
    }
    assert_eq!(github.traffic().requests, 5);
}

#[tokio::test]
async fn a_label_that_is_not_there_is_taken_off_without_error() {
    let server = Server::start(|asked| {
        assert_eq!(asked.line(), "DELETE /api/v3/repos/o/r/issues/1/labels/coding%20agent");
        refused(404, "Label does not exist")
    })
    .await;
    github(&server)
        .await
        .remove_label(&task(), "coding agent")
        .await
        .unwrap();
}

#[tokio::test]
async fn a_pull_request_that_exists_is_returned_and_not_opened_again() {
    let looked = AtomicUsize::new(0);
    let server = Server::start(move |asked| match asked.line().as_str() {
        "GET /api/v3/repos/o/r" => Reply::json(200, &repository(1)),
        // The list runs behind, as a replica may.
        "GET /api/v3/repos/o/r/pulls" => {
            assert_eq!(asked.field("head").as_deref(), Some("o:coding-agent/1-greet"));
            match looked.fetch_add(1, Ordering::Relaxed) {
                0 => Reply::json(200, &json!([pull(4, "other")])),
                _ => Reply::json(200, &json!([pull(4, "other"), pull(5, "coding-agent/1-greet")])),
            }
        }
        "POST /api/v3/repos/o/r/pulls" => Reply::json(
            422,
            &json!({"message": "Validation Failed", "errors": [
                {"message": "A pull request already exists for o:coding-agent/1-greet."}]}),
        ),
        _ => unknown(asked),
    })
    .await;
    let github = github(&server).await;
    let change = github.open_change(&task(), &new_change(false)).await.unwrap().change;
    assert_eq!(change.number, 5);
    assert_eq!(
        github.change_from(&task(), "coding-agent/1-greet").await.unwrap(),
        Some(change)
    );
}

#[tokio::test]
async fn a_pull_request_is_found_under_the_name_that_the_owner_has_now() {
    let looked = AtomicUsize::new(0);
    let server = Server::start(move |asked| match asked.line().as_str() {
        // The owner is renamed after the first look.
        "GET /api/v3/repos/o/r" => {
            let mut told = repository(1);
            if looked.fetch_add(1, Ordering::Relaxed) > 0 {
                told["full_name"] = json!("new/r");
            }
            Reply::json(200, &told)
        }
        "GET /api/v3/repos/o/r/pulls" => match asked.field("head").as_deref() {
            Some("new:coding-agent/1-greet") => Reply::json(200, &json!([pull(5, "coding-agent/1-greet")])),
            _ => Reply::json(200, &json!([])),
        },
        "POST /api/v3/repos/o/r/pulls" => Reply::json(
            422,
            &json!({"message": "Validation Failed", "errors": [
                {"message": "A pull request already exists for new:coding-agent/1-greet."}]}),
        ),
        _ => unknown(asked),
    })
    .await;
    let change = github(&server)
        .await
        .open_change(&task(), &new_change(false))
        .await
        .unwrap()
        .change;
    assert_eq!(change.number, 5);
}

#[tokio::test]
async fn a_draft_that_the_repository_does_not_support_says_so_in_its_title() {
    let server = Server::start(|asked| match asked.line().as_str() {
        "GET /api/v3/repos/o/r" => Reply::json(200, &repository(1)),
        "GET /api/v3/repos/o/r/pulls" => Reply::json(200, &json!([])),
        _ if asked.json()["draft"] == true => refused(422, "Draft pull requests are not supported in this repository."),
        _ => {
            assert_eq!(asked.json()["title"], "[Draft] Greet");
            Reply::json(201, &pull(6, "coding-agent/1-greet"))
        }
    })
    .await;
    let change = github(&server)
        .await
        .open_change(&task(), &new_change(true))
        .await
        .unwrap()
        .change;
    assert_eq!(change.number, 6);
}
