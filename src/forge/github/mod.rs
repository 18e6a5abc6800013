//! GitHub and GitHub Enterprise, through octocrab.
//!
//! Each topic stands in a file of its own and implements the trait of `forge::platform` of that
//! name; `client` sends, repeats and counts the requests. What is stable within a run
//! (repositories, whether a number is a pull request) is asked once; an item itself is always asked
//! anew.

mod answer;
mod app;
mod changes;
mod checks;
mod client;
mod comments;
mod config;
mod connecting;
mod elsewhere;
mod examine;
mod history;
mod installations;
mod items;
mod labels;
mod people;
mod reactions;
mod rights;
mod search;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::sync::OnceCell;

use self::client::Client;
pub use self::config::{App, Config};
use self::installations::Rights;
use super::ForgeError;
use super::address::Address;
use super::cache::Cache;
use super::failure::Failure;
use super::host::Host;
use super::platform::{HostSettings, Platform, Right, Words};
use super::validators::Validators;
use crate::task::id::ItemKind;

/// A GitHub that tasks come from.
pub type GitHub = Host<Api>;

/// GitHub's API, as far as the program uses it.
pub struct Api {
    client: Client,
    settings: HostSettings,
    query: Option<String>,
    is_app: bool,
    bot: OnceCell<String>,
    repositories: Cache<wire::Repository>,
    /// By `owner/repo#number`.
    kinds: Cache<Kind>,
    /// Set once GitHub demanded separate searches for issues and pull requests, as it does of
    /// fine-grained tokens.
    searches_separately: AtomicBool,
}

/// The kind of a number, which an id does not tell: GitHub numbers both together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Issue,
    PullRequest,
}

impl Host<Api> {
    /// Sets up the client. Nothing is asked of GitHub yet; a wrong token shows with the first call.
    pub async fn connect(config: &Config) -> Result<Self, ForgeError> {
        let unusable = |reason: &str| ForgeError::Unexpected {
            what: "connecting to GitHub".to_owned(),
            reason: reason.to_owned(),
        };
        if config.token.is_none() && config.app.is_none() {
            return Err(unusable("there is no token; set github.token or github.app"));
        }
        let settings = HostSettings::new(
            &Api::WORDS,
            config.name.as_deref(),
            &config.labels,
            &config.repositories,
            &config.allowed_users,
        );
        let is_app = config.token.is_none();
        let bot = match config.bot_name.trim() {
            "" => OnceCell::new(),
            name if is_app && !name.ends_with("[bot]") => OnceCell::new_with(Some(format!("{name}[bot]"))),
            name => OnceCell::new_with(Some(name.to_owned())),
        };
        Ok(Self::new(Api {
            client: Client::connect(config).await?,
            settings: settings.ok_or_else(|| unusable("its name cannot stand in the id of a task"))?,
            query: config.query.clone().filter(|query| !query.trim().is_empty()),
            is_app,
            bot,
            repositories: Cache::new(),
            kinds: Cache::new(),
            searches_separately: AtomicBool::new(false),
        }))
    }
}

impl Platform for Api {
    const WORDS: Words = Words {
        platform: "GitHub",
        section: "github",
        api: "a GitHub REST API",
        change: "pull request",
        checks: "checks",
        repository: "repository",
        renew: rights::RENEW,
    };
    const CHANGE: ItemKind = ItemKind::Issue;

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
        Ok(self.own_login().await?.eq_ignore_ascii_case(&user.login))
    }

    /// Returns the repository, from memory where it was asked a short while ago.
    async fn repository(&self, name: &str) -> Result<Arc<wire::Repository>, Failure> {
        if let Some(repository) = self.repositories.fact(name) {
            return Ok(repository);
        }
        let repository = self.ask_repository(name).await?;
        Ok(self.repositories.learn(name, repository))
    }

    async fn ask_repository(&self, name: &str) -> Result<wire::Repository, Failure> {
        self.client.get(Rights::Repository(name), &client::path(name, "")).await
    }

    async fn ask_issue(&self, address: Address<'_>) -> Result<wire::Issue, Failure> {
        let at = client::path(address.repository, &format!("/issues/{}", address.number));
        self.client.get(Rights::Repository(address.repository), &at).await
    }
}
