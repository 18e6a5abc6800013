//! The state of a fake GitHub: plain data, without a word of HTTP.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::ops::DerefMut;
use std::path::PathBuf;
use std::time::Instant;

use chrono::SubsecRound as _;
use chrono::Utc;

use crate::fake::bare::Bare;
use crate::fake::board::Board as _;
use crate::fake::board::Record;
use crate::fake::github::checks::Job;
use crate::fake::github::checks::Status;
use crate::fake::github::tokens::App;
use crate::fake::github::tokens::Token;

pub use crate::fake::board::Time;

#[derive(Debug, Default)]
pub struct State {
    pub folder: PathBuf,
    pub repositories: Vec<Repository>,
    pub organizations: BTreeSet<String>,
    pub people: BTreeSet<String>,
    /// The logins that were given up and belong to other accounts now, each with another id.
    pub taken_over: BTreeSet<String>,
    pub tokens: BTreeMap<String, Token>,
    /// The day on which all tokens of people end; never where there is none.
    pub tokens_end: Option<chrono::NaiveDate>,
    pub app: Option<App>,
    /// The number of requests with each new token of an installation that are refused at first.
    pub unknown_at_first: u32,
    pub allowance: Allowance,
    /// The names that repositories had, with those that they have now.
    pub renamed: BTreeMap<String, String>,
    pub last_id: u64,
    /// The files that people dropped into texts, by their names.
    pub attachments: BTreeMap<String, Vec<u8>>,
}

/// The number of requests that are left, and the time until which none is answered.
#[derive(Clone, Debug)]
pub struct Allowance {
    pub left: u64,
    pub reset: Time,
    pub secondary_until: Option<(Instant, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permission {
    None,
    Read,
    Triage,
    Write,
    Maintain,
    Admin,
}

#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "GitHub's repositories have these fields")]
pub struct Repository {
    pub id: u64,
    pub owner: String,
    pub name: String,
    pub default_branch: String,
    pub is_private: bool,
    pub is_archived: bool,
    pub has_issues: bool,
    /// Whether pull requests can be drafts, which private repositories of some plans have not.
    pub has_drafts: bool,
    pub parent: Option<String>,
    pub labels: Vec<Label>,
    pub members: BTreeMap<String, Permission>,
    /// The teams that may look at it, by their names alone.
    pub teams: Vec<String>,
    pub items: BTreeMap<u64, Item>,
    pub last_number: u64,
    pub jobs: Vec<Job>,
    pub statuses: Vec<Status>,
    /// The branches that are protected in the way that is older than rulesets.
    pub protected: BTreeSet<String>,
    /// The rules that rulesets lay on branches, by the name of the branch.
    pub rules: BTreeMap<String, Vec<String>>,
    pub git: Bare,
    /// The branches as they were after the last push.
    pub heads: BTreeMap<String, String>,
    pub created: Time,
}

#[derive(Clone, Debug)]
pub struct Label {
    pub id: u64,
    pub name: String,
    pub color: String,
    pub description: Option<String>,
}

/// The address of an issue or a pull request: they share their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub repository: String,
    pub number: u64,
}

/// An issue or a pull request: they share their numbers, labels, comments and history.
#[derive(Clone, Debug)]
pub struct Item {
    pub record: Record<Place>,
    pub closed_because: Option<String>,
    pub comments: Vec<Comment>,
    pub pull: Option<Pull>,
}

impl Deref for Item {
    type Target = Record<Place>;

    fn deref(&self) -> &Record<Place> {
        &self.record
    }
}

impl DerefMut for Item {
    fn deref_mut(&mut self) -> &mut Record<Place> {
        &mut self.record
    }
}

#[derive(Clone, Debug)]
pub struct Pull {
    pub head_repository: String,
    pub head: String,
    pub base: String,
    pub is_draft: bool,
    pub merged: Option<Time>,
    pub maintainers_can_modify: bool,
    /// Accounts, and teams as `organization/team`, that were asked for a review.
    pub reviewers: Vec<String>,
    pub reviews: Vec<Review>,
    pub line_comments: Vec<LineComment>,
}

/// A text that somebody wrote below an item or on a line of its changes.
#[derive(Clone, Debug)]
pub struct Comment {
    pub id: u64,
    pub author: String,
    pub body: String,
    /// The text before each edit, oldest first.
    pub earlier: Vec<String>,
    pub reactions: Vec<Reaction>,
    pub created: Time,
    pub updated: Time,
}

#[derive(Clone, Debug)]
pub struct Reaction {
    pub id: u64,
    pub author: String,
    pub content: String,
    pub created: Time,
}

#[derive(Clone, Debug)]
pub struct Review {
    pub id: u64,
    pub author: String,
    pub body: String,
    pub state: Verdict,
    /// The time at which the review was submitted. It does not move when the text is edited, and
    /// there is no other time.
    pub submitted: Time,
}

/// A reviewer's verdict on a pull request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Commented,
    Approved,
    ChangesRequested,
}

#[derive(Clone, Debug)]
pub struct LineComment {
    pub comment: Comment,
    pub review: u64,
    pub in_reply_to: Option<u64>,
    pub path: String,
    pub line: u64,
}

/// Returns the present time, in whole seconds as GitHub keeps it.
pub fn now() -> Time {
    Utc::now().trunc_subsecs(0)
}

impl Default for Allowance {
    fn default() -> Self {
        Self {
            left: 5000,
            reset: now() + chrono::Duration::hours(1),
            secondary_until: None,
        }
    }
}

impl State {
    pub fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    pub fn repository(&self, full_name: &str) -> Option<&Repository> {
        let full_name = self.renamed.get(full_name).map_or(full_name, String::as_str);
        self.repositories
            .iter()
            .find(|repository| repository.is_named(full_name))
    }

    pub fn repository_mut(&mut self, full_name: &str) -> Option<&mut Repository> {
        let full_name = self.renamed.get(full_name).map_or(full_name, String::as_str);
        self.repositories
            .iter_mut()
            .find(|repository| repository.is_named(full_name))
    }

    pub fn pull_mut(&mut self, place: &Place) -> Option<&mut Pull> {
        self.item_mut(place)?.pull.as_mut()
    }
}

impl Place {
    pub fn new(repository: &str, number: u64) -> Self {
        Self {
            repository: repository.to_owned(),
            number,
        }
    }
}

impl Repository {
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }

    pub fn is_named(&self, full_name: &str) -> bool {
        let (owner, name) = full_name.split_once('/').unwrap_or_default();
        self.owner.eq_ignore_ascii_case(owner) && self.name.eq_ignore_ascii_case(name)
    }

    /// Returns what somebody may do here. Everybody may read what is public.
    pub fn permission(&self, login: &str) -> Permission {
        let least = if self.is_private {
            Permission::None
        } else {
            Permission::Read
        };
        let given = if self.owner == login {
            Permission::Admin
        } else {
            Permission::None
        };
        self.members.get(login).copied().unwrap_or(given).max(least)
    }

    pub fn label(&self, name: &str) -> Option<&Label> {
        self.labels.iter().find(|label| label.name.eq_ignore_ascii_case(name))
    }

    /// Says whether a branch counts as protected. Any rule will do, also one that every push keeps.
    pub fn is_protected(&self, branch: &str) -> bool {
        self.protected.contains(branch) || self.rules.contains_key(branch)
    }
}

impl Item {
    pub fn has_label(&self, name: &str) -> bool {
        self.labels.iter().any(|label| label.eq_ignore_ascii_case(name))
    }

    /// Finds a comment, also one on a line of the changes.
    pub fn comment(&self, id: u64) -> Option<&Comment> {
        let on_lines = self.pull.iter().flat_map(|pull| &pull.line_comments);
        let mut all = self.comments.iter().chain(on_lines.map(|written| &written.comment));
        all.find(|comment| comment.id == id)
    }

    pub fn comment_mut(&mut self, id: u64) -> Option<&mut Comment> {
        let on_lines = self.pull.iter_mut().flat_map(|pull| &mut pull.line_comments);
        let on_lines = on_lines.map(|written| &mut written.comment);
        let mut all = self.comments.iter_mut().chain(on_lines);
        all.find(|comment| comment.id == id)
    }

    pub fn line_comment(&self, id: u64) -> Option<&LineComment> {
        let mut on_lines = self.pull.iter().flat_map(|pull| &pull.line_comments);
        on_lines.find(|written| written.comment.id == id)
    }

    pub fn review(&self, id: u64) -> Option<&Review> {
        let mut reviews = self.pull.iter().flat_map(|pull| &pull.reviews);
        reviews.find(|review| review.id == id)
    }

    pub fn review_mut(&mut self, id: u64) -> Option<&mut Review> {
        let mut reviews = self.pull.iter_mut().flat_map(|pull| &mut pull.reviews);
        reviews.find(|review| review.id == id)
    }

    /// Returns who wrote a comment or a review.
    pub fn author_of(&self, id: u64) -> &str {
        let review = self.review(id).map(|review| review.author.as_str());
        let author = self.comment(id).map(|comment| comment.author.as_str()).or(review);
        author.unwrap_or_default()
    }
}

impl Permission {
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Triage => "triage",
            Self::Write => "write",
            Self::Maintain => "maintain",
            Self::Admin => "admin",
        }
    }

    /// Returns the name in the field that is older than the finer roles.
    pub fn old_name(self) -> &'static str {
        match self {
            Self::Triage => Self::Read.name(),
            Self::Maintain => Self::Write.name(),
            Self::None | Self::Read | Self::Write | Self::Admin => self.name(),
        }
    }
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Self::Commented => "COMMENTED",
            Self::Approved => "APPROVED",
            Self::ChangesRequested => "CHANGES_REQUESTED",
        }
    }
}
