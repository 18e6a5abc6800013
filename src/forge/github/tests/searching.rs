//! Items with the trigger label.

use serde_json::json;

use super::{config, issue, refused, repository};
use crate::forge::github;
use crate::forge::test_server::{Reply, Server};
use crate::forge::{Diagnostics, ForgeError, TaskSource};

#[tokio::test]
async fn an_unchanged_list_is_confirmed_page_by_page() {
    let server = Server::start(|asked| {
        let page = asked.field("page").unwrap_or("1".to_owned());
        let tag = format!("\"{page}\"");
        assert_eq!(asked.field("labels").as_deref(), Some("coding agent"));
        if asked.headers.get("if-none-match").is_some_and(|had| *had == *tag) {
            return Reply::empty(304);
        }
        let told = match page.as_str() {
            "1" => {
                let next = "<http://x/api/v3/repos/o/r/issues?labels=coding%20agent&page=2>; rel=\"next\"";
                Reply::json(200, &json!([issue(1)])).with("link", next)
            }
            _ => Reply::json(200, &json!([issue(2)])),
        };
        told.with("etag", tag)
    })
    .await;
    let mut config = config(&server);
    config.repositories = vec!["o/r".to_owned(), "O/R".to_owned()];
    let github = github::connect(&config).await.unwrap();
    github
        .platform
        .repositories
        .learn("o/r", serde_json::from_value(repository(1)).unwrap());
    let first = github.triggered().await.items;
    assert_eq!(first.len(), 2);
    assert_eq!(github.triggered().await.items, first);
    assert_eq!(github.traffic().requests, 8);
}

#[tokio::test]
async fn an_owners_repositories_are_searched_and_apart_where_github_demands_it() {
    let server = Server::start(|asked| {
        assert_eq!(asked.line(), "GET /api/v3/search/issues");
        let query = asked.field("q").unwrap();
        let items = if query.contains("is:issue") {
            json!([issue(1)])
        } else if query.contains("is:pull-request") {
            json!([])
        } else {
            return refused(422, "Query must include 'is:issue' or 'is:pull-request'");
        };
        assert!(
            query.starts_with("user:o label:") && query.contains("label:\"coding agent\""),
            "{query}"
        );
        Reply::json(
            200,
            &json!({"total_count": 1, "incomplete_results": false, "items": items}),
        )
    })
    .await;
    let mut config = config(&server);
    config.repositories = vec!["o/*".to_owned()];
    let github = github::connect(&config).await.unwrap();
    for requests in [3, 5] {
        let found = github.triggered().await.items;
        assert_eq!(
            found.iter().map(|item| item.task.to_string()).collect::<Vec<_>>(),
            ["github:o/r#1"]
        );
        assert_eq!(github.traffic().requests, requests);
    }
}

#[tokio::test]
async fn one_refused_repository_is_named_and_does_not_hide_the_others() {
    let server = Server::start(|asked| match asked.line().as_str() {
        "GET /api/v3/repos/o/r/issues" => Reply::json(200, &json!([issue(1)])),
        "GET /api/v3/repos/o/r" => Reply::json(200, &repository(1)),
        _ => refused(403, "Resource not accessible by personal access token"),
    })
    .await;
    let mut config = config(&server);
    config.repositories = vec!["o/hidden".to_owned(), "o/r".to_owned()];
    let search = github::connect(&config).await.unwrap().triggered().await;
    assert_eq!(search.items.len(), 1);
    let [error] = &search.errors[..] else {
        panic!("{search:?}");
    };
    assert!(error.to_string().contains("o/hidden"), "{error}");
    assert!(matches!(error, ForgeError::Refused { status: 403, .. }), "{error}");
}
