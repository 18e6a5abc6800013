//! Items and their notes, the search, and the answers that are none.

use serde_json::{Value, json};

use super::{TOKEN, config, gitlab, issue, item, merge_request, note, project, refused, short, unknown};
use crate::finding::Verdict;
use crate::forge::gitlab;
use crate::forge::test_server::{Reply, Server};
use crate::forge::{ChangeHead, Comment, Diagnostics, ForgeError, Place, PushRight, TaskSource};

#[tokio::test]
async fn an_item_is_read_anew_and_its_project_once() {
    let server = Server::start(|asked| {
        assert_eq!(asked.headers["private-token"], TOKEN);
        match short(asked).as_str() {
            "GET /issues/1" => Reply::json(200, &item(1, '#')),
            "GET " => Reply::json(200, &project(5)),
            _ => unknown(asked),
        }
    })
    .await;
    let gitlab = gitlab(&server).await;
    let read = gitlab.item(&issue()).await.unwrap();
    assert_eq!(gitlab.item(&issue()).await.unwrap(), read);
    assert_eq!(
        (read.clone_url.as_str(), read.default_branch.as_deref()),
        ("https://gitlab.com/5.git", Some("main"))
    );
    assert!(read.is_open && read.body.is_empty() && read.change.is_none());
    assert_eq!(
        (read.assignees.as_slice(), read.updated_at.to_rfc3339().as_str()),
        (["bot".to_owned()].as_slice(), "2026-01-03T00:00:00+00:00")
    );
    assert_eq!(gitlab.traffic().requests, 3);
}

#[tokio::test]
async fn a_project_without_commits_has_no_default_branch() {
    let server = Server::start(|asked| {
        if short(asked) == "GET /issues/1" {
            return Reply::json(200, &item(1, '#'));
        }
        let mut project = project(5);
        project["empty_repo"] = true.into();
        Reply::json(200, &project)
    })
    .await;
    assert_eq!(gitlab(&server).await.item(&issue()).await.unwrap().default_branch, None);
}

#[tokio::test]
async fn the_head_of_a_merge_request_tells_whether_it_may_be_pushed_to() {
    let mut seen = Vec::new();
    for source in [json!(5), json!(6), Value::Null] {
        let server = Server::start(move |asked| match short(asked).as_str() {
            "GET /merge_requests/2" => {
                let mut item = item(2, '!');
                item["source_project_id"] = source.clone();
                item["allow_collaboration"] = true.into();
                Reply::json(200, &item)
            }
            "GET " => Reply::json(200, &project(5)),
            "GET /git/api/v4/projects/6" => Reply::json(200, &project(6)),
            _ => unknown(asked),
        })
        .await;
        seen.push(
            gitlab(&server)
                .await
                .item(&merge_request())
                .await
                .unwrap()
                .change
                .unwrap(),
        );
    }
    let head = |id: u64, is_fork, may_push: bool| ChangeHead {
        head_branch: "fix".to_owned(),
        base_branch: "main".to_owned(),
        head_commit: None,
        head_repository: may_push.then(|| format!("g/s/p{id}")),
        head_clone_url: format!("https://gitlab.com/{id}.git"),
        is_fork,
        is_draft: false,
        push: if may_push {
            PushRight::Given
        } else {
            PushRight::NotGiven
        },
    };
    assert_eq!(seen, [head(5, false, true), head(6, true, true), head(5, true, false)]);
}

#[tokio::test]
async fn all_notes_come_in_order_without_the_bots_own_and_gitlabs() {
    let server = Server::start(|asked| {
        assert_eq!(short(asked), "GET /merge_requests/2/notes");
        let page: u64 = asked.field("page").unwrap().parse().unwrap();
        let notes: Vec<Value> = ((page - 1) * 100..(page * 100).min(250))
            .map(|id| {
                let mut note = note(id, if id % 100 == 7 { "Bot" } else { "ann" }, &format!("n{id}"));
                note["system"] = (id == 8).into();
                if id == 9 {
                    note["type"] = "DiffNote".into();
                    note["updated_at"] = "2026-01-09T00:00:00.000Z".into();
                    note["position"] = json!({"new_path": "a.rs", "old_path": "b.rs", "new_line": null, "old_line": 4});
                }
                note
            })
            .collect();
        Reply::json(200, &notes.into())
    })
    .await;
    let comments = gitlab(&server).await.comments(&merge_request()).await.unwrap();
    assert_eq!(comments.len(), 250 - 3 - 1);
    let place = Place {
        path: "a.rs".to_owned(),
        line: Some(4),
    };
    let on_line = Comment {
        key: "inline-9".parse().unwrap(),
        author: "ann".to_owned(),
        author_id: None,
        body: "n9".to_owned(),
        created_at: "2026-01-01T00:09:00Z".parse().unwrap(),
        updated_at: "2026-01-09T00:00:00Z".parse().unwrap(),
        place: Some(place),
        thread: None,
        is_approval: false,
        is_bot: false,
    };
    assert_eq!(
        (comments[6].key.to_string().as_str(), &comments[7]),
        ("comment-6", &on_line)
    );
}

#[tokio::test]
async fn issues_and_merge_requests_are_found_and_unchanged_lists_confirmed() {
    let server = Server::start(|asked| {
        assert_eq!(asked.field("labels").as_deref(), Some("coding agent"));
        assert_eq!(asked.field("state").as_deref(), Some("opened"));
        if asked.headers.contains_key("if-none-match") {
            return Reply::empty(304);
        }
        let list = match asked.uri.path().rsplit_once('/').unwrap() {
            ("/git/api/v4/groups/g" | super::PROJECT, "issues") => json!([item(1, '#')]),
            ("/git/api/v4/groups/g" | super::PROJECT, "merge_requests") => json!([item(2, '!')]),
            _ => return unknown(asked),
        };
        Reply::json(200, &list).with("etag", "W/\"1\"")
    })
    .await;
    let mut config = config(&server);
    config.projects = vec!["g/*".to_owned()];
    let gitlab = gitlab::connect(&config).unwrap();
    for requests in [2, 4] {
        let found = gitlab.triggered().await.items;
        let tasks: Vec<String> = found.iter().map(|item| item.task.to_string()).collect();
        assert_eq!(tasks, ["gitlab:g/s/p#1", "gitlab:g/s/p!2"]);
        assert_eq!(gitlab.traffic().requests, requests);
    }
}

#[tokio::test]
async fn a_deleted_issue_is_gone_and_a_hidden_project_is_refused() {
    let server = Server::start(|asked| match short(asked).as_str() {
        "GET " => Reply::json(200, &project(5)),
        _ => refused(404, "404 Not found"),
    })
    .await;
    let gitlab = gitlab(&server).await;
    assert!(matches!(gitlab.item(&issue()).await, Err(ForgeError::Gone { .. })));
    let hidden = gitlab.item(&"gitlab:g/hidden!1".parse().unwrap()).await.unwrap_err();
    assert_eq!(
        hidden.to_string(),
        "reading g/hidden!1: GitLab answered 404; it says \"404 Not found\": see that g/hidden exists, that the token \
         has the scope 'api', and that its user has at least the role Reporter there (Developer for all that the \
         program does)"
    );
}

#[tokio::test]
async fn another_host_does_not_get_the_token() {
    let stranger = Server::start(|_| Reply::empty(200)).await;
    let address = stranger.address.clone();
    let server = Server::start(move |_| Reply::empty(302).with("location", address.clone())).await;
    assert!(gitlab(&server).await.item(&issue()).await.is_err());
    assert_eq!(stranger.asked().len(), 0);
}

#[tokio::test]
async fn an_examination_tells_one_finding_for_each_subject() {
    let server = Server::start(|asked| match short(asked).as_str() {
        "GET /git/api/v4/user" => Reply::json(200, &json!({"username": "bot"})),
        "GET /git/api/v4/personal_access_tokens/self" => {
            Reply::json(200, &json!({"scopes": ["api", "sudo"], "expires_at": "2099-01-01"}))
        }
        "GET /git/api/v4/groups/g" => Reply::json(200, &json!({"full_path": "g"})),
        "GET /git/api/v4/groups/g/issues"
        | "GET /git/api/v4/groups/g/merge_requests"
        | "GET /git/api/v4/groups/g/projects" => Reply::json(200, &json!([])),
        "GET " => {
            let mut project = project(5);
            project["permissions"]["project_access"]["access_level"] = 20.into();
            Reply::json(200, &project)
        }
        _ => unknown(asked),
    })
    .await;
    let mut config = config(&server);
    config.projects.push("g/*".to_owned());
    let findings = gitlab::connect(&config).unwrap().examine().await;
    let told: Vec<String> = findings
        .iter()
        .map(|finding| match &finding.verdict {
            Verdict::Good { detail } => format!("{}: good, {detail}", finding.subject),
            Verdict::Doubtful { detail, .. } => format!("{}: doubtful, {detail}", finding.subject),
            Verdict::Bad { detail, .. } => format!("{}: bad, {detail}", finding.subject),
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @"
    GitLab token: doubtful, works, as bot; it may do more than the program needs: sudo
    GitLab project g/s/p: bad, can be read, but the token's user may not push to it
    GitLab group g: good, g can be searched; 0 items carry the trigger label now; projects looked at: 0
    ");
}

#[tokio::test]
async fn an_address_of_a_page_is_told_as_that_and_named_with_its_key() {
    let told = async |sends_to: &'static str, is_page: bool| {
        let server = Server::start(move |asked| match asked.uri.path() {
            "/users/sign_in" if is_page => Reply::json(200, &json!("Sign in")),
            _ => Reply::empty(302).with("location", sends_to),
        })
        .await;
        gitlab(&server).await.item(&issue()).await.unwrap_err().to_string()
    };
    let page = "reading g/s/p#1: the answer could not be read: it sends to the page where people sign in, so gitlab.api_url is \
                the address of a page and not of an API: write https://HOST/api/v4 of your GitLab";
    assert_eq!(told("/users/sign_in", true).await, page);
    // Which sends to itself there, or has another name.
    assert_eq!(told("/users/sign_in", false).await, page);
    assert_eq!(told("https://gitlab.example/git/users/sign_in", false).await, page);
    insta::assert_snapshot!(told("/elsewhere", false).await, @"reading g/s/p#1: the answer could not be read: it sends from one place to the next without end");
    insta::assert_snapshot!(told("https://gitlab.example/elsewhere", false).await, @"reading g/s/p#1: the answer could not be read: it sends to another host, where the token is not sent");
}
