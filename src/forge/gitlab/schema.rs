//! The parts of GitLab's answers that are read, and no others.

use chrono::{DateTime, NaiveDate, Utc};
use serde::Deserialize;

#[derive(Deserialize)]
pub(crate) struct User {
    pub(crate) username: String,
    pub(crate) id: Option<u64>,
    /// Missing in some answers.
    pub(crate) bot: Option<bool>,
    /// Only set for the token's own user.
    pub(crate) is_admin: Option<bool>,
}

impl User {
    /// Tells whether the account is a program's. That of a project's or group's access token is
    /// called `project_1_bot`, mostly with a suffix, and a service account
    /// `service_account_group_1_...`, unless somebody chose another name.
    pub(crate) fn is_program(&self) -> bool {
        let has_number = |rest: &str| {
            let (number, end) = rest.split_once('_').unwrap_or_default();
            number.parse::<u64>().is_ok() && (end == "bot" || end.starts_with("bot_"))
        };
        let of_token = ["project_", "group_"]
            .iter()
            .find_map(|kind| self.username.strip_prefix(kind));
        self.bot == Some(true) || of_token.is_some_and(has_number) || self.username.starts_with("service_account_")
    }
}

/// An issue or a merge request, in a list or by itself.
#[derive(Deserialize)]
pub(crate) struct Item {
    pub(crate) iid: u64,
    pub(crate) title: String,
    pub(crate) description: Option<String>,
    pub(crate) state: String,
    pub(crate) web_url: String,
    pub(crate) author: Option<User>,
    #[serde(default)]
    pub(crate) labels: Vec<String>,
    #[serde(default)]
    pub(crate) assignees: Vec<User>,
    pub(crate) created_at: DateTime<Utc>,
    #[serde(default)]
    pub(crate) reviewers: Vec<User>,
    pub(crate) updated_at: DateTime<Utc>,
    pub(crate) references: Option<References>,
    /// Whether an issue is confidential: people who may only read the project do not see it.
    pub(crate) confidential: Option<bool>,
    /// The commit at the head of a merge request.
    pub(crate) sha: Option<String>,
    pub(crate) draft: Option<bool>,
    /// This and all below is only set for merge requests. `None` if the fork was deleted.
    pub(crate) source_project_id: Option<u64>,
    pub(crate) target_project_id: Option<u64>,
    pub(crate) source_branch: Option<String>,
    pub(crate) target_branch: Option<String>,
    pub(crate) allow_collaboration: Option<bool>,
    /// The older name of the same field.
    pub(crate) allow_maintainer_to_push: Option<bool>,
    /// The rights of the token's user on it. Missing in lists.
    pub(crate) user: Option<Viewer>,
    /// The newest pipeline of its head commit, or of that commit merged into the target branch.
    /// Missing in lists.
    pub(crate) head_pipeline: Option<Pipeline>,
}

/// The rights of the token's user on a merge request.
#[derive(Deserialize)]
pub(crate) struct Viewer {
    pub(crate) can_merge: Option<bool>,
}

/// Notes that answer one another.
#[derive(Deserialize)]
pub(crate) struct Discussion {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) notes: Vec<NumberedNote>,
}

#[derive(Deserialize)]
pub(crate) struct NumberedNote {
    pub(crate) id: u64,
}

#[derive(Deserialize)]
pub(crate) struct References {
    /// `group/project#34` or `group/project!34`.
    pub(crate) full: String,
}

/// A file that was put into a project.
#[derive(Deserialize)]
pub(crate) struct Upload {
    pub(crate) url: String,
}

#[derive(Deserialize)]
pub(crate) struct Project {
    pub(crate) id: u64,
    #[serde(default)]
    pub(crate) path_with_namespace: String,
    pub(crate) http_url_to_repo: String,
    pub(crate) default_branch: Option<String>,
    #[serde(default)]
    pub(crate) empty_repo: bool,
    #[serde(default)]
    pub(crate) archived: bool,
    /// `private`, `internal` or `public`.
    pub(crate) visibility: Option<String>,
    pub(crate) issues_enabled: Option<bool>,
    pub(crate) merge_requests_enabled: Option<bool>,
    #[serde(default)]
    pub(crate) permissions: Permissions,
}

impl Project {
    /// Tells whether the code, branches and merge requests can be read by people who see no
    /// confidential issue and no internal note. A private project has no such readers; an unknown
    /// visibility counts as open.
    pub(crate) fn is_open_to_more(&self) -> bool {
        self.visibility.as_deref() != Some("private")
    }
}

/// A branch of a project.
#[derive(Deserialize)]
pub(crate) struct Branch {
    #[serde(default)]
    pub(crate) protected: bool,
    /// Whether the protection lets everybody push who may write.
    #[serde(default)]
    pub(crate) developers_can_push: bool,
}

/// A project as an entry of a list.
#[derive(Deserialize)]
pub(crate) struct NamedProject {
    pub(crate) path_with_namespace: String,
}

#[derive(Deserialize, Default)]
pub(crate) struct Permissions {
    pub(crate) project_access: Option<Access>,
    pub(crate) group_access: Option<Access>,
}

impl Permissions {
    /// Returns the highest role of the token's user by a membership in the project or a group of
    /// its own; `None` without one, as for an administrator.
    pub(crate) fn level(&self) -> Option<u64> {
        let access = [&self.project_access, &self.group_access];
        access.into_iter().flatten().map(|access| access.access_level).max()
    }
}

#[derive(Deserialize)]
pub(crate) struct Access {
    pub(crate) access_level: u64,
}

/// A member of a project, of one of its groups or of a group that was invited.
#[derive(Deserialize)]
pub(crate) struct Member {
    pub(crate) id: Option<u64>,
    pub(crate) username: String,
    pub(crate) access_level: u64,
    /// State of the account: `active`, `blocked`, ...
    pub(crate) state: Option<String>,
    /// State of the membership: `active`, or `awaiting` approval.
    pub(crate) membership_state: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct Group {
    pub(crate) full_path: String,
}

#[derive(Deserialize)]
pub(crate) struct Note {
    pub(crate) id: u64,
    pub(crate) body: String,
    pub(crate) author: Option<User>,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) updated_at: DateTime<Utc>,
    /// Whether GitLab itself wrote it: "added the label ...".
    #[serde(default)]
    pub(crate) system: bool,
    pub(crate) position: Option<Position>,
    /// Whether only people with the role Planner, Reporter or above may read it.
    #[serde(default)]
    pub(crate) internal: bool,
    /// The older name of the same field.
    #[serde(default)]
    pub(crate) confidential: bool,
}

impl Note {
    pub(crate) fn is_internal(&self) -> bool {
        self.internal || self.confidential
    }
}

/// A label that was put on or taken off.
#[derive(Deserialize)]
pub(crate) struct LabelEvent {
    /// `None` if the account was deleted.
    pub(crate) user: Option<User>,
    pub(crate) created_at: DateTime<Utc>,
    /// `None` if the label was deleted.
    pub(crate) label: Option<Label>,
    /// `add` or `remove`.
    pub(crate) action: String,
}

/// The place of a note in the changes.
#[derive(Deserialize)]
pub(crate) struct Position {
    pub(crate) new_path: Option<String>,
    pub(crate) old_path: Option<String>,
    pub(crate) new_line: Option<u64>,
    pub(crate) old_line: Option<u64>,
}

#[derive(Deserialize)]
pub(crate) struct Label {
    pub(crate) id: u64,
    pub(crate) name: String,
}

/// An answer of the GraphQL API. Fields that it does not know are `None`, with errors that are not
/// read.
#[derive(Deserialize)]
pub(crate) struct GraphAnswer {
    pub(crate) data: Option<GraphData>,
}

#[derive(Deserialize)]
pub(crate) struct GraphData {
    pub(crate) project: Option<GraphProject>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GraphProject {
    pub(crate) labels: Option<Nodes<GraphLabel>>,
    pub(crate) work_items: Option<Nodes<GraphItem>>,
}

#[derive(Deserialize)]
pub(crate) struct Nodes<T> {
    pub(crate) nodes: Vec<T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct GraphLabel {
    /// `gid://gitlab/ProjectLabel/12` or `gid://gitlab/GroupLabel/12`.
    pub(crate) id: String,
    pub(crate) title: String,
    /// The time of the last change, in whole seconds.
    pub(crate) updated_at: DateTime<Utc>,
}

impl GraphLabel {
    pub(crate) fn number(&self) -> Option<u64> {
        number_of(&self.id)
    }
}

/// Returns the number by which the REST API knows what the GraphQL API calls
/// `gid://gitlab/Kind/12`.
fn number_of(id: &str) -> Option<u64> {
    id.rsplit('/').next()?.parse().ok()
}

#[derive(Deserialize)]
pub(crate) struct GraphItem {
    pub(crate) widgets: Vec<Widget>,
}

/// A part of a work item; only its description reports edits.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Widget {
    #[serde(default)]
    pub(crate) last_edited_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub(crate) last_edited_by: Option<GraphUser>,
}

#[derive(Deserialize)]
pub(crate) struct GraphUser {
    /// `gid://gitlab/User/12`.
    id: String,
    username: String,
}

impl From<GraphUser> for User {
    fn from(user: GraphUser) -> Self {
        Self {
            id: number_of(&user.id),
            username: user.username,
            bot: None,
            is_admin: None,
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct Token {
    #[serde(default)]
    pub(crate) scopes: Vec<String>,
    pub(crate) expires_at: Option<NaiveDate>,
    pub(crate) active: Option<bool>,
    pub(crate) revoked: Option<bool>,
}

#[derive(Deserialize)]
pub(crate) struct Pipeline {
    pub(crate) id: u64,
    pub(crate) sha: String,
    /// `success`, `failed`, `canceled`, `skipped`, or the status of one that is not over yet.
    pub(crate) status: String,
}

#[derive(Deserialize)]
pub(crate) struct Job {
    pub(crate) id: u64,
    pub(crate) name: String,
    /// Whether its failure does not fail the pipeline.
    #[serde(default)]
    pub(crate) allow_failure: bool,
}

/// The state of anything in a pipeline of a commit: a job, a trigger, or what another service
/// reported.
#[derive(Deserialize)]
pub(crate) struct CommitStatus {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) status: String,
    #[serde(default)]
    pub(crate) description: Option<String>,
    #[serde(default)]
    pub(crate) allow_failure: bool,
    /// Missing on older servers.
    #[serde(default)]
    pub(crate) pipeline_id: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::User;

    #[test]
    fn programs_are_known_by_their_names_or_by_what_gitlab_says() {
        for (username, bot, expected) in [
            ("project_7_bot", None, true),
            ("project_7_bot_0123abcd", Some(false), true),
            ("group_12_bot_0123abcd", None, true),
            ("service_account_group_345_0123abcd", None, true),
            ("service_account_0123abcd", None, true),
            ("renovate", Some(true), true),
            ("alice", None, false),
            ("project_x_bot", None, false),
            ("project_7_botanist", None, false),
            ("service_accountant", Some(false), false),
        ] {
            let user = User {
                id: None,
                username: username.to_owned(),
                bot,
                is_admin: None,
            };
            assert_eq!(user.is_program(), expected, "{username}");
        }
    }
}
