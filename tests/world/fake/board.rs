//! The parts that the items of both fake forges share, and the deeds that both allow, by a person
//! in a test or by a client over HTTP.
//!
//! There is one function for each deed, so that both forges leave the same traces. `Board` lists
//! what a forge does in its own way. The caller checks permissions.

use std::collections::BTreeMap;
use std::ops::DerefMut;

use chrono::DateTime;
use chrono::Duration;
use chrono::Utc;

use crate::fake::bare::Bare;
use crate::fake::forge::Host;
use crate::fake::history::Happening;
use crate::fake::history::What;

pub type Time = DateTime<Utc>;

/// The branches of a repository, each with its commit.
pub type Heads = BTreeMap<String, String>;

/// The author of issues when nobody else is named.
pub const HUMAN: &str = "alice";

/// The content of a new item.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    pub title: String,
    pub text: Option<String>,
    pub author: String,
}

/// An issue or a change request, as far as both forges agree what that is.
#[derive(Clone, Debug)]
pub struct Record<P> {
    pub id: u64,
    pub number: u64,
    pub title: String,
    pub text: Option<String>,
    pub author: String,
    pub is_open: bool,
    pub is_locked: bool,
    pub is_deleted: bool,
    pub labels: Vec<String>,
    pub assignees: Vec<String>,
    pub history: Vec<Happening<P>>,
    pub created: Time,
    pub updated: Time,
    pub closed: Option<Time>,
    pub closed_by: Option<String>,
    /// The number of answers about its history that do not show the newest event yet.
    pub late: u32,
}

impl<P> Record<P> {
    pub fn new(id: u64, number: u64, draft: Draft, now: Time) -> Self {
        Self {
            id,
            number,
            title: draft.title,
            text: draft.text,
            author: draft.author,
            is_open: true,
            is_locked: false,
            is_deleted: false,
            labels: Vec::new(),
            assignees: Vec::new(),
            history: Vec::new(),
            created: now,
            updated: now,
            closed: None,
            closed_by: None,
            late: 0,
        }
    }
}

/// The items of a forge.
pub trait Board: Host + Sized {
    /// The name of an item.
    type Place: Clone + PartialEq + Send + Sync;
    type Item: DerefMut<Target = Record<Self::Place>>;

    /// Returns the present time, as exactly as the forge keeps it.
    fn now() -> Time;

    fn item(&self, place: &Self::Place) -> Option<&Self::Item>;

    fn item_mut(&mut self, place: &Self::Place) -> Option<&mut Self::Item>;

    /// Adds a line to the history of an item, with what else the forge makes of it.
    fn happened(&mut self, place: &Self::Place, actor: &str, what: What<Self::Place>);

    /// Tells the history of an item for people.
    fn story(&self, place: &Self::Place) -> String;

    /// Makes an account known.
    fn meets(&mut self, person: &str);

    fn is_same_label(one: &str, other: &str) -> bool;

    /// Makes a label if there is none of that name. Returns its name as it is written there.
    fn ensure_label(&mut self, place: &Self::Place, name: &str) -> String;

    /// Changes the text of an item.
    fn rewrite(&mut self, place: &Self::Place, actor: &str, text: Option<&str>);

    /// Writes a comment below an item. Returns its id.
    fn comment(&mut self, place: &Self::Place, author: &str, text: &str) -> u64;

    fn edit_comment(&mut self, place: &Self::Place, id: u64, actor: &str, text: &str);

    fn delete_comment(&mut self, place: &Self::Place, id: u64, actor: &str);

    /// Returns who wrote a comment.
    fn author_of(item: &Self::Item, comment: u64) -> String;

    /// Returns the newest comment that a person or a bot wrote.
    fn newest_comment(item: &Self::Item) -> Option<u64>;

    /// Returns what one account thinks of a comment, in the order it was given.
    fn reactions_of(item: &Self::Item, comment: u64, person: &str) -> Vec<String>;

    /// Lets everything that was written below an item have been written earlier.
    fn age_comments(item: &mut Self::Item, by: Duration);

    /// Returns the requests by which the comments of an item are read.
    fn comment_routes(&self, place: &Self::Place) -> Vec<String>;

    /// Returns the item that the text of another one means by a number, and perhaps the name of a
    /// repository.
    fn meant(&self, by: &Self::Place, repository: &str, number: u64) -> Option<Self::Place>;

    /// Returns the repository of a change request, with the names of its base and its head there.
    fn ends(&self, change: &Self::Place) -> Option<(Bare, String, String)>;

    /// Brings the head of a change request to a name of the repository's own, where it survives
    /// its branch.
    fn follow_head(&self, change: &Self::Place) -> Option<()>;

    /// Returns the open change requests that come from a branch.
    fn changes_from(&self, repository: &str, branch: &str) -> Vec<Self::Place>;

    /// Returns the full name of a repository, and its branches before and after they are looked at
    /// again.
    fn look_at_heads(&mut self, repository: &str) -> Option<(String, Heads, Heads)>;

    /// Handles the loss of a change request's branch; does nothing unless the forge says otherwise.
    fn lost_its_branch(&mut self, _change: &Self::Place, _actor: &str) {}

    /// Puts a label on, which is made if there is none of that name.
    fn add_label(&mut self, place: &Self::Place, label: &str, actor: &str) {
        let label = self.ensure_label(place, label);
        let has = |item: &&mut Self::Item| item.labels.iter().any(|name| Self::is_same_label(name, &label));
        let Some(item) = self.item_mut(place).filter(|item| !has(item)) else {
            return;
        };
        item.labels.push(label.clone());
        self.happened(place, actor, What::Labeled(label));
    }

    /// Takes a label off. Returns whether it was there.
    fn remove_label(&mut self, place: &Self::Place, label: &str, actor: &str) -> bool {
        let is_it = |name: &String| Self::is_same_label(name, label);
        let Some(item) = self.item_mut(place) else {
            return false;
        };
        let Some(index) = item.labels.iter().position(is_it) else {
            return false;
        };
        let label = item.labels.remove(index);
        self.happened(place, actor, What::Unlabeled(label));
        true
    }

    /// Makes the labels these, one by one.
    fn set_labels(&mut self, place: &Self::Place, labels: &[String], actor: &str) {
        let before = self.item(place).map(|item| item.labels.clone()).unwrap_or_default();
        let stays = |label: &&String| labels.iter().any(|wanted| Self::is_same_label(wanted, label));
        for label in before.iter().filter(|label| !stays(label)) {
            self.remove_label(place, label, actor);
        }
        for label in labels {
            self.add_label(place, label, actor);
        }
    }

    /// Counts an answer about the history of an item. Returns whether the newest event is missing
    /// in it.
    fn is_late(&mut self, place: &Self::Place) -> bool {
        let Some(item) = self.item_mut(place).filter(|item| item.late > 0) else {
            return false;
        };
        item.late -= 1;
        true
    }

    fn rename(&mut self, place: &Self::Place, actor: &str, title: &str) {
        let Some(item) = self.item_mut(place).filter(|item| item.title != title) else {
            return;
        };
        let from = std::mem::replace(&mut item.title, title.to_owned());
        let to = title.to_owned();
        self.happened(place, actor, What::Renamed { from, to });
    }

    fn close(&mut self, place: &Self::Place, actor: &str) {
        let Some(item) = self.item_mut(place).filter(|item| item.is_open) else {
            return;
        };
        item.is_open = false;
        item.closed = Some(Self::now());
        item.closed_by = Some(actor.to_owned());
        self.happened(place, actor, What::Closed);
    }

    fn reopen(&mut self, place: &Self::Place, actor: &str) {
        let Some(item) = self.item_mut(place).filter(|item| !item.is_open) else {
            return;
        };
        item.is_open = true;
        item.closed = None;
        item.closed_by = None;
        self.happened(place, actor, What::Reopened);
    }

    /// Makes the list of assignees this one.
    fn assign(&mut self, place: &Self::Place, actor: &str, assignees: &[String]) {
        let Some(item) = self.item_mut(place) else { return };
        let before = std::mem::replace(&mut item.assignees, assignees.to_vec());
        for name in assignees.iter().filter(|name| !before.contains(name)) {
            self.happened(place, actor, What::Assigned(name.clone()));
        }
        for name in before.iter().filter(|name| !assignees.contains(name)) {
            self.happened(place, actor, What::Unassigned(name.clone()));
        }
    }

    /// Leaves a trace on every item that the text of this one names, as `#12` or `owner/name#12`.
    fn mention(&mut self, place: &Self::Place) {
        let Some(item) = self.item(place) else { return };
        let (author, text) = (item.author.clone(), item.text.clone().unwrap_or_default());
        for word in text.split(|letter: char| letter.is_whitespace() || "(),.:;".contains(letter)) {
            let Some((repository, number)) = word.split_once('#') else {
                continue;
            };
            let number = number.parse().ok();
            let Some(named) = number.and_then(|number| self.meant(place, repository, number)) else {
                continue;
            };
            let what = What::Mentioned(place.clone());
            let Some(target) = self.item(&named) else { continue };
            let is_known = target.history.iter().any(|happening| happening.what == what);
            if !is_known && named != *place {
                self.happened(&named, &author, what);
            }
        }
    }

    /// Tells the change requests what a push did to the branches of a repository.
    fn heads_moved(&mut self, repository: &str, pusher: &str) {
        let Some((repository, before, after)) = self.look_at_heads(repository) else {
            return;
        };
        for (branch, _) in after.iter().filter(|(branch, id)| before.get(*branch) != Some(id)) {
            self.branch_moved(&repository, branch, before.get(branch).map(String::as_str), pusher);
        }
        for (branch, old) in before.iter().filter(|(branch, _)| !after.contains_key(*branch)) {
            self.branch_moved(&repository, branch, Some(old), pusher);
        }
    }

    fn branch_moved(&mut self, repository: &str, branch: &str, old: Option<&str>, pusher: &str) {
        for place in self.changes_from(repository, branch) {
            let what = self.follow_head(&place).and_then(|()| {
                let (git, _, head) = self.ends(&place)?;
                let commit = git.commit_named(&head)?;
                let subject = commit.message.lines().next().unwrap_or_default().to_owned();
                let is_forced = old.is_some_and(|old| git.merge_base(old, &commit.id).as_deref() != Some(old));
                Some(What::Pushed {
                    commit: commit.id,
                    subject,
                    is_forced,
                })
            });
            let is_gone = what.is_none();
            self.happened(&place, pusher, what.unwrap_or(What::BranchDeleted));
            if is_gone {
                self.lost_its_branch(&place, pusher);
            }
        }
    }
}
