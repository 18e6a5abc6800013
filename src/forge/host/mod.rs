//! A configured forge of any platform: failures become errors that say who must act, and what every
//! platform does in the same way is done here.

mod claims;
mod explaining;
mod examine;
mod issues;
mod labels;
mod people;
mod search;

use std::collections::BTreeSet;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use http::StatusCode;

use crate::finding::Finding;
use crate::forge::http::failure::Failure;
use crate::forge::http::retry::{once, until_seen};
use crate::forge::http::{cache::Cache, meter::Traffic};
use crate::forge::item::{address::ItemAddress, change::OpenChange, checks::Checks};
use crate::forge::platform::{Platform, Right};
use crate::forge::settings::trigger::Trigger;
use crate::forge::{
    AnswerMemory, Change, ChangeEdit, CodeHost, Comment, CommentId, CommentKey, CommentKind, Diagnostics, Edit, Forge,
    ForgeError, GitCredentials, GitRemote, Item, ItemEvent, KnownAnswer, NewChange, NewIssue, Opened, OpenedIssue,
    Post, Reaction, Search, TaskSource,
};
use crate::picture::Picture;
use crate::task::id::{HostName, ItemId, ItemKind, TaskId};
use crate::task::labels::Labels;

/// A forge, reached through the API of its platform.
pub struct Host<P> {
    pub(crate) platform: P,
    /// The labels of each repository, in the form in which the platform compares their names.
    known_labels: Cache<BTreeSet<String>>,
}

impl<P: Platform> Host<P> {
    pub(crate) fn new(platform: P) -> Self {
        Self {
            platform,
            known_labels: Cache::new(),
        }
    }

    /// Returns the address of a task of this host.
    fn address<'a>(&self, task: &'a TaskId) -> Result<ItemAddress<'a>, ForgeError> {
        let settings = self.platform.settings();
        let is_own = |item: &&ItemId| {
            let has_kind = item.kind == ItemKind::Issue || item.kind == P::CHANGE;
            item.host == settings.name && has_kind
        };
        let item = task.item().filter(is_own).ok_or_else(|| ForgeError::Unexpected {
            what: format!("asking {} for {task}", settings.title),
            reason: format!("it is not a task on {}", settings.title),
        });
        item.map(ItemAddress::from)
    }

    /// Opens a change, once. Platforms refuse a second one only for the same head and base; looking
    /// first keeps it at one for each head.
    async fn make_change(&self, repository: &str, new: &NewChange) -> Result<Opened, Failure> {
        let known = |change| Opened { change, is_new: false };
        let find = || async move {
            let found = self.platform.find_change(repository, &new.head).await?;
            Ok(found.map(known))
        };
        let make = || async move {
            match self.platform.post_change(repository, new).await {
                Ok(change) => Ok(Opened { change, is_new: true }),
                Err(failure) if P::is_second(&failure) => find().await?.ok_or(failure),
                Err(failure) => Err(failure),
            }
        };
        Box::pin(until_seen(P::is_behind, || once(true, find, make))).await
    }
}

#[async_trait]
impl<P: Platform> TaskSource for Host<P> {
    async fn triggered(&self) -> Search {
        self.search_all().await
    }

    async fn touched_since(&self, since: DateTime<Utc>) -> Search {
        self.search_touched(since).await
    }

    async fn item(&self, task: &TaskId) -> Result<Item, ForgeError> {
        let at = self.address(task)?;
        let read = self.platform.read_item(at).await.map(|item| self.with_own_labels(item));
        self.or_explain(read, at, &format!("reading {at}"), Right::ReadIssues)
            .await
    }

    async fn comments(&self, task: &TaskId) -> Result<Vec<Comment>, ForgeError> {
        let at = self.address(task)?;
        let read = self.platform.read_comments(at).await;
        self.or_explain(read, at, &format!("reading the comments of {at}"), Right::ReadIssues)
            .await
    }

    async fn triggered_by(&self, task: &TaskId) -> Result<Option<ItemEvent>, ForgeError> {
        let at = self.address(task)?;
        let found = self.platform.find_trigger(at).await;
        let what = format!("asking who put the label on {at}");
        self.or_explain(found, at, &what, Right::ReadIssues).await
    }

    async fn assigned_by(&self, task: &TaskId) -> Result<Option<ItemEvent>, ForgeError> {
        let at = self.address(task)?;
        let found = self.platform.find_assignment(at).await;
        let what = format!("asking who assigned {at}");
        self.or_explain(found, at, &what, Right::ReadIssues).await
    }

    async fn edits_since(&self, item: &Item, since: DateTime<Utc>) -> Result<Vec<Edit>, ForgeError> {
        let at = self.address(&item.task)?;
        let found = self.platform.find_edits(at, item, since).await;
        self.or_explain(found, at, &format!("asking who changed {at}"), Right::ReadIssues)
            .await
    }

    async fn react(&self, task: &TaskId, comment: CommentKey, reaction: Reaction) -> Result<(), ForgeError> {
        let at = self.address(task)?;
        let right = match comment.kind {
            CommentKind::Inline => Right::CommentOnChanges,
            CommentKind::Comment => Right::WriteIssues,
            // GitHub has no way to react to it but GraphQL, which not every token may use; GitLab
            // has no such comment.
            CommentKind::Review => return Ok(()),
        };
        let put = self.platform.put_reaction(at, comment, reaction).await;
        put.map_err(|failure| self.refused(failure, &format!("reacting to {comment} on {at}"), right, at.repository))
    }

    async fn picture(&self, task: &TaskId, address: &str) -> Result<Option<Bytes>, ForgeError> {
        let at = self.address(task)?;
        let fetched = self.platform.fetch_picture(at, address).await;
        let what = format!("fetching a picture of {at}");
        fetched.map_err(|failure| self.refused(failure, &what, Right::ReadIssues, at.repository))
    }

    async fn add_label(&self, task: &TaskId, label: &str) -> Result<(), ForgeError> {
        let at = self.address(task)?;
        let put = self.put_label(at, label).await;
        let what = format!("putting the label '{label}' on {at}");
        self.or_explain(put, at, &what, Right::WriteIssues).await
    }

    async fn remove_label(&self, task: &TaskId, label: &str) -> Result<(), ForgeError> {
        let at = self.address(task)?;
        let taken = self.platform.take_label(at, label).await;
        let what = format!("taking the label '{label}' off {at}");
        self.or_explain(taken, at, &what, Right::WriteIssues).await
    }

    async fn comment(&self, task: &TaskId, post: &Post<'_>) -> Result<CommentId, ForgeError> {
        let at = self.address(task)?;
        let written = self.platform.write_comment(at, post).await;
        self.or_explain(written, at, &format!("commenting on {at}"), Right::WriteIssues)
            .await
    }

    async fn repository_now(&self, task: &TaskId) -> Result<Option<String>, ForgeError> {
        self.present_name(self.address(task)?.repository).await
    }

    fn works_on(&self, repository: &str) -> bool {
        let sources = &self.platform.settings().sources;
        sources.iter().any(|source| source.holds(repository))
    }

    async fn open_issue(&self, repository: &str, issue: &NewIssue<'_>) -> Result<OpenedIssue, ForgeError> {
        self.new_issue(repository, issue).await
    }

    async fn attach(&self, repository: &str, picture: &Picture) -> Result<Option<String>, ForgeError> {
        let put = self.platform.put_picture(repository, picture).await;
        let what = format!("putting a picture into {repository}");
        put.map_err(|failure| self.refused(failure, &what, Right::WriteIssues, repository))
    }

    async fn edit_comment(&self, task: &TaskId, comment: CommentId, post: &Post<'_>) -> Result<(), ForgeError> {
        let at = self.address(task)?;
        let what = format!("editing the bot's comment on {at}");
        let edited = self.platform.rewrite_comment(at, comment, post).await;
        edited.map_err(|failure| match failure.status() {
            // The bot wrote it, so it could see it: whoever deleted it deleted just this comment.
            Some(StatusCode::NOT_FOUND) => ForgeError::Gone { what },
            _ => self.refused(failure, &what, Right::WriteIssues, at.repository),
        })
    }
}

#[async_trait]
impl<P: Platform> CodeHost for Host<P> {
    async fn change_from(&self, task: &TaskId, head: &str) -> Result<Option<Change>, ForgeError> {
        let repository = self.address(task)?.repository;
        let found = self.platform.find_change(repository, head).await;
        found.map_err(|failure| {
            let what = format!("looking for the {} from {head} in {repository}", P::TERMS.change);
            self.refused(failure, &what, Right::ReadChanges, repository)
        })
    }

    async fn open_change(&self, task: &TaskId, change: &NewChange) -> Result<Opened, ForgeError> {
        let repository = self.address(task)?.repository;
        let opened = self.make_change(repository, change).await;
        opened.map_err(|failure| {
            let what = format!("opening a {} from {} in {repository}", P::TERMS.change, change.head);
            self.refused(failure, &what, Right::WriteChanges, repository)
        })
    }

    async fn set_draft(&self, change: &TaskId, title: &str, is_draft: bool) -> Result<String, ForgeError> {
        let at = self.address(change)?;
        let set = self.platform.put_draft(at, title, is_draft).await;
        let what = if is_draft {
            format!("making {at} a draft")
        } else {
            format!("marking {at} as ready for review")
        };
        self.or_explain(set, at, &what, Right::WriteChanges).await
    }

    async fn edit_change(&self, change: &TaskId, edit: &ChangeEdit) -> Result<(), ForgeError> {
        let at = self.address(change)?;
        let edited = self.platform.rewrite_change(at, edit).await;
        self.or_explain(edited, at, &format!("editing {at}"), Right::WriteChanges)
            .await
    }

    async fn assign(&self, change: &TaskId, people: &[String]) -> Result<Vec<String>, ForgeError> {
        let at = self.address(change)?;
        let assigned = self.platform.assign_to(at, people).await;
        self.or_explain(assigned, at, &format!("assigning {at}"), Right::WriteChanges)
            .await
    }

    async fn ask_for_review(&self, change: &TaskId, people: &[String]) -> Result<Vec<String>, ForgeError> {
        let at = self.address(change)?;
        let asked = self.platform.request_reviews(at, people).await;
        self.or_explain(asked, at, &format!("asking for reviews of {at}"), Right::WriteChanges)
            .await
    }

    async fn reply(&self, change: &TaskId, thread: CommentKey, post: &Post<'_>) -> Result<CommentId, ForgeError> {
        let at = self.address(change)?;
        let find = || self.platform.find_reply(at, thread, post.marker);
        let written = once(post.search_first, find, || self.platform.write_reply(at, thread, post)).await;
        written.map_err(|failure| {
            let what = format!("replying to {thread} on {at}");
            self.refused(failure, &what, Right::CommentOnChanges, at.repository)
        })
    }

    fn change_id(&self, task: &TaskId, number: u64) -> Option<TaskId> {
        let address = ItemAddress {
            kind: P::CHANGE,
            number,
            ..self.address(task).ok()?
        };
        Some(self.platform.settings().task(address))
    }

    async fn is_protected(&self, task: &TaskId, branch: &str) -> Result<bool, ForgeError> {
        let repository = self.address(task)?.repository;
        let asked = self.platform.is_protected(repository, branch).await;
        asked.map_err(|failure| {
            let what = format!("asking whether {branch} is protected in {repository}");
            self.refused(failure, &what, Right::ReadContents, repository)
        })
    }

    async fn open_changes(&self, changes: &[TaskId]) -> Result<Vec<OpenChange>, ForgeError> {
        let Some(first) = changes.first() else {
            return Ok(Vec::new());
        };
        let repository = self.address(first)?.repository;
        let numbers: Vec<u64> = changes.iter().filter_map(TaskId::number).collect();
        let listed = self.platform.list_changes(repository, &numbers).await;
        let mut open = listed.map_err(|failure| {
            let what = format!("listing the open {}s of {repository}", P::TERMS.change);
            self.refused(failure, &what, Right::ReadChanges, repository)
        })?;
        open.retain(|change| changes.contains(&change.task));
        Ok(open)
    }

    async fn checks(&self, change: &TaskId, commit: &str, known: &BTreeSet<String>) -> Result<Checks, ForgeError> {
        let at = self.address(change)?;
        let read = self.platform.read_checks(at, commit, known).await;
        read.map_err(|failure| {
            let what = format!("reading the {} of {at}", P::TERMS.checks);
            self.refused(failure, &what, Right::ReadChecks, at.repository)
        })
    }

    async fn git_credentials(&self, task: &TaskId) -> Result<GitCredentials, ForgeError> {
        let repository = self.address(task)?.repository;
        let credentials = self.platform.credentials(repository).await;
        credentials.map_err(|failure| {
            let what = format!("getting a token for git in {repository}");
            self.refused(failure, &what, Right::ReadContents, repository)
        })
    }

    async fn git_credentials_to_read(&self, repository: &str) -> Result<GitCredentials, ForgeError> {
        let credentials = self.platform.credentials_to_read(repository).await;
        credentials.map_err(|failure| {
            let what = format!("getting a token to read {repository}");
            self.refused(failure, &what, Right::ReadContents, repository)
        })
    }
}

#[async_trait]
impl<P: Platform> Diagnostics for Host<P> {
    async fn examine(&self) -> Vec<Finding> {
        self.examine_all().await
    }

    async fn git_remotes(&self) -> Vec<GitRemote> {
        self.remotes().await
    }

    async fn git_remote(&self, repository: &str) -> Option<GitRemote> {
        self.remote_of(repository).await
    }

    fn traffic(&self) -> Traffic {
        self.platform.traffic()
    }
}

impl<P: Platform> AnswerMemory for Host<P> {
    fn recall(&self, answers: Vec<KnownAnswer>) {
        self.platform.validators().recall(answers);
    }

    fn news(&self) -> Option<Vec<KnownAnswer>> {
        self.platform.validators().news()
    }
}

impl<P: Platform> Forge for Host<P> {
    fn name(&self) -> &HostName {
        &self.platform.settings().name
    }

    fn labels(&self) -> &Labels {
        &self.platform.settings().labels
    }

    fn trigger(&self) -> &Trigger {
        &self.platform.settings().trigger
    }
}
