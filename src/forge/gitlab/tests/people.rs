//! Who may write, and the bot's reactions.

use serde_json::{Value, json};

use super::{gitlab, issue, merge_request, note, project, refused, short, unknown};
use crate::forge::item::account::Account;
use crate::forge::test_server::{Reply, Server, named};
use crate::forge::{Diagnostics, ForgeError, Permissions, Reaction, TaskSource};

#[tokio::test]
async fn a_developer_may_write_wherever_the_membership_comes_from() {
    let server = Server::start(|asked| {
        assert_eq!(short(asked), "GET /members/all");
        let member = |username: &str, access_level: u64| {
            json!({"id": 1, "username": username, "access_level": access_level, "state": "active"})
        };
        let mut blocked = member("blocked", 40);
        blocked["state"] = "blocked".into();
        let mut awaiting = member("awaiting", 40);
        awaiting["membership_state"] = "awaiting".into();
        let all = [
            member("Dora", 30),
            member("reporter", 20),
            member("guest", 10),
            member("owner", 50),
            member("guest2", 50),
            blocked,
            awaiting,
        ];
        let query = asked.field("query").unwrap();
        let found: Vec<_> = all
            .into_iter()
            .filter(|member| member["username"].as_str().unwrap().to_lowercase().contains(&query))
            .collect();
        Reply::json(200, &found.into())
    })
    .await;
    let gitlab = gitlab(&server).await;
    for (user, wanted) in [
        ("dora", true),
        ("owner", true),
        ("reporter", false),
        ("guest", false),
        ("blocked", false),
        ("awaiting", false),
        ("nobody", false),
        ("", false),
    ] {
        assert_eq!(
            gitlab.is_authorised(&issue(), named(user)).await.unwrap(),
            wanted,
            "{user}"
        );
    }
    assert_eq!(gitlab.traffic().requests, 7);
    let another = Account {
        login: "dora",
        id: Some(2),
    };
    assert!(!gitlab.is_authorised(&issue(), another).await.unwrap());
}

#[tokio::test]
async fn who_may_not_see_the_members_is_told_so() {
    let server = Server::start(|_| refused(404, "404 Project Not Found")).await;
    let error = gitlab(&server)
        .await
        .is_authorised(&issue(), named("dora"))
        .await
        .unwrap_err();
    insta::assert_snapshot!(error, @r#"asking whether dora may write to g/s/p: GitLab answered 404; it says "404 Project Not Found": see that g/s/p exists, that the token has the scope 'api', and that its user has at least the role Reporter there (Developer for all that the program does)"#);
}

#[tokio::test]
async fn a_reaction_is_an_award_below_the_note_and_given_once() {
    let server = Server::start(|asked| match (short(asked).as_str(), asked.field("name").as_deref()) {
        ("POST /issues/1/notes/12/award_emoji", Some("eyes")) => Reply::json(201, &json!({"id": 1})),
        ("POST /issues/1/notes/12/award_emoji", Some("thumbsup")) => {
            refused(404, "404 Award Emoji Name has already been taken Not Found")
        }
        ("POST /merge_requests/2/notes/12/award_emoji", Some("confused")) => Reply::json(201, &json!({"id": 3})),
        _ => unknown(asked),
    })
    .await;
    let gitlab = gitlab(&server).await;
    for (task, comment, reaction) in [
        (issue(), "comment-12", Reaction::Seen),
        (issue(), "comment-12", Reaction::Done),
        (merge_request(), "inline-12", Reaction::Refused),
        (merge_request(), "review-12", Reaction::Seen),
    ] {
        gitlab.react(&task, comment.parse().unwrap(), reaction).await.unwrap();
    }
    assert_eq!(gitlab.traffic().requests, 3);
}

#[tokio::test]
async fn an_award_whose_answer_was_lost_is_not_an_error() {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::start(
        move |_| match asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
            0 => refused(502, "Bad gateway"),
            _ => refused(404, "404 Award Emoji Name has already been taken Not Found"),
        },
    )
    .await;
    let key = "comment-12".parse().unwrap();
    gitlab(&server)
        .await
        .react(&issue(), key, Reaction::Seen)
        .await
        .unwrap();
}

#[tokio::test]
async fn a_note_that_is_gone_needs_no_reaction_and_one_that_is_there_needs_the_right() {
    for is_gone in [true, false] {
        let server = Server::start(move |asked| match short(asked).as_str() {
            "GET /issues/1/notes" => Reply::json(200, &json!([note(if is_gone { 11 } else { 12 }, "ann", "x")])),
            _ => refused(404, "404 Award Emoji Not Found"),
        })
        .await;
        let key = "comment-12".parse().unwrap();
        let reacted = gitlab(&server).await.react(&issue(), key, Reaction::Done).await;
        match reacted {
            Ok(()) => assert!(is_gone),
            Err(error) => assert!(
                !is_gone && matches!(error, ForgeError::Refused { status: 404, .. }),
                "{error}"
            ),
        }
    }
}

#[tokio::test]
async fn the_bot_tells_its_name() {
    let server = Server::start(unknown).await;
    assert_eq!(gitlab(&server).await.bot_name().await.unwrap(), "bot");
}

#[tokio::test]
async fn a_role_below_developer_keeps_from_pushing_unless_an_invited_group_gives_more() {
    let remedy = "give the token's user (or the access token) the role Developer in g/s/p";
    for (told, of_member, missing) in [
        (Some(30), 20, None),
        (None, 0, None),
        (Some(20), 20, Some(remedy)),
        (Some(20), 30, None),
    ] {
        let server = Server::start(move |asked| match short(asked).as_str() {
            "GET " => {
                let mut project = project(5);
                project["permissions"]["project_access"] =
                    told.map_or(Value::Null, |level| json!({"access_level": level}));
                Reply::json(200, &project)
            }
            "GET /members/all" => Reply::json(200, &json!([{"id": 1, "username": "bot", "access_level": of_member}])),
            _ => unknown(asked),
        })
        .await;
        let found = gitlab(&server).await.missing_push_right(&issue()).await.unwrap();
        assert_eq!(found.as_deref(), missing, "{told:?} {of_member}");
    }
}
