//! The part of the GraphQL API that the fake knows: the question who changed the text of an item,
//! and when; and the orders that make a pull request a draft or ready, which REST does not have.

use axum::extract::State as Shared;
use serde_json::Value;
use serde_json::json;

use crate::fake::github::api::answer::Answer;
use crate::fake::github::api::answer::Problem;
use crate::fake::github::api::answer::ok;
use crate::fake::github::api::hub::Hub;
use crate::fake::github::api::hub::Viewer;
use crate::fake::github::api::hub::find;
use crate::fake::github::api::hub::find_item;
use crate::fake::github::api::view::node;
use crate::fake::github::api::view::text;
use crate::fake::github::state::Permission;
use crate::fake::github::state::Place;
use crate::fake::history::What;
use crate::fake::request::Fields;

/// The words that a question must have, in this order.
const KNOWN: [&str; 11] = [
    "repository(owner: $owner, name: $name)",
    "issueOrPullRequest(number: $number)",
    "... on Issue { createdAt",
    "lastEditedAt",
    "editor { ...who }",
    "userContentEdits(first: 100) { nodes { editedAt editor { ...who } } pageInfo { hasNextPage } }",
    "... on PullRequest { createdAt",
    "lastEditedAt",
    "editor { ...who }",
    "userContentEdits(first: 100) { nodes { editedAt editor { ...who } } pageInfo { hasNextPage } }",
    "fragment who on Actor { __typename login ... on User { databaseId } ... on Bot { databaseId } }",
];

/// The most edits that one answer lists, the newest first.
const MOST: usize = 100;

/// The orders, each with whether it makes a draft.
const ORDERS: [(&str, bool); 2] = [
    ("markPullRequestReadyForReview", false),
    ("convertPullRequestToDraft", true),
];

pub async fn answer(Shared(hub): Shared<Hub>, viewer: Viewer, fields: Fields) -> Answer {
    let question = fields.text("query").unwrap_or_default();
    if question.trim_start().starts_with("mutation") {
        return ok(order(&hub, &viewer, question, &fields));
    }
    let known = KNOWN
        .iter()
        .try_fold(question, |rest, part| rest.split_once(part).map(|(_, rest)| rest));
    if known.is_none() {
        return ok(misunderstood("the fake does not know this question"));
    }
    let variables = fields.0.get("variables").cloned().unwrap_or_default();
    let named = |name: &str| variables[name].as_str().unwrap_or_default().to_owned();
    let place = (named("owner"), named("name"));
    let number = variables["number"].as_u64().unwrap_or_default();
    let found: Result<_, Problem> = hub.show(&viewer, |view| {
        let item = find_item(find(view.state, &viewer, &place)?, number)?;
        let edits = item.history.iter().rev();
        let edits = edits.filter(|happening| happening.what == What::TextEdited);
        // An App's account has no `[bot]` here, unlike in REST.
        let who = |login: &String| {
            let (kind, name) = match login.strip_suffix("[bot]") {
                Some(slug) => ("Bot", slug),
                None => ("User", login.as_str()),
            };
            json!({"__typename": kind, "login": name, "databaseId": view.state.id_of(login)})
        };
        let mut edits: Vec<_> = edits.map(|edit| (text(edit.when), who(&edit.actor))).collect();
        if !edits.is_empty() {
            // The text as it was opened is one of them, once there is another.
            edits.push((text(item.created), who(&item.author)));
        }
        Ok((text(item.created), edits))
    });
    let Ok((created, edits)) = found else {
        let message = "Could not resolve to an issue or pull request.";
        let error = json!({"type": "NOT_FOUND", "path": ["repository"], "message": message});
        return ok(json!({"data": {"repository": null}, "errors": [error]}));
    };
    let newest = edits.first().cloned();
    let (at, editor) = newest.map_or((Value::Null, Value::Null), |(at, editor)| (json!(at), editor));
    let node = |(at, editor): &(String, Value)| json!({"editedAt": at, "editor": editor});
    let nodes: Vec<_> = edits.iter().take(MOST).map(node).collect();
    let item = json!({
        "createdAt": created, "lastEditedAt": at, "editor": editor,
        "userContentEdits": {"nodes": nodes, "pageInfo": {"hasNextPage": edits.len() > MOST}},
    });
    ok(json!({"data": {"repository": {"issueOrPullRequest": item}}}))
}

/// Carries an order out. Whatever is wrong with it, the status is 200.
fn order(hub: &Hub, viewer: &Viewer, order: &str, fields: &Fields) -> Value {
    let asked = |name: &str| order.contains(&format!("{name}(input: "));
    let Some((name, is_draft)) = ORDERS.into_iter().find(|(name, _)| asked(name)) else {
        hub.traffic.record_unknown(format!("POST /graphql {order}"));
        return misunderstood("the fake does not know this order");
    };
    let refused = |kind: &str, message: &str| {
        let error = json!({"type": kind, "path": [name], "message": message});
        json!({"data": {name: null}, "errors": [error]})
    };
    let variables = fields.0.get("variables").cloned().unwrap_or_default();
    let id = variables["id"]
        .as_str()
        .or_else(|| variables["input"]["pullRequestId"].as_str());
    let id = id.unwrap_or_default();
    let found = hub.read(|state| {
        let visible = state.repositories.iter().filter(|place| viewer.sees(place));
        let mut pulls = visible.flat_map(|place| place.items.values().map(move |item| (place, item)));
        let (place, item) = pulls.find(|(_, item)| item.pull.is_some() && node("PR", item.id) == id)?;
        let may = place.permission(&viewer.login) >= Permission::Write;
        let may = may
            && viewer
                .installation
                .as_ref()
                .is_none_or(|narrow| narrow.may(&["pull_requests"], true));
        Some((Place::new(&place.full_name(), item.number), may, place.has_drafts))
    });
    match found {
        None => refused(
            "NOT_FOUND",
            &format!("Could not resolve to a node with the global id of '{id}'."),
        ),
        Some((_, false, _)) => {
            let by = if viewer.is_installation() {
                "integration"
            } else {
                "personal access token"
            };
            refused("FORBIDDEN", &format!("Resource not accessible by {by}"))
        }
        Some((_, _, false)) if is_draft => refused(
            "UNPROCESSABLE",
            "Draft pull requests are not supported in this repository.",
        ),
        Some((place, ..)) => {
            hub.change(|state| state.set_draft(&place, &viewer.login, is_draft));
            json!({"data": {name: {"pullRequest": {"isDraft": is_draft}}}})
        }
    }
}

/// Refuses a question that is wrong in itself. Such an error has a code, and one of the server's
/// own has neither code nor type.
fn misunderstood(message: &str) -> Value {
    json!({"errors": [{"message": message, "extensions": {"code": "undefinedField"}}]})
}
