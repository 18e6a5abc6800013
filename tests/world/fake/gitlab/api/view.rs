//! How GitLab shows what it remembers: state to JSON, complete enough for clients with strict
//! types.

use serde_json::Value;
use serde_json::json;

use crate::fake::bare::Commit;
use crate::fake::gitlab::api::pipelines;
use crate::fake::gitlab::state::Access;
use crate::fake::gitlab::state::Award;
use crate::fake::gitlab::state::Item;
use crate::fake::gitlab::state::Kind;
use crate::fake::gitlab::state::Label;
use crate::fake::gitlab::state::Merge;
use crate::fake::gitlab::state::Note;
use crate::fake::gitlab::state::Project;
use crate::fake::gitlab::state::State;
use crate::fake::gitlab::state::Time;

/// Turns state into JSON, with addresses of this server.
#[derive(Clone, Copy)]
pub struct View<'a> {
    pub state: &'a State,
    /// The address that the API begins at.
    pub api: &'a str,
    /// The address that the pages for people would be at.
    pub web: &'a str,
    /// Who is looking.
    pub viewer: &'a str,
}

impl State {
    /// Returns the id of the account that has a name now.
    pub fn id_of(&self, name: &str) -> u64 {
        number_of(name) + u64::from(self.taken_over.contains(name))
    }
}

impl View<'_> {
    pub fn user(&self, username: &str) -> Value {
        json!({
            "id": self.state.id_of(username), "username": username, "public_email": null, "name": username,
            "state": "active",
            "locked": false, "avatar_url": null, "web_url": format!("{}/{username}", self.web),
        })
    }

    pub fn project(&self, project: &Project) -> Value {
        let (path, group) = (&project.path, project.group());
        let page = format!("{}/{path}", self.web);
        let url = format!("{}/projects/{}", self.api, project.id);
        let access = project
            .members
            .get(self.viewer)
            .map(|access| json!({"access_level": *access as u8, "notification_level": 3}));
        let host = self.web.trim_start_matches("http://");
        let mut shown = json!({
            "id": project.id, "description": null, "name": project.name(), "path": project.name(),
            "name_with_namespace": path.replace('/', " / "), "path_with_namespace": path,
            "created_at": text(project.created), "default_branch": project.default_branch, "tag_list": [], "topics": [],
            "ssh_url_to_repo": format!("git@{host}:{path}.git"), "http_url_to_repo": format!("{page}.git"),
            "web_url": page, "readme_url": null, "forks_count": 0, "star_count": 0, "avatar_url": null,
            "last_activity_at": text(project.created),
            "visibility": if project.is_public { "public" } else { "private" },
            "namespace": {
                "id": number_of(group), "name": group, "path": group.rsplit('/').next(), "kind": "group",
                "full_path": group, "parent_id": null, "avatar_url": null,
                "web_url": format!("{}/groups/{group}", self.web),
            },
            "empty_repo": project.heads.is_empty(), "archived": project.is_archived, "issues_enabled": true,
            "merge_requests_enabled": true, "creator_id": 1, "open_issues_count": open(project),
            "_links": {"self": url, "issues": format!("{url}/issues"), "merge_requests": format!("{url}/merge_requests")},
            "permissions": {"project_access": access, "group_access": null},
        });
        if let Some(parent) = project.parent.as_ref().and_then(|parent| self.state.project(parent)) {
            shown["forked_from_project"] = json!({"id": parent.id, "path_with_namespace": parent.path});
        }
        shown
    }

    /// An issue or a merge request, as it stands in a list.
    pub fn item(&self, project: &Project, item: &Item) -> Value {
        let (folder, mark) = match item.merge {
            None => ("issues", '#'),
            Some(_) => ("merge_requests", '!'),
        };
        let assignees: Vec<_> = item.assignees.iter().map(|name| self.user(name)).collect();
        let (short, full) = (
            format!("{mark}{}", item.number),
            format!("{}{mark}{}", project.path, item.number),
        );
        let state = match &item.merge {
            Some(merge) if merge.merged.is_some() => "merged",
            _ if item.is_open => "opened",
            _ => "closed",
        };
        let mut shown = json!({
            "id": item.id, "iid": item.number, "project_id": project.id, "title": item.title,
            "description": item.text, "state": state, "created_at": text(item.created),
            "updated_at": text(item.updated), "closed_at": item.closed.map(text),
            "closed_by": item.closed_by.as_ref().map(|name| self.user(name)), "labels": item.labels, "milestone": null,
            "assignees": assignees, "assignee": assignees.first(), "author": self.user(&item.author),
            "user_notes_count": item.notes.iter().filter(|note| !note.is_system).count(), "upvotes": 0, "downvotes": 0,
            "discussion_locked": item.is_locked,
            "web_url": format!("{}/{}/-/{folder}/{}", self.web, project.path, item.number),
            "references": {"short": short, "relative": short, "full": full},
            "time_stats": {"time_estimate": 0, "total_time_spent": 0, "human_time_estimate": null, "human_total_time_spent": null},
            "task_completion_status": {"count": 0, "completed_count": 0},
        });
        match &item.merge {
            None => add(
                &mut shown,
                json!({
                    "type": "ISSUE", "issue_type": "issue", "confidential": item.is_confidential, "due_date": null,
                    "has_tasks": false,
                    "merge_requests_count": 0, "weight": null, "severity": "UNKNOWN", "moved_to_id": null,
                    "service_desk_reply_to": null,
                    "_links": {"self": format!("{}/projects/{}/issues/{}", self.api, project.id, item.number)},
                }),
            ),
            Some(merge) => add(&mut shown, self.only_of_merge(project, item, merge)),
        }
        shown
    }

    fn only_of_merge(&self, project: &Project, item: &Item, merge: &Merge) -> Value {
        let source = self.state.project(&merge.source_project);
        let reviewers: Vec<_> = merge.reviewers.iter().map(|name| self.user(name)).collect();
        json!({
            "source_branch": merge.source, "target_branch": merge.target,
            "source_project_id": source.map(|source| source.id),
            "target_project_id": project.id, "reviewers": reviewers, "draft": item.is_draft(),
            "work_in_progress": item.is_draft(),
            "imported": false, "merge_when_pipeline_succeeds": false, "merge_status": "can_be_merged",
            "detailed_merge_status": if item.is_draft() { "draft_status" } else { "mergeable" },
            "sha": head_of(project, item),
            "merge_commit_sha": null, "squash_commit_sha": null, "squash": false, "merged_by": null, "merge_user": null,
            "merged_at": merge.merged.map(text), "prepared_at": text(item.created), "should_remove_source_branch": null,
            "force_remove_source_branch": false, "reference": format!("!{}", item.number), "squash_on_merge": false,
            "allow_collaboration": merge.allows_collaboration, "allow_maintainer_to_push": merge.allows_collaboration,
            "blocking_discussions_resolved": true,
        })
    }

    /// A merge request alone: with what has to be computed from the git repository.
    pub fn whole_merge(&self, project: &Project, item: &Item, merge: &Merge) -> Value {
        let (target, head) = (format!("refs/heads/{}", merge.target), head_of(project, item));
        let start = project.git.resolve(&target);
        let head_name = head.clone().unwrap_or_default();
        let base = project.git.merge_base(&target, &head_name);
        let newest = pipelines::of(project, item).find(|pipeline| pipeline.source == head_name);
        let pipeline = newest.map(|pipeline| pipelines::told(*self, project, pipeline));
        let is_mergeable = head.is_some() && project.git.merges(&target, &head_name);
        let mut shown = self.item(project, item);
        add(
            &mut shown,
            json!({
                "changes_count": project.git.changed(&target, &head_name).len().to_string(), "subscribed": false,
                "diff_refs": {"base_sha": base, "head_sha": head, "start_sha": start}, "has_conflicts": !is_mergeable,
                "user": {"can_merge": project.access(self.viewer) >= project.merged_by}, "merge_error": null,
                "first_contribution": false,
                "diverged_commits_count": 0, "rebase_in_progress": false, "pipeline": null, "head_pipeline": pipeline,
            }),
        );
        shown
    }

    pub fn note(&self, project: &Project, item: &Item, note: &Note) -> Value {
        let kind = if item.merge.is_some() { "MergeRequest" } else { "Issue" };
        let mut shown = json!({
            "id": note.id, "type": null, "body": note.body, "author": self.user(&note.author), "system": note.is_system,
            "created_at": text(note.created), "updated_at": text(note.updated), "noteable_id": item.id,
            "noteable_type": kind, "noteable_iid": item.number, "project_id": project.id, "resolvable": false,
            "confidential": note.is_internal, "internal": note.is_internal, "imported": false,
            "imported_from": "none", "commands_changes": {},
        });
        if let Some((path, line)) = &note.position {
            let head = head_of(project, item);
            add(
                &mut shown,
                json!({
                    "type": "DiffNote", "resolvable": true, "resolved": false, "resolved_by": null, "resolved_at": null,
                    "commit_id": null, "position": {
                        "base_sha": head, "start_sha": head, "head_sha": head, "old_path": path, "new_path": path,
                        "position_type": "text", "old_line": null, "new_line": line, "line_range": null,
                    },
                }),
            );
        }
        shown
    }

    pub fn award(&self, item: &Item, note: u64, award: &Award) -> Value {
        json!({
            "id": award.id, "name": award.name, "user": self.user(&award.author), "created_at": text(award.created),
            "updated_at": text(award.created), "awardable_id": note, "awardable_type": "Note", "url": null,
            "item": item.number,
        })
    }

    pub fn commit(&self, project: &Project, commit: &Commit) -> Value {
        json!({
            "id": commit.id, "short_id": commit.id.get(..8), "parent_ids": commit.parents, "message": commit.message,
            "title": commit.message.lines().next(), "author_name": commit.author, "author_email": commit.email,
            "authored_date": commit.date, "committer_name": commit.author, "committer_email": commit.email,
            "committed_date": commit.date, "created_at": commit.date, "trailers": {}, "extended_trailers": {},
            "web_url": format!("{}/{}/-/commit/{}", self.web, project.path, commit.id),
        })
    }

    pub fn branch(&self, project: &Project, name: &str, id: &str) -> Value {
        let pushed_by = project.protected.get(name).copied();
        let is_protected = pushed_by.is_some();
        json!({
            "name": name, "commit": project.git.commit_named(id).map(|commit| self.commit(project, &commit)),
            "merged": false, "protected": is_protected, "developers_can_push": pushed_by == Some(Access::Developer),
            "developers_can_merge": is_protected && project.merged_by <= Access::Developer,
            "can_push": project.access(self.viewer) >= pushed_by.unwrap_or(Access::Developer),
            "default": name == project.default_branch,
            "web_url": format!("{}/{}/-/tree/{name}", self.web, project.path),
        })
    }
}

pub fn label(project: &Project, label: &Label) -> Value {
    let has = |item: &&Item| item.is_open && item.labels.contains(&label.name);
    json!({
        "id": label.id, "name": label.name, "description": label.description, "description_html": label.description,
        "text_color": "#FFFFFF", "color": label.color, "archived": false, "subscribed": false, "priority": null,
        "is_project_label": true, "open_issues_count": project.issues.values().filter(has).count(),
        "closed_issues_count": 0, "open_merge_requests_count": project.merge_requests.values().filter(has).count(),
    })
}

pub fn head_of(project: &Project, item: &Item) -> Option<String> {
    project
        .git
        .resolve(&format!("refs/merge-requests/{}/head", item.number))
}

pub fn text(time: Time) -> String {
    time.format("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// Returns the id of a user or a group: always the same for the same name.
pub fn number_of(name: &str) -> u64 {
    name.bytes()
        .fold(5381_u64, |sum, byte| sum.wrapping_mul(33) ^ u64::from(byte))
        % 90_000_000
        + 1000
}

fn open(project: &Project) -> usize {
    project
        .items(Kind::Issue)
        .values()
        .filter(|item| item.is_open && !item.is_deleted)
        .count()
}

pub fn add(target: &mut Value, more: Value) {
    if let (Some(target), Value::Object(more)) = (target.as_object_mut(), more) {
        target.extend(more);
    }
}
