//! The checks of a commit.

use std::collections::BTreeSet;

use chrono::{TimeDelta, Utc};
use serde_json::json;

use super::{github, refused, task, unknown};
use crate::forge::CodeHost;
use crate::forge::item::checks::{Checks, FailedCheck};
use crate::forge::test_server::{Reply, Server};

#[tokio::test]
async fn a_job_that_failed_is_seen_in_a_workflow_that_waits_for_a_person() {
    let server = Server::start(|asked| match asked.line().as_str() {
        // The jobs themselves are asked for.
        "GET /api/v3/repos/o/r/commits/c0ffee/check-runs" => refused(403, "Resource not accessible"),
        "GET /api/v3/repos/o/r/actions/runs" => {
            let run = json!({"id": 7, "name": "CI", "status": "waiting", "conclusion": null});
            Reply::json(200, &json!({"total_count": 1, "workflow_runs": [run]}))
        }
        "GET /api/v3/repos/o/r/actions/runs/7/jobs" => {
            let failed = json!({"id": 1, "name": "test", "status": "completed", "conclusion": "failure"});
            let waits = json!({"id": 2, "name": "deploy", "status": "waiting", "conclusion": null});
            Reply::json(200, &json!({"total_count": 2, "jobs": [failed, waits]}))
        }
        "GET /api/v3/repos/o/r/commits/c0ffee/status" => Reply::json(200, &json!({"statuses": []})),
        _ => unknown(asked),
    })
    .await;
    let github = github(&server).await;

    let checks = github.checks(&task(), "c0ffee", &BTreeSet::new()).await.unwrap();

    let failed = FailedCheck {
        key: "run-1".to_owned(),
        name: "test".to_owned(),
        log: None,
    };
    assert_eq!(checks, Checks::Failed(vec![failed]));
}

/// Returns the state of a commit on which one check failed, and another of this app began so many
/// minutes ago and has not ended.
async fn beside_a_failed_one(app: &'static str, status: &'static str, minutes: i64) -> Checks {
    let server = Server::start(move |asked| match asked.line().as_str() {
        "GET /api/v3/repos/o/r/commits/c0ffee/check-runs" => {
            let failed = json!({"id": 1, "name": "test", "status": "completed", "conclusion": "failure"});
            let other = json!({
                "id": 2, "name": "other", "status": status, "conclusion": null, "app": {"slug": app},
                "started_at": Utc::now() - TimeDelta::minutes(minutes),
            });
            Reply::json(200, &json!({"total_count": 2, "check_runs": [failed, other]}))
        }
        "GET /api/v3/repos/o/r/commits/c0ffee/status" => Reply::json(200, &json!({"statuses": []})),
        _ => unknown(asked),
    })
    .await;
    let github = github(&server).await;
    github.checks(&task(), "c0ffee", &BTreeSet::new()).await.unwrap()
}

#[tokio::test]
async fn where_something_failed_a_check_that_may_never_end_is_not_waited_for() {
    for (app, status, minutes, is_awaited) in [
        ("mergify", "in_progress", 29, true),
        ("mergify", "in_progress", 31, false),
        ("github-actions", "queued", 29, true),
        ("github-actions", "queued", 31, false),
        ("github-actions", "in_progress", 31, true),
        ("github-actions", "in_progress", 361, false),
    ] {
        let checks = beside_a_failed_one(app, status, minutes).await;
        assert_eq!(
            checks == Checks::Running,
            is_awaited,
            "{app} {status} {minutes}: {checks:?}"
        );
    }
}
