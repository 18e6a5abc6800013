//! How GitHub shows what it remembers: state to JSON, complete enough for clients with strict
//! types.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use serde_json::json;

use crate::fake::github::state::Comment;
use crate::fake::github::state::Item;
use crate::fake::github::state::Label;
use crate::fake::github::state::LineComment;
use crate::fake::github::state::Permission;
use crate::fake::github::state::Reaction;
use crate::fake::github::state::Repository;
use crate::fake::github::state::Review;
use crate::fake::github::state::State;
use crate::fake::github::state::Time;

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
    pub fn user(&self, login: &str) -> Value {
        let (api, web) = (self.api, self.web);
        let user = format!("{api}/users/{login}");
        let id = self.state.id_of(login);
        json!({
            "login": login, "id": id, "node_id": node("U", id),
            "avatar_url": format!("{web}/avatars/{login}"), "gravatar_id": "", "url": user,
            "html_url": format!("{web}/{login}"), "followers_url": format!("{user}/followers"),
            "following_url": format!("{user}/following{{/other_user}}"),
            "gists_url": format!("{user}/gists{{/gist_id}}"),
            "starred_url": format!("{user}/starred{{/owner}}{{/repo}}"),
            "subscriptions_url": format!("{user}/subscriptions"), "organizations_url": format!("{user}/orgs"),
            "repos_url": format!("{user}/repos"), "events_url": format!("{user}/events{{/privacy}}"),
            "received_events_url": format!("{user}/received_events"), "type": self.kind(login),
            "user_view_type": "public", "site_admin": false,
        })
    }

    /// The profile, which has more fields than the mention of a user elsewhere.
    pub fn profile(&self, login: &str) -> Value {
        let mut user = self.user(login);
        let more = json!({
            "name": login, "company": null, "blog": "", "location": null, "email": null, "hireable": null, "bio": null,
            "twitter_username": null, "notification_email": null, "public_repos": 0, "public_gists": 0, "followers": 0,
            "following": 0, "created_at": "2020-01-01T00:00:00Z", "updated_at": "2020-01-01T00:00:00Z",
        });
        merge(&mut user, more);
        user
    }

    fn kind(&self, login: &str) -> &'static str {
        if login.ends_with("[bot]") {
            return "Bot";
        }
        if self.state.organizations.contains(login) {
            "Organization"
        } else {
            "User"
        }
    }

    pub fn repository(&self, place: &Repository) -> Value {
        let full_name = place.full_name();
        let (web, html) = (self.web, format!("{}/{full_name}", self.web));
        let url = format!("{}/repos/{full_name}", self.api);
        let permission = place.permission(self.viewer);
        let open = place
            .items
            .values()
            .filter(|item| item.is_open && !item.is_deleted)
            .count();
        let mut repository = json!({
            "id": place.id, "node_id": node("R", place.id), "name": place.name, "full_name": full_name,
            "owner": self.user(&place.owner), "private": place.is_private, "html_url": html, "description": null,
            "fork": place.parent.is_some(), "url": url, "clone_url": format!("{html}.git"),
            "git_url": format!("git:{}", html.trim_start_matches("http:")),
            "ssh_url": format!("git@{}:{full_name}.git", web.trim_start_matches("http://")), "svn_url": html,
            "mirror_url": null, "homepage": null, "language": null, "has_issues": place.has_issues,
            "default_branch": place.default_branch, "open_issues_count": open, "open_issues": open,
            "archived": place.is_archived, "visibility": if place.is_private { "private" } else { "public" },
            "pushed_at": text(place.created), "created_at": text(place.created), "updated_at": text(place.created),
            "permissions": permissions(permission),
        });
        merge(
            &mut repository,
            json!({
                "forks_count": 0, "forks": 0, "stargazers_count": 0,
                "watchers_count": 0, "watchers": 0, "size": 1, "is_template": false, "topics": [],
                "has_projects": false,
                "has_wiki": false, "has_pages": false, "has_downloads": false, "has_discussions": false,
                "disabled": false,
                "license": null, "allow_forking": true, "web_commit_signoff_required": false,
            }),
        );
        for (field, path) in REPOSITORY_PARTS {
            repository[*field] = json!(format!("{url}/{path}"));
        }
        repository
    }

    /// The repository alone: what the list does not tell.
    pub fn whole_repository(&self, place: &Repository) -> Value {
        let mut repository = self.repository(place);
        let more = json!({"network_count": 0, "subscribers_count": 0});
        merge(&mut repository, more);
        if let Some(parent) = place.parent.as_ref().and_then(|parent| self.state.repository(parent)) {
            repository["parent"] = self.repository(parent);
            repository["source"] = self.repository(parent);
        }
        repository
    }

    pub fn label(&self, place: &Repository, label: &Label) -> Value {
        let name = percent_encoding::utf8_percent_encode(&label.name, percent_encoding::NON_ALPHANUMERIC);
        json!({
            "id": label.id, "node_id": node("LA", label.id), "name": label.name, "color": label.color, "default": false,
            "archived_at": null, "archived_by": null,
            "description": label.description, "url": format!("{}/repos/{}/labels/{name}", self.api, place.full_name()),
        })
    }

    pub fn labels(&self, place: &Repository, item: &Item) -> Vec<Value> {
        let labels = item.labels.iter().filter_map(|name| place.label(name));
        labels.map(|label| self.label(place, label)).collect()
    }

    /// An issue; a pull request looks like one too, with a key that says so.
    pub fn issue(&self, place: &Repository, item: &Item) -> Value {
        let repository = format!("{}/repos/{}", self.api, place.full_name());
        let url = format!("{repository}/issues/{}", item.number);
        let assignees: Vec<_> = item.assignees.iter().map(|login| self.user(login)).collect();
        let mut issue = json!({
            "id": item.id, "node_id": node("I", item.id), "url": url, "repository_url": repository,
            "labels_url": format!("{url}/labels{{/name}}"), "comments_url": format!("{url}/comments"),
            "events_url": format!("{url}/events"), "timeline_url": format!("{url}/timeline"),
            "html_url": self.page(place, item), "number": item.number,
            "state": if item.is_open { "open" } else { "closed" }, "state_reason": item.closed_because,
            "title": item.title, "body": item.text, "user": self.user(&item.author), "labels": self.labels(place, item),
            "assignee": assignees.first(), "assignees": assignees, "milestone": null, "locked": item.is_locked,
            "active_lock_reason": null, "comments": item.comments.len(), "created_at": text(item.created),
            "updated_at": text(item.updated), "closed_at": item.closed.map(text),
            "closed_by": item.closed_by.as_ref().map(|login| self.user(login)),
            "author_association": self.association(place, &item.author), "reactions": reactions(&url, &[]),
        });
        if let Some(pull) = &item.pull {
            let html = self.page(place, item);
            issue["draft"] = json!(pull.is_draft);
            issue["pull_request"] = json!({
                "url": format!("{repository}/pulls/{}", item.number), "html_url": html,
                "diff_url": format!("{html}.diff"), "patch_url": format!("{html}.patch"),
                "merged_at": pull.merged.map(text),
            });
        }
        issue
    }

    pub fn comment(&self, place: &Repository, item: &Item, comment: &Comment) -> Value {
        let issues = format!("{}/repos/{}/issues", self.api, place.full_name());
        let url = format!("{issues}/comments/{}", comment.id);
        json!({
            "id": comment.id, "node_id": node("IC", comment.id), "url": url,
            "html_url": format!("{}#issuecomment-{}", self.page(place, item), comment.id),
            "issue_url": format!("{issues}/{}", item.number), "body": comment.body, "user": self.user(&comment.author),
            "created_at": text(comment.created), "updated_at": text(comment.updated),
            "author_association": self.association(place, &comment.author), "performed_via_github_app": null,
            "reactions": reactions(&url, &comment.reactions),
        })
    }

    pub fn reaction(&self, reaction: &Reaction) -> Value {
        json!({
            "id": reaction.id, "node_id": node("REA", reaction.id), "user": self.user(&reaction.author),
            "content": reaction.content, "created_at": text(reaction.created),
        })
    }

    pub fn review(&self, place: &Repository, item: &Item, review: &Review) -> Value {
        let page = format!("{}#pullrequestreview-{}", self.page(place, item), review.id);
        let pull = format!("{}/repos/{}/pulls/{}", self.api, place.full_name(), item.number);
        json!({
            "id": review.id, "node_id": node("PRR", review.id), "user": self.user(&review.author), "body": review.body,
            "state": review.state.name(), "html_url": page, "pull_request_url": pull,
            "author_association": self.association(place, &review.author), "submitted_at": text(review.submitted),
            "commit_id": place.git.resolve(&format!("refs/pull/{}/head", item.number)),
            "_links": {"html": {"href": page}, "pull_request": {"href": pull}},
        })
    }

    pub fn line_comment(&self, place: &Repository, item: &Item, written: &LineComment) -> Value {
        let comment = &written.comment;
        let pulls = format!("{}/repos/{}/pulls", self.api, place.full_name());
        let (url, pull) = (
            format!("{pulls}/comments/{}", comment.id),
            format!("{pulls}/{}", item.number),
        );
        let page = format!("{}#discussion_r{}", self.page(place, item), comment.id);
        let commit = place.git.resolve(&format!("refs/pull/{}/head", item.number));
        let mut shown = json!({
            "id": comment.id, "node_id": node("PRRC", comment.id), "url": url, "html_url": page,
            "pull_request_url": pull, "pull_request_review_id": written.review, "diff_hunk": "@@ -1 +1 @@",
            "path": written.path, "position": written.line, "original_position": written.line, "line": written.line,
            "original_line": written.line, "start_line": null, "original_start_line": null, "start_side": null,
            "side": "RIGHT", "subject_type": "line", "commit_id": commit, "original_commit_id": commit,
            "user": self.user(&comment.author), "body": comment.body, "created_at": text(comment.created),
            "updated_at": text(comment.updated), "author_association": self.association(place, &comment.author),
            "reactions": reactions(&url, &comment.reactions),
            "_links": {"self": {"href": url}, "html": {"href": page}, "pull_request": {"href": pull}},
        });
        if let Some(first) = written.in_reply_to {
            shown["in_reply_to_id"] = json!(first);
        }
        shown
    }

    pub fn association(&self, place: &Repository, login: &str) -> &'static str {
        match place.permission(login) {
            _ if place.owner == login => "OWNER",
            Permission::Admin | Permission::Maintain | Permission::Write
                if self.state.organizations.contains(&place.owner) =>
            {
                "MEMBER"
            }
            Permission::Admin | Permission::Maintain | Permission::Write | Permission::Triage => "COLLABORATOR",
            Permission::Read if place.is_private => "COLLABORATOR",
            Permission::Read | Permission::None => "NONE",
        }
    }

    /// Returns the address at which a person would read the item.
    pub fn page(&self, place: &Repository, item: &Item) -> String {
        let kind = if item.pull.is_some() { "pull" } else { "issues" };
        format!("{}/{}/{kind}/{}", self.web, place.full_name(), item.number)
    }
}

/// Returns what somebody may do, in the five steps that GitHub tells.
pub fn permissions(permission: Permission) -> Value {
    json!({
        "admin": permission == Permission::Admin, "maintain": permission >= Permission::Maintain,
        "push": permission >= Permission::Write, "triage": permission >= Permission::Triage,
        "pull": permission >= Permission::Read,
    })
}

const REACTIONS: &[&str] = &["+1", "-1", "laugh", "confused", "heart", "hooray", "eyes", "rocket"];

fn reactions(url: &str, reactions: &[Reaction]) -> Value {
    let mut counts = json!({"url": format!("{url}/reactions"), "total_count": reactions.len()});
    for content in REACTIONS {
        counts[*content] = json!(reactions.iter().filter(|reaction| reaction.content == *content).count());
    }
    counts
}

/// Says whether GitHub has a reaction of that name.
pub fn is_reaction(content: &str) -> bool {
    REACTIONS.contains(&content)
}

pub fn text(time: Time) -> String {
    time.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Returns an id as GraphQL would have it.
pub fn node(kind: &str, id: u64) -> String {
    format!("{kind}_{}", STANDARD.encode(id.to_string()))
}

/// Returns the id of a user: always the same for the same name.
pub fn number_of(login: &str) -> u64 {
    login
        .bytes()
        .fold(5381_u64, |sum, byte| sum.wrapping_mul(33) ^ u64::from(byte))
        % 90_000_000
        + 1000
}

pub fn merge(target: &mut Value, more: Value) {
    if let (Some(target), Value::Object(more)) = (target.as_object_mut(), more) {
        target.extend(more);
    }
}

const REPOSITORY_PARTS: &[(&str, &str)] = &[
    ("archive_url", "{archive_format}{/ref}"),
    ("assignees_url", "assignees{/user}"),
    ("blobs_url", "git/blobs{/sha}"),
    ("branches_url", "branches{/branch}"),
    ("collaborators_url", "collaborators{/collaborator}"),
    ("comments_url", "comments{/number}"),
    ("commits_url", "commits{/sha}"),
    ("compare_url", "compare/{base}...{head}"),
    ("contents_url", "contents/{+path}"),
    ("contributors_url", "contributors"),
    ("deployments_url", "deployments"),
    ("downloads_url", "downloads"),
    ("events_url", "events"),
    ("forks_url", "forks"),
    ("git_commits_url", "git/commits{/sha}"),
    ("git_refs_url", "git/refs{/sha}"),
    ("git_tags_url", "git/tags{/sha}"),
    ("hooks_url", "hooks"),
    ("issue_comment_url", "issues/comments{/number}"),
    ("issue_events_url", "issues/events{/number}"),
    ("issues_url", "issues{/number}"),
    ("keys_url", "keys{/key_id}"),
    ("labels_url", "labels{/name}"),
    ("languages_url", "languages"),
    ("merges_url", "merges"),
    ("milestones_url", "milestones{/number}"),
    ("notifications_url", "notifications{?since,all,participating}"),
    ("pulls_url", "pulls{/number}"),
    ("releases_url", "releases{/id}"),
    ("stargazers_url", "stargazers"),
    ("statuses_url", "statuses/{sha}"),
    ("subscribers_url", "subscribers"),
    ("subscription_url", "subscription"),
    ("tags_url", "tags"),
    ("teams_url", "teams"),
    ("trees_url", "git/trees{/sha}"),
];
