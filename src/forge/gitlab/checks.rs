//! Open merge requests and their pipelines.

use std::collections::BTreeSet;

use gitlab::api::projects::jobs::{JobScope, JobTrace};
use gitlab::api::projects::merge_requests::pipelines::MergeRequestPipelines;
use gitlab::api::projects::merge_requests::{MergeRequestScope, MergeRequestState, MergeRequests};
use gitlab::api::projects::pipelines::PipelineJobs;

use super::rights::Right;
use super::{Address, GitLab, attempt, wire};
use crate::forge::ForgeError;
use crate::forge::failure::Failure;
use crate::forge::watched::{Checks, FailedCheck, MOST_FAILED, OpenChange, if_readable, tail};
use crate::task::id::TaskId;

impl GitLab {
    /// One list of just these, however many there are in the project.
    pub(super) async fn list_open_changes(&self, changes: &[TaskId]) -> Result<Vec<OpenChange>, ForgeError> {
        let Some(first) = changes.first() else {
            return Ok(Vec::new());
        };
        let project = Address::of(first)?.project;
        let mut requests = MergeRequests::builder();
        let requests = requests
            .project(project)
            .iids(changes.iter().filter_map(TaskId::number))
            .state(MergeRequestState::Opened)
            .scope(MergeRequestScope::All);
        let found = self.client.list::<_, _, wire::Item>(requests.build()).await;
        let found = found.map_err(|failure| {
            let what = format!("listing the open merge requests of {project}");
            attempt(&what, &Right::Read.remedy(project)).failed(failure)
        })?;
        let found = found
            .into_iter()
            .filter(|item| item.state == "opened")
            .map(|item| OpenChange {
                task: TaskId::GitLabMergeRequest {
                    project: project.to_owned(),
                    iid: item.iid,
                },
                title: item.title,
                head: item.sha.unwrap_or_default(),
                updated_at: item.updated_at,
            });
        Ok(found.filter(|change| changes.contains(&change.task)).collect())
    }

    /// The newest pipeline of the commit counts: a person may have started it again.
    pub(super) async fn read_checks(
        &self,
        address: Address<'_>,
        commit: &str,
        known: &BTreeSet<String>,
    ) -> Result<Checks, Failure> {
        let mut pipelines = MergeRequestPipelines::builder();
        let pipelines = pipelines.project(address.project).merge_request(address.iid).build();
        // Not all pages: they come newest first.
        let pipelines = self.client.ask::<_, _, Vec<wire::Pipeline>>(pipelines).await;
        let pipelines = if_readable(pipelines)?.unwrap_or_default();
        let newest = pipelines
            .into_iter()
            .filter(|pipeline| pipeline.sha == commit)
            .max_by_key(|pipeline| pipeline.id);
        let Some(pipeline) = newest else {
            return Ok(Checks::None);
        };
        match pipeline.status.as_str() {
            "failed" => Ok(Checks::Failed(self.failed_jobs(address, pipeline.id, known).await?)),
            // Called off, or waiting for a person: neither has failed.
            "success" | "canceled" | "skipped" | "manual" => Ok(Checks::Passed),
            _ => Ok(Checks::Running),
        }
    }

    async fn failed_jobs(
        &self,
        address: Address<'_>,
        pipeline: u64,
        known: &BTreeSet<String>,
    ) -> Result<Vec<FailedCheck>, Failure> {
        let mut jobs = PipelineJobs::builder();
        let jobs = jobs.project(address.project).pipeline(pipeline).scope(JobScope::Failed);
        let jobs = self.client.ask::<_, _, Vec<wire::Job>>(jobs.build()).await;
        let jobs = if_readable(jobs)?.unwrap_or_default();
        let jobs: Vec<_> = jobs.into_iter().filter(|job| !job.allow_failure).collect();
        if jobs.is_empty() {
            // A pipeline that could not even begin, or whose jobs may not be seen.
            let pipeline = FailedCheck {
                key: format!("pipeline-{pipeline}"),
                name: "pipeline".to_owned(),
                log: None,
            };
            return Ok(Some(pipeline)
                .filter(|check| !known.contains(&check.key))
                .into_iter()
                .collect());
        }
        let mut failed = Vec::new();
        for job in jobs {
            let key = format!("job-{}", job.id);
            if failed.len() == MOST_FAILED || known.contains(&key) {
                continue;
            }
            let trace = JobTrace::builder().project(address.project).job(job.id).build();
            let log = match if_readable(self.client.text(trace).await) {
                Ok(log) => log.map(|log| tail(&log)),
                // Too long, or the server of the logs does not answer: the name alone has to do.
                Err(failure @ (Failure::Down { .. } | Failure::Unreadable { .. })) => {
                    tracing::warn!(
                        "the log of the job '{}' of {address} could not be read: {failure}",
                        job.name
                    );
                    None
                }
                Err(failure) => return Err(failure),
            };
            let name = job.name;
            failed.push(FailedCheck { key, name, log });
        }
        Ok(failed)
    }
}
