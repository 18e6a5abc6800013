//! Apps, and what `doctor` is told.

use std::path::Path;
use std::time::Duration;

use secrecy::ExposeSecret;
use serde_json::json;

use super::{config, issue, refused, repository, task, unknown};
use crate::finding::Verdict;
use crate::forge::github::{self, App, Config};
use crate::forge::test_server::{Reply, Server};
use crate::forge::{CodeHost, Diagnostics, Permissions, TaskSource};

#[tokio::test]
async fn an_app_works_with_the_token_of_its_installation() {
    let server = Server::start(|asked| {
        let is_app = asked.headers["authorization"].to_str().unwrap().starts_with("Bearer ey");
        match asked.line().as_str() {
            "GET /api/v3/repos/o/r/installation" if is_app => Reply::json(
                200,
                &json!({"id": 77, "permissions": {"contents": "write", "issues": "write", "members": "read"}}),
            ),
            "POST /api/v3/app/installations/77/access_tokens" if is_app => {
                let expires_at = chrono::Utc::now() + chrono::TimeDelta::hours(1);
                Reply::json(201, &json!({"token": "ghs_short", "expires_at": expires_at}))
            }
            "GET /api/v3/repos/o/r/issues/1" if !is_app => Reply::json(200, &issue(1)),
            "GET /api/v3/repos/o/r" if !is_app => Reply::json(200, &repository(1)),
            "GET /api/v3/app" if is_app => Reply::json(
                200,
                &json!({"slug": "helper", "permissions": {"contents": "write", "issues": "read", "pull_requests": "write"}}),
            ),
            _ => unknown(asked),
        }
    })
    .await;
    let directory = tempfile::tempdir().unwrap();
    let config = of_an_app(&server, directory.path());
    let github = github::connect(&config).await.unwrap();
    let credentials = github.git_credentials(&task()).await.unwrap();
    assert_eq!(
        (credentials.username.as_str(), credentials.password.expose_secret()),
        ("x-access-token", "ghs_short")
    );
    github.item(&task()).await.unwrap();
    assert_eq!(github.traffic().requests, 4);
    let made = server
        .asked()
        .into_iter()
        .find(|asked| asked.line().ends_with("/access_tokens"));
    assert_eq!(
        made.unwrap().json(),
        json!({"repositories": ["r"], "permissions": {"contents": "write", "issues": "write"}})
    );
    assert_eq!(github.bot_name().await.unwrap(), "helper[bot]");
    let findings = github.examine().await;
    assert!(matches!(&findings[0].verdict, Verdict::Bad { detail, .. } if detail.contains("may not write issues")));
}

#[tokio::test]
async fn what_an_installation_has_used_up_holds_up_no_other() {
    let server = Server::start(|asked| {
        let line = asked.line();
        let place = if line.contains("/repos/p/r") { "p/r" } else { "o/r" };
        match line.as_str() {
            "GET /api/v3/repos/o/r/installation" => Reply::json(200, &json!({"id": 77})),
            "GET /api/v3/repos/p/r/installation" => Reply::json(200, &json!({"id": 78})),
            "POST /api/v3/app/installations/77/access_tokens" | "POST /api/v3/app/installations/78/access_tokens" => {
                let expires_at = chrono::Utc::now() + chrono::TimeDelta::hours(1);
                Reply::json(201, &json!({"token": "ghs_short", "expires_at": expires_at}))
            }
            "GET /api/v3/repos/o/r/issues/1" => refused(403, "API rate limit exceeded")
                .with("x-ratelimit-remaining", "0")
                .with("retry-after", "50"),
            "GET /api/v3/repos/p/r/issues/1" => {
                let mut issue = issue(1);
                issue["repository_url"] = json!(format!("https://api.github.com/repos/{place}"));
                Reply::json(200, &issue)
            }
            "GET /api/v3/repos/o/r" | "GET /api/v3/repos/p/r" => {
                let mut repository = repository(1);
                repository["full_name"] = json!(place);
                Reply::json(200, &repository)
            }
            _ => unknown(asked),
        }
    })
    .await;
    let directory = tempfile::tempdir().unwrap();
    let mut config = of_an_app(&server, directory.path());
    config.repositories.push("p/r".to_owned());
    let github = github::connect(&config).await.unwrap();
    let (limited, other) = (task(), "github:p/r#1".parse().unwrap());
    let of_the_other = async {
        while server.count("GET /api/v3/repos/o/r/issues/1") == 0 {
            tokio::task::yield_now().await;
        }
        github.item(&other).await.unwrap()
    };
    tokio::select! {
        _ = github.item(&limited) => panic!("it has to wait"),
        item = of_the_other => assert_eq!(item.title, "Greet"),
        () = tokio::time::sleep(Duration::from_secs(30)) => panic!("it waits for the other installation"),
    }
}

#[tokio::test]
async fn an_examination_tells_one_finding_for_each_subject() {
    let server = Server::start(|asked| match asked.line().as_str() {
        "GET /api/v3/user" => Reply::json(200, &json!({"login": "bot"})).with("x-oauth-scopes", "repo, delete_repo"),
        "GET /api/v3/repos/o/r" => Reply::json(200, &repository(1)),
        "GET /api/v3/repos/o/r/labels" => Reply::json(200, &json!([])),
        _ => refused(404, "Not Found"),
    })
    .await;
    let mut config = config(&server);
    config.repositories.push("o/hidden".to_owned());
    let findings = github::connect(&config).await.unwrap().examine().await;
    let told: Vec<String> = findings
        .iter()
        .map(|finding| match &finding.verdict {
            Verdict::Good { detail } => format!("{}: good, {detail}", finding.subject),
            Verdict::Doubtful { detail, .. } => format!("{}: doubtful, {detail}", finding.subject),
            Verdict::Bad { detail, .. } => format!("{}: bad, {detail}", finding.subject),
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @"
    GitHub token: doubtful, works, as bot; it may do more than the program needs: delete_repo; it never expires
    GitHub repository o/r: good, can be read and pushed to
    GitHub labels in o/r: doubtful, 'coding agent' is for you to create; the others will be made when they are needed
    GitHub repository o/hidden: bad, the answer was 404 Not Found: Not Found
    ");
}

/// Returns the configuration of an App, whose key is put into a folder.
fn of_an_app(server: &Server, folder: &Path) -> Config {
    let private_key_file = folder.join("key.pem");
    std::fs::write(&private_key_file, key()).unwrap();
    Config {
        token: None,
        bot_name: String::new(),
        app: Some(App {
            id: 5,
            private_key_file,
        }),
        ..config(server)
    }
}

/// A key made for this test, in the form that GitHub hands out.
fn key() -> Vec<u8> {
    let lines: Vec<&str> = KEY
        .as_bytes()
        .chunks(64)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    let kind = "RSA PRIVATE KEY";
    format!("-----BEGIN {kind}-----\n{}\n-----END {kind}-----\n", lines.join("\n")).into_bytes()
}

/// Made for these tests. Without the lines that make it a key, so that nobody takes it for a lost
/// one.
const KEY: &str = include_str!("../../../../tests/data/app-key.base64").trim_ascii();
