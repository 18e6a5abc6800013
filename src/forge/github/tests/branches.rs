//! Branches that commits are pushed to, and those that they are not.

use serde_json::{Value, json};

use super::{github, refused, task, unknown};
use crate::forge::CodeHost;
use crate::forge::test_server::{Reply, Server};

/// Tells whether a branch counts as protected that GitHub shows like this, with these rules.
async fn is_protected(branch: Option<Value>, rules: Option<Value>) -> bool {
    let shown = |part: &Option<Value>| match part {
        Some(part) => Reply::json(200, part),
        None => refused(404, "Not Found"),
    };
    let server = Server::start(move |asked| match asked.line().as_str() {
        "GET /api/v3/repos/o/r/branches/release/1.0" => shown(&branch),
        "GET /api/v3/repos/o/r/rules/branches/release/1.0" => shown(&rules),
        _ => unknown(asked),
    })
    .await;
    let asked = github(&server).await.is_protected(&task(), "release/1.0").await;
    asked.unwrap()
}

#[tokio::test]
async fn a_branch_is_protected_by_what_keeps_pushes_from_it() {
    let branch = |is_protected: bool, by_older: bool| {
        let shown = json!({"name": "release/1.0", "protected": is_protected, "protection": {"enabled": by_older}});
        Some(shown)
    };
    let rules = |kinds: &[&str]| {
        let rules = kinds.iter().map(|kind| json!({"type": kind, "ruleset_id": 1}));
        Some(rules.collect::<Value>())
    };
    let on_all = ["required_signatures", "non_fast_forward", "commit_message_pattern"];
    for (shown, laid, expected) in [
        (None, None, false),
        (branch(false, false), None, false),
        (branch(true, true), None, true),
        (Some(json!({"protected": true})), None, true),
        (branch(true, false), rules(&on_all), false),
        (branch(true, false), rules(&["deletion", "pull_request"]), true),
        (branch(true, false), rules(&["update"]), true),
        (branch(true, false), None, true),
    ] {
        let found = is_protected(shown.clone(), laid.clone()).await;
        assert_eq!(found, expected, "{shown:?}, {laid:?}");
    }
}
