//! One task: an issue or a change request, on either forge.

use crate::fake::{github, gitlab};
use crate::model::TITLE;
use crate::site::Site;

const TRIGGER: &str = "coding agent";
const HUMAN: &str = "alice";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::enum_variant_names, reason = "both forges are called so")]
pub enum Kind {
    GitHubIssue,
    GitHubPull,
    GitLabIssue,
    GitLabMerge,
}

pub struct Job {
    pub kind: Kind,
    pub name: String,
    item: Item,
}

enum Item {
    GitHub(github::Item),
    GitLab(gitlab::Item),
}

/// A pull or merge request, as far as it is looked at.
pub struct Change {
    pub is_draft: bool,
    pub subjects: Vec<String>,
    item: Item,
}

impl Kind {
    pub const ALL: [Self; 4] = [
        Self::GitHubIssue,
        Self::GitHubPull,
        Self::GitLabIssue,
        Self::GitLabMerge,
    ];

    pub fn is_on_github(self) -> bool {
        matches!(self, Self::GitHubIssue | Self::GitHubPull)
    }

    pub fn is_issue(self) -> bool {
        matches!(self, Self::GitHubIssue | Self::GitLabIssue)
    }
}

impl Job {
    /// Opens the item and puts the trigger on it.
    pub fn open(site: &Site, kind: Kind, name: &str) -> Self {
        let title = format!("{TITLE}{name} walls");
        let (branch, file) = (head(name), format!("{name}.txt"));
        let files = [(file.as_str(), "bare\n")];
        let item = match kind {
            Kind::GitHubIssue => Item::GitHub(site.github.open_issue(&title).label(TRIGGER)),
            Kind::GitHubPull => Item::GitHub(site.github.open_pull(&title, &branch, &files).label(TRIGGER)),
            Kind::GitLabIssue => Item::GitLab(site.gitlab.open_issue(&title).label(TRIGGER)),
            Kind::GitLabMerge => Item::GitLab(site.gitlab.open_merge_request(&title, &branch, &files).label(TRIGGER)),
        };
        Self {
            kind,
            name: name.to_owned(),
            item,
        }
    }

    /// Returns the task's id, as the store has it.
    pub fn task(&self) -> String {
        match (&self.item, self.kind.is_issue()) {
            (Item::GitHub(item), _) => format!("github:acme/widgets#{}", item.number()),
            (Item::GitLab(item), true) => format!("gitlab:acme/widgets#{}", item.iid()),
            (Item::GitLab(item), false) => format!("gitlab:acme/widgets!{}", item.iid()),
        }
    }

    /// Returns the part of an API's paths that names the item, which is another one for each forge:
    /// both number their items from one.
    pub fn path(&self) -> String {
        match (&self.item, self.kind.is_issue()) {
            (Item::GitHub(item), _) => format!("/acme/widgets/issues/{}/", item.number()),
            (Item::GitLab(item), true) => format!("/acme%2Fwidgets/issues/{}/", item.iid()),
            (Item::GitLab(item), false) => format!("/acme%2Fwidgets/merge_requests/{}/", item.iid()),
        }
    }

    pub fn comment(&self, text: &str) {
        match &self.item {
            Item::GitHub(item) => drop(item.comment(HUMAN, text)),
            Item::GitLab(item) => drop(item.comment(HUMAN, text)),
        }
    }

    pub fn labels(&self) -> Vec<String> {
        match &self.item {
            Item::GitHub(item) => item.labels(),
            Item::GitLab(item) => item.labels(),
        }
    }

    /// Returns the comments that the program wrote.
    pub fn told(&self, site: &Site) -> Vec<String> {
        match &self.item {
            Item::GitHub(item) => item.comments_of(site.github.bot()),
            Item::GitLab(item) => item.comments_of(site.gitlab.bot()),
        }
    }

    /// Returns the change requests of the task: its own, or those that were opened for it.
    pub fn changes(&self, site: &Site) -> Vec<Change> {
        match &self.item {
            Item::GitHub(own) => {
                let pulls = site.github.pulls().into_iter();
                let mine = pulls.filter(|pull| pull.number() == own.number() || pull.mentions(own));
                mine.map(Change::of_github).collect()
            }
            Item::GitLab(own) => {
                let merges = site.gitlab.merge_requests().into_iter();
                let mine =
                    merges.filter(|merge| (!self.kind.is_issue() && merge.iid() == own.iid()) || merge.mentions(own));
                mine.map(Change::of_gitlab).collect()
            }
        }
    }

    /// Merges what was delivered and closes the item, as people do who are content with it.
    pub fn accept(&self, site: &Site) {
        for change in self.changes(site) {
            match &change.item {
                Item::GitHub(item) => drop(item.merges()),
                Item::GitLab(item) => drop(item.merges()),
            }
        }
        match &self.item {
            Item::GitHub(item) if self.kind.is_issue() => drop(item.close()),
            Item::GitLab(item) if self.kind.is_issue() => drop(item.close()),
            Item::GitHub(_) | Item::GitLab(_) => {}
        }
    }

    /// Returns the branches that the program made for the task.
    pub fn branches(&self, site: &Site) -> Vec<String> {
        let all = match &self.item {
            Item::GitHub(_) => site.github.default_repository().branches(),
            Item::GitLab(_) => site.gitlab.default_project().branches(),
        };
        let is_own = |branch: &String| branch.contains(&self.name) && *branch != head(&self.name);
        all.into_iter().filter(is_own).collect()
    }
}

/// The branch that people opened a change request from.
fn head(name: &str) -> String {
    format!("people/{name}")
}

impl Change {
    fn of_github(item: github::Item) -> Self {
        Self {
            is_draft: item.is_draft(),
            subjects: subjects(item.commits().into_iter().map(|commit| commit.message)),
            item: Item::GitHub(item),
        }
    }

    fn of_gitlab(item: gitlab::Item) -> Self {
        Self {
            is_draft: item.is_draft(),
            subjects: subjects(item.commits().into_iter().map(|commit| commit.message)),
            item: Item::GitLab(item),
        }
    }

    pub fn file(&self, path: &str) -> Option<String> {
        match &self.item {
            Item::GitHub(item) => item.file(path),
            Item::GitLab(item) => item.file(path),
        }
    }
}

fn subjects(messages: impl Iterator<Item = String>) -> Vec<String> {
    messages
        .map(|message| message.lines().next().unwrap_or_default().to_owned())
        .collect()
}
