//! Faults on purpose happen as they were ordered, and are seen from outside.

use std::time::Duration;

use reqwest::Client;
use reqwest::Response;
use serde_json::Value;
use serde_json::json;

use crate::fake::fault::{Disturbance, Fault, Quirk};
use crate::fake::github::GitHub;
use crate::fake::gitlab::GitLab;

struct Caller {
    client: Client,
    base: String,
    token: String,
}

impl Caller {
    fn of(github: &GitHub) -> Self {
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        Self {
            client: Client::new(),
            base: github.api_url(),
            token: github.token().to_owned(),
        }
    }

    async fn get(&self, path: &str) -> reqwest::Result<Response> {
        self.client
            .get(format!("{}{path}", self.base))
            .bearer_auth(&self.token)
            .send()
            .await
    }

    async fn comment(&self) -> reqwest::Result<Response> {
        let url = format!("{}/repos/acme/widgets/issues/1/comments", self.base);
        self.client
            .post(url)
            .bearer_auth(&self.token)
            .json(&json!({"body": "hello"}))
            .send()
            .await
    }
}

#[tokio::test]
async fn a_failure_may_come_before_or_after_the_work() {
    let github = GitHub::start().await;
    let issue = github.open_issue("Greet");
    let caller = Caller::of(&github);

    github.fails_next("POST /repos/*/*/issues/*/comments", 502, 1);
    assert_eq!(caller.comment().await.unwrap().status(), 502);
    assert_eq!(issue.comments().len(), 0);
    github.fails_after_work("POST /repos/*/*/issues/*/comments", 502, 1);
    assert_eq!(caller.comment().await.unwrap().status(), 502);
    assert_eq!(issue.comments().len(), 1);
    github.drops_connection("POST /repos/**", 1);
    assert!(caller.comment().await.is_err());
    assert_eq!(issue.comments().len(), 1);
    github.drops_connection_after_work("POST /repos/**", 1);
    assert!(caller.comment().await.is_err());
    assert_eq!(issue.comments().len(), 2);
    assert_eq!(caller.comment().await.unwrap().status(), 201);
    assert_eq!(github.count("POST /repos/*/*/issues/*/comments"), 5);
    let told: Vec<_> = github.requests().iter().map(ToString::to_string).collect();
    assert_eq!(told[2], "POST /repos/acme/widgets/issues/1/comments dropped");
}

#[tokio::test]
async fn a_disturbance_meets_the_nth_request_or_those_after_another() {
    let github = GitHub::start().await;
    github.open_issue("Greet");
    let caller = Caller::of(&github);
    let statuses = async || {
        let mut statuses = Vec::new();
        for _ in 0..4 {
            statuses.push(caller.get("/user").await.unwrap().status().as_u16());
        }
        statuses
    };

    github.disturb(Disturbance::of("GET /user", Fault::Fails(502)).nth(3));
    assert_eq!(statuses().await, [200, 200, 502, 200]);
    let comment = "POST /repos/*/*/issues/*/comments";
    github.disturb(
        Disturbance::of("GET /user", Fault::Fails(503))
            .times(2)
            .once_answered(comment),
    );
    assert_eq!(statuses().await, [200; 4]);
    assert_eq!(caller.comment().await.unwrap().status(), 201);
    assert_eq!(statuses().await, [503, 503, 200, 200]);
}

#[tokio::test]
async fn the_tag_of_a_page_may_be_blind_to_its_links() {
    let github = GitHub::start().await;
    let caller = Caller::of(&github);
    let issues = format!("{}/repos/acme/widgets/issues?per_page=1&direction=asc", caller.base);
    let get = async |tag: &str| {
        let request = caller.client.get(&issues).bearer_auth(&caller.token);
        let answer = request.header("If-None-Match", tag).send().await.unwrap();
        let tag = answer.headers()["etag"].to_str().unwrap().to_owned();
        (answer.status().as_u16(), tag)
    };
    github.open_issue("One");
    for (quirk, expected) in [(None, 200), (Some(Quirk::TagsIgnoreLinks), 304)] {
        if let Some(quirk) = quirk {
            github.behaves(quirk);
        }
        let (_, tag) = get("none").await;
        // The first page stays as it is, but for the link to the last one.
        github.open_issue("One more");
        assert_eq!(get(&tag).await.0, expected, "{quirk:?}");
    }
}

#[tokio::test]
async fn limits_are_told_in_the_headers() {
    let github = GitHub::start().await;
    let caller = Caller::of(&github);
    let header = |answer: &Response, name: &str| answer.headers()[name].to_str().unwrap().to_owned();

    github.rate_limited(1, Duration::from_mins(1));
    assert_eq!(
        header(&caller.get("/user").await.unwrap(), "x-ratelimit-remaining"),
        "0"
    );
    let refused = caller.get("/user").await.unwrap();
    assert_eq!(refused.status(), 403);
    assert!(header(&refused, "x-ratelimit-reset").parse::<u64>().unwrap() > 1_600_000_000);
    let body: Value = refused.json().await.unwrap();
    assert!(body["message"].as_str().unwrap().starts_with("API rate limit exceeded"));

    github.rate_limited(100, Duration::from_mins(1));
    github.secondary_limited(Duration::from_secs(30));
    let refused = caller.get("/user").await.unwrap();
    assert_eq!(
        (refused.status().as_u16(), header(&refused, "retry-after")),
        (403, "30".to_owned())
    );
}

#[tokio::test]
async fn an_unknown_request_is_not_forgotten() {
    let github = GitHub::start().await;
    let caller = Caller::of(&github);
    assert_eq!(caller.get("/emojis").await.unwrap().status(), 404);
    assert_eq!(github.unknown_requests(), ["GET /api/v3/emojis"]);
    let scopes = caller.get("/user").await.unwrap().headers()["x-oauth-scopes"].clone();
    assert_eq!(scopes, "repo");
}

#[tokio::test]
async fn what_happens_can_be_awaited() {
    let github = GitHub::start().await;
    let issue = github.open_issue("Greet");
    let caller = Caller::of(&github);
    let (answer, ()) = tokio::join!(caller.comment(), issue.until(|issue| issue.comments().len() == 1));
    assert_eq!(answer.unwrap().status(), 201);
}

#[tokio::test]
async fn nothing_is_left_when_a_fake_is_dropped() {
    let github = GitHub::start().await;
    let caller = Caller::of(&github);
    let path = github.default_repository().git().path().to_owned();
    assert!(path.exists());
    drop(github);
    assert!(!path.exists());
    assert!(caller.get("/user").await.is_err());
}

#[tokio::test]
async fn gitlab_refuses_in_its_own_words() {
    let gitlab = GitLab::start().await;
    let issue = gitlab.open_issue("Greet");
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let client = Client::new();
    let url = format!("{}/projects/acme%2Fwidgets/issues/1", gitlab.api_url());
    let get = async || {
        client
            .get(&url)
            .header("PRIVATE-TOKEN", gitlab.token())
            .send()
            .await
            .unwrap()
    };

    let seen = get().await;
    let mark = seen.headers()["etag"].clone();
    let again = client
        .get(&url)
        .header("PRIVATE-TOKEN", gitlab.token())
        .header("If-None-Match", mark)
        .send()
        .await;
    assert_eq!((seen.status().as_u16(), again.unwrap().status().as_u16()), (200, 304));

    // A note that is nothing but a command is obeyed, and leaves no note.
    let notes = format!("{url}/notes");
    let note = client
        .post(&notes)
        .header("PRIVATE-TOKEN", gitlab.token())
        .form(&[("body", "/close")])
        .send()
        .await
        .unwrap();
    assert_eq!(
        (note.status().as_u16(), issue.is_open(), issue.comments().len()),
        (202, false, 0)
    );

    gitlab.scopes(&["read_api"]);
    let narrow = client
        .post(&notes)
        .header("PRIVATE-TOKEN", gitlab.token())
        .json(&json!({"body": "hello"}))
        .send()
        .await
        .unwrap();
    assert_eq!(narrow.status(), 403);
    assert_eq!(narrow.json::<Value>().await.unwrap()["error"], "insufficient_scope");
    gitlab.rate_limited(Duration::from_secs(30));
    let limited = get().await;
    assert_eq!(
        (
            limited.status().as_u16(),
            limited.headers()["retry-after"].to_str().unwrap()
        ),
        (429, "30")
    );
}
