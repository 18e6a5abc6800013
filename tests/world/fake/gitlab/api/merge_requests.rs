//! The part of the API that only merge requests have: opening from a branch, commits and diffs.

use axum::extract::State as Shared;
use axum::http::StatusCode;
use serde_json::Value;
use serde_json::json;

use crate::fake::bare::Bare;
use crate::fake::board::Board as _;
use crate::fake::board::Draft;
use crate::fake::gitlab::api::answer::Answer;
use crate::fake::gitlab::api::answer::Problem;
use crate::fake::gitlab::api::answer::created;
use crate::fake::gitlab::api::answer::ok;
use crate::fake::gitlab::api::answer::page;
use crate::fake::gitlab::api::items::check_length;
use crate::fake::gitlab::api::items::shown;
use crate::fake::gitlab::api::lab::Lab;
use crate::fake::gitlab::api::lab::Spot;
use crate::fake::gitlab::api::lab::Viewer;
use crate::fake::gitlab::api::lab::find_item;
use crate::fake::gitlab::api::view::head_of;
use crate::fake::gitlab::state::Access;
use crate::fake::gitlab::state::Merge;
use crate::fake::gitlab::state::State;
use crate::fake::request::Fields;
use crate::fake::request::Query;

pub async fn create(Shared(lab): Shared<Lab>, viewer: Viewer, spot: Spot, fields: Fields) -> Answer {
    // The project in the path is where the branch is; a fork names its parent as the target.
    let source = lab.allow(&viewer, &spot.project, Access::Developer)?;
    let text = |name: &'static str| {
        fields
            .text(name)
            .filter(|text| !text.is_empty())
            .ok_or_else(|| Problem::missing(name))
    };
    let (title, branch, target) = (
        text("title")?.to_owned(),
        text("source_branch")?,
        text("target_branch")?,
    );
    let description = fields.text("description").map(str::to_owned);
    check_length(description.as_deref())?;
    let target_project = fields
        .0
        .get("target_project_id")
        .map(|id| id.to_string().trim_matches('"').to_owned());
    let target_project = target_project.unwrap_or_else(|| source.clone());
    lab.read(|state| check(state, &source, &target_project, branch, target))?;
    let merge = Merge {
        source_project: source,
        source: branch.to_owned(),
        target: target.to_owned(),
        merged: None,
        allows_collaboration: fields.flag("allow_collaboration").unwrap_or(false),
        reviewers: Vec::new(),
    };
    let draft = Draft {
        title,
        text: description,
        author: viewer.0.clone(),
    };
    let place = lab.change(|state| {
        let place = state.open(&target_project, draft, Some(merge));
        for label in fields.list("labels").unwrap_or_default() {
            state.add_label(&place, &label, &viewer.0);
        }
        place
    });
    created(shown(
        &lab,
        &viewer,
        &Spot {
            project: place.project,
            kind: place.kind,
            iid: place.iid,
        },
    )?)
}

/// Checks that the branches are there, and that nobody asked for the same before.
///
/// The real GitLab lets a merge request of a missing branch pass; nothing good comes of it, so the
/// fake does not.
fn check(state: &State, source: &str, target_project: &str, branch: &str, target: &str) -> Result<(), Problem> {
    let wrong = |field: &str, why: &str| Problem::new(StatusCode::BAD_REQUEST, json!({field: [why]}));
    let from = state.project(source).ok_or_else(|| Problem::not_found("Project"))?;
    let to = state
        .project(target_project)
        .ok_or_else(|| Problem::not_found("Project"))?;
    if from.git.resolve(&format!("refs/heads/{branch}")).is_none() {
        return Err(wrong("source_branch", "does not exist"));
    }
    if to.git.resolve(&format!("refs/heads/{target}")).is_none() {
        return Err(wrong("target_branch", "does not exist"));
    }
    if from.path == to.path && branch == target {
        return Err(Problem::new(
            StatusCode::CONFLICT,
            json!(["You can't use same project/branch for source and target"]),
        ));
    }
    let is_same = |merge: &Merge| merge.source_project == from.path && merge.source == branch && merge.target == target;
    let twin = to
        .merge_requests
        .values()
        .find(|item| item.is_open && item.merge.as_ref().is_some_and(is_same));
    if let Some(twin) = twin {
        let why = format!(
            "Another open merge request already exists for this source branch: !{}",
            twin.number
        );
        return Err(Problem::new(StatusCode::CONFLICT, json!([why])));
    }
    Ok(())
}

pub async fn commits(Shared(lab): Shared<Lab>, viewer: Viewer, spot: Spot, query: Query) -> Answer {
    let commits = lab.show(&viewer, |view| {
        let (project, item) = find_item(view.state, &viewer, &spot)?;
        let merge = item.merge.as_ref().ok_or_else(|| Problem::not_found(""))?;
        let head = head_of(project, item).unwrap_or_default();
        let commits = project.git.commits(&format!("refs/heads/{}", merge.target), &head);
        // The newest comes first.
        Ok(commits
            .iter()
            .rev()
            .map(|commit| view.commit(project, commit))
            .collect())
    })?;
    page(&query, &lab.api(), commits)
}

pub async fn diffs(Shared(lab): Shared<Lab>, viewer: Viewer, spot: Spot, query: Query) -> Answer {
    page(&query, &lab.api(), files(&lab, &viewer, &spot)?)
}

pub async fn changes(Shared(lab): Shared<Lab>, viewer: Viewer, spot: Spot) -> Answer {
    let mut whole = shown(&lab, &viewer, &spot)?;
    whole["changes"] = Value::Array(files(&lab, &viewer, &spot)?);
    whole["overflow"] = json!(false);
    ok(whole)
}

fn files(lab: &Lab, viewer: &Viewer, spot: &Spot) -> Result<Vec<Value>, Problem> {
    lab.show(viewer, |view| {
        let (project, item) = find_item(view.state, viewer, spot)?;
        let merge = item.merge.as_ref().ok_or_else(|| Problem::not_found(""))?;
        let head = head_of(project, item).unwrap_or_default();
        Ok(changed(&project.git, &format!("refs/heads/{}", merge.target), &head))
    })
}

fn changed(git: &Bare, target: &str, head: &str) -> Vec<Value> {
    let diff = git.diff(target, head);
    let changed = git.changed(target, head).into_iter().map(|file| {
        // Only the hunks: the names stand in fields of their own.
        let own = diff
            .split("diff --git ")
            .find(|part| part.starts_with(&format!("a/{} ", file.path)));
        let hunks = own.and_then(|part| part.find("@@").map(|start| part[start..].to_owned()));
        json!({
            "old_path": file.path, "new_path": file.path, "a_mode": "100644", "b_mode": "100644",
            "new_file": file.how == "added", "deleted_file": file.how == "removed", "renamed_file": false,
            "generated_file": false, "collapsed": false, "too_large": false, "diff": hunks.unwrap_or_default(),
        })
    });
    changed.collect()
}
