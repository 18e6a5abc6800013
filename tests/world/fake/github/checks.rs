//! The checks on the commits of a fake GitHub: jobs of GitHub Actions with their logs, checks of
//! another service, and commit statuses.

use crate::fake::github::Item;
use crate::fake::github::state::State;
use crate::fake::github::state::Time;
use crate::fake::github::state::now;

/// A job of GitHub Actions. The check that shows it has the same number.
#[derive(Clone, Debug)]
pub struct Job {
    pub id: u64,
    pub commit: String,
    pub name: String,
    /// The conclusion, such as `success` or `failure`; `None` while the job runs.
    pub conclusion: Option<String>,
    pub log: String,
    /// Whether it waits until somebody lets it go on.
    pub is_held: bool,
    /// Whether it is the check of another service, and no job.
    pub is_foreign: bool,
    pub started: Time,
}

impl Job {
    pub fn status(&self) -> &'static str {
        match &self.conclusion {
            Some(_) => "completed",
            None if self.is_held => "waiting",
            None => "in_progress",
        }
    }
}

/// A commit status, as older services set it.
#[derive(Clone, Debug)]
pub struct Status {
    pub id: u64,
    pub commit: String,
    pub context: String,
    /// The state: `pending`, `success`, `failure` or `error`.
    pub state: String,
    pub description: String,
    pub made: Time,
}

impl Item {
    /// Begins a job on the head commit, as GitHub Actions does after a push.
    pub fn check_begins(&self, name: &str) -> Self {
        self.check(name, None, "")
    }

    /// Begins a job on the head commit that waits until somebody lets it go on, as one that deploys
    /// does.
    pub fn check_waits(&self, name: &str) -> Self {
        self.check_begins(name).change_check(name, |job| job.is_held = true)
    }

    /// Begins a check of another service than GitHub Actions on the head commit.
    pub fn foreign_check_begins(&self, name: &str) -> Self {
        self.check_begins(name).change_check(name, |job| job.is_foreign = true)
    }

    /// Lets a check on the head commit have begun so many minutes earlier.
    pub fn check_is_older(&self, name: &str, minutes: i64) -> Self {
        self.change_check(name, |job| job.started -= chrono::Duration::minutes(minutes))
    }

    /// Lets all statuses have been set so many minutes earlier.
    pub fn statuses_are_older(&self, minutes: i64) -> Self {
        self.act(|state| {
            let place = state.repository_mut(self.repository());
            let statuses = place.into_iter().flat_map(|place| &mut place.statuses);
            statuses.for_each(|status| status.made -= chrono::Duration::minutes(minutes));
        })
    }

    /// Ends a job on the head commit badly.
    pub fn check_fails(&self, name: &str, log: &str) -> Self {
        self.check(name, Some("failure"), log)
    }

    pub fn check_passes(&self, name: &str) -> Self {
        self.check(name, Some("success"), "")
    }

    /// Sets a status on the head commit: `pending`, `success`, `failure` or `error`.
    pub fn status(&self, context: &str, state: &str, description: &str) -> Self {
        let commit = self.head_commit();
        self.act(|whole| {
            let status = Status {
                id: whole.next_id(),
                commit,
                context: context.to_owned(),
                state: state.to_owned(),
                description: description.to_owned(),
                made: now(),
            };
            if let Some(place) = whole.repository_mut(self.repository()) {
                place.statuses.push(status);
            }
        })
    }

    pub fn head_commit(&self) -> String {
        let head = format!("refs/pull/{}/head", self.number());
        let found = self.look(|state| state.repository(self.repository())?.git.resolve(&head));
        found.expect("every pull request keeps its head")
    }

    fn change_check(&self, name: &str, change: impl Fn(&mut Job)) -> Self {
        let commit = self.head_commit();
        self.act(|state| {
            let place = state.repository_mut(self.repository());
            let jobs = place.into_iter().flat_map(|place| &mut place.jobs);
            jobs.filter(|job| job.commit == commit && job.name == name)
                .for_each(change);
        })
    }

    fn check(&self, name: &str, conclusion: Option<&str>, log: &str) -> Self {
        let commit = self.head_commit();
        self.act(|state| state.job(self.repository(), (&commit, name), conclusion, log))
    }
}

impl State {
    /// Begins a job, or ends the one of that name. One that is run again after its end is another
    /// one.
    fn job(&mut self, repository: &str, (commit, name): (&str, &str), conclusion: Option<&str>, log: &str) {
        let id = self.next_id();
        let Some(place) = self.repository_mut(repository) else {
            return;
        };
        let known = place
            .jobs
            .iter_mut()
            .find(|job| job.commit == commit && job.name == name);
        let conclusion = conclusion.map(str::to_owned);
        if let Some(job) = known {
            if job.conclusion.is_some() {
                job.id = id;
            }
            (job.conclusion, job.log, job.is_held) = (conclusion, log.to_owned(), false);
            return;
        }
        place.jobs.push(Job {
            id,
            commit: commit.to_owned(),
            name: name.to_owned(),
            conclusion,
            log: log.to_owned(),
            is_held: false,
            is_foreign: false,
            started: now(),
        });
    }
}
