//! The state of a fake GitLab: plain data, without a word of HTTP.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::ops::DerefMut;
use std::path::PathBuf;
use std::time::Instant;

use chrono::SubsecRound as _;
use chrono::Utc;

use crate::fake::bare::Bare;
use crate::fake::board::Record;
use crate::fake::gitlab::pipelines::Pipeline;

pub use crate::fake::board::Time;

#[derive(Debug, Default)]
pub struct State {
    pub folder: PathBuf,
    pub projects: Vec<Project>,
    pub people: BTreeSet<String>,
    /// The names that were given up and belong to other accounts now, each with another id.
    pub taken_over: BTreeSet<String>,
    pub tokens: BTreeMap<String, Token>,
    /// The day on which all tokens of people end; never where there is none.
    pub tokens_end: Option<chrono::NaiveDate>,
    pub has_inactive_tokens: bool,
    pub administrators: BTreeSet<String>,
    pub limited_until: Option<(Instant, u64)>,
    /// Whether everything is read and nothing written.
    pub is_in_maintenance: bool,
    /// The paths that projects had, with those that they have now.
    pub moved: BTreeMap<String, String>,
    /// Files that were put into projects, by `secret/name`.
    pub uploads: BTreeMap<String, Vec<u8>>,
    pub last_id: u64,
}

#[derive(Clone, Debug)]
pub struct Token {
    pub username: String,
    pub scopes: Vec<String>,
}

/// The role of a member. GitLab knows roles by these numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    None = 0,
    Guest = 10,
    Planner = 15,
    Reporter = 20,
    Developer = 30,
    Maintainer = 40,
    Owner = 50,
}

#[derive(Clone, Debug)]
pub struct Project {
    pub id: u64,
    /// The path with all groups, such as `acme/tools/widgets`.
    pub path: String,
    pub default_branch: String,
    pub is_public: bool,
    pub is_archived: bool,
    /// The lowest role that may merge into its branches.
    pub merged_by: Access,
    /// The protected branches, each with the lowest role that may push to it.
    pub protected: BTreeMap<String, Access>,
    pub parent: Option<String>,
    pub labels: Vec<Label>,
    pub members: BTreeMap<String, Access>,
    /// Members of the groups above it.
    pub inherited: BTreeMap<String, Access>,
    pub issues: BTreeMap<u64, Item>,
    pub merge_requests: BTreeMap<u64, Item>,
    pub pipelines: Vec<Pipeline>,
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
    pub updated: Time,
}

/// Issues and merge requests are counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Issue,
    MergeRequest,
}

/// The address of an issue or a merge request: its project, kind and number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub project: String,
    pub kind: Kind,
    pub iid: u64,
}

/// An issue or a merge request.
#[derive(Clone, Debug)]
pub struct Item {
    pub record: Record<Place>,
    pub is_confidential: bool,
    /// The last change of title or description: its time and its author.
    pub edited: Option<(Time, String)>,
    pub notes: Vec<Note>,
    pub merge: Option<Merge>,
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

/// The part of an item that only a merge request has.
#[derive(Clone, Debug)]
pub struct Merge {
    pub source_project: String,
    pub source: String,
    pub target: String,
    pub merged: Option<Time>,
    pub allows_collaboration: bool,
    pub reviewers: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Note {
    pub id: u64,
    /// The id of the discussion, which its notes share.
    pub discussion: String,
    pub author: String,
    pub body: String,
    /// The text before each edit, oldest first.
    pub earlier: Vec<String>,
    /// Whether GitLab itself wrote the note, about what somebody did.
    pub is_system: bool,
    /// Whether only the team sees the note.
    pub is_internal: bool,
    /// The file and line of a remark on a diff.
    pub position: Option<(String, u64)>,
    pub awards: Vec<Award>,
    pub created: Time,
    pub updated: Time,
}

#[derive(Clone, Debug)]
pub struct Award {
    pub id: u64,
    pub author: String,
    pub name: String,
    pub created: Time,
}

/// Returns the present time, in milliseconds as GitLab keeps it.
pub fn now() -> Time {
    Utc::now().trunc_subsecs(3)
}

impl State {
    pub fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Finds a project by its number or its path.
    pub fn project(&self, name: &str) -> Option<&Project> {
        let name = self.moved.get(name).map_or(name, String::as_str);
        self.projects.iter().find(|project| project.is_named(name))
    }

    pub fn project_mut(&mut self, name: &str) -> Option<&mut Project> {
        let name = self.moved.get(name).cloned().unwrap_or_else(|| name.to_owned());
        self.projects.iter_mut().find(|project| project.is_named(&name))
    }
}

impl Project {
    pub fn is_named(&self, name: &str) -> bool {
        self.path.eq_ignore_ascii_case(name) || name.parse() == Ok(self.id)
    }

    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the group that the project is in, with the groups above it.
    pub fn group(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(group, _)| group)
    }

    /// Returns what somebody may do here.
    pub fn access(&self, username: &str) -> Access {
        let least = if self.is_public { Access::Guest } else { Access::None };
        let given = if self.group() == username {
            Access::Owner
        } else {
            Access::None
        };
        let direct = self.members.get(username).copied().unwrap_or(given);
        let inherited = self.inherited.get(username).copied().unwrap_or(Access::None);
        direct.max(inherited).max(least)
    }

    /// Says whether somebody may see a confidential issue of this project: its author, whoever it
    /// is assigned to, and the team.
    pub fn shows_confidential(&self, item: &Item, username: &str) -> bool {
        let is_concerned = item.author == username || item.assignees.iter().any(|name| name == username);
        !item.is_confidential || is_concerned || self.access(username) >= Access::Planner
    }

    /// Returns all members, each with the highest access that they have by any way.
    pub fn all_members(&self) -> BTreeMap<String, Access> {
        let mut all = self.inherited.clone();
        for (username, access) in &self.members {
            let known = all.entry(username.clone()).or_insert(*access);
            *known = (*known).max(*access);
        }
        all
    }

    pub fn label(&self, name: &str) -> Option<&Label> {
        self.labels
            .iter()
            .find(|label| label.name == name || name.parse() == Ok(label.id))
    }

    pub fn items(&self, kind: Kind) -> &BTreeMap<u64, Item> {
        match kind {
            Kind::Issue => &self.issues,
            Kind::MergeRequest => &self.merge_requests,
        }
    }

    pub fn items_mut(&mut self, kind: Kind) -> &mut BTreeMap<u64, Item> {
        match kind {
            Kind::Issue => &mut self.issues,
            Kind::MergeRequest => &mut self.merge_requests,
        }
    }
}

impl Item {
    pub fn is_draft(&self) -> bool {
        self.merge.is_some() && is_draft(&self.title)
    }

    pub fn note(&self, id: u64) -> Option<&Note> {
        self.notes.iter().find(|note| note.id == id)
    }

    pub fn note_mut(&mut self, id: u64) -> Option<&mut Note> {
        self.notes.iter_mut().find(|note| note.id == id)
    }
}

/// Says whether the title of a merge request makes it a draft.
pub fn is_draft(title: &str) -> bool {
    let title = title.to_lowercase();
    let marks = ["draft:", "[draft]", "(draft)"];
    marks.iter().any(|mark| title.starts_with(mark))
}

impl Place {
    /// Returns the item as people write it: `acme/widgets#1`, `acme/widgets!1`.
    pub fn name(&self) -> String {
        let mark = match self.kind {
            Kind::Issue => '#',
            Kind::MergeRequest => '!',
        };
        format!("{}{mark}{}", self.project, self.iid)
    }
}
