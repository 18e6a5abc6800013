//! Branches, references and commits, straight from the git repository.

use axum::extract::Path;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use serde_json::Value;
use serde_json::json;

use crate::fake::forge::Host as _;
use crate::fake::github::api::answer::Answer;
use crate::fake::github::api::answer::Problem;
use crate::fake::github::api::answer::created;
use crate::fake::github::api::answer::no_content;
use crate::fake::github::api::answer::ok;
use crate::fake::github::api::answer::page;
use crate::fake::github::api::hub::Hub;
use crate::fake::github::api::hub::Viewer;
use crate::fake::github::api::hub::find;
use crate::fake::github::api::view::View;
use crate::fake::github::api::view::text;
use crate::fake::github::state::Permission;
use crate::fake::github::state::Repository;
use crate::fake::history::What;
use crate::fake::request::Fields;
use crate::fake::request::Query;

type Named = Path<(String, String, String)>;

pub async fn branches(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path(place): Path<(String, String)>,
    query: Query,
) -> Answer {
    let branches = hub.show(&viewer, |view| {
        let place = find(view.state, &viewer, &place)?;
        let branches = place.git.branches().into_iter().map(|(name, id)| {
            let url = format!("{}/repos/{}/commits/{id}", view.api, place.full_name());
            let is_protected = place.is_protected(&name);
            json!({"name": name, "commit": {"sha": id, "url": url}, "protected": is_protected})
        });
        Ok(branches.collect())
    })?;
    page(&query, &hub.api(), branches)
}

/// Who changed a branch, and when: known of branches that pull requests are from.
pub async fn activity(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path(place): Path<(String, String)>,
    query: Query,
) -> Answer {
    let activities = hub.show(&viewer, |view| {
        let place = find(view.state, &viewer, &place)?;
        let wanted = query.value("ref").unwrap_or_default().trim_start_matches("refs/heads/");
        let items = view.state.repositories.iter().flat_map(|place| place.items.values());
        let from_here = items.filter(|item| {
            let pull = item.pull.as_ref();
            pull.is_some_and(|pull| place.is_named(&pull.head_repository) && pull.head == wanted)
        });
        let pushes = from_here.flat_map(|item| &item.history).filter_map(|happening| {
            let What::Pushed { commit, is_forced, .. } = &happening.what else {
                return None;
            };
            let kind = if *is_forced { "force_push" } else { "push" };
            Some(json!({
                "id": happening.id, "activity_type": kind, "ref": format!("refs/heads/{wanted}"), "after": commit,
                "timestamp": text(happening.when), "actor": view.user(&happening.actor),
            }))
        });
        let mut pushes: Vec<_> = pushes.collect();
        pushes.reverse();
        Ok(pushes)
    })?;
    page(&query, &hub.api(), activities)
}

pub async fn branch(Shared(hub): Shared<Hub>, viewer: Viewer, Path((owner, name, branch)): Named) -> Answer {
    ok(hub.show(&viewer, |view| {
        let place = find(view.state, &viewer, &(owner, name))?;
        let commit = place
            .git
            .resolve(&format!("refs/heads/{branch}"))
            .and_then(|id| place.git.commit_named(&id));
        let commit = commit.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "Branch not found"))?;
        let url = format!("{}/repos/{}/branches/{branch}", view.api, place.full_name());
        let page = format!("{}/{}/tree/{branch}", view.web, place.full_name());
        Ok(json!({
            "name": branch, "commit": view.commit(place, &commit), "_links": {"self": url, "html": page},
            "protected": place.is_protected(&branch), "protection_url": format!("{url}/protection"),
            "protection": {
                "enabled": place.protected.contains(&branch),
                "required_status_checks": {"enforcement_level": "off", "contexts": [], "checks": []},
            },
        }))
    })?)
}

/// The rules that rulesets lay on a branch, also where the viewer is excepted.
pub async fn rules(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, branch)): Named,
    query: Query,
) -> Answer {
    let rules = hub.show(&viewer, |view| {
        let place = find(view.state, &viewer, &(owner, name))?;
        let laid = place.rules.get(&branch).into_iter().flatten();
        let rules = laid.map(|rule| {
            json!({
                "type": rule, "ruleset_source_type": "Repository", "ruleset_source": place.full_name(),
                "ruleset_id": place.id,
            })
        });
        Ok(rules.collect())
    })?;
    page(&query, &hub.api(), rules)
}

pub async fn commit(Shared(hub): Shared<Hub>, viewer: Viewer, Path((owner, name, id)): Named) -> Answer {
    ok(hub.show(&viewer, |view| {
        let place = find(view.state, &viewer, &(owner, name))?;
        let found = place.git.resolve(&id).and_then(|id| place.git.commit_named(&id));
        let missing = || {
            Problem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                &format!("No commit found for SHA: {id}"),
            )
        };
        Ok(view.commit(place, &found.ok_or_else(missing)?))
    })?)
}

pub async fn reference(Shared(hub): Shared<Hub>, viewer: Viewer, Path((owner, name, reference)): Named) -> Answer {
    ok(hub.show(&viewer, |view| {
        let place = find(view.state, &viewer, &(owner, name))?;
        let id = place
            .git
            .resolve(&format!("refs/{reference}"))
            .ok_or_else(Problem::not_found)?;
        Ok(shown(view, place, &format!("refs/{reference}"), &id))
    })?)
}

pub async fn matching(Shared(hub): Shared<Hub>, viewer: Viewer, Path((owner, name, prefix)): Named) -> Answer {
    ok(hub.show(&viewer, |view| {
        let place = find(view.state, &viewer, &(owner, name))?;
        let all = place
            .git
            .branches()
            .into_iter()
            .map(|(branch, id)| (format!("heads/{branch}"), id));
        let matching = all.filter(|(reference, _)| reference.starts_with(&prefix));
        let matching = matching.map(|(reference, id)| shown(view, place, &format!("refs/{reference}"), &id));
        Ok(Value::Array(matching.collect()))
    })?)
}

pub async fn create(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path(place): Path<(String, String)>,
    fields: Fields,
) -> Answer {
    let repository = hub.allow(&viewer, &place, Permission::Write)?;
    let (reference, id) = (
        fields.text("ref").unwrap_or_default(),
        fields.text("sha").unwrap_or_default(),
    );
    let unprocessable = |message| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, message);
    hub.change(|state| {
        let git = &state.repository(&repository).ok_or_else(Problem::not_found)?.git;
        if !reference.starts_with("refs/heads/") {
            return Err(unprocessable(
                "Reference name must start with 'refs/' and have at least two slashes.",
            ));
        }
        if git.resolve(reference).is_some() {
            return Err(unprocessable("Reference already exists"));
        }
        let commit = git.resolve(id).ok_or_else(|| unprocessable("Object does not exist"))?;
        git.set_reference(reference, &commit);
        state.pushed(&repository, &viewer.login);
        Ok(())
    })?;
    created(hub.show(&viewer, |view| {
        Ok::<_, Problem>(shown(view, find(view.state, &viewer, &place)?, reference, id))
    })?)
}

pub async fn delete(Shared(hub): Shared<Hub>, viewer: Viewer, Path((owner, name, reference)): Named) -> Answer {
    let repository = hub.allow(&viewer, &(owner, name), Permission::Write)?;
    hub.change(|state| {
        let git = &state.repository(&repository).ok_or_else(Problem::not_found)?.git;
        let reference = format!("refs/{reference}");
        if git.resolve(&reference).is_none() {
            return Err(Problem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "Reference does not exist",
            ));
        }
        git.delete_reference(&reference);
        state.pushed(&repository, &viewer.login);
        Ok(())
    })?;
    no_content()
}

fn shown(view: View<'_>, place: &Repository, reference: &str, id: &str) -> Value {
    let repository = format!("{}/repos/{}", view.api, place.full_name());
    json!({
        "ref": reference, "node_id": format!("REF_{id}"), "url": format!("{repository}/git/{reference}"),
        "object": {"sha": id, "type": "commit", "url": format!("{repository}/git/commits/{id}")},
    })
}
