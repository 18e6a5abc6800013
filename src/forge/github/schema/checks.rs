//! The parts of GitHub's answers about the checks of a commit.

use chrono::{DateTime, Utc};
use serde::Deserialize;

/// The name of GitHub Actions as an App.
const ACTIONS: &str = "github-actions";

#[derive(Deserialize)]
pub(crate) struct CheckRuns {
    pub(crate) check_runs: Vec<CheckRun>,
}

#[derive(Deserialize)]
pub(crate) struct CheckRun {
    pub(crate) id: u64,
    pub(crate) name: String,
    /// `completed` once there is a conclusion; before that `queued`, `in_progress`, and of GitHub
    /// Actions also `requested`, `pending` or `waiting`.
    pub(crate) status: String,
    pub(crate) conclusion: Option<String>,
    /// When it began; of one that is queued, when it was created.
    pub(crate) started_at: Option<DateTime<Utc>>,
    /// Who made it.
    pub(crate) app: Option<CheckApp>,
    /// The address of the details; that of a job of GitHub Actions ends in `/job/<id>`.
    pub(crate) details_url: Option<String>,
    #[serde(default)]
    pub(crate) output: CheckOutput,
}

/// The GitHub App that made a check, such as GitHub Actions itself.
#[derive(Deserialize)]
pub(crate) struct CheckApp {
    slug: Option<String>,
}

impl CheckApp {
    fn actions() -> Self {
        let slug = Some(ACTIONS.to_owned());
        Self { slug }
    }
}

impl CheckRun {
    /// Tells whether GitHub Actions made it.
    pub(crate) fn is_of_actions(&self) -> bool {
        let app = self.app.as_ref().and_then(|app| app.slug.as_deref());
        app == Some(ACTIONS)
    }
}

/// The output of a check.
#[derive(Deserialize, Default)]
pub(crate) struct CheckOutput {
    pub(crate) title: Option<String>,
    pub(crate) summary: Option<String>,
    pub(crate) text: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct WorkflowRuns {
    pub(crate) workflow_runs: Vec<WorkflowRun>,
}

/// A workflow of GitHub Actions at work for one commit.
#[derive(Deserialize)]
pub(crate) struct WorkflowRun {
    id: u64,
    name: Option<String>,
    /// `completed` once there is a conclusion.
    status: Option<String>,
    conclusion: Option<String>,
    /// When something of it changed last.
    updated_at: Option<DateTime<Utc>>,
}

impl From<WorkflowRun> for CheckRun {
    fn from(run: WorkflowRun) -> Self {
        Self {
            id: run.id,
            name: run.name.unwrap_or_else(|| "workflow".to_owned()),
            status: run.status.unwrap_or_default(),
            conclusion: run.conclusion,
            started_at: run.updated_at,
            app: Some(CheckApp::actions()),
            details_url: None,
            output: CheckOutput::default(),
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct Jobs {
    pub(crate) jobs: Vec<Job>,
}

/// A job of a workflow. The check run that shows it has the same number.
#[derive(Deserialize)]
pub(crate) struct Job {
    id: u64,
    name: String,
    status: String,
    conclusion: Option<String>,
    /// When it began; of one that is queued, when it was created.
    started_at: Option<DateTime<Utc>>,
    /// Address of its page, which ends in `/job/<id>`.
    html_url: Option<String>,
}

impl From<Job> for CheckRun {
    fn from(job: Job) -> Self {
        Self {
            id: job.id,
            name: job.name,
            status: job.status,
            conclusion: job.conclusion,
            started_at: job.started_at,
            app: Some(CheckApp::actions()),
            details_url: job.html_url,
            output: CheckOutput::default(),
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct CombinedStatus {
    pub(crate) statuses: Vec<CommitStatus>,
}

/// The newest status of one context, as older services report.
#[derive(Deserialize)]
pub(crate) struct CommitStatus {
    pub(crate) id: u64,
    pub(crate) context: String,
    /// `success`, `pending`, `failure` or `error`.
    pub(crate) state: String,
    pub(crate) description: Option<String>,
    pub(crate) updated_at: Option<DateTime<Utc>>,
}
