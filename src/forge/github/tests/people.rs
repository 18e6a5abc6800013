//! Who may write, and the bot's reactions.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::{config, github, refused, repository, task, unknown};
use crate::forge::github;
use crate::forge::item::account::Account;
use crate::forge::test_server::{Reply, Server, named};
use crate::forge::{Diagnostics, ForgeError, Permissions, Reaction, TaskSource};

const COMMENT: &str = "/api/v3/repos/o/r/issues/comments/12";

#[tokio::test]
async fn whoever_has_the_role_write_or_more_may_write() {
    let server = Server::start(|asked| {
        let name = asked.uri.path().rsplit('/').nth(1).unwrap().to_owned();
        match (asked.uri.path(), name.as_str()) {
            ("/api/v3/repos/o/r", _) => Reply::json(200, &repository(1)),
            (path, "nobody") if path.ends_with("/collaborators/nobody/permission") => {
                refused(404, "nobody is not a user")
            }
            (path, _) if path.starts_with("/api/v3/repos/o/r/collaborators/") && path.ends_with("/permission") => {
                Reply::json(
                    200,
                    &json!({"permission": name, "role_name": name, "user": {"login": name}}),
                )
            }
            _ => unknown(asked),
        }
    })
    .await;
    let github = github(&server).await;
    for (user, wanted) in [
        ("admin", true),
        ("maintain", true),
        ("write", true),
        ("triage", false),
        ("read", false),
        ("none", false),
        ("nobody", false),
        ("", false),
    ] {
        assert_eq!(
            github.is_authorised(&task(), named(user)).await.unwrap(),
            wanted,
            "{user}"
        );
    }
}

#[tokio::test]
async fn whoever_took_over_a_name_has_not_the_rights_of_its_new_owner() {
    let server = Server::start(|_| {
        let user = json!({"login": "ann", "id": 7});
        Reply::json(200, &json!({"permission": "write", "user": user}))
    })
    .await;
    let github = github(&server).await;
    for (id, wanted) in [(Some(7), true), (Some(8), false), (None, true)] {
        let who = Account { login: "ann", id };
        assert_eq!(github.is_authorised(&task(), who).await.unwrap(), wanted, "{id:?}");
    }
}

#[tokio::test]
async fn a_name_does_not_lead_to_another_path() {
    let server = Server::start(|asked| {
        assert_eq!(
            asked.line(),
            "GET /api/v3/repos/o/r/collaborators/..%2Fann%3Fx%5Bbot%5D/permission"
        );
        Reply::json(200, &json!({"permission": "none"}))
    })
    .await;
    assert!(
        !github(&server)
            .await
            .is_authorised(&task(), named("../ann?x[bot]"))
            .await
            .unwrap()
    );
}

#[tokio::test]
async fn who_may_not_ask_for_roles_is_told_which_right_is_missing() {
    let server = Server::start(|_| refused(403, "Must have push access to view collaborator permission.")).await;
    let error = github(&server)
        .await
        .is_authorised(&task(), named("ann"))
        .await
        .unwrap_err();
    insta::assert_snapshot!(error, @r#"asking whether ann may write to o/r: GitHub answered 403; it says "Must have push access to view collaborator permission.": give the token's account the role Write in o/r: GitHub tells nobody else who may write; a fine-grained token or an App needs the repository permission 'Metadata' (Read-only), a classic token the scope 'repo'"#);
    let hidden = Server::start(|_| refused(404, "Not Found")).await;
    let error = github(&hidden)
        .await
        .is_authorised(&task(), named("ann"))
        .await
        .unwrap_err();
    assert!(matches!(error, ForgeError::Refused { status: 404, .. }), "{error}");
}

#[tokio::test]
async fn a_reaction_goes_below_the_comment_that_it_is_for() {
    let server = Server::start(|asked| {
        let content = asked.json()["content"].as_str().unwrap().to_owned();
        match (asked.line().as_str(), content.as_str()) {
            ("POST /api/v3/repos/o/r/issues/comments/12/reactions", "eyes") => Reply::json(201, &json!({"id": 1})),
            ("POST /api/v3/repos/o/r/issues/comments/12/reactions", "+1") => Reply::json(200, &json!({"id": 2})),
            ("POST /api/v3/repos/o/r/pulls/comments/12/reactions", "confused") => Reply::json(201, &json!({"id": 3})),
            _ => unknown(asked),
        }
    })
    .await;
    let github = github(&server).await;
    for (comment, reaction) in [
        ("comment-12", Reaction::Seen),
        ("comment-12", Reaction::Done),
        ("inline-12", Reaction::Refused),
        ("review-12", Reaction::Seen),
    ] {
        github.react(&task(), comment.parse().unwrap(), reaction).await.unwrap();
    }
    assert_eq!(github.traffic().requests, 3);
}

#[tokio::test]
async fn a_comment_that_is_gone_needs_no_reaction_and_one_that_is_there_needs_the_right() {
    for is_gone in [true, false] {
        let server = Server::start(move |asked| match (asked.method.as_str(), asked.uri.path()) {
            ("GET", COMMENT) if !is_gone => Reply::json(200, &super::comment(12, "ann", "/agent stop")),
            _ => refused(404, "Not Found"),
        })
        .await;
        let key = "comment-12".parse().unwrap();
        let reacted = github(&server).await.react(&task(), key, Reaction::Done).await;
        let told = reacted.map_err(|error| error.to_string());
        if is_gone {
            assert_eq!(told, Ok(()));
        } else {
            insta::assert_snapshot!(told.unwrap_err(), @r##"reacting to comment-12 on o/r#1: GitHub answered 404; it says "Not Found": see that o/r exists and give the token access to it: a fine-grained token or an App needs the repository permission 'Issues' (Read and write), a classic token the scope 'repo'"##);
        }
    }
}

#[tokio::test]
async fn the_bot_tells_its_name() {
    let server = Server::start(|asked| match asked.line().as_str() {
        "GET /api/v3/user" => Reply::json(200, &json!({"login": "helper"})),
        _ => unknown(asked),
    })
    .await;
    let mut config = config(&server);
    config.bot_name = String::new();
    let github = github::connect(&config).await.unwrap();
    for _ in 0..2 {
        assert_eq!(github.bot_name().await.unwrap(), "helper");
    }
    assert_eq!(github.traffic().requests, 1);
}

#[tokio::test]
async fn an_account_without_the_right_to_push_is_told_the_right_until_it_has_it() {
    let asked_before = AtomicUsize::new(0);
    let server = Server::start(move |_| {
        let mut found = repository(1);
        found["permissions"]["push"] = (asked_before.fetch_add(1, Ordering::Relaxed) > 1).into();
        Reply::json(200, &found)
    })
    .await;
    let github = github(&server).await;

    let missing = github.missing_push_right(&task()).await.unwrap();
    assert_eq!(
        missing.as_deref(),
        Some(
            "give the token's account the role Write in o/r, and a fine-grained token the repository permission 'Contents' \
             (Read and write)"
        )
    );
    assert_eq!(github.missing_push_right(&task()).await.unwrap(), None);
    assert_eq!(github.traffic().requests, 3);
    assert_eq!(github.missing_push_right(&task()).await.unwrap(), None);
    assert_eq!(github.traffic().requests, 3, "it is remembered");
}
