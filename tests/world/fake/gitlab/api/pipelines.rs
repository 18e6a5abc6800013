//! Pipelines, their jobs, and what the jobs wrote.

use axum::extract::Path;
use axum::extract::State as Shared;
use axum::http::header;
use axum::response::IntoResponse;
use serde_json::Value;
use serde_json::json;

use crate::fake::gitlab::api::answer::Answer;
use crate::fake::gitlab::api::answer::Problem;
use crate::fake::gitlab::api::answer::page;
use crate::fake::gitlab::api::lab::Lab;
use crate::fake::gitlab::api::lab::Spot;
use crate::fake::gitlab::api::lab::Viewer;
use crate::fake::gitlab::api::lab::find;
use crate::fake::gitlab::api::lab::find_item;
use crate::fake::gitlab::api::view::View;
use crate::fake::gitlab::api::view::text;
use crate::fake::gitlab::pipelines::Job;
use crate::fake::gitlab::pipelines::Pipeline;
use crate::fake::gitlab::state::Item;
use crate::fake::gitlab::state::Merge;
use crate::fake::gitlab::state::Project;
use crate::fake::request::Query;

pub async fn of_merge_request(Shared(lab): Shared<Lab>, viewer: Viewer, spot: Spot, query: Query) -> Answer {
    let pipelines = lab.show(&viewer, |view| {
        let (project, item) = find_item(view.state, &viewer, &spot)?;
        let found = of(project, item).map(|pipeline| told(view, project, pipeline));
        Ok::<_, Problem>(found.collect())
    })?;
    page(&query, &lab.api(), pipelines)
}

/// Returns the pipelines of a merge request, the newest first.
pub fn of<'a>(project: &'a Project, item: &'a Item) -> impl Iterator<Item = &'a Pipeline> {
    let own = format!("refs/merge-requests/{}/", item.number);
    let pipelines = project.pipelines.iter().rev();
    pipelines.filter(move |pipeline| {
        let is_source = |merge: &Merge| merge.source == pipeline.branch;
        pipeline.branch.starts_with(&own) || item.merge.as_ref().is_some_and(is_source)
    })
}

pub async fn jobs(
    Shared(lab): Shared<Lab>,
    viewer: Viewer,
    Path((project, pipeline)): Path<(String, u64)>,
    query: Query,
) -> Answer {
    let jobs = lab.show(&viewer, |view| {
        let project = find(view.state, &viewer, &project)?;
        let found = project.pipelines.iter().find(|found| found.id == pipeline);
        let pipeline = found.ok_or_else(|| Problem::not_found(""))?;
        let scopes = query.list("scope");
        let wanted = pipeline
            .jobs
            .iter()
            .filter(|job| !job.is_external && (scopes.is_empty() || scopes.contains(&job.status.as_str())));
        Ok::<_, Problem>(wanted.map(|job| job_told(view, project, pipeline, job)).collect())
    })?;
    page(&query, &lab.api(), jobs)
}

/// Answers with all that the pipelines of a commit consist of: jobs, and what other services
/// reported.
pub async fn statuses(
    Shared(lab): Shared<Lab>,
    viewer: Viewer,
    Path((project, commit)): Path<(String, String)>,
    query: Query,
) -> Answer {
    let statuses = lab.show(&viewer, |view| {
        let project = find(view.state, &viewer, &project)?;
        let of_commit = project.pipelines.iter().filter(|pipeline| pipeline.commit == commit);
        let all = of_commit.flat_map(|pipeline| pipeline.jobs.iter().map(move |job| (pipeline, job)));
        Ok::<_, Problem>(
            all.map(|(pipeline, job)| status_told(view, project, pipeline, job))
                .collect(),
        )
    })?;
    page(&query, &lab.api(), statuses)
}

pub async fn trace(Shared(lab): Shared<Lab>, viewer: Viewer, Path((project, job)): Path<(String, u64)>) -> Answer {
    let trace = lab.read(|state| {
        let project = find(state, &viewer, &project)?;
        let mut jobs = project.pipelines.iter().flat_map(|pipeline| &pipeline.jobs);
        let found = jobs.find(|found| found.id == job).map(|job| job.trace.clone());
        found.ok_or_else(|| Problem::not_found(""))
    })?;
    Ok(([(header::CONTENT_TYPE, "text/plain")], trace).into_response())
}

pub fn told(view: View<'_>, project: &Project, pipeline: &Pipeline) -> Value {
    json!({
        "id": pipeline.id, "iid": pipeline.id, "project_id": project.id, "sha": pipeline.commit, "ref": pipeline.branch,
        "status": pipeline.status, "source": "push", "name": null, "created_at": text(pipeline.created),
        "updated_at": text(pipeline.created),
        "web_url": format!("{}/{}/-/pipelines/{}", view.web, project.path, pipeline.id),
    })
}

fn job_told(view: View<'_>, project: &Project, pipeline: &Pipeline, job: &Job) -> Value {
    json!({
        "id": job.id, "name": job.name, "status": job.status, "stage": "test", "ref": pipeline.branch, "tag": false,
        "allow_failure": job.may_fail, "coverage": null, "archived": false, "source": "push",
        "failure_reason": (job.status == "failed").then_some("script_failure"),
        "created_at": text(pipeline.created), "started_at": text(pipeline.created),
        "finished_at": text(pipeline.created),
        "erased_at": null, "duration": 1.0, "queued_duration": 0.1, "artifacts": [], "artifacts_expire_at": null,
        "tag_list": [],
        "web_url": format!("{}/{}/-/jobs/{}", view.web, project.path, job.id),
        "pipeline": told(view, project, pipeline), "runner": null, "runner_manager": null, "user": null, "commit": null,
        "project": {"ci_job_token_scope_enabled": false},
    })
}

fn status_told(view: View<'_>, project: &Project, pipeline: &Pipeline, job: &Job) -> Value {
    let page = format!("{}/{}/-/jobs/{}", view.web, project.path, job.id);
    json!({
        "id": job.id, "sha": pipeline.commit, "ref": pipeline.branch, "status": job.status, "name": job.name,
        "target_url": page, "description": job.is_external.then_some(&job.trace), "created_at": text(pipeline.created),
        "started_at": text(pipeline.created), "finished_at": text(pipeline.created), "allow_failure": job.may_fail,
        "coverage": null, "pipeline_id": pipeline.id, "author": null,
    })
}
