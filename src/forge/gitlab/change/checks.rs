//! The pipelines of a merge request.

use std::collections::BTreeSet;

use gitlab::api::projects::jobs::{JobScope, JobTrace};
use gitlab::api::projects::merge_requests::pipelines::MergeRequestPipelines;
use gitlab::api::projects::pipelines::PipelineJobs;
use gitlab::api::projects::repository::commits::CommitStatuses;

use crate::forge::gitlab::{Api, schema};
use crate::forge::http::failure::Failure;
use crate::forge::item::address::ItemAddress;
use crate::forge::item::checks::{Checks, FailedCheck, MOST_FAILED, if_readable, is_for_people, log_or_name, tail};

/// All that failed in a pipeline: jobs, and what is no job.
struct FailedParts {
    jobs: Vec<schema::Job>,
    statuses: Vec<schema::CommitStatus>,
}

impl FailedParts {
    fn is_empty(&self) -> bool {
        self.jobs.is_empty() && self.statuses.is_empty()
    }
}

impl Api {
    /// Returns the state of the merge request's own pipeline. One of merged results runs on a
    /// commit of its own, which only this pipeline ties to the branch. If there is none, or the
    /// branch has moved, the newest pipeline of the commit counts: a person may have started it
    /// again.
    pub(crate) async fn checks_of(
        &self,
        address: ItemAddress<'_>,
        commit: &str,
        known: &BTreeSet<String>,
    ) -> Result<Checks, Failure> {
        let item = self.ask_item(address).await?;
        let own = item.head_pipeline.filter(|_| item.sha.as_deref() == Some(commit));
        let newest = match own {
            Some(own) => Some(own),
            None => self.newest_pipeline(address, commit).await?,
        };
        let Some(pipeline) = newest else {
            return Ok(Checks::None);
        };
        let otherwise = match pipeline.status.as_str() {
            // What was called off has not failed.
            "success" | "canceled" | "skipped" => return Ok(Checks::Passed),
            // To wait for a person is no failure, but whatever has failed beside a job that does,
            // the pipeline is called `manual`.
            "failed" | "manual" => Checks::Passed,
            // It is likewise with one that waits for its time, or for something elsewhere, which
            // may take days.
            "scheduled" | "waiting_for_resource" | "waiting_for_callback" => Checks::Running,
            _ => return Ok(Checks::Running),
        };
        let parts = self.failed_parts(address, &pipeline).await?;
        if pipeline.status == "failed" && parts.is_empty() {
            return Ok(whole(&pipeline, known));
        }
        self.mendable(address, parts, known, otherwise).await
    }

    async fn newest_pipeline(
        &self,
        address: ItemAddress<'_>,
        commit: &str,
    ) -> Result<Option<schema::Pipeline>, Failure> {
        let mut pipelines = MergeRequestPipelines::builder();
        let pipelines = pipelines
            .project(address.repository)
            .merge_request(address.number)
            .build();
        // Not all pages: they come newest first.
        let pipelines = self.client.ask::<_, _, Vec<schema::Pipeline>>(pipelines).await;
        let pipelines = if_readable(pipelines)?.unwrap_or_default().into_iter();
        let of_commit = pipelines.filter(|pipeline| pipeline.sha == commit);
        Ok(of_commit.max_by_key(|pipeline| pipeline.id))
    }

    /// Returns all that failed in a pipeline, as far as the token may see it.
    async fn failed_parts(
        &self,
        address: ItemAddress<'_>,
        pipeline: &schema::Pipeline,
    ) -> Result<FailedParts, Failure> {
        let jobs = self.failed_jobs(address, pipeline.id).await?;
        let statuses = self.failed_statuses(address, pipeline, &jobs).await?;
        Ok(FailedParts { jobs, statuses })
    }

    /// Returns what failed and can be mended by a commit, and `otherwise` if that is nothing. What
    /// only people can settle does not count, even though the pipeline fails because of it: naming
    /// the pipeline instead would have the model look for a fault that is not there.
    async fn mendable(
        &self,
        address: ItemAddress<'_>,
        FailedParts { mut jobs, mut statuses }: FailedParts,
        known: &BTreeSet<String>,
        otherwise: Checks,
    ) -> Result<Checks, Failure> {
        jobs.retain(|job| !job.allow_failure && !is_for_people(&job.name));
        statuses.retain(|status| !status.allow_failure && !is_for_people(&status.name));
        if jobs.is_empty() && statuses.is_empty() {
            return Ok(otherwise);
        }
        let mut failed = Vec::new();
        for job in jobs {
            let key = format!("job-{}", job.id);
            if failed.len() == MOST_FAILED || known.contains(&key) {
                continue;
            }
            let trace = JobTrace::builder().project(address.repository).job(job.id).build();
            let log = self.client.text(trace).await.map(|log| tail(&log));
            let log = log_or_name(log, &job.name, address)?;
            let name = job.name;
            failed.push(FailedCheck { key, name, log });
        }
        let statuses = statuses.into_iter().map(|status| FailedCheck {
            key: format!("status-{}", status.id),
            name: status.name,
            log: status.description,
        });
        failed.extend(statuses.filter(|check| !known.contains(&check.key)));
        failed.truncate(MOST_FAILED);
        Ok(Checks::Failed(failed))
    }

    /// Returns all failed jobs of a pipeline; none if the token may not see them.
    async fn failed_jobs(&self, address: ItemAddress<'_>, pipeline: u64) -> Result<Vec<schema::Job>, Failure> {
        let mut jobs = PipelineJobs::builder();
        let jobs = jobs
            .project(address.repository)
            .pipeline(pipeline)
            .scope(JobScope::Failed);
        let jobs = self.client.list(jobs.build()).await;
        Ok(if_readable(jobs)?.unwrap_or_default())
    }

    /// Returns what failed in a pipeline and is no job: what other services report of its commit,
    /// and triggers of pipelines elsewhere. The list of jobs leaves both out.
    async fn failed_statuses(
        &self,
        address: ItemAddress<'_>,
        pipeline: &schema::Pipeline,
        jobs: &[schema::Job],
    ) -> Result<Vec<schema::CommitStatus>, Failure> {
        let mut statuses = CommitStatuses::builder();
        let statuses = statuses.project(address.repository).commit(pipeline.sha.as_str());
        let statuses = self.client.list(statuses.build()).await;
        let mut statuses: Vec<schema::CommitStatus> = if_readable(statuses)?.unwrap_or_default();
        statuses.retain(|status| {
            let is_of_pipeline = status.pipeline_id.is_none_or(|id| id == pipeline.id);
            status.status == "failed" && is_of_pipeline && jobs.iter().all(|job| job.id != status.id)
        });
        Ok(statuses)
    }
}

/// Returns the failure of a pipeline that could not even begin, or whose jobs may not be seen.
fn whole(pipeline: &schema::Pipeline, known: &BTreeSet<String>) -> Checks {
    let mut failed = vec![FailedCheck {
        key: format!("pipeline-{}", pipeline.id),
        name: "pipeline".to_owned(),
        log: None,
    }];
    failed.retain(|check| !known.contains(&check.key));
    Checks::Failed(failed)
}
