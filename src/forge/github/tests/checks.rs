//! The checks of a commit.

use std::collections::BTreeSet;

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
