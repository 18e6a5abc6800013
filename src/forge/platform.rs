//! What a platform does in its own way: one trait for each topic, with failures as they come.
//!
//! [`super::host::Host`] makes a forge of them. A platform implements each trait in the file of
//! that topic, so that nothing is forwarded.

use std::collections::BTreeSet;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::address::Address;
use super::allowed_users::{AllowedUsers, Entry};
use super::edit::Edit;
use super::failure::Failure;
use super::labels::Look;
use super::source::Source;
use super::validators::Validators;
use super::watched::{Checks, OpenChange};
use super::who::Who;
use super::{
    Change, Comment, CommentId, CommentKey, Deed, GitCredentials, Item, NewChange, Post, Reaction, TriggeredItem,
};
use crate::finding::{Finding, Verdict};
use crate::task::id::{HostName, ItemId, ItemKind, TaskId};
use crate::task::labels::Labels;

/// The words in which people are told of a platform.
pub struct Words {
    pub(super) platform: &'static str,
    /// Its section of the configuration.
    pub(super) section: &'static str,
    /// What has to answer at `api_url`.
    pub(super) api: &'static str,
    /// What it calls a request to merge.
    pub(super) change: &'static str,
    /// What it calls the checks of a commit.
    pub(super) checks: &'static str,
    /// What it calls a repository.
    pub(super) repository: &'static str,
    /// What to do when the token is not accepted at all.
    pub(super) renew: &'static str,
}

/// The part of a host's configuration that is the same for every platform.
pub struct HostSettings {
    pub(super) name: HostName,
    /// The platform, and the name where it is another, for people.
    pub(super) title: String,
    pub(super) labels: Labels,
    pub(super) sources: Vec<Source>,
    pub(super) allowed_users: AllowedUsers,
}

impl HostSettings {
    /// Reads the settings of the host that `name` names; without a name it is called as its section
    /// is.
    pub(super) fn new(
        words: &Words,
        name: Option<&str>,
        labels: &Labels,
        sources: &[String],
        allowed_users: &[String],
    ) -> Option<Self> {
        let title = match name {
            Some(name) => format!("{} {name}", words.platform),
            None => words.platform.to_owned(),
        };
        Some(Self {
            name: HostName::parse(name.unwrap_or(words.section))?,
            title,
            labels: labels.clone(),
            sources: sources.iter().map(|entry| Source::parse(entry)).collect(),
            allowed_users: AllowedUsers::new(allowed_users),
        })
    }

    /// Returns the id of an item on this host.
    pub(super) fn task(&self, address: Address<'_>) -> TaskId {
        TaskId::Item(ItemId {
            host: self.name.clone(),
            repository: address.repository.to_owned(),
            kind: address.kind,
            number: address.number,
        })
    }
}

/// The right that an operation needs, as finely as any platform tells rights apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    ReadIssues,
    WriteIssues,
    ReadChanges,
    WriteChanges,
    CommentOnChanges,
    ReadContents,
    ReadChecks,
    ReadRoles,
}

/// A platform, such as GitHub.
pub trait Platform:
    ItemApi + CommentApi + LabelApi + HistoryApi + PeopleApi + ChangeApi + SearchApi + ExamineApi + Send + Sync
{
    const WORDS: Words;
    /// How the number of a pull/merge request is written.
    const CHANGE: ItemKind;

    fn settings(&self) -> &HostSettings;

    /// Returns the sentence that says how to give `right` on `place`.
    fn remedy(right: Right, place: &str) -> String;

    fn requests(&self) -> u64;

    fn validators(&self) -> &Validators;
}

/// Reading an item.
#[async_trait]
pub trait ItemApi {
    async fn read_item(&self, at: Address<'_>) -> Result<Item, Failure>;

    /// Fails where the item cannot be read.
    async fn probe_item(&self, at: Address<'_>) -> Result<(), Failure>;

    /// Fails where the repository cannot be read.
    async fn probe_repository(&self, repository: &str) -> Result<(), Failure>;

    /// Returns a failure that says more, where the platform's words for it are known.
    fn specified(&self, failure: Failure, _at: Address<'_>) -> Failure {
        failure
    }
}

/// Reading what people wrote, and writing the bot's own comments and reactions.
#[async_trait]
pub trait CommentApi {
    async fn read_comments(&self, at: Address<'_>) -> Result<Vec<Comment>, Failure>;

    async fn write_comment(&self, at: Address<'_>, post: &Post<'_>) -> Result<CommentId, Failure>;

    async fn rewrite_comment(&self, at: Address<'_>, comment: CommentId, post: &Post<'_>) -> Result<(), Failure>;

    async fn put_reaction(&self, at: Address<'_>, comment: CommentKey, reaction: Reaction) -> Result<(), Failure>;
}

/// The labels of an item and of a repository.
#[async_trait]
pub trait LabelApi {
    /// Returns a label's name in the form in which the platform compares names.
    fn label_key(label: &str) -> String;

    /// Returns the names of the labels that items of the repository can carry.
    async fn label_names(&self, repository: &str) -> Result<Vec<String>, Failure>;

    /// Makes a label; one that is there already is no failure.
    async fn make_label(&self, repository: &str, label: &str, look: Look) -> Result<(), Failure>;

    async fn put_label(&self, at: Address<'_>, label: &str) -> Result<(), Failure>;

    async fn take_label(&self, at: Address<'_>, label: &str) -> Result<(), Failure>;
}

/// What was done to an item, and by whom.
#[async_trait]
pub trait HistoryApi {
    async fn find_trigger(&self, at: Address<'_>) -> Result<Option<Deed>, Failure>;

    async fn find_edits(&self, at: Address<'_>, item: &Item, since: DateTime<Utc>) -> Result<Vec<Edit>, Failure>;
}

/// Accounts and their roles.
#[async_trait]
pub trait PeopleApi {
    /// Returns the login of the bot's own account.
    async fn bot(&self) -> Result<&str, Failure>;

    /// Tells whether somebody with a login may push to the repository.
    async fn may_write(&self, repository: &str, who: Who<'_>) -> Result<bool, Failure>;
}

/// Pull/merge requests, their checks, and what git needs.
#[async_trait]
pub trait ChangeApi {
    async fn find_change(&self, repository: &str, head: &str) -> Result<Option<Change>, Failure>;

    async fn make_change(&self, repository: &str, new: &NewChange) -> Result<Change, Failure>;

    /// Returns the open changes of a repository, at least those with these numbers.
    async fn list_changes(&self, repository: &str, numbers: &[u64]) -> Result<Vec<OpenChange>, Failure>;

    async fn read_checks(&self, at: Address<'_>, commit: &str, known: &BTreeSet<String>) -> Result<Checks, Failure>;

    async fn credentials(&self, repository: &str) -> Result<GitCredentials, Failure>;
}

/// Searching for items that carry the trigger label.
#[async_trait]
pub trait SearchApi {
    async fn search(&self, source: &Source) -> Result<Vec<TriggeredItem>, Failure>;

    /// Returns the name that a repository has now: one that was renamed still answers to its old
    /// name.
    async fn full_name(&self, repository: &str) -> Result<String, Failure>;
}

/// What `doctor` says about a platform.
#[async_trait]
pub trait ExamineApi {
    /// Returns what proves who the program is: a token, or an App.
    fn proof(&self) -> &'static str;

    async fn examine_proof(&self) -> Result<Verdict, Failure>;

    /// Returns what is to be said of rights that were given but do not count yet.
    async fn examine_grants(&self) -> Vec<Finding> {
        Vec::new()
    }

    /// Returns the login and the id of an account.
    async fn account(&self, entry: &Entry) -> Result<Option<(String, u64)>, Failure>;

    async fn examine_repository(&self, name: &str) -> Result<Verdict, Failure>;

    /// Names all repositories of an owner, as a subject of `doctor`.
    fn subject_of_all(owner: &str) -> String;

    /// Examines all repositories of an owner, `found` of whose items carry the trigger label.
    async fn examine_all(&self, owner: &str, found: usize) -> Result<Verdict, Failure>;
}
