//! Items and their comments, and the answers that are none.

use serde_json::{Value, json};

use super::{TOKEN, comment, config, github, issue, pull, refused, repository, task, unknown};
use crate::forge::github;
use crate::forge::test_server::{Reply, Server};
use crate::forge::{Comment, Diagnostics, Discretion, ForgeError, Item, PushRight, TaskSource};

#[tokio::test]
async fn an_item_is_read_anew_and_its_repository_once() {
    let server = Server::start(|asked| match asked.line().as_str() {
        "GET /api/v3/repos/o/r/issues/1" => Reply::json(200, &issue(1)),
        "GET /api/v3/repos/o/r" => Reply::json(200, &repository(1)),
        _ => unknown(asked),
    })
    .await;
    let github = github(&server).await;
    let item = github.item(&task()).await.unwrap();
    assert_eq!(github.item(&task()).await.unwrap(), item);
    let wanted = Item {
        task: task(),
        title: "Greet".to_owned(),
        body: String::new(),
        author: "ann".to_owned(),
        author_id: None,
        labels: vec!["coding agent".to_owned()],
        assignees: vec!["bot".to_owned()],
        is_open: true,
        is_merged: false,
        created_at: "2026-01-01T00:00:00Z".parse().unwrap(),
        updated_at: "2026-01-03T00:00:00Z".parse().unwrap(),
        url: "https://github.com/o/r/issues/1".to_owned(),
        clone_url: "https://github.com/o/r.git".to_owned(),
        default_branch: Some("main".to_owned()),
        change: None,
        discretion: Discretion::NotNeeded,
        is_public: true,
    };
    assert_eq!(item, wanted);
    assert_eq!(
        (github.traffic().requests, server.count("GET /api/v3/repos/o/r")),
        (3, 1)
    );
    let header = server.asked()[0].headers["authorization"].clone();
    assert_eq!(header, format!("Bearer {TOKEN}"));
}

#[tokio::test]
async fn a_repository_without_commits_has_no_default_branch() {
    let server = Server::start(|asked| match asked.line().as_str() {
        "GET /api/v3/repos/o/r/issues/1" => Reply::json(200, &issue(1)),
        "GET /api/v3/repos/o/r" => Reply::json(200, &repository(0)),
        "GET /api/v3/repos/o/r/branches/main" => refused(404, "Branch not found"),
        _ => unknown(asked),
    })
    .await;
    assert_eq!(github(&server).await.item(&task()).await.unwrap().default_branch, None);
}

#[tokio::test]
async fn the_head_of_a_pull_request_tells_whether_it_may_be_pushed_to() {
    let fork = json!({"full_name": "ann/r", "clone_url": "https://github.com/ann/r.git", "default_branch": "main"});
    let heads = [(repository(1), true), (fork, true), (Value::Null, true)];
    let mut seen = Vec::new();
    for (repo, may_modify) in heads {
        let server = Server::start(move |asked| match asked.line().as_str() {
            "GET /api/v3/repos/o/r/issues/1" => {
                let mut issue = issue(1);
                issue["pull_request"] = json!({});
                Reply::json(200, &issue)
            }
            "GET /api/v3/repos/o/r/pulls/1" => {
                let mut pull = pull(1, "fix");
                pull["head"]["repo"] = repo.clone();
                pull["maintainer_can_modify"] = may_modify.into();
                Reply::json(200, &pull)
            }
            _ => unknown(asked),
        })
        .await;
        let change = github(&server).await.item(&task()).await.unwrap().change.unwrap();
        seen.push((change.head_clone_url, change.is_fork, change.push == PushRight::Given));
    }
    let wanted = [
        ("https://github.com/o/r.git", false, true),
        ("https://github.com/ann/r.git", true, true),
        ("https://github.com/o/r.git", true, false),
    ]
    .map(|(url, is_fork, may_push)| (url.to_owned(), is_fork, may_push));
    assert_eq!(seen, wanted);
}

#[tokio::test]
async fn a_deleted_issue_is_gone_and_a_hidden_repository_is_refused() {
    let server = Server::start(|asked| match asked.line().as_str() {
        "GET /api/v3/repos/o/r" => Reply::json(200, &repository(1)),
        _ => refused(404, "Not Found"),
    })
    .await;
    let github = github(&server).await;
    assert!(matches!(github.item(&task()).await, Err(ForgeError::Gone { .. })));
    let hidden = github.item(&"github:o/hidden#1".parse().unwrap()).await.unwrap_err();
    assert_eq!(
        hidden.to_string(),
        "reading o/hidden#1: GitHub answered 404; it says \"Not Found\": see that o/hidden exists and give the token \
         access to it: a fine-grained token or an App needs the repository permission 'Issues' (Read-only), a classic \
         token the scope 'repo'"
    );
}

#[tokio::test]
async fn a_transferred_issue_is_gone() {
    let server = Server::start(|asked| match asked.line().as_str() {
        "GET /api/v3/repos/o/r/issues/1" => Reply::empty(301).with("location", "/api/v3/repositories/7/issues/4"),
        "GET /api/v3/repositories/7/issues/4" => Reply::json(200, &issue(4)),
        _ => unknown(asked),
    })
    .await;
    assert!(matches!(
        github(&server).await.item(&task()).await,
        Err(ForgeError::Gone { .. })
    ));
}

#[tokio::test]
async fn a_token_that_nobody_knows_is_to_be_renewed_and_never_shown() {
    let server = Server::start(|_| refused(401, "Bad credentials")).await;
    let error = github(&server).await.item(&task()).await.unwrap_err();
    assert!(error.to_string().contains("set github.token"), "{error}");
    assert!(!format!("{error:?}").contains(TOKEN));
}

#[tokio::test]
async fn all_comments_come_in_order_without_the_bots_own() {
    let server = Server::start(|asked| {
        let page: u64 = asked.field("page").map_or(1, |page| page.parse().unwrap());
        match asked.line().as_str() {
            "GET /api/v3/repos/o/r/issues/1" => {
                let mut issue = issue(1);
                issue["pull_request"] = json!({});
                Reply::json(200, &issue)
            }
            "GET /api/v3/repos/o/r/issues/1/comments" => {
                let ids = (page - 1) * 100..page * 100;
                let author = |id| if id % 100 == 7 { "BOT" } else { "ann" };
                let comments: Vec<Value> = ids.map(|id| comment(id, author(id), &format!("c{id}"))).collect();
                let told = Reply::json(200, &comments.into());
                let next = format!(
                    "<http://elsewhere/api/v3/repos/o/r/issues/1/comments?page={}>; rel=\"next\"",
                    page + 1
                );
                if page < 3 { told.with("link", next) } else { told }
            }
            "GET /api/v3/repos/o/r/pulls/1/comments" => {
                let mut on_line = comment(3, "bea", "here");
                on_line["path"] = "a.rs".into();
                on_line["line"] = 5.into();
                on_line["updated_at"] = "2026-01-09T00:00:00Z".into();
                Reply::json(200, &json!([on_line]))
            }
            "GET /api/v3/repos/o/r/pulls/1/reviews" => Reply::json(
                200,
                &json!([
                    {"id": 1, "user": {"login": "bea"}, "body": "", "submitted_at": "2026-01-01T00:00:00Z"},
                    {"id": 2, "user": null, "body": "good", "submitted_at": "2026-01-02T00:00:00Z"},
                    {"id": 3, "user": {"login": "bea"}, "body": "in the making"},
                ]),
            ),
            _ => unknown(asked),
        }
    })
    .await;
    let comments = github(&server).await.comments(&task()).await.unwrap();
    assert_eq!(comments.len(), 297 + 1 + 1);
    let bodies: Vec<&str> = comments[2..6].iter().map(|comment| comment.body.as_str()).collect();
    assert_eq!(bodies, ["c2", "c3", "here", "c4"]);
    let place = crate::forge::Place {
        path: "a.rs".to_owned(),
        line: Some(5),
    };
    let on_line = Comment {
        key: "inline-3".parse().unwrap(),
        author: "bea".to_owned(),
        author_id: None,
        body: "here".to_owned(),
        created_at: "2026-01-01T00:03:00Z".parse().unwrap(),
        updated_at: "2026-01-09T00:00:00Z".parse().unwrap(),
        place: Some(place),
        thread: None,
        is_approval: false,
        is_bot: false,
    };
    assert_eq!(comments[4], on_line);
    let review = Comment {
        key: "review-2".parse().unwrap(),
        author: String::new(),
        author_id: None,
        body: "good".to_owned(),
        created_at: "2026-01-02T00:00:00Z".parse().unwrap(),
        updated_at: "2026-01-02T00:00:00Z".parse().unwrap(),
        place: None,
        thread: None,
        is_approval: false,
        is_bot: false,
    };
    assert_eq!(comments.last(), Some(&review));
}

#[tokio::test]
async fn comments_that_nobody_changed_are_only_confirmed() {
    let server = Server::start(|asked| match asked.line().as_str() {
        "GET /api/v3/repos/o/r/issues/1" => Reply::json(200, &issue(1)),
        "GET /api/v3/repos/o/r/issues/1/comments" if asked.headers.contains_key("if-none-match") => Reply::empty(304),
        "GET /api/v3/repos/o/r/issues/1/comments" => {
            Reply::json(200, &json!([comment(1, "ann", "c1")])).with("etag", "W/\"1\"")
        }
        _ => unknown(asked),
    })
    .await;
    let github = github(&server).await;
    let first = github.comments(&task()).await.unwrap();
    assert_eq!(github.comments(&task()).await.unwrap(), first);
    assert_eq!((first.len(), github.traffic().requests), (1, 3));
}

#[tokio::test]
async fn a_limit_that_lasts_is_reported_with_its_end() {
    let reset = chrono::Utc::now().timestamp() + 1800;
    let server = Server::start(move |_| {
        refused(403, "API rate limit exceeded")
            .with("x-ratelimit-remaining", "0")
            .with("x-ratelimit-reset", reset.to_string())
    })
    .await;
    let error = github(&server).await.item(&task()).await.unwrap_err();
    let ForgeError::RateLimited { until, .. } = error else {
        panic!("{error}")
    };
    assert!((until.timestamp() - reset).abs() <= 2);
}

#[tokio::test]
async fn a_connection_that_is_refused_is_the_forges_absence() {
    let server = Server::start(unknown).await;
    let mut config = config(&server);
    // A port that no server of a test is ever given.
    config.api_url = "http://127.0.0.1:1".to_owned();
    let github = github::connect(&config).await.unwrap();
    let error = github.item(&task()).await.unwrap_err();
    assert!(
        matches!(&error, ForgeError::Unavailable { reason, .. } if reason.contains("refused")),
        "{error}"
    );
    assert_eq!(github.traffic().requests, 4);
}

#[tokio::test]
async fn a_limit_of_the_graphql_api_has_the_status_of_an_answer() {
    let server = Server::start(|asked| match asked.line().as_str() {
        "GET /api/v3/repos/o/r/issues/1/events" => Reply::json(200, &json!([])),
        "POST /api/graphql" => {
            let limit = json!({"errors": [{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}]});
            Reply::json(200, &limit)
        }
        "GET /api/v3/repos/o/r/issues/1" => Reply::json(200, &issue(1)),
        "GET /api/v3/repos/o/r" => Reply::json(200, &repository(1)),
        _ => unknown(asked),
    })
    .await;
    let github = github(&server).await;
    let item = github.item(&task()).await.unwrap();
    let edits = github.edits_since(&item, item.updated_at).await;
    assert!(matches!(edits, Err(ForgeError::RateLimited { .. })), "{edits:?}");
}

#[tokio::test]
async fn a_fault_of_the_graphql_api_is_told_from_a_question_that_it_does_not_understand() {
    let wrong = "Something went wrong while executing your query.";
    let unknown_field = "Field 'editor' doesn't exist on type 'Issue'";
    let told = [
        (json!({"data": null, "errors": [{"message": wrong}]}), true),
        (
            json!({"data": {"repository": null}, "errors": [{"type": "SERVICE_UNAVAILABLE", "message": wrong}]}),
            true,
        ),
        (
            json!({"errors": [{"message": unknown_field, "extensions": {"code": "undefinedField"}}]}),
            false,
        ),
        (
            json!({"data": {"repository": null}, "errors": [{"type": "NOT_FOUND", "message": "Could not resolve"}]}),
            false,
        ),
    ];
    for (answer, passes) in told {
        let said = answer.clone();
        let server = Server::start(move |asked| match asked.line().as_str() {
            "GET /api/v3/repos/o/r/issues/1/events" => Reply::json(200, &json!([])),
            "POST /api/graphql" => Reply::json(200, &said),
            "GET /api/v3/repos/o/r/issues/1" => Reply::json(200, &issue(1)),
            "GET /api/v3/repos/o/r" => Reply::json(200, &repository(1)),
            _ => unknown(asked),
        })
        .await;
        let github = github(&server).await;
        let item = github.item(&task()).await.unwrap();
        let error = github.edits_since(&item, item.updated_at).await.unwrap_err();
        assert_eq!(
            matches!(error, ForgeError::Unavailable { .. }),
            passes,
            "{answer}: {error}"
        );
        let times = if passes { 4 } else { 1 };
        assert_eq!(server.count("POST /api/graphql"), times, "{answer}");
    }
}

#[tokio::test]
async fn a_server_that_has_rest_alone_tells_of_no_edit() {
    for status in [404, 405, 501] {
        let server = Server::start(move |asked| match asked.line().as_str() {
            "GET /api/v3/repos/o/r/issues/1/events" => Reply::json(200, &json!([])),
            "POST /api/graphql" => Reply::empty(status),
            "GET /api/v3/repos/o/r/issues/1" => Reply::json(200, &issue(1)),
            "GET /api/v3/repos/o/r" => Reply::json(200, &repository(1)),
            _ => unknown(asked),
        })
        .await;
        let github = github(&server).await;
        let item = github.item(&task()).await.unwrap();
        let edits = github.edits_since(&item, item.updated_at).await.unwrap();
        assert!(edits.is_empty(), "{status}: {edits:?}");
        assert_eq!(server.count("POST /api/graphql"), 1, "{status}");
    }
}
