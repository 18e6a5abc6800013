//! Merge requests of the bot's own.

mod checks;

use std::collections::BTreeSet;

use async_trait::async_trait;
use gitlab::api::projects::merge_requests::{CreateMergeRequest, MergeRequestScope, MergeRequestState, MergeRequests};
use gitlab::api::projects::repository::branches::Branch;
use http::StatusCode;

use crate::forge::gitlab::http::endpoints::Below;
use crate::forge::gitlab::item::comments::{self, LONGEST_BODY};
use crate::forge::gitlab::{Api, schema};
use crate::forge::http::failure::Failure;
use crate::forge::item::address::ItemAddress;
use crate::forge::item::change::OpenChange;
use crate::forge::item::checks::Checks;
use crate::forge::platform::{ChangeApi, ExamineApi as _, Platform};
use crate::forge::settings::allowed_users::Entry;
use crate::forge::{Change, ChangeEdit, CommentId, CommentKey, GitCredentials, NewChange, Post};
use crate::markdown::marker::{short_title, shortened};
use crate::markdown::owned::without_draft_mark;
use crate::markdown::quick_actions::disarmed;

const LONGEST_TITLE: usize = 255;

#[async_trait]
impl ChangeApi for Api {
    async fn find_change(&self, repository: &str, head: &str) -> Result<Option<Change>, Failure> {
        let mut requests = MergeRequests::builder();
        let requests = requests
            .project(repository)
            .source_branch(head)
            .state(MergeRequestState::Opened);
        let found: Vec<schema::Item> = self.client.list(requests.build()).await?;
        // The branch of a fork may have the same name.
        let own = found.into_iter().find(|item| {
            item.source_branch.as_deref() == Some(head) && item.source_project_id == item.target_project_id
        });
        Ok(own.map(change))
    }

    async fn post_change(&self, repository: &str, new: &NewChange) -> Result<Change, Failure> {
        let mut request = CreateMergeRequest::builder();
        let request = request
            .project(repository)
            .source_branch(&new.head)
            .target_branch(&new.base)
            .title(titled(new.title.as_str(), new.is_draft))
            .description(shortened(&disarmed(new.body.as_str()), LONGEST_BODY))
            .remove_source_branch(true);
        self.client.ask(request.build()).await.map(change)
    }

    /// Says `{"source_branch": ["does not exist"]}`.
    fn is_behind(failure: &Failure) -> bool {
        [StatusCode::BAD_REQUEST, StatusCode::UNPROCESSABLE_ENTITY]
            .iter()
            .any(|status| failure.says(*status, "source_branch") && failure.says(*status, "does not exist"))
    }

    fn is_second(failure: &Failure) -> bool {
        failure.says(StatusCode::CONFLICT, "already exists")
    }

    /// A draft is a merge request whose title says so.
    async fn put_draft(&self, at: ItemAddress<'_>, title: &str, is_draft: bool) -> Result<String, Failure> {
        let title = titled(without_draft_mark(title), is_draft);
        let request = Below::put(at, "").with("title", &title);
        self.client.order(request.build()).await?;
        Ok(title)
    }

    async fn assign_to(&self, at: ItemAddress<'_>, people: &[String]) -> Result<Vec<String>, Failure> {
        let item = self.put_people(at, "assignee_ids[]", people).await?;
        Ok(left_out(people, &item.assignees))
    }

    async fn request_reviews(&self, at: ItemAddress<'_>, people: &[String]) -> Result<Vec<String>, Failure> {
        let item = self.put_people(at, "reviewer_ids[]", people).await?;
        Ok(left_out(people, &item.reviewers))
    }

    async fn find_reply(&self, at: ItemAddress<'_>, _: CommentKey, marker: &str) -> Result<Option<CommentId>, Failure> {
        self.find_note(at, marker).await
    }

    /// A note does not say which discussion it belongs to, so all are asked for.
    async fn write_reply(
        &self,
        at: ItemAddress<'_>,
        thread: CommentKey,
        post: &Post<'_>,
    ) -> Result<CommentId, Failure> {
        let all: Vec<schema::Discussion> = self.client.list(Below::get(at, "/discussions").build()).await?;
        let has_it = |discussion: &schema::Discussion| discussion.notes.iter().any(|note| note.id == thread.number);
        let discussion = all.into_iter().find(has_it).ok_or_else(|| Failure::Answered {
            status: StatusCode::NOT_FOUND,
            message: "the thread is not there any more".to_owned(),
        })?;
        let body = comments::body(post);
        let note = Below::post(at, format!("/discussions/{}/notes", discussion.id)).with("body", &body);
        let note: schema::Note = self.client.ask(note.build()).await?;
        Ok(CommentId(note.id))
    }

    async fn rewrite_change(&self, at: ItemAddress<'_>, edit: &ChangeEdit) -> Result<(), Failure> {
        let title = edit
            .title
            .as_ref()
            .map(|title| short_title(title.as_str(), LONGEST_TITLE));
        let body = edit
            .body
            .as_ref()
            .map(|body| shortened(&disarmed(body.as_str()), LONGEST_BODY));
        let mut request = Below::put(at, "");
        if let Some(title) = &title {
            request = request.with("title", title);
        }
        if let Some(body) = &body {
            request = request.with("description", body);
        }
        self.client.order(request.build()).await
    }

    /// A branch that the role Developer suffices to push to is one to work on. `*` is protected in
    /// this way where all pipelines are to have the protected variables.
    async fn is_protected(&self, repository: &str, branch: &str) -> Result<bool, Failure> {
        let endpoint = Branch::builder().project(repository).branch(branch).build();
        match self.client.ask::<_, _, schema::Branch>(endpoint).await {
            Ok(found) => Ok(found.protected && !found.developers_can_push),
            Err(failure) if failure.is_missing() => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Lists just these merge requests in one request, however many the project has.
    async fn list_changes(&self, repository: &str, numbers: &[u64]) -> Result<Vec<OpenChange>, Failure> {
        let mut requests = MergeRequests::builder();
        let requests = requests
            .project(repository)
            .iids(numbers.iter().copied())
            .state(MergeRequestState::Opened)
            .scope(MergeRequestScope::All);
        let found: Vec<schema::Item> = self.client.list(requests.build()).await?;
        let change = |item: schema::Item| OpenChange {
            task: self.settings.task(ItemAddress {
                repository,
                kind: Self::CHANGE,
                number: item.iid,
            }),
            title: item.title,
            head: item.sha.unwrap_or_default(),
            updated_at: item.updated_at,
        };
        let open = found.into_iter().filter(|item| item.state == "opened");
        Ok(open.map(change).collect())
    }

    async fn read_checks(
        &self,
        address: ItemAddress<'_>,
        commit: &str,
        known: &BTreeSet<String>,
    ) -> Result<Checks, Failure> {
        self.checks_of(address, commit, known).await
    }

    async fn credentials(&self, _: &str) -> Result<GitCredentials, Failure> {
        Ok(GitCredentials {
            username: "oauth2".to_owned(),
            password: self.client.token().clone(),
            is_new: false,
            trust: self.client.trust().clone(),
        })
    }

    /// The token is the same for all projects.
    async fn credentials_to_read(&self, repository: &str) -> Result<GitCredentials, Failure> {
        self.credentials(repository).await
    }
}

impl Api {
    /// Sets one of the lists of people. GitLab knows them by their numbers, and keeps only the
    /// first where its licence has room for one.
    async fn put_people(
        &self,
        at: ItemAddress<'_>,
        field: &'static str,
        people: &[String],
    ) -> Result<schema::Item, Failure> {
        let mut ids = Vec::new();
        for name in people {
            let found = self.account(&Entry::Login(name.clone())).await?;
            ids.extend(found.map(|(_, id)| id.to_string()));
        }
        if ids.is_empty() {
            return self.ask_item(at).await;
        }
        let request = ids
            .iter()
            .fold(Below::put(at, ""), |request, id| request.with(field, id));
        self.client.ask(request.build()).await
    }
}

fn left_out(people: &[String], taken: &[schema::User]) -> Vec<String> {
    let is_taken = |name: &String| taken.iter().any(|user| user.username.eq_ignore_ascii_case(name));
    people.iter().filter(|name| !is_taken(name)).cloned().collect()
}

fn titled(title: &str, is_draft: bool) -> String {
    let mark = if is_draft { "Draft: " } else { "" };
    short_title(&format!("{mark}{title}"), LONGEST_TITLE)
}

fn change(item: schema::Item) -> Change {
    Change {
        number: item.iid,
        url: item.web_url,
    }
}
