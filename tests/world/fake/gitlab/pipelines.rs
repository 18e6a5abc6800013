//! Pipelines on a fake GitLab.

use crate::fake::gitlab::Item;
use crate::fake::gitlab::state::Time;
use crate::fake::gitlab::state::now;

#[derive(Clone, Debug)]
pub struct Pipeline {
    pub id: u64,
    pub commit: String,
    pub branch: String,
    /// `running`, `success`, `failed`, ...
    pub status: String,
    pub jobs: Vec<Job>,
    pub created: Time,
}

#[derive(Clone, Debug)]
pub struct Job {
    pub id: u64,
    pub name: String,
    pub status: String,
    pub trace: String,
}

impl Item {
    /// Begins a pipeline on the head commit, with one job.
    pub fn pipeline_begins(&self, job: &str) -> Self {
        self.pipeline(job, "running", "")
    }

    /// Begins a pipeline on the head commit, whose job fails.
    pub fn pipeline_fails(&self, job: &str, trace: &str) -> Self {
        self.pipeline(job, "failed", trace)
    }

    pub fn pipeline_passes(&self, job: &str) -> Self {
        self.pipeline(job, "success", "")
    }

    fn pipeline(&self, job: &str, status: &str, trace: &str) -> Self {
        let head = format!("refs/merge-requests/{}/head", self.iid());
        let found = self.look(|state| state.project(self.project())?.git.resolve(&head));
        let commit = found.expect("every merge request keeps its head");
        let branch = self.source();
        self.act(|state| {
            let (id, job_id) = (state.next_id(), state.next_id());
            let job = Job {
                id: job_id,
                name: job.to_owned(),
                status: status.to_owned(),
                trace: trace.to_owned(),
            };
            let pipeline = Pipeline {
                id,
                commit,
                branch,
                status: status.to_owned(),
                jobs: vec![job],
                created: now(),
            };
            if let Some(project) = state.project_mut(self.project()) {
                project.pipelines.push(pipeline);
            }
        })
    }
}
