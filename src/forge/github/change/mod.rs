//! Pull requests of the bot's own.

mod checks;
mod protection;

use std::collections::BTreeSet;

use async_trait::async_trait;
use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use crate::forge::github::http::TokenScope;
use crate::forge::github::http::{encoded, path};
use crate::forge::github::item::DRAFT_MARK;
use crate::forge::github::item::comments::LONGEST_BODY;
use crate::forge::github::{Api, schema};
use crate::forge::http::failure::Failure;
use crate::forge::http::retry::Repeat;
use crate::forge::item::address::ItemAddress;
use crate::forge::item::change::OpenChange;
use crate::forge::item::checks::Checks;
use crate::forge::platform::{ChangeApi, Platform};
use crate::forge::{Change, ChangeEdit, CommentId, CommentKey, GitCredentials, NewChange, Post};
use crate::markdown::marker::{marked, short_title, shortened};

const LONGEST_TITLE: usize = 256;

#[async_trait]
impl ChangeApi for Api {
    async fn find_change(&self, repository: &str, head: &str) -> Result<Option<Change>, Failure> {
        // GitHub leads from an owner's old name to the repository, and compares the filter with the
        // present one.
        let present = self.repository(repository).await?;
        let owner = present.full_name.split('/').next().unwrap_or_default();
        let query = format!(
            "/pulls?state=open&head={}:{}&per_page=100",
            encoded(owner),
            encoded(head)
        );
        let scope = TokenScope::Repository(repository);
        let pulls: Vec<schema::Pull> = self.client.list(scope, &path(repository, &query)).await?;
        // A filter that GitHub does not understand is ignored, and then the list holds everything.
        // And a fork under the same owner passes the filter too.
        let found = pulls.into_iter().find(|pull| {
            let same_repository = match (&pull.head.repo, &pull.base.repo) {
                (Some(head), Some(base)) => head.full_name == base.full_name,
                (None, _) | (_, None) => false,
            };
            same_repository && pull.head.branch == head
        });
        Ok(found.map(change))
    }

    async fn post_change(&self, repository: &str, new: &NewChange) -> Result<Change, Failure> {
        let posted = self.post_as(repository, new, new.is_draft).await;
        match posted {
            // The title says it instead.
            Err(failure) if new.is_draft && has_no_drafts(&failure) => self.post_as(repository, new, false).await,
            // It is looked for next, under the name that the owner may have got a moment ago.
            Err(failure) if Self::is_second(&failure) => {
                if let Ok(present) = self.ask_repository(repository).await {
                    self.repositories.learn(repository, present);
                }
                Err(failure)
            }
            posted => posted,
        }
    }

    /// The message says no more than `Validation Failed`; the field and the code are in the parts.
    fn is_behind(failure: &Failure) -> bool {
        failure.says(StatusCode::UNPROCESSABLE_ENTITY, "head invalid")
    }

    fn is_second(failure: &Failure) -> bool {
        failure.says(StatusCode::UNPROCESSABLE_ENTITY, "already exists")
    }

    /// REST has no way to do it. Where there are no drafts, or nothing but REST, the title says it.
    async fn put_draft(&self, at: ItemAddress<'_>, title: &str, is_draft: bool) -> Result<String, Failure> {
        let scope = TokenScope::Repository(at.repository);
        let place = path(at.repository, &format!("/pulls/{}", at.number));
        let pull: schema::Pull = self.client.get(scope, &place).await?;
        let bare = title.strip_prefix(DRAFT_MARK).unwrap_or(title);
        let mut wanted = bare.to_owned();
        if pull.draft.unwrap_or_default() != is_draft {
            match self.order_draft(at, &pull, is_draft).await {
                Ok(true) => {}
                Ok(false) if is_draft => wanted = format!("{DRAFT_MARK}{bare}"),
                Ok(false) => {
                    return Err(Failure::Unprepared {
                        status: StatusCode::NOT_FOUND,
                        remedy: "it has no GraphQL API, and no other makes a draft ready: do it on the request's page"
                            .to_owned(),
                    });
                }
                Err(failure) if is_draft && has_no_drafts(&failure) => wanted = format!("{DRAFT_MARK}{bare}"),
                Err(failure) => return Err(failure),
            }
        }
        let wanted = short_title(&wanted, LONGEST_TITLE);
        if wanted != title {
            self.patch_pull(at, &json!({ "title": wanted })).await?;
        }
        Ok(wanted)
    }

    /// GitHub leaves out whom it cannot assign, without a word.
    async fn assign_to(&self, at: ItemAddress<'_>, people: &[String]) -> Result<Vec<String>, Failure> {
        let place = path(at.repository, &format!("/issues/{}/assignees", at.number));
        let scope = TokenScope::Repository(at.repository);
        let body = json!({ "assignees": people });
        let made = self
            .client
            .write::<schema::Assigned>(scope, Method::POST, &place, &body, Repeat::Always);
        let assigned = made.await?.assignees;
        let is_taken = |name: &String| assigned.iter().any(|user| user.login.eq_ignore_ascii_case(name));
        Ok(people.iter().filter(|name| !is_taken(name)).cloned().collect())
    }

    /// One by one: GitHub asks nobody if a single one is no collaborator, and does not say which.
    async fn request_reviews(&self, at: ItemAddress<'_>, people: &[String]) -> Result<Vec<String>, Failure> {
        let place = path(at.repository, &format!("/pulls/{}/requested_reviewers", at.number));
        let scope = TokenScope::Repository(at.repository);
        let mut left_out = Vec::new();
        for name in people {
            let body = match name.split_once('/') {
                Some((_, team)) => json!({ "team_reviewers": [team] }),
                None => json!({ "reviewers": [name] }),
            };
            let asked = self
                .client
                .order(scope, Method::POST, &place, Some(&body), Repeat::Always)
                .await;
            match asked {
                Err(failure) if failure.status() == Some(StatusCode::UNPROCESSABLE_ENTITY) => {
                    left_out.push(name.clone());
                }
                asked => drop(asked?),
            }
        }
        Ok(left_out)
    }

    async fn find_reply(&self, at: ItemAddress<'_>, _: CommentKey, marker: &str) -> Result<Option<CommentId>, Failure> {
        self.marked_by_bot(self.remarks(at).await?, marker).await
    }

    async fn write_reply(
        &self,
        at: ItemAddress<'_>,
        thread: CommentKey,
        post: &Post<'_>,
    ) -> Result<CommentId, Failure> {
        let part = format!("/pulls/{}/comments/{}/replies", at.number, thread.number);
        let body = json!({ "body": marked(post.body.as_str(), post.marker, LONGEST_BODY) });
        let scope = TokenScope::Repository(at.repository);
        let place = path(at.repository, &part);
        let made = self
            .client
            .write::<schema::Made>(scope, Method::POST, &place, &body, Repeat::IfNotDone);
        Ok(CommentId(made.await?.id))
    }

    async fn rewrite_change(&self, at: ItemAddress<'_>, edit: &ChangeEdit) -> Result<(), Failure> {
        let mut fields = Map::new();
        if let Some(title) = &edit.title {
            fields.insert("title".to_owned(), short_title(title.as_str(), LONGEST_TITLE).into());
        }
        if let Some(body) = &edit.body {
            fields.insert("body".to_owned(), shortened(body.as_str(), LONGEST_BODY).into());
        }
        self.patch_pull(at, &Value::Object(fields)).await
    }

    async fn is_protected(&self, repository: &str, branch: &str) -> Result<bool, Failure> {
        self.protection_of(repository, branch).await
    }

    /// Lists all open pull requests of the repository: one list instead of a request for each, and
    /// confirmed by its tag while nothing changes.
    async fn list_changes(&self, repository: &str, _: &[u64]) -> Result<Vec<OpenChange>, Failure> {
        let at = path(repository, "/pulls?state=open&per_page=100");
        let pulls: Vec<schema::ListedPull> = self.client.list(TokenScope::Repository(repository), &at).await?;
        let change = |pull: schema::ListedPull| OpenChange {
            task: self.settings.task(ItemAddress {
                repository,
                kind: Self::CHANGE,
                number: pull.number,
            }),
            title: pull.title,
            head: pull.head.commit,
            updated_at: pull.updated_at,
        };
        Ok(pulls.into_iter().map(change).collect())
    }

    async fn read_checks(
        &self,
        address: ItemAddress<'_>,
        commit: &str,
        known: &BTreeSet<String>,
    ) -> Result<Checks, Failure> {
        self.checks_of(address, commit, known).await
    }

    async fn credentials(&self, repository: &str) -> Result<GitCredentials, Failure> {
        self.credentials_for(TokenScope::Repository(repository)).await
    }

    /// An App's token for the work reaches no other repository.
    async fn credentials_to_read(&self, repository: &str) -> Result<GitCredentials, Failure> {
        self.credentials_for(TokenScope::Files(repository)).await
    }
}

impl Api {
    async fn credentials_for(&self, scope: TokenScope<'_>) -> Result<GitCredentials, Failure> {
        let (password, is_new) = self.client.secret(scope).await?;
        Ok(GitCredentials {
            username: "x-access-token".to_owned(),
            password,
            is_new,
            trust: self.client.trust().clone(),
        })
    }

    /// Returns false if the server has no API for it.
    async fn order_draft(&self, at: ItemAddress<'_>, pull: &schema::Pull, is_draft: bool) -> Result<bool, Failure> {
        let name = if is_draft {
            "convertPullRequestToDraft"
        } else {
            "markPullRequestReadyForReview"
        };
        let order = json!({
            "query": format!("mutation($id: ID!) {{ {name}(input: {{pullRequestId: $id}}) {{ pullRequest {{ isDraft }} }} }}"),
            "variables": {"id": pull.node_id},
        });
        let scope = TokenScope::Repository(at.repository);
        let Some(told) = self.client.ask_graph::<schema::GraphErrors>(scope, &order).await? else {
            return Ok(false);
        };
        match told.errors.into_iter().next() {
            None => Ok(true),
            Some(error) => Err(Failure::Answered {
                status: match error.kind.as_deref() {
                    Some("FORBIDDEN" | "INSUFFICIENT_SCOPES") => StatusCode::FORBIDDEN,
                    Some("NOT_FOUND") => StatusCode::NOT_FOUND,
                    Some(_) | None => StatusCode::UNPROCESSABLE_ENTITY,
                },
                message: error.message,
            }),
        }
    }

    async fn patch_pull(&self, at: ItemAddress<'_>, fields: &Value) -> Result<(), Failure> {
        let place = path(at.repository, &format!("/pulls/{}", at.number));
        let scope = TokenScope::Repository(at.repository);
        let edited = self
            .client
            .order(scope, Method::PATCH, &place, Some(fields), Repeat::Always);
        edited.await.map(|_| ())
    }

    async fn post_as(&self, repository: &str, new: &NewChange, is_draft: bool) -> Result<Change, Failure> {
        let mark = if new.is_draft && !is_draft { DRAFT_MARK } else { "" };
        let body = json!({
            "title": short_title(&format!("{mark}{}", new.title), LONGEST_TITLE),
            "body": shortened(new.body.as_str(), LONGEST_BODY),
            "head": new.head,
            "base": new.base,
            "draft": is_draft,
        });
        let scope = TokenScope::Repository(repository);
        let at = path(repository, "/pulls");
        let made = self
            .client
            .write::<schema::Pull>(scope, Method::POST, &at, &body, Repeat::IfNotDone);
        made.await.map(change)
    }
}

/// Recognises the refusal of a draft: private repositories of free accounts have none.
fn has_no_drafts(failure: &Failure) -> bool {
    failure.says(StatusCode::UNPROCESSABLE_ENTITY, "draft")
}

fn change(pull: schema::Pull) -> Change {
    Change {
        number: pull.number,
        url: pull.html_url,
    }
}
