//! The API's checks and statuses of a commit, and the logs of GitHub Actions.

use axum::Json;
use axum::extract::Path;
use axum::extract::Query as AxumQuery;
use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header;
use axum::response::IntoResponse;
use axum::response::Response;
use serde_json::Value;
use serde_json::json;

use crate::fake::answer::linked_body;
use crate::fake::github::api::answer::Answer;
use crate::fake::github::api::answer::Problem;
use crate::fake::github::api::hub::Hub;
use crate::fake::github::api::hub::Viewer;
use crate::fake::github::api::hub::find;
use crate::fake::github::api::refs;
use crate::fake::github::api::view::View;
use crate::fake::github::api::view::text;
use crate::fake::github::checks::Job;
use crate::fake::github::checks::Status;
use crate::fake::github::state::Repository;
use crate::fake::request::Query;

type Named = Path<(String, String, String)>;

/// Answers what is asked of a commit. A commit's name may have slashes, so that the question is
/// found at the end of the path.
pub async fn of_commit(hub: Shared<Hub>, viewer: Viewer, Path((owner, name, rest)): Named, query: Query) -> Answer {
    let place = (owner, name);
    match rest.rsplit_once('/') {
        Some((commit, "check-runs")) => check_runs(&hub, &viewer, &place, commit, &query),
        Some((commit, "status")) => combined_status(&hub, &viewer, &place, commit, &query),
        _ => refs::commit(hub, viewer, Path((place.0, place.1, rest))).await,
    }
}

fn check_runs(hub: &Hub, viewer: &Viewer, place: &(String, String), commit: &str, query: &Query) -> Answer {
    let runs: Vec<_> = hub.show(viewer, |view| {
        let place = find(view.state, viewer, place)?;
        if viewer.is_fine_grained && place.is_private {
            return Err(Problem::forbidden("Resource not accessible by personal access token"));
        }
        let jobs = place.jobs.iter().filter(|job| job.commit == commit);
        Ok::<_, Problem>(jobs.map(|job| check_run(view, place, job)).collect())
    })?;
    let page = query.page(runs, 30);
    let body = Json(json!({"total_count": page.total, "check_runs": page.items}));
    Ok(linked_body(query, &hub.api(), &page, body))
}

/// Answers with the workflows of a commit: here each has one job, and the number after its own.
pub async fn workflow_runs(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path(place): Path<(String, String)>,
    query: Query,
) -> Answer {
    let commit = query.value("head_sha").unwrap_or_default().to_owned();
    let runs: Vec<_> = hub.show(&viewer, |view| {
        let place = find(view.state, &viewer, &place)?;
        let jobs = place.jobs.iter().filter(|job| job.commit == commit && !job.is_foreign);
        let told = jobs.map(|job| {
            json!({
                "id": job.id + 1, "name": "CI", "head_sha": job.commit, "event": "pull_request", "run_attempt": 1,
                "status": job.status(), "conclusion": job.conclusion, "created_at": text(job.started),
                "run_started_at": text(job.started), "updated_at": text(job.started),
            })
        });
        Ok::<_, Problem>(told.collect())
    })?;
    let page = query.page(runs, 30);
    let body = Json(json!({"total_count": page.total, "workflow_runs": page.items}));
    Ok(linked_body(&query, &hub.api(), &page, body))
}

/// Answers with the jobs of a workflow.
pub async fn jobs(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, run)): Path<(String, String, u64)>,
    query: Query,
) -> Answer {
    let jobs: Vec<_> = hub.show(&viewer, |view| {
        let place = find(view.state, &viewer, &(owner, name))?;
        let jobs = place.jobs.iter().filter(|job| job.id + 1 == run);
        let told = jobs.map(|job| {
            let check = check_run(view, place, job);
            json!({
                "id": job.id, "run_id": run, "name": job.name, "head_sha": job.commit,
                "status": check["status"], "conclusion": job.conclusion, "html_url": check["html_url"],
                "check_run_url": check["url"], "steps": [], "created_at": check["started_at"],
                "started_at": check["started_at"],
            })
        });
        Ok::<_, Problem>(told.collect())
    })?;
    let page = query.page(jobs, 30);
    let body = Json(json!({"total_count": page.total, "jobs": page.items}));
    Ok(linked_body(&query, &hub.api(), &page, body))
}

fn check_run(view: View<'_>, place: &Repository, job: &Job) -> Value {
    let repository = format!("{}/repos/{}", view.api, place.full_name());
    let url = format!("{repository}/check-runs/{}", job.id);
    let page = format!(
        "{}/{}/actions/runs/{}/job/{}",
        view.web,
        place.full_name(),
        job.id + 1,
        job.id
    );
    let details = if job.is_foreign {
        "https://checks.example"
    } else {
        page.as_str()
    };
    let (app, slug) = if job.is_foreign {
        (7, "some-checks")
    } else {
        (15368, "github-actions")
    };
    let is_over = job.conclusion.is_some();
    json!({
        "id": job.id, "node_id": format!("CR_{}", job.id), "name": job.name, "head_sha": job.commit,
        "external_id": "", "url": url,
        "html_url": page, "details_url": details, "status": job.status(),
        "conclusion": job.conclusion, "started_at": text(job.started),
        "completed_at": is_over.then(|| text(job.started)),
        "output": {
            "title": null, "summary": null, "text": null, "annotations_count": 0,
            "annotations_url": format!("{url}/annotations"),
        },
        "check_suite": {"id": job.id + 2}, "pull_requests": [],
        "app": {
            "id": app, "slug": slug, "node_id": "A_15368", "owner": view.user("github"),
            "name": "GitHub Actions",
            "description": "", "external_url": "https://help.github.com/en/actions",
            "html_url": "https://github.com/apps/github-actions",
            "created_at": text(place.created), "updated_at": text(place.created), "permissions": {}, "events": [],
        },
    })
}

/// Answers with the newest status of each context, page by page. The state is that of all of them.
fn combined_status(hub: &Hub, viewer: &Viewer, place: &(String, String), commit: &str, query: &Query) -> Answer {
    let (mut combined, statuses) = hub.show(viewer, |view| {
        let place = find(view.state, viewer, place)?;
        let on_commit: Vec<_> = place.statuses.iter().filter(|status| status.commit == commit).collect();
        let newest: Vec<_> = on_commit
            .iter()
            .filter(|status| {
                !on_commit
                    .iter()
                    .any(|other| other.context == status.context && other.id > status.id)
            })
            .collect();
        let any = |states: &[&str]| newest.iter().any(|status| states.contains(&status.state.as_str()));
        let state = if any(&["failure", "error"]) {
            "failure"
        } else if newest.is_empty() || any(&["pending"]) {
            "pending"
        } else {
            "success"
        };
        let url = format!("{}/repos/{}/commits/{commit}", view.api, place.full_name());
        let statuses: Vec<_> = newest.iter().map(|status| told(&url, status)).collect();
        let combined = json!({
            "state": state, "sha": commit, "repository": view.repository(place),
            "commit_url": url, "url": format!("{url}/status"),
        });
        Ok::<_, Problem>((combined, statuses))
    })?;
    let page = query.page(statuses, 30);
    combined["total_count"] = json!(page.total);
    combined["statuses"] = json!(page.items);
    Ok(linked_body(query, &hub.api(), &page, Json(combined)))
}

fn told(commit: &str, status: &Status) -> Value {
    json!({
        "url": format!("{commit}/statuses/{}", status.id), "avatar_url": null, "id": status.id,
        "node_id": format!("SC_{}", status.id), "state": status.state, "description": status.description,
        "target_url": null, "context": status.context, "created_at": text(status.made), "updated_at": text(status.made),
        "required": null,
    })
}

/// Redirects to another server, with the proof in the address.
pub async fn job_log(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, id)): Path<(String, String, u64)>,
) -> Answer {
    hub.read(|state| {
        let place = find(state, &viewer, &(owner, name))?;
        place
            .jobs
            .iter()
            .find(|job| job.id == id)
            .map(|_| ())
            .ok_or_else(Problem::not_found)
    })?;
    let address = format!("{}/logs/{id}?sig=proof", hub.origin.replace("127.0.0.1", "localhost"));
    Ok((StatusCode::FOUND, [(header::LOCATION, address)]).into_response())
}

/// Answers as the other server. Like the real one it refuses whoever shows a token that is not its
/// own.
pub async fn log(
    Shared(hub): Shared<Hub>,
    headers: HeaderMap,
    Path(id): Path<u64>,
    AxumQuery(query): AxumQuery<std::collections::BTreeMap<String, String>>,
) -> Response {
    if headers.contains_key(header::AUTHORIZATION) || query.get("sig").is_none_or(|proof| proof != "proof") {
        return (StatusCode::BAD_REQUEST, "InvalidAuthenticationInfo").into_response();
    }
    let log = hub.read(|state| {
        let mut jobs = state.repositories.iter().flat_map(|place| &place.jobs);
        jobs.find(|job| job.id == id).map(|job| job.log.clone())
    });
    match log {
        Some(log) => ([(header::CONTENT_TYPE, "text/plain")], log).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
