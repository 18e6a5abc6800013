//! GitHub and GitHub Enterprise, through octocrab.
//!
//! Each topic stands in a module of its own and implements the trait of `forge::platform` of that
//! name; `http` sends, repeats and counts the requests. What is stable within a run
//! (repositories, whether a number is a pull request) is asked once; an item itself is always asked
//! anew.

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
use std::sync::atomic::AtomicBool;

use tokio::sync::OnceCell;

pub use self::config::{App, Config};
use self::http::Client;
use self::http::TokenScope;
use crate::forge::ForgeError;
use crate::forge::host::Host;
use crate::forge::http::cache::Cache;
use crate::forge::http::clock::Clock;
use crate::forge::http::failure::Failure;
use crate::forge::http::meter::Traffic;
use crate::forge::http::validators::Validators;
use crate::forge::item::address::ItemAddress;
use crate::forge::platform::{Platform, Right};
use crate::forge::settings::{HostSettings, Terms};
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
    repositories: Cache<schema::Repository>,
    /// Whether an item is an issue or a pull request, by `owner/repo#number`.
    kinds: Cache<Kind>,
    /// Set once GitHub demanded separate searches for issues and pull requests, as it does of
    /// fine-grained tokens.
    searches_separately: AtomicBool,
}

/// The kind of a number, which an id does not tell: GitHub numbers both together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Issue,
    PullRequest,
}

/// Sets up the client without a request; a wrong token shows with the first call.
pub async fn connect(config: &Config) -> Result<GitHub, ForgeError> {
    let unusable = |reason: &str| ForgeError::Unexpected {
        what: "connecting to GitHub".to_owned(),
        reason: reason.to_owned(),
    };
    if config.token.is_none() && config.app.is_none() {
        return Err(unusable("there is no token; set github.token or github.app"));
    }
    let settings = HostSettings::new(
        &Api::TERMS,
        config.name.as_deref(),
        &config.labels,
        &config.trigger,
        &config.repositories,
        &config.allowed_users,
    );
    let is_app = config.token.is_none();
    let bot = match config.bot_name.trim() {
        "" => OnceCell::new(),
        name if is_app && !name.ends_with("[bot]") => OnceCell::new_with(Some(format!("{name}[bot]"))),
        name => OnceCell::new_with(Some(name.to_owned())),
    };
    Ok(Host::new(Api {
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

impl Platform for Api {
    const TERMS: Terms = Terms {
        platform: "GitHub",
        section: "github",
        api: remedies::API,
        change: "pull request",
        checks: "checks",
        repository: "repository",
        renew: remedies::RENEW,
    };
    const CHANGE: ItemKind = ItemKind::Issue;

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
        Ok(self.own_login().await?.eq_ignore_ascii_case(&user.login))
    }

    /// Returns the repository, from the cache if it was read a short while ago.
    async fn repository(&self, name: &str) -> Result<Arc<schema::Repository>, Failure> {
        if let Some(repository) = self.repositories.fact(name) {
            return Ok(repository);
        }
        let repository = self.ask_repository(name).await?;
        Ok(self.repositories.learn(name, repository))
    }

    async fn ask_repository(&self, name: &str) -> Result<schema::Repository, Failure> {
        self.client
            .get(TokenScope::Repository(name), &http::path(name, ""))
            .await
    }

    async fn ask_issue(&self, address: ItemAddress<'_>) -> Result<schema::Issue, Failure> {
        let at = http::path(address.repository, &format!("/issues/{}", address.number));
        self.client.get(TokenScope::Repository(address.repository), &at).await
    }
}
