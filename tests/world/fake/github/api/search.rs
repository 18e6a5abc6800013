//! `/search/issues`: the part of the search language that finds work.

use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use serde_json::json;

use crate::fake::answer::linked_body;
use crate::fake::github::api::answer::Answer;
use crate::fake::github::api::answer::Problem;
use crate::fake::github::api::hub::Hub;
use crate::fake::github::api::hub::Viewer;
use crate::fake::github::state::Item;
use crate::fake::github::state::Repository;
use crate::fake::github::state::State;
use crate::fake::github::state::Time;
use crate::fake::request::Query;

/// GitHub never shows more results of one search.
const MOST_RESULTS: usize = 1000;

pub async fn issues(Shared(hub): Shared<Hub>, viewer: Viewer, query: Query) -> Answer {
    let text = query
        .value("q")
        .ok_or_else(|| Problem::invalid("Search", "q", "missing"))?;
    let terms = terms(text);
    hub.read(|state| check_places(state, &viewer, &terms))?;
    if viewer.is_installation() && !terms.iter().any(|term| matches!(term.key.as_str(), "is" | "type")) {
        let message = "Query must include 'is:issue' or 'is:pull-request'";
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, message));
    }
    let mut found = hub.show(&viewer, |view| {
        let places = view.state.repositories.iter().filter(|place| viewer.sees(place));
        let items = places.flat_map(|place| place.items.values().map(move |item| (place, item)));
        let wanted = items.filter(|(place, item)| !item.is_deleted && matches(&terms, place, item));
        let shown = wanted.map(|(place, item)| {
            let mut shown = view.issue(place, item);
            shown["score"] = json!(1.0);
            (item.updated, item.created, shown)
        });
        shown.collect::<Vec<_>>()
    });
    let by_update = query.value("sort") == Some("updated");
    found.sort_by_key(|(updated, created, _)| if by_update { *updated } else { *created });
    if query.value("order") != Some("asc") {
        found.reverse();
    }
    let total = found.len();
    let shown = found
        .into_iter()
        .take(MOST_RESULTS)
        .map(|(_, _, shown)| shown)
        .collect();
    let page = query.page(shown, 30);
    let body =
        Json(json!({"total_count": total, "incomplete_results": false, "search_type": "lexical", "items": page.items}));
    Ok(linked_body(&query, &hub.api(), &page, body))
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    /// Empty for a plain word.
    key: String,
    value: String,
    is_excluded: bool,
}

/// Cuts a query at its spaces, but not at those in quotes.
fn terms(text: &str) -> Vec<Term> {
    let mut words = vec![String::new()];
    let mut is_quoted = false;
    for letter in text.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            letter => words.last_mut().expect("there is always a last word").push(letter),
        }
    }
    let terms = words.iter().filter(|word| !word.is_empty()).map(|word| {
        let (is_excluded, word) = word
            .strip_prefix('-')
            .map_or((false, word.as_str()), |rest| (true, rest));
        let (key, value) = word.split_once(':').unwrap_or(("", word));
        Term {
            key: key.to_lowercase(),
            value: value.to_owned(),
            is_excluded,
        }
    });
    terms.collect()
}

/// Refuses to search where the viewer sees nothing, as GitHub does.
fn check_places(state: &State, viewer: &Viewer, terms: &[Term]) -> Result<(), Problem> {
    let sees = |place: &Repository| viewer.sees(place);
    for term in terms.iter().filter(|term| !term.is_excluded) {
        let is_known = match term.key.as_str() {
            "repo" => state.repository(&term.value).is_some_and(sees),
            "user" | "org" => state.organizations.contains(&term.value) || state.people.contains(&term.value),
            _ => true,
        };
        if !is_known {
            let message = "The listed users and repositories cannot be searched either because the resources do not exist or you do not have permission to view them.";
            return Err(Problem::custom("Search", message));
        }
    }
    Ok(())
}

fn matches(terms: &[Term], place: &Repository, item: &Item) -> bool {
    // Places are alternatives; everything else must hold together.
    let is_place = |term: &&Term| matches!(term.key.as_str(), "repo" | "user" | "org") && !term.is_excluded;
    let mut places = terms.iter().filter(is_place).peekable();
    let here = places.peek().is_none() || places.any(|term| holds(term, place, item));
    here && terms
        .iter()
        .filter(|term| !is_place(term))
        .all(|term| holds(term, place, item) != term.is_excluded)
}

/// Says whether somebody opened an item, has it assigned, commented on it, or is mentioned there.
fn involves(item: &Item, login: &str) -> bool {
    let sign = format!("@{login}");
    let texts = item.comments.iter().map(|comment| comment.body.as_str());
    let mut texts = texts.chain(item.text.as_deref());
    item.author == login
        || item.assignees.iter().any(|assignee| assignee == login)
        || item.comments.iter().any(|comment| comment.author == login)
        || texts.any(|text| text.contains(&sign))
}

fn holds(term: &Term, place: &Repository, item: &Item) -> bool {
    let value = term.value.as_str();
    match term.key.as_str() {
        "repo" => place.is_named(value),
        "user" | "org" => place.owner.eq_ignore_ascii_case(value),
        // Several labels with commas are alternatives.
        "label" => value.split(',').any(|label| item.has_label(label)),
        "author" => item.author == value,
        "involves" => involves(item, value),
        "updated" => {
            let since = value.strip_prefix(">=").and_then(|time| time.parse::<Time>().ok());
            since.is_some_and(|since| item.updated >= since)
        }
        "assignee" => item.assignees.iter().any(|login| login == value),
        "archived" => place.is_archived == (value == "true"),
        "is" | "state" | "type" => match value {
            "open" => item.is_open,
            "closed" => !item.is_open,
            "issue" => item.pull.is_none(),
            "pr" | "pull-request" => item.pull.is_some(),
            "private" => place.is_private,
            "public" => !place.is_private,
            "locked" => item.is_locked,
            "draft" => item.pull.as_ref().is_some_and(|pull| pull.is_draft),
            "merged" => item.pull.as_ref().is_some_and(|pull| pull.merged.is_some()),
            _ => false,
        },
        "no" => match value {
            "label" => item.labels.is_empty(),
            "assignee" => item.assignees.is_empty(),
            _ => true,
        },
        "" => {
            let text = format!("{} {}", item.title, item.text.as_deref().unwrap_or_default());
            text.to_lowercase().contains(&value.to_lowercase())
        }
        // Orders and the like do not choose.
        _ => true,
    }
}
