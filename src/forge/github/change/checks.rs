//! The checks of a pull request.
//!
//! GitHub has two kinds: check runs (those of GitHub Actions have a job with a log), and the older
//! commit statuses. A fine-grained token cannot be given the right to read check runs; with it the
//! jobs of GitHub Actions are asked for themselves, and those of other services are not seen.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};

use crate::forge::github::Api;
use crate::forge::github::http::TokenScope;
use crate::forge::github::http::path;
use crate::forge::github::schema::checks as schema;
use crate::forge::http::failure::Failure;
use crate::forge::item::address::ItemAddress;
use crate::forge::item::checks::{Checks, FailedCheck, MOST_FAILED, if_readable, is_for_people, log_or_name, tail};

/// The status of a check of GitHub Actions that waits until a person lets it go on, such as a
/// deployment. That may take days.
const WAITS: &str = "waiting";

/// Time after which a pending status, a check of another service or a job that no runner has taken
/// is no longer waited for where something failed: some stay so until the merge, or for ever.
const STANDS_STILL: TimeDelta = TimeDelta::minutes(30);

/// The same for a job at work. GitHub's own runners give none more time.
const LONGEST_JOB: TimeDelta = TimeDelta::hours(6);

impl Api {
    pub(crate) async fn checks_of(
        &self,
        address: ItemAddress<'_>,
        commit: &str,
        known: &BTreeSet<String>,
    ) -> Result<Checks, Failure> {
        let scope = TokenScope::Repository(address.repository);
        let on_commit = |part: &str| path(address.repository, &format!("/commits/{commit}/{part}?per_page=100"));
        let runs = |page: schema::CheckRuns| page.check_runs;
        let runs = self.client.pages(scope, &on_commit("check-runs"), runs).await;
        let mut runs = match if_readable(runs)? {
            Some(runs) => runs,
            None => if_readable(self.jobs_of(address, commit).await)?.unwrap_or_default(),
        };
        let statuses = |page: schema::CombinedStatus| page.statuses;
        let statuses = self.client.pages(scope, &on_commit("status"), statuses).await;
        let mut statuses = if_readable(statuses)?.unwrap_or_default();
        runs.retain(|run| !is_for_people(&run.name));
        statuses.retain(|status| !is_for_people(&status.context));
        if runs.is_empty() && statuses.is_empty() {
            return Ok(Checks::None);
        }
        let tells_of_failure = |status: &schema::CommitStatus| matches!(status.state.as_str(), "failure" | "error");
        let has_one_failed = runs.iter().any(has_failed) || statuses.iter().any(tells_of_failure);
        let now = self.client.clock().now().unwrap_or_else(Utc::now);
        let is_awaited =
            |status: &schema::CommitStatus| status.state == "pending" && !(has_one_failed && stands_still(status, now));
        let is_run_awaited = |run: &schema::CheckRun| is_running(run) && !(has_one_failed && may_never_end(run, now));
        if runs.iter().any(is_run_awaited) || statuses.iter().any(is_awaited) {
            return Ok(Checks::Running);
        }
        if !has_one_failed {
            return Ok(Checks::Passed);
        }
        runs.retain(has_failed);
        statuses.retain(tells_of_failure);
        let mut failed = Vec::new();
        for run in runs {
            let key = format!("run-{}", run.id);
            if failed.len() < MOST_FAILED && !known.contains(&key) {
                let log = self.log_of(address, &run).await?;
                let name = run.name;
                failed.push(FailedCheck { key, name, log });
            }
        }
        let statuses = statuses.into_iter().map(|status| FailedCheck {
            key: format!("status-{}", status.id),
            name: status.context,
            log: status.description,
        });
        failed.extend(statuses.filter(|check| !known.contains(&check.key)));
        failed.truncate(MOST_FAILED);
        Ok(Checks::Failed(failed))
    }

    /// Returns what GitHub Actions did for a commit: the jobs of each workflow that failed or waits
    /// for a person, and the others as a whole.
    async fn jobs_of(&self, address: ItemAddress<'_>, commit: &str) -> Result<Vec<schema::CheckRun>, Failure> {
        let scope = TokenScope::Repository(address.repository);
        let at = |part: &str| path(address.repository, &format!("/actions/runs{part}per_page=100"));
        let workflows = |page: schema::WorkflowRuns| page.workflow_runs;
        let workflows = self
            .client
            .pages(scope, &at(&format!("?head_sha={commit}&")), workflows)
            .await?;
        let mut found = Vec::new();
        for workflow in workflows {
            let whole = schema::CheckRun::from(workflow);
            let mut jobs = Vec::new();
            if has_failed(&whole) || whole.status == WAITS {
                let of_page = |page: schema::Jobs| page.jobs;
                jobs = self
                    .client
                    .pages(scope, &at(&format!("/{}/jobs?", whole.id)), of_page)
                    .await?;
            }
            // A workflow whose file cannot be read fails without a job.
            if jobs.is_empty() {
                found.push(whole);
            }
            found.extend(jobs.into_iter().map(schema::CheckRun::from));
        }
        Ok(found)
    }

    /// Returns the end of a job's log, or what another service said about its check.
    async fn log_of(&self, address: ItemAddress<'_>, run: &schema::CheckRun) -> Result<Option<String>, Failure> {
        if let Some(job) = job(run) {
            let at = path(address.repository, &format!("/actions/jobs/{job}/logs"));
            let asked = self
                .client
                .fetch_file(TokenScope::Repository(address.repository), &at)
                .await;
            let log = asked.map(|answer| tail(&answer.body));
            return log_or_name(log, &run.name, address);
        }
        let output = &run.output;
        let said: Vec<_> = [&output.title, &output.summary, &output.text]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        Ok((!said.is_empty()).then(|| tail(said.join("\n").as_bytes())))
    }
}

/// Tells whether a check comes to an end by itself; one that waits for other runs does.
fn is_running(run: &schema::CheckRun) -> bool {
    !matches!(run.status.as_str(), "completed" | WAITS)
}

/// Tells whether a check has been queued or running for so long that it may well stay so.
fn may_never_end(run: &schema::CheckRun, now: DateTime<Utc>) -> bool {
    let longest = if run.is_of_actions() && run.status == "in_progress" {
        LONGEST_JOB
    } else {
        STANDS_STILL
    };
    run.started_at.is_some_and(|at| now - at >= longest)
}

/// Tells whether a status has not changed for so long that it may well stay as it is.
fn stands_still(status: &schema::CommitStatus, now: DateTime<Utc>) -> bool {
    status.updated_at.is_some_and(|at| now - at >= STANDS_STILL)
}

/// Tells whether a check failed. One that nobody needs, that was cancelled or that waits for a
/// person did not.
fn has_failed(run: &schema::CheckRun) -> bool {
    matches!(
        run.conclusion.as_deref(),
        Some("failure" | "timed_out" | "startup_failure")
    )
}

/// Returns the number of the job of GitHub Actions that a check shows.
fn job(run: &schema::CheckRun) -> Option<u64> {
    let (address, job) = run.details_url.as_deref()?.rsplit_once("/job/")?;
    address.contains("/actions/runs/").then(|| job.parse().ok())?
}
