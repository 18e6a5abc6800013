//! The parts of GitHub's answers that are read, and no others.

pub(crate) mod checks; // of a commit

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
pub(crate) struct Refusal {
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) errors: Vec<Value>,
}

#[derive(Deserialize)]
pub(crate) struct Found<T> {
    #[serde(default)]
    pub(crate) incomplete_results: bool,
    pub(crate) items: Vec<T>,
}

#[derive(Deserialize)]
pub(crate) struct User {
    pub(crate) login: String,
    /// The account's number. GraphQL calls it `databaseId`; its `id` is another one.
    #[serde(alias = "databaseId")]
    pub(crate) id: Option<u64>,
    /// `User`, `Bot`, ...
    #[serde(rename = "type", alias = "__typename")]
    pub(crate) kind: Option<String>,
}

impl User {
    /// Returns an account of GraphQL as REST names it: there an App's has no `[bot]`.
    pub(crate) fn named_as_in_rest(mut self) -> Self {
        if self.is_program() && !self.login.ends_with("[bot]") {
            self.login.push_str("[bot]");
        }
        self
    }

    /// Tells whether the account is a program's. An App's is called `name[bot]`, which no other
    /// account can be.
    pub(crate) fn is_program(&self) -> bool {
        self.kind.as_deref() == Some("Bot") || self.login.ends_with("[bot]")
    }
}

#[derive(Deserialize)]
pub(crate) struct Label {
    pub(crate) name: String,
}

/// An issue or a pull request, in a list or by itself.
#[derive(Deserialize)]
pub(crate) struct Issue {
    pub(crate) number: u64,
    pub(crate) title: String,
    pub(crate) body: Option<String>,
    pub(crate) state: String,
    pub(crate) html_url: String,
    /// The repository's address, which ends in `/repos/owner/repo`.
    pub(crate) repository_url: Option<String>,
    /// The author; `None` if the account was deleted.
    pub(crate) user: Option<User>,
    #[serde(default)]
    pub(crate) labels: Vec<Label>,
    #[serde(default)]
    pub(crate) assignees: Vec<User>,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) updated_at: DateTime<Utc>,
    /// Present if it is a pull request.
    pub(crate) pull_request: Option<Value>,
}

impl Issue {
    /// Returns the full name of its repository, if GitHub reports it.
    pub(crate) fn repository(&self) -> Option<&str> {
        let (_, name) = self.repository_url.as_deref()?.rsplit_once("/repos/")?;
        Some(name)
    }
}

#[derive(Deserialize)]
pub(crate) struct Repository {
    pub(crate) full_name: String,
    pub(crate) clone_url: String,
    /// Set even if there is no commit yet.
    pub(crate) default_branch: Option<String>,
    /// The size in KiB, which is updated with a delay: 0 in an empty repository, and for a while in
    /// a small new one.
    #[serde(default)]
    pub(crate) size: u64,
    #[serde(default)]
    pub(crate) archived: bool,
    #[serde(default)]
    pub(crate) private: bool,
    #[serde(default)]
    pub(crate) has_issues: Option<bool>,
    #[serde(default)]
    pub(crate) permissions: Permissions,
}

/// The repositories that an App's installation reaches.
#[derive(Deserialize)]
pub(crate) struct Installed {
    pub(crate) repositories: Vec<Repository>,
}

#[derive(Deserialize, Default)]
pub(crate) struct Permissions {
    #[serde(default)]
    pub(crate) push: Option<bool>,
    #[serde(default)]
    pub(crate) admin: Option<bool>,
}

#[derive(Deserialize)]
pub(crate) struct Pull {
    pub(crate) number: u64,
    pub(crate) html_url: String,
    pub(crate) head: Side,
    pub(crate) base: Side,
    /// Its id in the GraphQL API.
    #[serde(default)]
    pub(crate) node_id: String,
    pub(crate) draft: Option<bool>,
    /// Missing in lists.
    #[serde(default)]
    pub(crate) maintainer_can_modify: Option<bool>,
}

/// A pull request in the list of those that are watched.
#[derive(Deserialize)]
pub(crate) struct ListedPull {
    pub(crate) number: u64,
    pub(crate) title: String,
    pub(crate) updated_at: DateTime<Utc>,
    pub(crate) head: Head,
}

#[derive(Deserialize)]
pub(crate) struct Head {
    #[serde(rename = "sha")]
    pub(crate) commit: String,
}

#[derive(Deserialize)]
pub(crate) struct Side {
    #[serde(rename = "ref")]
    pub(crate) branch: String,
    #[serde(rename = "sha")]
    pub(crate) commit: Option<String>,
    /// `None` if the fork was deleted.
    pub(crate) repo: Option<Repository>,
}

/// Something that happened to an issue or pull request.
#[derive(Deserialize)]
pub(crate) struct Event {
    /// `labeled`, `renamed`, ...
    #[serde(rename = "event")]
    pub(crate) kind: String,
    /// `None` if the account was deleted.
    pub(crate) actor: Option<User>,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) label: Option<Label>,
    /// Of `assigned`: to whom, and by whom. GitHub names the actor as either of them.
    pub(crate) assignee: Option<User>,
    pub(crate) assigner: Option<User>,
}

/// An answer of the GraphQL API.
#[derive(Deserialize)]
pub(crate) struct GraphAnswer {
    pub(crate) data: Option<GraphData>,
    #[serde(default)]
    pub(crate) errors: Vec<GraphError>,
}

#[derive(Deserialize)]
pub(crate) struct GraphErrors {
    #[serde(default)]
    pub(crate) errors: Vec<GraphError>,
}

#[derive(Deserialize)]
pub(crate) struct GraphError {
    /// `RATE_LIMITED`, ...
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    pub(crate) message: String,
    /// With a `code` where the question is wrong.
    #[serde(default)]
    pub(crate) extensions: Value,
}

#[derive(Deserialize)]
pub(crate) struct GraphData {
    pub(crate) repository: Option<GraphRepository>,
}

#[derive(Deserialize)]
pub(crate) struct GraphRepository {
    #[serde(rename = "issueOrPullRequest")]
    pub(crate) item: Option<GraphItem>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GraphItem {
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) last_edited_at: Option<DateTime<Utc>>,
    /// `None` if the account was deleted.
    pub(crate) editor: Option<User>,
    /// The edits, newest first. If there are any, the original text counts as one of them.
    pub(crate) user_content_edits: Option<TextEdits>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TextEdits {
    pub(crate) nodes: Vec<Option<TextEdit>>,
    pub(crate) page_info: PageInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PageInfo {
    pub(crate) has_next_page: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TextEdit {
    pub(crate) edited_at: DateTime<Utc>,
    pub(crate) editor: Option<User>,
}

/// A change of a branch, in the list of a repository's activities.
#[derive(Deserialize)]
pub(crate) struct Activity {
    pub(crate) timestamp: DateTime<Utc>,
    pub(crate) actor: Option<User>,
}

/// A comment on the conversation or on a line.
#[derive(Deserialize)]
pub(crate) struct Comment {
    pub(crate) id: u64,
    pub(crate) user: Option<User>,
    pub(crate) body: Option<String>,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) updated_at: DateTime<Utc>,
    /// The file, for a comment on the changes.
    pub(crate) path: Option<String>,
    /// The line; `None` if it no longer exists.
    pub(crate) line: Option<u64>,
    /// The comment that began the thread on a line.
    pub(crate) in_reply_to_id: Option<u64>,
}

#[derive(Deserialize)]
pub(crate) struct Review {
    pub(crate) id: u64,
    pub(crate) user: Option<User>,
    pub(crate) body: Option<String>,
    /// `APPROVED`, `CHANGES_REQUESTED`, `COMMENTED`, ...
    pub(crate) state: Option<String>,
    /// `None` while the review is being written.
    pub(crate) submitted_at: Option<DateTime<Utc>>,
}

/// Who is to work on an issue or pull request.
#[derive(Deserialize)]
pub(crate) struct Assigned {
    #[serde(default)]
    pub(crate) assignees: Vec<User>,
}

/// The rights of a user on a repository, from all sources together.
#[derive(Deserialize)]
pub(crate) struct Access {
    /// `admin`, `write`, `read` or `none`; a finer role is reported as the one that it is based on.
    pub(crate) permission: String,
    /// The account that the rights belong to.
    pub(crate) user: Option<User>,
}

#[derive(Deserialize)]
pub(crate) struct Made {
    pub(crate) id: u64,
}

/// A GitHub App about itself.
#[derive(Deserialize)]
pub(crate) struct AppItself {
    pub(crate) slug: String,
    #[serde(default)]
    pub(crate) permissions: std::collections::BTreeMap<String, String>,
}
