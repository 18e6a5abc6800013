//! GitHub and GitHub Enterprise, through octocrab.
//!
//! Each operation stands in a file of its own; `client` sends, repeats and counts the requests.
//! What is stable within a run (repositories, labels, whether a number is a pull request) is asked
//! once; an item itself is always asked anew.

mod allowed;
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
#[cfg(test)]
mod tests;
mod triggered;
mod wire;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::sync::OnceCell;

use self::client::Client;
pub use self::config::{App, Config};
use self::installations::Rights;
use self::rights::{RENEW, Right};
use super::allowed_users::AllowedUsers;
use super::cache::Cache;
use super::failure::{Attempt, Failure};
use super::source::Source;
use super::watched::{Checks, OpenChange};
use super::who::Who;
use super::{
    Change, Comment, CommentId, CommentKey, Deed, Edit, Forge, ForgeError, GitCredentials, Item, KnownAnswer,
    NewChange, Post, Reaction, Search,
};
use crate::finding::Finding;
use crate::task::id::TaskId;
use crate::task::labels::Labels;

/// GitHub's side of the work.
pub struct GitHub {
    client: Client,
    labels: Labels,
    sources: Vec<Source>,
    query: Option<String>,
    allowed_users: AllowedUsers,
    is_app: bool,
    bot: OnceCell<String>,
    repositories: Cache<wire::Repository>,
    /// The names, in lower case, of the labels of a repository.
    known_labels: Cache<BTreeSet<String>>,
    /// By `owner/repo#number`.
    kinds: Cache<Kind>,
    /// Set once GitHub demanded separate searches for issues and pull requests, as it does of
    /// fine-grained tokens.
    searches_separately: AtomicBool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Issue,
    PullRequest,
}

/// Where a task lives on GitHub.
#[derive(Debug, Clone, Copy)]
struct Address<'a> {
    repository: &'a str,
    number: u64,
}

impl GitHub {
    /// Sets up the client. Nothing is asked of GitHub yet; a wrong token shows with the first call.
    pub async fn connect(config: &Config) -> Result<Self, ForgeError> {
        if config.token.is_none() && config.app.is_none() {
            return Err(ForgeError::Unexpected {
                what: "connecting to GitHub".to_owned(),
                reason: "there is no token; set github.token or github.app".to_owned(),
            });
        }
        let is_app = config.token.is_none();
        let bot = match config.bot_name.trim() {
            "" => OnceCell::new(),
            name if is_app && !name.ends_with("[bot]") => OnceCell::new_with(Some(format!("{name}[bot]"))),
            name => OnceCell::new_with(Some(name.to_owned())),
        };
        Ok(Self {
            client: Client::connect(config).await?,
            labels: config.labels.clone(),
            sources: config.repositories.iter().map(|entry| Source::parse(entry)).collect(),
            query: config.query.clone().filter(|query| !query.trim().is_empty()),
            allowed_users: AllowedUsers::new(&config.allowed_users),
            is_app,
            bot,
            repositories: Cache::new(),
            known_labels: Cache::new(),
            kinds: Cache::new(),
            searches_separately: AtomicBool::new(false),
        })
    }

    /// Returns the login that the bot's own comments carry.
    async fn bot(&self) -> Result<&str, Failure> {
        let login = self.bot.get_or_try_init(|| async {
            if self.is_app {
                let app: wire::AppItself = self.client.get_own("/app").await?;
                return Ok(format!("{}[bot]", app.slug));
            }
            let user: wire::User = self.client.get_own("/user").await?;
            Ok(user.login)
        });
        login.await.map(String::as_str)
    }

    async fn is_bot(&self, user: Option<&wire::User>) -> Result<bool, Failure> {
        let Some(user) = user else { return Ok(false) };
        Ok(self.bot().await?.eq_ignore_ascii_case(&user.login))
    }

    /// Returns the repository, from memory where it was asked a short while ago.
    async fn repository(&self, name: &str) -> Result<std::sync::Arc<wire::Repository>, Failure> {
        if let Some(repository) = self.repositories.fact(name) {
            return Ok(repository);
        }
        let repository = self
            .client
            .get(Rights::Repository(name), &client::path(name, ""))
            .await?;
        Ok(self.repositories.learn(name, repository))
    }

    /// Turns the failure of what was tried on an item, if it failed, into an error that says why.
    async fn or_explain<T>(
        &self,
        outcome: Result<T, Failure>,
        address: Address<'_>,
        what: &str,
        right: Right,
    ) -> Result<T, ForgeError> {
        match outcome {
            Ok(done) => Ok(done),
            Err(failure) => Err(self.explain(failure, address, what, right).await),
        }
    }

    /// Turns a failure about an item into an error.
    ///
    /// A 404 may mean that the item is gone, that it lies in another repository now, or that the
    /// token may not see or do it: GitHub does not tell them apart. What can still be read does, so
    /// it is asked, in this case only.
    async fn explain(&self, failure: Failure, address: Address<'_>, what: &str, right: Right) -> ForgeError {
        let remedy = right.remedy(address.repository);
        let attempt = attempt(what, &remedy);
        if failure.says(http::StatusCode::GONE, "disabled") {
            let remedy = format!("switch issues on in the settings of {}", address.repository);
            return ForgeError::Refused {
                platform: PLATFORM,
                what: what.to_owned(),
                status: 410,
                remedy,
            };
        }
        if !failure.is_missing() {
            return attempt.failed(failure);
        }
        let rights = Rights::Repository(address.repository);
        let item = client::path(address.repository, &format!("/issues/{}", address.number));
        match self.client.get::<wire::Issue>(rights, &item).await {
            Ok(_) => return attempt.failed(failure),
            Err(asked) if asked.is_missing() => {}
            Err(asked) => return attempt.failed(asked),
        }
        match self
            .client
            .get::<wire::Repository>(rights, &client::path(address.repository, ""))
            .await
        {
            Ok(_) => ForgeError::Gone { what: what.to_owned() },
            Err(_) => attempt.failed(failure),
        }
    }
}

const PLATFORM: &str = "GitHub";

fn attempt<'a>(what: &'a str, remedy: &'a str) -> Attempt<'a> {
    Attempt {
        platform: PLATFORM,
        what,
        remedy,
        renew: RENEW,
    }
}

impl<'a> Address<'a> {
    fn of(task: &'a TaskId) -> Result<Self, ForgeError> {
        match task {
            TaskId::GitHub { repository, number } => Ok(Self {
                repository,
                number: *number,
            }),
            TaskId::GitLabIssue { .. } | TaskId::GitLabMergeRequest { .. } | TaskId::Local { .. } => {
                Err(ForgeError::Unexpected {
                    what: format!("asking GitHub for {task}"),
                    reason: "it is not a task on GitHub".to_owned(),
                })
            }
        }
    }
}

impl std::fmt::Display for Address<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}#{}", self.repository, self.number)
    }
}

#[async_trait]
impl Forge for GitHub {
    async fn triggered(&self) -> Search {
        self.search_triggered().await
    }

    async fn item(&self, task: &TaskId) -> Result<Item, ForgeError> {
        let address = Address::of(task)?;
        let what = format!("reading {address}");
        let outcome = self.read_item(task, address).await;
        self.or_explain(outcome, address, &what, Right::ReadIssues).await
    }

    async fn comments(&self, task: &TaskId) -> Result<Vec<Comment>, ForgeError> {
        let address = Address::of(task)?;
        let what = format!("reading the comments of {address}");
        let outcome = self.read_comments(address).await;
        self.or_explain(outcome, address, &what, Right::ReadIssues).await
    }

    async fn is_authorised(&self, task: &TaskId, who: Who<'_>) -> Result<bool, ForgeError> {
        let address = Address::of(task)?;
        Ok(self.allows(who) || self.look_up_role(address, who).await?)
    }

    fn allows(&self, who: Who<'_>) -> bool {
        self.allowed_users.name(who)
    }

    async fn triggered_by(&self, task: &TaskId) -> Result<Option<Deed>, ForgeError> {
        let address = Address::of(task)?;
        let what = format!("asking who put the label on {address}");
        let outcome = self.find_trigger(address).await;
        self.or_explain(outcome, address, &what, Right::ReadIssues).await
    }

    async fn edits_since(&self, item: &Item, since: DateTime<Utc>) -> Result<Vec<Edit>, ForgeError> {
        let address = Address::of(&item.task)?;
        let what = format!("asking who changed {address}");
        let outcome = self.find_edits(address, item.change.as_ref(), since).await;
        self.or_explain(outcome, address, &what, Right::ReadIssues).await
    }

    async fn react(&self, task: &TaskId, comment: CommentKey, reaction: Reaction) -> Result<(), ForgeError> {
        self.put_reaction(Address::of(task)?, comment, reaction).await
    }

    async fn bot_name(&self) -> Result<String, ForgeError> {
        self.own_name().await
    }

    async fn add_label(&self, task: &TaskId, label: &str) -> Result<(), ForgeError> {
        let address = Address::of(task)?;
        let what = format!("putting the label '{label}' on {address}");
        let outcome = self.put_label(address, label).await;
        self.or_explain(outcome, address, &what, Right::WriteIssues).await
    }

    async fn remove_label(&self, task: &TaskId, label: &str) -> Result<(), ForgeError> {
        let address = Address::of(task)?;
        let what = format!("taking the label '{label}' off {address}");
        let outcome = self.take_label(address, label).await;
        self.or_explain(outcome, address, &what, Right::WriteIssues).await
    }

    async fn comment(&self, task: &TaskId, post: &Post<'_>) -> Result<CommentId, ForgeError> {
        let address = Address::of(task)?;
        let what = format!("commenting on {address}");
        let outcome = self.write_comment(address, post).await;
        self.or_explain(outcome, address, &what, Right::WriteIssues).await
    }

    async fn edit_comment(&self, task: &TaskId, comment: CommentId, post: &Post<'_>) -> Result<(), ForgeError> {
        let address = Address::of(task)?;
        self.rewrite_comment(address, comment, post).await
    }

    async fn change_from(&self, task: &TaskId, head: &str) -> Result<Option<Change>, ForgeError> {
        let address = Address::of(task)?;
        let found = self.find_change(address, head).await;
        found.map_err(|failure| {
            let what = format!("looking for the pull request from {head} in {}", address.repository);
            attempt(&what, &Right::ReadPulls.remedy(address.repository)).failed(failure)
        })
    }

    async fn open_change(&self, task: &TaskId, change: &NewChange) -> Result<Change, ForgeError> {
        let address = Address::of(task)?;
        let opened = self.open_pull_request(address, change).await;
        opened.map_err(|failure| {
            let what = format!("opening a pull request from {} in {}", change.head, address.repository);
            attempt(&what, &Right::WritePulls.remedy(address.repository)).failed(failure)
        })
    }

    async fn open_changes(&self, changes: &[TaskId]) -> Result<Vec<OpenChange>, ForgeError> {
        self.list_open_changes(changes).await
    }

    async fn checks(&self, change: &TaskId, commit: &str, known: &BTreeSet<String>) -> Result<Checks, ForgeError> {
        let address = Address::of(change)?;
        let read = self.read_checks(address, commit, known).await;
        read.map_err(|failure| {
            let what = format!("reading the checks of {address}");
            attempt(&what, &Right::ReadChecks.remedy(address.repository)).failed(failure)
        })
    }

    async fn git_credentials(&self, task: &TaskId) -> Result<GitCredentials, ForgeError> {
        let address = Address::of(task)?;
        match self.client.secret(Rights::Repository(address.repository)).await {
            Ok((password, is_new)) => Ok(GitCredentials {
                username: "x-access-token".to_owned(),
                password,
                is_new,
            }),
            Err(failure) => {
                let what = format!("getting a token for git in {}", address.repository);
                Err(attempt(&what, &Right::ReadContents.remedy(address.repository)).failed(failure))
            }
        }
    }

    async fn examine(&self) -> Vec<Finding> {
        self.find_faults().await
    }

    fn requests(&self) -> u64 {
        self.client.requests()
    }

    fn recall(&self, answers: Vec<KnownAnswer>) {
        self.client.validators().recall(answers);
    }

    fn news(&self) -> Option<Vec<KnownAnswer>> {
        self.client.validators().news()
    }
}
