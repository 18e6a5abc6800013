//! The part of a forge that differs by platform: one trait for each topic, with unclassified
//! failures.
//!
//! [`super::host::Host`] makes a forge of them. A platform implements each trait in the file of
//! that topic, so that nothing is forwarded.

use std::collections::BTreeSet;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};

use crate::finding::{Finding, Verdict};
use crate::forge::http::clock::Clock;
use crate::forge::http::failure::Failure;
use crate::forge::http::meter::Traffic;
use crate::forge::http::validators::Validators;
use crate::forge::item::account::Account;
use crate::forge::item::address::ItemAddress;
use crate::forge::item::change::OpenChange;
use crate::forge::item::checks::Checks;
use crate::forge::settings::allowed_users::Entry;
use crate::forge::settings::label_style::LabelStyle;
use crate::forge::settings::source::Source;
use crate::forge::settings::{HostSettings, Terms};
use crate::forge::{
    Change, ChangeEdit, Comment, CommentId, CommentKey, Edit, FoundItem, GitCredentials, Item, ItemEvent, NewChange,
    NewIssue, Post, Reaction,
};
use crate::picture::Picture;
use crate::task::id::ItemKind;

/// The right that an operation needs, as finely as any platform tells rights apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    ReadIssues,
    WriteIssues,
    ReadChanges,
    WriteChanges,
    CommentOnChanges,
    ReadContents,
    Push,
    ReadChecks,
    ReadRoles,
}

/// A platform, such as GitHub.
pub trait Platform:
    ItemApi + CommentApi + LabelApi + HistoryApi + PeopleApi + ChangeApi + SearchApi + ExamineApi + Send + Sync
{
    const TERMS: Terms;
    /// How the number of a pull/merge request is written.
    const CHANGE: ItemKind;

    fn settings(&self) -> &HostSettings;

    /// Returns the sentence that says how to grant `right` on `place`.
    fn remedy(right: Right, place: &str) -> String;

    fn traffic(&self) -> Traffic;

    fn validators(&self) -> &Validators;

    fn clock(&self) -> &Clock;
}

/// Reading an item.
#[async_trait]
pub trait ItemApi {
    async fn read_item(&self, at: ItemAddress<'_>) -> Result<Item, Failure>;

    /// Fails if the item cannot be read.
    async fn probe_item(&self, at: ItemAddress<'_>) -> Result<(), Failure>;

    /// Opens an issue, once: with `search_first` one of the bot's with the marker is looked for
    /// before. Returns its number and its page.
    async fn post_issue(&self, repository: &str, issue: &NewIssue<'_>) -> Result<(u64, String), Failure>;

    /// Puts a picture where the repository's issues can show it; returns its address in their
    /// texts, or `None` where the platform has no way.
    async fn put_picture(&self, _repository: &str, _picture: &Picture) -> Result<Option<String>, Failure> {
        Ok(None)
    }

    /// Fails if the repository cannot be read.
    async fn probe_repository(&self, repository: &str) -> Result<(), Failure>;

    /// Returns a more specific failure, if the platform's text for it is known.
    fn specified(&self, failure: Failure, _at: ItemAddress<'_>) -> Failure {
        failure
    }
}

/// Reading what people wrote, and writing the bot's own comments and reactions.
#[async_trait]
pub trait CommentApi {
    async fn read_comments(&self, at: ItemAddress<'_>) -> Result<Vec<Comment>, Failure>;

    async fn write_comment(&self, at: ItemAddress<'_>, post: &Post<'_>) -> Result<CommentId, Failure>;

    async fn rewrite_comment(&self, at: ItemAddress<'_>, comment: CommentId, post: &Post<'_>) -> Result<(), Failure>;

    /// Fetches a picture that stands in the text of the item or of a comment below it; `None` where
    /// it does not lie with the platform.
    async fn fetch_picture(&self, at: ItemAddress<'_>, address: &str) -> Result<Option<Bytes>, Failure>;

    async fn put_reaction(&self, at: ItemAddress<'_>, comment: CommentKey, reaction: Reaction) -> Result<(), Failure>;
}

/// The labels of an item and of a repository.
#[async_trait]
pub trait LabelApi {
    /// Returns a label's name in the form in which the platform compares names.
    fn label_key(label: &str) -> String;

    /// Returns the names of the labels that items of the repository can carry.
    async fn label_names(&self, repository: &str) -> Result<Vec<String>, Failure>;

    /// Creates a label; it is no failure if it exists.
    async fn make_label(&self, repository: &str, label: &str, look: LabelStyle) -> Result<(), Failure>;

    async fn put_label(&self, at: ItemAddress<'_>, label: &str) -> Result<(), Failure>;

    async fn take_label(&self, at: ItemAddress<'_>, label: &str) -> Result<(), Failure>;
}

/// The history of an item: who changed it, and when.
#[async_trait]
pub trait HistoryApi {
    async fn find_trigger(&self, at: ItemAddress<'_>) -> Result<Option<ItemEvent>, Failure>;

    /// Returns who assigned the item to the bot's account, the last time. Where the platform does
    /// not name them, the event is of nobody known.
    async fn find_assignment(&self, at: ItemAddress<'_>) -> Result<Option<ItemEvent>, Failure>;

    async fn find_edits(&self, at: ItemAddress<'_>, item: &Item, since: DateTime<Utc>) -> Result<Vec<Edit>, Failure>;
}

/// Accounts and their roles.
#[async_trait]
pub trait PeopleApi {
    /// Returns the login of the bot's own account.
    async fn bot(&self) -> Result<&str, Failure>;

    /// Tells whether an account may push to the repository.
    async fn may_write(&self, repository: &str, who: Account<'_>) -> Result<bool, Failure>;

    /// Tells whether the bot's own account may push to the repository; true where the platform does
    /// not tell.
    async fn may_push(&self, repository: &str) -> Result<bool, Failure>;
}

/// Pull/merge requests, their checks, and what git needs.
#[async_trait]
pub trait ChangeApi {
    async fn find_change(&self, repository: &str, head: &str) -> Result<Option<Change>, Failure>;

    /// Opens a change. The platform may refuse a second one from the same branch.
    async fn post_change(&self, repository: &str, new: &NewChange) -> Result<Change, Failure>;

    /// Recognises the answer of a platform that has not noticed the push of the branch yet.
    fn is_behind(failure: &Failure) -> bool;

    /// Recognises the refusal of a change whose branch has an open one.
    fn is_second(failure: &Failure) -> bool;

    /// Makes a change with this title a draft, or ready for review. Returns its title after that:
    /// drafts may be known by their titles.
    async fn put_draft(&self, at: ItemAddress<'_>, title: &str, is_draft: bool) -> Result<String, Failure>;

    /// Returns the people that the platform did not take.
    async fn assign_to(&self, at: ItemAddress<'_>, people: &[String]) -> Result<Vec<String>, Failure>;

    /// Returns the people that the platform did not take.
    async fn request_reviews(&self, at: ItemAddress<'_>, people: &[String]) -> Result<Vec<String>, Failure>;

    /// Returns the bot's reply with this marker in the thread that a remark begins.
    async fn find_reply(
        &self,
        at: ItemAddress<'_>,
        thread: CommentKey,
        marker: &str,
    ) -> Result<Option<CommentId>, Failure>;

    async fn write_reply(&self, at: ItemAddress<'_>, thread: CommentKey, post: &Post<'_>)
    -> Result<CommentId, Failure>;

    async fn rewrite_change(&self, at: ItemAddress<'_>, edit: &ChangeEdit) -> Result<(), Failure>;

    /// Tells whether changes come to a branch only by being merged, or from fewer people than may
    /// write. An exception for the bot does not count; a branch that is gone is not protected.
    async fn is_protected(&self, repository: &str, branch: &str) -> Result<bool, Failure>;

    /// Returns the open changes of a repository, at least those with these numbers.
    async fn list_changes(&self, repository: &str, numbers: &[u64]) -> Result<Vec<OpenChange>, Failure>;

    async fn read_checks(&self, at: ItemAddress<'_>, commit: &str, known: &BTreeSet<String>)
    -> Result<Checks, Failure>;

    async fn credentials(&self, repository: &str) -> Result<GitCredentials, Failure>;

    /// Returns what git needs to fetch from a repository that is not worked on.
    async fn credentials_to_read(&self, repository: &str) -> Result<GitCredentials, Failure>;
}

/// Searching for items.
#[async_trait]
pub trait SearchApi {
    /// Returns the open items that carry the trigger label.
    async fn search(&self, source: &Source) -> Result<Vec<FoundItem>, Failure>;

    /// Returns the open items that something happened to since then, as far as they may be meant
    /// for the bot's account.
    async fn search_touched(&self, source: &Source, since: DateTime<Utc>) -> Result<Vec<FoundItem>, Failure>;

    /// Asks for the current name of a repository: a renamed one still answers to its old name. An
    /// answer from before it was renamed would be wrong.
    async fn full_name(&self, repository: &str) -> Result<String, Failure>;

    /// Returns the address that git fetches a repository from.
    async fn clone_url(&self, repository: &str) -> Result<String, Failure>;
}

/// The examination of a platform by `doctor`.
#[async_trait]
pub trait ExamineApi {
    /// Returns the kind of credential: a token, or an App.
    fn proof(&self) -> &'static str;

    async fn examine_proof(&self) -> Result<Verdict, Failure>;

    /// Returns findings on rights that were granted but do not count yet.
    async fn examine_grants(&self) -> Vec<Finding> {
        Vec::new()
    }

    /// Returns the login and the id of an account.
    async fn account(&self, entry: &Entry) -> Result<Option<(String, u64)>, Failure>;

    async fn examine_repository(&self, name: &str) -> Result<Verdict, Failure>;

    /// Returns the subject of `doctor` for all repositories of an owner.
    fn subject_of_all(owner: &str) -> String;

    /// Examines all repositories of an owner; `found` of their items carry the trigger label.
    async fn examine_all(&self, owner: &str, found: usize) -> Result<Verdict, Failure>;

    /// Returns the repositories of an owner that can be worked on, of those that the examination
    /// looks at.
    async fn workable(&self, owner: &str) -> Result<Vec<String>, Failure>;
}
