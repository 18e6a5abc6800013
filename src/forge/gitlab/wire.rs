//! The parts of GitLab's answers that are read, and no others.

use chrono::{DateTime, NaiveDate, Utc};
use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct User {
    pub(super) username: String,
    pub(super) id: Option<u64>,
    /// Not told in every place.
    pub(super) bot: Option<bool>,
    /// Told of oneself alone.
    pub(super) is_admin: Option<bool>,
}

impl User {
    /// The account of a project's or group's access token is called `project_1_bot`, mostly with
    /// more behind it; a service account `service_account_group_1_...`, unless somebody chose a
    /// name that tells nothing.
    pub(super) fn is_program(&self) -> bool {
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
pub(super) struct Item {
    pub(super) iid: u64,
    pub(super) title: String,
    pub(super) description: Option<String>,
    pub(super) state: String,
    pub(super) web_url: String,
    pub(super) author: Option<User>,
    #[serde(default)]
    pub(super) labels: Vec<String>,
    #[serde(default)]
    pub(super) assignees: Vec<User>,
    pub(super) updated_at: DateTime<Utc>,
    pub(super) references: Option<References>,
    /// Of an issue: who may only read the project does not see it.
    pub(super) confidential: Option<bool>,
    /// The commit at the head of a merge request.
    pub(super) sha: Option<String>,
    /// The rest is a merge request's only. Nothing, where the fork was deleted.
    pub(super) source_project_id: Option<u64>,
    pub(super) target_project_id: Option<u64>,
    pub(super) source_branch: Option<String>,
    pub(super) target_branch: Option<String>,
    pub(super) allow_collaboration: Option<bool>,
    /// The older name of the same.
    pub(super) allow_maintainer_to_push: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct References {
    /// `group/project#34` or `group/project!34`.
    pub(super) full: String,
}

#[derive(Deserialize)]
pub(super) struct Project {
    pub(super) id: u64,
    #[serde(default)]
    pub(super) path_with_namespace: String,
    pub(super) http_url_to_repo: String,
    pub(super) default_branch: Option<String>,
    #[serde(default)]
    pub(super) empty_repo: bool,
    #[serde(default)]
    pub(super) archived: bool,
    /// `private`, `internal` or `public`.
    pub(super) visibility: Option<String>,
    pub(super) issues_enabled: Option<bool>,
    pub(super) merge_requests_enabled: Option<bool>,
    #[serde(default)]
    pub(super) permissions: Permissions,
}

impl Project {
    /// Tells whether people can read the code, branches and merge requests who see no confidential
    /// issue and no internal note. Of a private project nobody can. What does not say how visible
    /// it is counts as open.
    pub(super) fn is_open_to_more(&self) -> bool {
        self.visibility.as_deref() != Some("private")
    }
}

/// A project as an entry of a list.
#[derive(Deserialize)]
pub(super) struct NamedProject {
    pub(super) path_with_namespace: String,
}

#[derive(Deserialize, Default)]
pub(super) struct Permissions {
    pub(super) project_access: Option<Access>,
    pub(super) group_access: Option<Access>,
}

#[derive(Deserialize)]
pub(super) struct Access {
    pub(super) access_level: u64,
}

/// A member of a project, of one of its groups or of a group that was invited.
#[derive(Deserialize)]
pub(super) struct Member {
    pub(super) id: Option<u64>,
    pub(super) username: String,
    pub(super) access_level: u64,
    /// Of the account: `active`, `blocked`, ...
    pub(super) state: Option<String>,
    /// Of the membership: `active`, or `awaiting` approval.
    pub(super) membership_state: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Group {
    pub(super) full_path: String,
}

#[derive(Deserialize)]
pub(super) struct Note {
    pub(super) id: u64,
    pub(super) body: String,
    pub(super) author: Option<User>,
    pub(super) created_at: DateTime<Utc>,
    pub(super) updated_at: DateTime<Utc>,
    /// Written by GitLab itself: "added the label ...".
    #[serde(default)]
    pub(super) system: bool,
    pub(super) position: Option<Position>,
    /// For people with the role Planner or Reporter and above.
    #[serde(default)]
    pub(super) internal: bool,
    /// The older name of the same.
    #[serde(default)]
    pub(super) confidential: bool,
}

impl Note {
    pub(super) fn is_internal(&self) -> bool {
        self.internal || self.confidential
    }
}

/// A label that was put on or taken off.
#[derive(Deserialize)]
pub(super) struct LabelEvent {
    /// Nobody, where the account was deleted.
    pub(super) user: Option<User>,
    pub(super) created_at: DateTime<Utc>,
    /// Nothing, where the label was deleted.
    pub(super) label: Option<Label>,
    /// `add` or `remove`.
    pub(super) action: String,
}

/// Where in the changes a note stands.
#[derive(Deserialize)]
pub(super) struct Position {
    pub(super) new_path: Option<String>,
    pub(super) old_path: Option<String>,
    pub(super) new_line: Option<u64>,
    pub(super) old_line: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct Label {
    pub(super) id: u64,
    pub(super) name: String,
}

/// An answer of the GraphQL API. What it does not know is nothing, with errors that are not read.
#[derive(Deserialize)]
pub(super) struct GraphAnswer {
    pub(super) data: Option<GraphData>,
}

#[derive(Deserialize)]
pub(super) struct GraphData {
    pub(super) project: Option<GraphProject>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GraphProject {
    pub(super) labels: Option<Nodes<GraphLabel>>,
    pub(super) work_items: Option<Nodes<GraphItem>>,
}

#[derive(Deserialize)]
pub(super) struct Nodes<T> {
    pub(super) nodes: Vec<T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GraphLabel {
    /// `gid://gitlab/ProjectLabel/12` or `gid://gitlab/GroupLabel/12`.
    pub(super) id: String,
    pub(super) title: String,
    /// In whole seconds.
    pub(super) updated_at: DateTime<Utc>,
}

impl GraphLabel {
    pub(super) fn number(&self) -> Option<u64> {
        self.id.rsplit('/').next()?.parse().ok()
    }
}

#[derive(Deserialize)]
pub(super) struct GraphItem {
    pub(super) widgets: Vec<Widget>,
}

/// A part of a work item; only its description tells of edits.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Widget {
    #[serde(default)]
    pub(super) last_edited_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub(super) last_edited_by: Option<User>,
}

#[derive(Deserialize)]
pub(super) struct Token {
    #[serde(default)]
    pub(super) scopes: Vec<String>,
    pub(super) expires_at: Option<NaiveDate>,
    pub(super) active: Option<bool>,
    pub(super) revoked: Option<bool>,
}

#[derive(Deserialize)]
pub(super) struct Pipeline {
    pub(super) id: u64,
    pub(super) sha: String,
    /// `success`, `failed`, `canceled`, `skipped`, or one of those that are not over yet.
    pub(super) status: String,
}

#[derive(Deserialize)]
pub(super) struct Job {
    pub(super) id: u64,
    pub(super) name: String,
    /// Its failure does not fail the pipeline.
    #[serde(default)]
    pub(super) allow_failure: bool,
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
