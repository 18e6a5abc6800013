//! gitlab.com or an own GitLab, through the typed endpoints of the gitlab crate.
//!
//! Each operation stands in a file of its own; `client` sends, repeats and counts the requests.
//! What is stable within a run (projects, labels) is asked once; an item itself is always asked
//! anew.

mod allowed;
mod changes;
mod checks;
mod client;
mod endpoints;
mod examine;
mod history;
mod items;
mod labels;
mod notes;
mod people;
mod reactions;
mod rights;
#[cfg(test)]
mod tests;
mod triggered;
mod wire;

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use gitlab::api::common::NameOrId;
use gitlab::api::projects;
use gitlab::api::users::CurrentUser;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use tokio::sync::OnceCell;

use self::client::Client;
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

/// gitlab.com or an own GitLab.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Base address of the REST API, e.g. `https://gitlab.example.com/api/v4`; the part after the
    /// host may be left out.
    pub api_url: String,
    /// Personal, group or project access token with the scope `api`.
    #[schemars(with = "Option<String>")]
    pub token: Option<SecretString>,
    /// User name of the account the token belongs to; asked of the API when empty.
    pub bot_name: String,
    /// `group/project`, or `group/*` for all projects of a group and its subgroups.
    pub projects: Vec<String>,
    /// People who are obeyed and heard as if they had the role Developer: user names, or
    /// `id:12345`, which stays with its account.
    pub allowed_users: Vec<String>,
    /// What happens to a confidential issue in a project that more people can read: `refuse` leaves
    /// it alone and says so on it, `neutral_names` works on it and shows only the changed files and
    /// the issue's number.
    pub confidential_issues: ConfidentialIssues,
    /// Names of the labels.
    pub labels: Labels,
}

/// What happens to a confidential issue in a project that more people can read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConfidentialIssues {
    #[default]
    Refuse,
    NeutralNames,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            api_url: "https://gitlab.com/api/v4".to_owned(),
            token: None,
            bot_name: String::new(),
            projects: Vec::new(),
            allowed_users: Vec::new(),
            confidential_issues: ConfidentialIssues::default(),
            labels: Labels::default(),
        }
    }
}

/// GitLab's side of the work.
pub struct GitLab {
    client: Client,
    labels: Labels,
    sources: Vec<Source>,
    allowed_users: AllowedUsers,
    confidential_issues: ConfidentialIssues,
    bot: OnceCell<String>,
    projects: Cache<wire::Project>,
    /// The names of the labels of a project and its groups.
    known_labels: Cache<BTreeSet<String>>,
}

/// Issues and merge requests are counted apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Issue,
    MergeRequest,
}

/// Where a task lives on GitLab.
#[derive(Debug, Clone, Copy)]
struct Address<'a> {
    project: &'a str,
    kind: Kind,
    iid: u64,
}

impl GitLab {
    /// Sets up the client. Nothing is asked of GitLab yet; a wrong token shows with the first call.
    #[expect(
        clippy::unused_async,
        reason = "the same shape as for GitHub, so that callers treat both alike"
    )]
    pub async fn connect(config: &Config) -> Result<Self, ForgeError> {
        let bot = match config.bot_name.trim().trim_start_matches('@') {
            "" => OnceCell::new(),
            name => OnceCell::new_with(Some(name.to_owned())),
        };
        Ok(Self {
            client: Client::connect(config)?,
            labels: config.labels.clone(),
            sources: config.projects.iter().map(|entry| Source::parse(entry)).collect(),
            allowed_users: AllowedUsers::new(&config.allowed_users),
            confidential_issues: config.confidential_issues,
            bot,
            projects: Cache::new(),
            known_labels: Cache::new(),
        })
    }

    async fn bot(&self) -> Result<&str, Failure> {
        let name = self.bot.get_or_try_init(|| async {
            let user: wire::User = self.client.ask(CurrentUser::builder().build()).await?;
            Ok(user.username)
        });
        name.await.map(String::as_str)
    }

    async fn is_bot(&self, user: Option<&wire::User>) -> Result<bool, Failure> {
        let Some(user) = user else { return Ok(false) };
        Ok(self.bot().await?.eq_ignore_ascii_case(&user.username))
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
    /// A 404 may mean that the item is gone or that the token may not see or do it; GitLab does not
    /// tell them apart. What can still be read does, so it is asked, in this case only.
    async fn explain(&self, failure: Failure, address: Address<'_>, what: &str, right: Right) -> ForgeError {
        let remedy = right.remedy(address.project);
        let attempt = attempt(what, &remedy);
        if !failure.is_missing() {
            return attempt.failed(failure);
        }
        match self.ask_item(address).await {
            Ok(_) => return attempt.failed(failure),
            Err(asked) if asked.is_missing() => {}
            Err(asked) => return attempt.failed(asked),
        }
        match self.ask_project(address.project).await {
            Ok(_) => ForgeError::Gone { what: what.to_owned() },
            Err(_) => attempt.failed(failure),
        }
    }
}

const PLATFORM: &str = "GitLab";

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
        let (project, kind, iid) = match task {
            TaskId::GitLabIssue { project, iid } => (project, Kind::Issue, *iid),
            TaskId::GitLabMergeRequest { project, iid } => (project, Kind::MergeRequest, *iid),
            TaskId::GitHub { .. } | TaskId::Local { .. } => {
                return Err(ForgeError::Unexpected {
                    what: format!("asking GitLab for {task}"),
                    reason: "it is not a task on GitLab".to_owned(),
                });
            }
        };
        Ok(Self { project, kind, iid })
    }
}

impl std::fmt::Display for Address<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let sign = match self.kind {
            Kind::Issue => '#',
            Kind::MergeRequest => '!',
        };
        write!(formatter, "{}{sign}{}", self.project, self.iid)
    }
}

#[async_trait]
impl Forge for GitLab {
    async fn triggered(&self) -> Search {
        self.search_triggered().await
    }

    async fn item(&self, task: &TaskId) -> Result<Item, ForgeError> {
        let address = Address::of(task)?;
        let what = format!("reading {address}");
        let outcome = self.read_item(task, address).await;
        self.or_explain(outcome, address, &what, Right::Read).await
    }

    async fn comments(&self, task: &TaskId) -> Result<Vec<Comment>, ForgeError> {
        let address = Address::of(task)?;
        let what = format!("reading the comments of {address}");
        let outcome = self.read_comments(address).await;
        self.or_explain(outcome, address, &what, Right::Read).await
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
        self.or_explain(outcome, address, &what, Right::Read).await
    }

    async fn edits_since(&self, item: &Item, since: DateTime<Utc>) -> Result<Vec<Edit>, ForgeError> {
        let address = Address::of(&item.task)?;
        let what = format!("asking who changed {address}");
        let outcome = self.find_edits(address, since).await;
        self.or_explain(outcome, address, &what, Right::Read).await
    }

    async fn react(&self, task: &TaskId, comment: CommentKey, reaction: Reaction) -> Result<(), ForgeError> {
        self.put_award(Address::of(task)?, comment, reaction).await
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
        let outcome = self.write_note(address, post).await;
        self.or_explain(outcome, address, &what, Right::WriteIssues).await
    }

    async fn edit_comment(&self, task: &TaskId, comment: CommentId, post: &Post<'_>) -> Result<(), ForgeError> {
        let address = Address::of(task)?;
        self.rewrite_note(address, comment, post).await
    }

    async fn change_from(&self, task: &TaskId, head: &str) -> Result<Option<Change>, ForgeError> {
        let address = Address::of(task)?;
        let found = self.find_change(address, head).await;
        found.map_err(|failure| {
            let what = format!("looking for the merge request from {head} in {}", address.project);
            attempt(&what, &Right::Read.remedy(address.project)).failed(failure)
        })
    }

    async fn open_change(&self, task: &TaskId, change: &NewChange) -> Result<Change, ForgeError> {
        let address = Address::of(task)?;
        let opened = self.open_merge_request(address, change).await;
        opened.map_err(|failure| {
            let what = format!("opening a merge request from {} in {}", change.head, address.project);
            attempt(&what, &Right::WriteMergeRequests.remedy(address.project)).failed(failure)
        })
    }

    async fn open_changes(&self, changes: &[TaskId]) -> Result<Vec<OpenChange>, ForgeError> {
        self.list_open_changes(changes).await
    }

    async fn checks(&self, change: &TaskId, commit: &str, known: &BTreeSet<String>) -> Result<Checks, ForgeError> {
        let address = Address::of(change)?;
        let read = self.read_checks(address, commit, known).await;
        read.map_err(|failure| {
            let what = format!("reading the pipelines of {address}");
            attempt(&what, &Right::Read.remedy(address.project)).failed(failure)
        })
    }

    async fn git_credentials(&self, task: &TaskId) -> Result<GitCredentials, ForgeError> {
        Address::of(task)?;
        Ok(GitCredentials {
            username: "oauth2".to_owned(),
            password: self.client.token().clone(),
            is_new: false,
        })
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
