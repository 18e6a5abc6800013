//! Pipelines on a fake GitLab.

use crate::fake::gitlab::Item;
use crate::fake::gitlab::state::Time;
use crate::fake::gitlab::state::now;

#[derive(Clone, Debug)]
pub struct Pipeline {
    pub id: u64,
    pub commit: String,
    /// The branch, or `refs/merge-requests/1/merge` of one that runs on merged results
    /// (`.../train` in a merge train).
    pub branch: String,
    /// The commit of the branch that it is about.
    pub source: String,
    /// `running`, `success`, `failed`, ...
    pub status: String,
    pub jobs: Vec<Job>,
    pub created: Time,
}

/// A job of a pipeline, or what another service reported of its commit.
#[derive(Clone, Debug)]
pub struct Job {
    pub id: u64,
    pub name: String,
    pub status: String,
    pub trace: String,
    /// Whether its failure leaves the pipeline as it is.
    pub may_fail: bool,
    /// Whether another service reported it. It is listed with the statuses of the commit alone.
    pub is_external: bool,
}

impl Job {
    pub fn failed(name: &str, trace: &str) -> Self {
        Self::new(name, "failed", trace)
    }

    /// A job whose failure leaves the pipeline as it is.
    pub fn allowed_to_fail(name: &str) -> Self {
        Self {
            may_fail: true,
            ..Self::failed(name, "")
        }
    }

    /// A job that has not begun: `manual`, `scheduled` or `waiting_for_resource`.
    pub fn waiting(name: &str, status: &str) -> Self {
        Self::new(name, status, "")
    }

    /// A report of another service on the commit, with its description.
    pub fn external(name: &str, description: &str) -> Self {
        Self {
            is_external: true,
            ..Self::failed(name, description)
        }
    }

    fn new(name: &str, status: &str, trace: &str) -> Self {
        Self {
            id: 0,
            name: name.to_owned(),
            status: status.to_owned(),
            trace: trace.to_owned(),
            may_fail: false,
            is_external: false,
        }
    }
}

impl Item {
    /// Begins a pipeline on the head commit, with one job.
    pub fn pipeline_begins(&self, job: &str) -> Self {
        self.pipeline(job, "running", "", None)
    }

    /// Begins a pipeline on the head commit, whose job fails.
    pub fn pipeline_fails(&self, job: &str, trace: &str) -> Self {
        self.pipeline(job, "failed", trace, None)
    }

    /// Begins a pipeline on the merge of the head commit into the target branch, whose job fails.
    pub fn merged_pipeline_fails(&self, job: &str, trace: &str) -> Self {
        self.pipeline(job, "failed", trace, Some("merge"))
    }

    /// The same, passing.
    pub fn merged_pipeline_passes(&self, job: &str) -> Self {
        self.pipeline(job, "success", "", Some("merge"))
    }

    /// Begins a pipeline in a merge train, on the merge with all that is before it there, whose job
    /// fails: the train goes on without it.
    pub fn train_pipeline_fails(&self, job: &str, trace: &str) -> Self {
        self.pipeline(job, "failed", trace, Some("train"))
    }

    pub fn pipeline_passes(&self, job: &str) -> Self {
        self.pipeline(job, "success", "", None)
    }

    /// Begins a pipeline on the head commit, which fails in all of these.
    pub fn pipeline_fails_in(&self, jobs: Vec<Job>) -> Self {
        self.pipeline_of(jobs, "failed", None)
    }

    /// Begins a pipeline on the head commit of which one job waits, and all others have failed. Its
    /// status is that of the waiting one.
    pub fn pipeline_waits_beside(&self, mut failed: Vec<Job>, status: &str) -> Self {
        failed.push(Job::waiting("deploy", status));
        self.pipeline_of(failed, status, None)
    }

    fn pipeline(&self, job: &str, status: &str, trace: &str, merged: Option<&str>) -> Self {
        self.pipeline_of(vec![Job::new(job, status, trace)], status, merged)
    }

    fn pipeline_of(&self, mut jobs: Vec<Job>, status: &str, merged: Option<&str>) -> Self {
        let head = format!("refs/merge-requests/{}/head", self.iid());
        let found = self.look(|state| state.project(self.project())?.git.resolve(&head));
        let source = found.expect("every merge request keeps its head");
        // The merge is nobody's commit but GitLab's.
        let (commit, branch) = match merged {
            Some(of) => {
                let merge: String = source.chars().rev().collect();
                (merge, format!("refs/merge-requests/{}/{of}", self.iid()))
            }
            None => (source.clone(), self.source()),
        };
        self.act(|state| {
            let id = state.next_id();
            for job in &mut jobs {
                job.id = state.next_id();
            }
            let pipeline = Pipeline {
                id,
                commit,
                branch,
                source,
                status: status.to_owned(),
                jobs,
                created: now(),
            };
            if let Some(project) = state.project_mut(self.project()) {
                project.pipelines.push(pipeline);
            }
        })
    }
}
