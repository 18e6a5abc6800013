//! gitlab.com or an own GitLab, through the typed endpoints of the gitlab crate.
//!
//! Each topic stands in a module of its own and implements the trait of `forge::platform` of that
//! name; `http` sends, repeats and counts the requests. What is stable within a run (projects) is
//! asked once; an item itself is always asked anew.

mod config;
mod remedies;
mod schema;
mod http;
mod people;
mod item;
mod search;
mod change;
mod examine;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use gitlab::api::common::NameOrId;
use gitlab::api::projects;
use tokio::sync::OnceCell;

pub use self::config::{ConfidentialIssues, Config};
use self::http::Client;
use crate::forge::ForgeError;
use crate::forge::host::Host;
use crate::forge::http::cache::Cache;
use crate::forge::http::clock::Clock;
use crate::forge::http::failure::Failure;
use crate::forge::http::meter::Traffic;
use crate::forge::http::validators::Validators;
use crate::forge::platform::{Platform, Right};
use crate::forge::settings::{HostSettings, Terms};
use crate::task::id::ItemKind;

/// A GitLab that tasks come from.
pub type GitLab = Host<Api>;

/// GitLab's API, as far as the program uses it.
pub struct Api {
    client: Client,
    settings: HostSettings,
    confidential_issues: ConfidentialIssues,
    bot: OnceCell<String>,
    projects: Cache<schema::Project>,
}

/// Sets up the client without a request; a wrong token shows with the first call.
pub fn connect(config: &Config) -> Result<GitLab, ForgeError> {
    let settings = HostSettings::new(
        &Api::TERMS,
        config.name.as_deref(),
        &config.labels,
        &config.trigger,
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
    Ok(Host::new(Api {
        client: Client::connect(config)?,
        settings,
        confidential_issues: config.confidential_issues,
        bot,
        projects: Cache::new(),
    }))
}

impl Platform for Api {
    const TERMS: Terms = Terms {
        platform: "GitLab",
        section: "gitlab",
        api: remedies::API,
        change: "merge request",
        checks: "pipelines",
        repository: "project",
        renew: remedies::RENEW,
    };
    const CHANGE: ItemKind = ItemKind::MergeRequest;

    fn settings(&self) -> &HostSettings {
        &self.settings
    }

    fn remedy(right: Right, place: &str) -> String {
        remedies::remedy(right, place)
    }

    fn traffic(&self) -> Traffic {
        self.client.traffic()
    }

    fn validators(&self) -> &Validators {
        self.client.validators()
    }

    fn clock(&self) -> &Clock {
        self.client.clock()
    }
}

impl Api {
    async fn is_bot(&self, user: Option<&schema::User>) -> Result<bool, Failure> {
        let Some(user) = user else { return Ok(false) };
        Ok(self.own_login().await?.eq_ignore_ascii_case(&user.username))
    }

    /// Returns the project, from the cache if it was read a short while ago. One without commits is
    /// read each time, because the first commit may come at any moment.
    async fn project(&self, name: &str) -> Result<Arc<schema::Project>, Failure> {
        if let Some(project) = self.projects.fact(name).filter(|project| !project.empty_repo) {
            return Ok(project);
        }
        let project = self.ask_project(name).await?;
        Ok(self.projects.learn(name, project))
    }

    async fn ask_project(&self, name: impl Into<NameOrId<'_>>) -> Result<schema::Project, Failure> {
        self.client
            .ask(projects::Project::builder().project(name).build())
            .await
    }
}
