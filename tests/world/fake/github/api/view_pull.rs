//! How GitHub shows a pull request: much of it is computed from the git repository at that moment.

use serde_json::Value;
use serde_json::json;

use crate::fake::bare::Commit;
use crate::fake::github::api::view::View;
use crate::fake::github::api::view::merge;
use crate::fake::github::api::view::node;
use crate::fake::github::api::view::text;
use crate::fake::github::state::Item;
use crate::fake::github::state::Pull;
use crate::fake::github::state::Repository;

impl View<'_> {
    /// A pull request as it stands in a list.
    pub fn pull(&self, place: &Repository, item: &Item, pull: &Pull) -> Value {
        let repository = format!("{}/repos/{}", self.api, place.full_name());
        let (url, html) = (format!("{repository}/pulls/{}", item.number), self.page(place, item));
        let issue = format!("{repository}/issues/{}", item.number);
        let head = head_of(place, item);
        let statuses = format!("{repository}/statuses/{head}");
        let source = self.state.repository(&pull.head_repository);
        let people = pull.reviewers.iter().filter(|name| !name.contains('/'));
        let reviewers: Vec<_> = people.map(|login| self.user(login)).collect();
        let mut shown = self.issue(place, item);
        for only_of_issues in [
            "repository_url",
            "labels_url",
            "events_url",
            "timeline_url",
            "comments",
            "pull_request",
            "reactions",
            "closed_by",
            "state_reason",
        ] {
            shown
                .as_object_mut()
                .expect("an issue is an object")
                .remove(only_of_issues);
        }
        merge(
            &mut shown,
            json!({
                "url": url, "node_id": node("PR", item.id), "diff_url": format!("{html}.diff"),
                "patch_url": format!("{html}.patch"), "issue_url": issue, "commits_url": format!("{url}/commits"),
                "review_comments_url": format!("{url}/comments"),
                "review_comment_url": format!("{repository}/pulls/comments{{/number}}"),
                "comments_url": format!("{issue}/comments"), "statuses_url": statuses,
                "merged_at": pull.merged.map(text),
                "merge_commit_sha": null, "requested_reviewers": reviewers, "requested_teams": [], "draft": pull.is_draft,
                "auto_merge": null,
                "head": self.end(source, &pull.head_repository, &pull.head, &head),
                "base": self.end(Some(place), &place.full_name(), &pull.base, &base_of(place, pull)),
                "_links": {
                    "self": {"href": url}, "html": {"href": html}, "issue": {"href": issue},
                    "comments": {"href": format!("{issue}/comments")},
                    "review_comments": {"href": format!("{url}/comments")},
                    "review_comment": {"href": format!("{repository}/pulls/comments{{/number}}")},
                    "commits": {"href": format!("{url}/commits")}, "statuses": {"href": statuses},
                },
            }),
        );
        shown
    }

    /// A pull request alone: with its counts, and whether it can be merged.
    pub fn whole_pull(&self, place: &Repository, item: &Item, pull: &Pull) -> Value {
        let (base, head) = (base_of(place, pull), head_of(place, item));
        let files = place.git.changed(&base, &head);
        let merges = item.is_open.then(|| place.git.merges(&base, &head));
        let state = match merges {
            None => "unknown",
            Some(_) if pull.is_draft => "draft",
            Some(true) => "clean",
            Some(false) => "dirty",
        };
        let mut shown = self.pull(place, item, pull);
        merge(
            &mut shown,
            json!({
                "merged": pull.merged.is_some(), "mergeable": merges, "rebaseable": merges, "mergeable_state": state,
                "merged_by": null, "comments": item.comments.len(), "review_comments": pull.line_comments.len(),
                "maintainer_can_modify": pull.maintainers_can_modify, "commits": place.git.commits(&base, &head).len(),
                "additions": files.iter().map(|file| file.additions).sum::<u64>(),
                "deletions": files.iter().map(|file| file.deletions).sum::<u64>(), "changed_files": files.len(),
            }),
        );
        shown
    }

    fn end(&self, place: Option<&Repository>, full_name: &str, branch: &str, commit: &str) -> Value {
        let owner = full_name.split('/').next().unwrap_or_default();
        json!({
            "label": format!("{owner}:{branch}"), "ref": branch, "sha": commit, "user": self.user(owner),
            // A fork that was deleted leaves nothing but its name.
            "repo": place.map(|place| self.repository(place)),
        })
    }

    pub fn commit(&self, place: &Repository, commit: &Commit) -> Value {
        let repository = format!("{}/repos/{}", self.api, place.full_name());
        let html = format!("{}/{}/commit", self.web, place.full_name());
        let url = |id: &str| format!("{repository}/commits/{id}");
        let person = json!({"name": commit.author, "email": commit.email, "date": commit.date});
        let parents = commit
            .parents
            .iter()
            .map(|id| json!({"sha": id, "url": url(id), "html_url": format!("{html}/{id}")}));
        let tree = &commit.id;
        json!({
            "sha": commit.id, "node_id": format!("C_{}", commit.id), "url": url(&commit.id),
            "html_url": format!("{html}/{}", commit.id), "comments_url": format!("{}/comments", url(&commit.id)),
            "author": null, "committer": null, "parents": parents.collect::<Vec<_>>(),
            "commit": {
                "author": person, "committer": person, "message": commit.message, "comment_count": 0,
                "url": format!("{repository}/git/commits/{}", commit.id),
                "tree": {"sha": tree, "url": format!("{repository}/git/trees/{tree}")},
                "verification": {"verified": false, "reason": "unsigned", "signature": null, "payload": null, "verified_at": null},
            },
        })
    }
}

pub fn head_of(place: &Repository, item: &Item) -> String {
    place
        .git
        .resolve(&format!("refs/pull/{}/head", item.number))
        .expect("every pull request keeps its head")
}

pub fn base_of(place: &Repository, pull: &Pull) -> String {
    let base = place.git.resolve(&format!("refs/heads/{}", pull.base));
    // The base may have been deleted since.
    base.unwrap_or_else(|| place.git.resolve("HEAD").expect("the default branch is there"))
}
