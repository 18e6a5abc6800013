//! The pipelines of a merge request.

use std::collections::BTreeSet;

use gitlab::api::projects::jobs::{JobScope, JobTrace};
use gitlab::api::projects::merge_requests::pipelines::MergeRequestPipelines;
use gitlab::api::projects::pipelines::PipelineJobs;

use crate::forge::gitlab::{Api, schema};
use crate::forge::http::failure::Failure;
use crate::forge::item::address::ItemAddress;
use crate::forge::item::checks::{Checks, FailedCheck, MOST_FAILED, if_readable, is_for_people, log_or_name, tail};

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
        match pipeline.status.as_str() {
            "failed" => Ok(Checks::Failed(self.failed_jobs(address, pipeline.id, known).await?)),
            // Called off, or waiting for a person: neither has failed.
            "success" | "canceled" | "skipped" | "manual" => Ok(Checks::Passed),
            _ => Ok(Checks::Running),
        }
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

    async fn failed_jobs(
        &self,
        address: ItemAddress<'_>,
        pipeline: u64,
        known: &BTreeSet<String>,
    ) -> Result<Vec<FailedCheck>, Failure> {
        let mut jobs = PipelineJobs::builder();
        let jobs = jobs
            .project(address.repository)
            .pipeline(pipeline)
            .scope(JobScope::Failed);
        let jobs = self.client.ask::<_, _, Vec<schema::Job>>(jobs.build()).await;
        let jobs = if_readable(jobs)?.unwrap_or_default();
        let jobs: Vec<_> = jobs
            .into_iter()
            .filter(|job| !job.allow_failure && !is_for_people(&job.name))
            .collect();
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
            let trace = JobTrace::builder().project(address.repository).job(job.id).build();
            let log = self.client.text(trace).await.map(|log| tail(&log));
            let log = log_or_name(log, &job.name, address)?;
            let name = job.name;
            failed.push(FailedCheck { key, name, log });
        }
        Ok(failed)
    }
}
