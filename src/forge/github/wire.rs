//! The parts of GitHub's answers that are read, and no others.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
pub(super) struct Refusal {
    pub(super) message: String,
    #[serde(default)]
    pub(super) errors: Vec<Value>,
}

#[derive(Deserialize)]
pub(super) struct Found<T> {
    #[serde(default)]
    pub(super) incomplete_results: bool,
    pub(super) items: Vec<T>,
}

#[derive(Deserialize)]
pub(super) struct User {
    pub(super) login: String,
    pub(super) id: Option<u64>,
    /// `User`, `Bot`, ...
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
}

impl User {
    /// An app's account is called `name[bot]`, which nobody else can be.
    pub(super) fn is_program(&self) -> bool {
        self.kind.as_deref() == Some("Bot") || self.login.ends_with("[bot]")
    }
}

#[derive(Deserialize)]
pub(super) struct Label {
    pub(super) name: String,
}

/// An issue or a pull request, in a list or by itself.
#[derive(Deserialize)]
pub(super) struct Issue {
    pub(super) number: u64,
    pub(super) title: String,
    pub(super) body: Option<String>,
    pub(super) state: String,
    pub(super) html_url: String,
    /// Ends in `/repos/owner/repo`.
    pub(super) repository_url: Option<String>,
    /// Nobody, where the account was deleted.
    pub(super) user: Option<User>,
    #[serde(default)]
    pub(super) labels: Vec<Label>,
    #[serde(default)]
    pub(super) assignees: Vec<User>,
    pub(super) updated_at: DateTime<Utc>,
    /// Present where it is a pull request.
    pub(super) pull_request: Option<Value>,
}

impl Issue {
    /// Returns the full name of the repository it lives in, where GitHub tells.
    pub(super) fn repository(&self) -> Option<&str> {
        let (_, name) = self.repository_url.as_deref()?.rsplit_once("/repos/")?;
        Some(name)
    }
}

#[derive(Deserialize)]
pub(super) struct Repository {
    pub(super) full_name: String,
    pub(super) clone_url: String,
    /// A name even where there is no commit yet.
    pub(super) default_branch: Option<String>,
    /// In KiB, counted now and then: 0 in an empty repository and for a while in a small new one.
    #[serde(default)]
    pub(super) size: u64,
    #[serde(default)]
    pub(super) archived: bool,
    #[serde(default)]
    pub(super) has_issues: Option<bool>,
    #[serde(default)]
    pub(super) permissions: Permissions,
}

#[derive(Deserialize, Default)]
pub(super) struct Permissions {
    #[serde(default)]
    pub(super) push: Option<bool>,
    #[serde(default)]
    pub(super) admin: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct Pull {
    pub(super) number: u64,
    pub(super) html_url: String,
    pub(super) head: Side,
    pub(super) base: Side,
    /// Left out in lists.
    #[serde(default)]
    pub(super) maintainer_can_modify: Option<bool>,
}

/// A pull request in the list of those that are watched.
#[derive(Deserialize)]
pub(super) struct ListedPull {
    pub(super) number: u64,
    pub(super) title: String,
    pub(super) updated_at: DateTime<Utc>,
    pub(super) head: Head,
}

#[derive(Deserialize)]
pub(super) struct Head {
    #[serde(rename = "sha")]
    pub(super) commit: String,
}

#[derive(Deserialize)]
pub(super) struct Side {
    #[serde(rename = "ref")]
    pub(super) branch: String,
    #[serde(rename = "sha")]
    pub(super) commit: Option<String>,
    /// Nothing, where the fork was deleted.
    pub(super) repo: Option<Repository>,
}

/// Something that happened to an issue or pull request.
#[derive(Deserialize)]
pub(super) struct Event {
    /// `labeled`, `renamed`, ...
    #[serde(rename = "event")]
    pub(super) kind: String,
    /// Nobody, where the account was deleted.
    pub(super) actor: Option<User>,
    pub(super) created_at: DateTime<Utc>,
    pub(super) label: Option<Label>,
}

/// An answer of the GraphQL API.
#[derive(Deserialize)]
pub(super) struct GraphAnswer {
    pub(super) data: Option<GraphData>,
    #[serde(default)]
    pub(super) errors: Vec<GraphError>,
}

#[derive(Deserialize)]
pub(super) struct GraphError {
    pub(super) message: String,
}

#[derive(Deserialize)]
pub(super) struct GraphData {
    pub(super) repository: Option<GraphRepository>,
}

#[derive(Deserialize)]
pub(super) struct GraphRepository {
    #[serde(rename = "issueOrPullRequest")]
    pub(super) item: Option<GraphItem>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GraphItem {
    pub(super) created_at: DateTime<Utc>,
    pub(super) last_edited_at: Option<DateTime<Utc>>,
    /// Nobody, where the account was deleted.
    pub(super) editor: Option<User>,
    /// The newest come first. The text as it was opened counts as one, where it was edited at all.
    pub(super) user_content_edits: Option<TextEdits>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TextEdits {
    pub(super) nodes: Vec<Option<TextEdit>>,
    pub(super) page_info: PageInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageInfo {
    pub(super) has_next_page: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TextEdit {
    pub(super) edited_at: DateTime<Utc>,
    pub(super) editor: Option<User>,
}

/// A change of a branch, in the list of a repository's activities.
#[derive(Deserialize)]
pub(super) struct Activity {
    pub(super) timestamp: DateTime<Utc>,
    pub(super) actor: Option<User>,
}

/// A comment on the conversation or on a line.
#[derive(Deserialize)]
pub(super) struct Comment {
    pub(super) id: u64,
    pub(super) user: Option<User>,
    pub(super) body: Option<String>,
    pub(super) created_at: DateTime<Utc>,
    pub(super) updated_at: DateTime<Utc>,
    /// Of a comment on the changes.
    pub(super) path: Option<String>,
    /// Nothing where the line is not there any more.
    pub(super) line: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct Review {
    pub(super) id: u64,
    pub(super) user: Option<User>,
    pub(super) body: Option<String>,
    /// `APPROVED`, `CHANGES_REQUESTED`, `COMMENTED`, ...
    pub(super) state: Option<String>,
    /// Nothing while the review is being written.
    pub(super) submitted_at: Option<DateTime<Utc>>,
}

/// What a user may do in a repository, by all ways together.
#[derive(Deserialize)]
pub(super) struct Access {
    /// `admin`, `write`, `read` or `none`; finer roles are shown as the one that they are built on.
    pub(super) permission: String,
    /// Whose it is.
    pub(super) user: Option<User>,
}

#[derive(Deserialize)]
pub(super) struct Made {
    pub(super) id: u64,
}

/// A GitHub App about itself.
#[derive(Deserialize)]
pub(super) struct AppItself {
    pub(super) slug: String,
    #[serde(default)]
    pub(super) permissions: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
pub(super) struct CheckRuns {
    pub(super) check_runs: Vec<CheckRun>,
}

#[derive(Deserialize)]
pub(super) struct CheckRun {
    pub(super) id: u64,
    pub(super) name: String,
    /// `completed` once there is a conclusion.
    pub(super) status: String,
    pub(super) conclusion: Option<String>,
    /// Of a job of GitHub Actions it ends in `/job/<id>`.
    pub(super) details_url: Option<String>,
    #[serde(default)]
    pub(super) output: CheckOutput,
}

/// What a check says of itself.
#[derive(Deserialize, Default)]
pub(super) struct CheckOutput {
    pub(super) title: Option<String>,
    pub(super) summary: Option<String>,
    pub(super) text: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct CombinedStatus {
    pub(super) statuses: Vec<CommitStatus>,
}

/// The newest status of one context, as older services report.
#[derive(Deserialize)]
pub(super) struct CommitStatus {
    pub(super) id: u64,
    pub(super) context: String,
    /// `success`, `pending`, `failure` or `error`.
    pub(super) state: String,
    pub(super) description: Option<String>,
}
