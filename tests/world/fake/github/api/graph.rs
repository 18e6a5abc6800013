//! The one question of the GraphQL API that the fake knows: who changed the text of an item, and
//! when.

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
use crate::fake::github::api::view::text;
use crate::fake::history::What;
use crate::fake::request::Fields;

/// The words that a question must have, in this order.
const KNOWN: [&str; 10] = [
    "repository(owner: $owner, name: $name)",
    "issueOrPullRequest(number: $number)",
    "... on Issue { createdAt",
    "lastEditedAt",
    "editor { login }",
    "userContentEdits(first: 100) { nodes { editedAt editor { login } } pageInfo { hasNextPage } }",
    "... on PullRequest { createdAt",
    "lastEditedAt",
    "editor { login }",
    "userContentEdits(first: 100) { nodes { editedAt editor { login } } pageInfo { hasNextPage } }",
];

/// Edits that are told of at once, the newest first.
const MOST: usize = 100;

pub async fn answer(Shared(hub): Shared<Hub>, viewer: Viewer, fields: Fields) -> Answer {
    let question = fields.text("query").unwrap_or_default();
    let known = KNOWN
        .iter()
        .try_fold(question, |rest, part| rest.split_once(part).map(|(_, rest)| rest));
    if known.is_none() {
        return ok(refusal("the fake does not know this question"));
    }
    let variables = fields.0.get("variables").cloned().unwrap_or_default();
    let named = |name: &str| variables[name].as_str().unwrap_or_default().to_owned();
    let place = (named("owner"), named("name"));
    let number = variables["number"].as_u64().unwrap_or_default();
    let found: Result<_, Problem> = hub.show(&viewer, |view| {
        let item = find_item(find(view.state, &viewer, &place)?, number)?;
        let edits = item.history.iter().rev();
        let edits = edits.filter(|happening| happening.what == What::TextEdited);
        let mut edits: Vec<_> = edits.map(|edit| (text(edit.when), edit.actor.clone())).collect();
        if !edits.is_empty() {
            // The text as it was opened is one of them, once there is another.
            edits.push((text(item.created), item.author.clone()));
        }
        Ok((text(item.created), edits))
    });
    let Ok((created, edits)) = found else {
        return ok(refusal("Could not resolve to an issue or pull request."));
    };
    let (at, editor) = edits.first().map_or((Value::Null, Value::Null), |(at, login)| {
        (json!(at), json!({"login": login}))
    });
    let node = |(at, login): &(String, String)| json!({"editedAt": at, "editor": {"login": login}});
    let nodes: Vec<_> = edits.iter().take(MOST).map(node).collect();
    let item = json!({
        "createdAt": created, "lastEditedAt": at, "editor": editor,
        "userContentEdits": {"nodes": nodes, "pageInfo": {"hasNextPage": edits.len() > MOST}},
    });
    ok(json!({"data": {"repository": {"issueOrPullRequest": item}}}))
}

fn refusal(message: &str) -> Value {
    json!({"data": {"repository": null}, "errors": [{"message": message}]})
}
