//! Pull requests: listing, opening, editing, and what reviewers wrote.

use axum::extract::Path;
use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header;
use axum::response::IntoResponse;
use serde_json::Value;
use serde_json::json;

use crate::fake::board::Board as _;
use crate::fake::board::Draft;
use crate::fake::github::api::answer::Answer;
use crate::fake::github::api::answer::Problem;
use crate::fake::github::api::answer::created;
use crate::fake::github::api::answer::ok;
use crate::fake::github::api::answer::page;
use crate::fake::github::api::hub::Hub;
use crate::fake::github::api::hub::Viewer;
use crate::fake::github::api::hub::find;
use crate::fake::github::api::hub::find_pull;
use crate::fake::github::api::issues::check_length;
use crate::fake::github::api::view_pull::base_of;
use crate::fake::github::api::view_pull::head_of;
use crate::fake::github::state::Permission;
use crate::fake::github::state::Pull;
use crate::fake::github::state::State;
use crate::fake::request::Fields;
use crate::fake::request::Query;

type Numbered = Path<(String, String, u64)>;

pub async fn list(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path(place): Path<(String, String)>,
    query: Query,
) -> Answer {
    let pulls = hub.show(&viewer, |view| {
        let place = find(view.state, &viewer, &place)?;
        let pulls = place
            .items
            .values()
            .rev()
            .filter_map(|item| Some((item, item.pull.as_ref()?)));
        let wanted = pulls.filter(|(item, pull)| {
            let state = match query.value("state") {
                Some("all") => true,
                Some("closed") => !item.is_open,
                _ => item.is_open,
            };
            state
                && query.value("head").is_none_or(|head| is_head(pull, head))
                && query.value("base").is_none_or(|base| pull.base == base)
        });
        Ok(wanted.map(|(item, pull)| view.pull(place, item, pull)).collect())
    })?;
    page(&query, &hub.api(), pulls)
}

/// Compares with `owner:branch`. Without an owner GitHub ignores the filter, and lists everything.
fn is_head(pull: &Pull, wanted: &str) -> bool {
    let Some((owner, branch)) = wanted.split_once(':') else {
        return true;
    };
    pull.head == branch
        && pull
            .head_repository
            .split('/')
            .next()
            .is_some_and(|name| name.eq_ignore_ascii_case(owner))
}

pub async fn one(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, number)): Numbered,
    headers: HeaderMap,
) -> Answer {
    let accepted = headers
        .get(header::ACCEPT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if accepted.contains("diff") {
        let diff = hub.read(|state| {
            let place = find(state, &viewer, &(owner, name))?;
            let (item, pull) = find_pull(place, number)?;
            Ok::<_, Problem>(place.git.diff(&base_of(place, pull), &head_of(place, item)))
        })?;
        return Ok((
            [(header::CONTENT_TYPE, "application/vnd.github.v3.diff; charset=utf-8")],
            diff,
        )
            .into_response());
    }
    ok(shown(&hub, &viewer, &(owner, name), number)?)
}

pub async fn create(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path(place): Path<(String, String)>,
    fields: Fields,
) -> Answer {
    let repository = hub.allow(&viewer, &place, Permission::Read)?;
    let text = |name: &'static str| {
        let text = fields.text(name).filter(|text| !text.is_empty());
        text.ok_or_else(|| Problem::invalid("PullRequest", name, "missing_field"))
    };
    let (title, head, base) = (text("title")?.to_owned(), text("head")?, text("base")?);
    check_length(fields.text("body"))?;
    let pull = hub.read(|state| proposed(state, &repository, head, base))?;
    let has_drafts = hub.read(|state| state.repository(&repository).is_some_and(|place| place.has_drafts));
    if fields.flag("draft") == Some(true) && !has_drafts {
        let message = "Draft pull requests are not supported in this repository.";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, message));
    }
    let pull = Pull {
        is_draft: fields.flag("draft").unwrap_or(false),
        maintainers_can_modify: fields.flag("maintainer_can_modify").unwrap_or(true),
        ..pull
    };
    let body = fields.text("body").map(str::to_owned);
    let draft = Draft {
        title,
        text: body,
        author: viewer.login.clone(),
    };
    let opened = hub.change(|state| state.open(&repository, draft, Some(pull)));
    created(shown(&hub, &viewer, &place, opened.number)?)
}

/// Checks that there is something to pull, and that nobody asked for it before.
pub fn proposed(state: &State, repository: &str, head: &str, base: &str) -> Result<Pull, Problem> {
    let place = state.repository(repository).ok_or_else(Problem::not_found)?;
    let (owner, branch) = head.split_once(':').unwrap_or((&place.owner, head));
    let source = state.repositories.iter().find(|source| {
        let is_here = source.full_name() == repository || source.parent.as_deref() == Some(repository);
        is_here && source.owner.eq_ignore_ascii_case(owner)
    });
    let source = source.ok_or_else(|| Problem::invalid("PullRequest", "head", "invalid"))?;
    let commit = source.git.resolve(&format!("refs/heads/{branch}"));
    let commit = commit.ok_or_else(|| Problem::invalid("PullRequest", "head", "invalid"))?;
    let start = place.git.resolve(&format!("refs/heads/{base}"));
    let start = start.ok_or_else(|| Problem::invalid("PullRequest", "base", "invalid"))?;
    if commit == start || source.git.merge_base(&commit, &start).as_deref() == Some(commit.as_str()) {
        return Err(Problem::custom(
            "PullRequest",
            &format!("No commits between {base} and {branch}"),
        ));
    }
    let name = source.full_name();
    let is_same = |pull: &Pull| pull.head_repository == name && pull.head == branch && pull.base == base;
    if place
        .items
        .values()
        .any(|item| item.is_open && item.pull.as_ref().is_some_and(is_same))
    {
        let message = format!("A pull request already exists for {}:{branch}.", source.owner);
        return Err(Problem::custom("PullRequest", &message));
    }
    Ok(Pull {
        head_repository: name,
        head: branch.to_owned(),
        base: base.to_owned(),
        is_draft: false,
        merged: None,
        maintainers_can_modify: true,
        reviewers: Vec::new(),
        reviews: Vec::new(),
        line_comments: Vec::new(),
    })
}

pub async fn edit(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, number)): Numbered,
    fields: Fields,
) -> Answer {
    let place = (owner, name);
    let item = hub.allow_item(&viewer, &place, number, Permission::Write)?;
    hub.read(|state| find_pull(find(state, &viewer, &place)?, number).map(|_| ()))?;
    check_length(fields.text("body"))?;
    hub.change(|state| {
        let actor = viewer.login.as_str();
        if let Some(title) = fields.text("title") {
            state.rename(&item, actor, title);
        }
        if fields.has("body") {
            state.rewrite(&item, actor, fields.text("body"));
        }
        if let (Some(base), Some(pull)) = (fields.text("base"), state.pull_mut(&item)) {
            base.clone_into(&mut pull.base);
        }
        match fields.text("state") {
            Some("closed") => state.close(&item, actor),
            Some("open") => state.reopen(&item, actor),
            _ => {}
        }
    });
    ok(shown(&hub, &viewer, &place, number)?)
}

/// Asks accounts and teams for a review: all of them, or nobody if one is no collaborator.
pub async fn request_reviewers(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, number)): Numbered,
    fields: Fields,
) -> Answer {
    let place = (owner, name);
    let item = hub.allow_item(&viewer, &place, number, Permission::Write)?;
    let people = fields.list("reviewers").unwrap_or_default();
    let teams = fields.list("team_reviewers").unwrap_or_default();
    hub.read(|state| {
        let place = find(state, &viewer, &place)?;
        let (item, _) = find_pull(place, number)?;
        let refused = |message: String| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, &message);
        if people.contains(&item.author) {
            let message = "Review cannot be requested from pull request author.";
            return Err(refused(message.to_owned()));
        }
        let knows = |login: &String| place.members.contains_key(login);
        if !people.iter().all(knows) || !teams.iter().all(|team| place.teams.contains(team)) {
            return Err(refused(format!(
                "Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a \
                 collaborator of the {} repository.",
                place.full_name()
            )));
        }
        Ok(())
    })?;
    hub.change(|state| {
        let Some(pull) = state.pull_mut(&item) else { return };
        let teams = teams.iter().map(|team| format!("{}/{team}", place.0));
        for name in people.iter().cloned().chain(teams) {
            if !pull.reviewers.contains(&name) {
                pull.reviewers.push(name);
            }
        }
    });
    created(shown(&hub, &viewer, &place, number)?)
}

pub async fn files(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, number)): Numbered,
    query: Query,
) -> Answer {
    let files = hub.show(&viewer, |view| {
        let place = find(view.state, &viewer, &(owner, name))?;
        let (item, pull) = find_pull(place, number)?;
        let head = head_of(place, item);
        let files = place.git.changed(&base_of(place, pull), &head).into_iter().map(|file| {
            let contents = format!(
                "{}/repos/{}/contents/{}?ref={head}",
                view.api,
                place.full_name(),
                file.path
            );
            let blob = format!("{}/{}/blob/{head}/{}", view.web, place.full_name(), file.path);
            json!({
                "sha": head, "filename": file.path, "status": file.how, "additions": file.additions,
                "deletions": file.deletions, "changes": file.additions + file.deletions, "blob_url": blob,
                "raw_url": blob, "contents_url": contents,
            })
        });
        Ok(files.collect())
    })?;
    page(&query, &hub.api(), files)
}

pub async fn commits(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, number)): Numbered,
    query: Query,
) -> Answer {
    let commits = hub.show(&viewer, |view| {
        let place = find(view.state, &viewer, &(owner, name))?;
        let (item, pull) = find_pull(place, number)?;
        let commits = place.git.commits(&base_of(place, pull), &head_of(place, item));
        Ok(commits.iter().map(|commit| view.commit(place, commit)).collect())
    })?;
    page(&query, &hub.api(), commits)
}

pub async fn reviews(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, number)): Numbered,
    query: Query,
) -> Answer {
    let reviews = hub.show(&viewer, |view| {
        let place = find(view.state, &viewer, &(owner, name))?;
        let (item, pull) = find_pull(place, number)?;
        Ok(pull
            .reviews
            .iter()
            .map(|review| view.review(place, item, review))
            .collect())
    })?;
    page(&query, &hub.api(), reviews)
}

fn shown(hub: &Hub, viewer: &Viewer, place: &(String, String), number: u64) -> Result<Value, Problem> {
    hub.show(viewer, |view| {
        let place = find(view.state, viewer, place)?;
        let (item, pull) = find_pull(place, number)?;
        Ok(view.whole_pull(place, item, pull))
    })
}
