//! gitlab.com or an own GitLab, through the typed endpoints of the gitlab crate.
//!
//! Each topic stands in a file of its own and implements the trait of `forge::platform` of that
//! name; `client` sends, repeats and counts the requests. What is stable within a run (projects) is
//! asked once; an item itself is always asked anew.

mod changes;
mod checks;
mod client;
mod config;
mod endpoints;
mod examine;
mod history;
mod items;
mod labels;
mod notes;
mod people;
mod reactions;
mod rights;
mod search;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::Arc;

use gitlab::api::common::NameOrId;
use gitlab::api::projects;
use tokio::sync::OnceCell;

use self::client::Client;
pub use self::config::{ConfidentialIssues, Config};
use super::ForgeError;
use super::cache::Cache;
use super::failure::Failure;
use super::host::Host;
use super::platform::{HostSettings, Platform, Right, Words};
use super::validators::Validators;
use crate::task::id::ItemKind;

/// A GitLab that tasks come from.
pub type GitLab = Host<Api>;

/// GitLab's API, as far as the program uses it.
pub struct Api {
    client: Client,
    settings: HostSettings,
    confidential_issues: ConfidentialIssues,
    bot: OnceCell<String>,
    projects: Cache<wire::Project>,
}

impl Host<Api> {
    /// Sets up the client. Nothing is asked of GitLab yet; a wrong token shows with the first call.
    #[expect(
        clippy::unused_async,
        reason = "the same shape as for GitHub, so that callers treat both alike"
    )]
    pub async fn connect(config: &Config) -> Result<Self, ForgeError> {
        let settings = HostSettings::new(
            &Api::WORDS,
            config.name.as_deref(),
            &config.labels,
            &config.projects,
            &config.allowed_users,
        );
        let settings = settings.ok_or_else(|| ForgeError::Unexpected {
            what: "connecting to GitLab".to_owned(),
            reason: "its name cannot stand in the id of a task".to_owned(),
        })?;
        let bot = match config.bot_name.trim().trim_start_matches('@') {
            "" => OnceCell::new(),
            name => OnceCell::new_with(Some(name.to_owned())),
        };
        Ok(Self::new(Api {
            client: Client::connect(config)?,
            settings,
            confidential_issues: config.confidential_issues,
            bot,
            projects: Cache::new(),
        }))
    }
}

impl Platform for Api {
    const WORDS: Words = Words {
        platform: "GitLab",
        section: "gitlab",
        api: "a GitLab",
        change: "merge request",
        checks: "pipelines",
        repository: "project",
        renew: rights::RENEW,
    };
    const CHANGE: ItemKind = ItemKind::MergeRequest;

    fn settings(&self) -> &HostSettings {
        &self.settings
    }

    fn remedy(right: Right, place: &str) -> String {
        rights::remedy(right, place)
    }

    fn requests(&self) -> u64 {
        self.client.requests()
    }

    fn validators(&self) -> &Validators {
        self.client.validators()
    }
}

impl Api {
    async fn is_bot(&self, user: Option<&wire::User>) -> Result<bool, Failure> {
        let Some(user) = user else { return Ok(false) };
        Ok(self.own_login().await?.eq_ignore_ascii_case(&user.username))
    }

    /// Returns the project, from memory where it was asked a short while ago. One without commits
    /// is asked each time: the first commit may come any moment.
    async fn project(&self, name: &str) -> Result<Arc<wire::Project>, Failure> {
        if let Some(project) = self.projects.fact(name).filter(|project| !project.empty_repo) {
            return Ok(project);
        }
        let project = self.ask_project(name).await?;
        Ok(self.projects.learn(name, project))
    }

    async fn ask_project(&self, name: impl Into<NameOrId<'_>>) -> Result<wire::Project, Failure> {
        self.client
            .ask(projects::Project::builder().project(name).build())
            .await
    }
}
