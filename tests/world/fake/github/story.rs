//! The history of an issue or pull request, told for people.

use crate::fake::board::Board as _;
use crate::fake::github::state::Comment;
use crate::fake::github::state::Item;
use crate::fake::github::state::LineComment;
use crate::fake::github::state::Place;
use crate::fake::github::state::Repository;
use crate::fake::github::state::State;
use crate::fake::github::state::Verdict;
use crate::fake::history;
use crate::fake::history::What;

/// Tells the history of everything that happened anywhere.
pub fn of_everything(state: &State) -> String {
    let items = state
        .repositories
        .iter()
        .flat_map(|place| place.items.values().map(move |item| (place, item)));
    let stories: Vec<_> = items.map(|(place, item)| told(state, place, item)).collect();
    stories.join("\n")
}

/// Tells the history of one item.
pub fn of_item(state: &State, place: &Place) -> String {
    let repository = state.repository(&place.repository);
    let repository = repository.expect("a repository is never taken away");
    told(
        state,
        repository,
        state.item(place).expect("an item is never forgotten"),
    )
}

fn told(state: &State, place: &Repository, item: &Item) -> String {
    let condition = match &item.pull {
        _ if item.is_deleted => "deleted",
        Some(pull) if pull.merged.is_some() => "merged",
        Some(pull) if item.is_open && pull.is_draft => "open draft",
        _ if item.is_open => "open",
        _ => "closed",
    };
    let heading = format!("{}#{} {} ({condition})", place.full_name(), item.number, item.title);
    let author_of = |id| item.author_of(id).to_owned();
    history::told(&heading, &item.history, author_of, |what| {
        deed(state, place, item, what)
    })
}

fn deed(state: &State, place: &Repository, item: &Item, what: &What<Place>) -> (String, String) {
    let plain = |deed: &str| (deed.to_owned(), String::new());
    match what {
        What::Opened => opened(place, item),
        What::Commented(id) => item.comment(*id).map_or_else(
            || plain("commented"),
            |comment| (format!("commented{}", edited(comment)), comment.body.clone()),
        ),
        What::LineCommented(id) => item.line_comment(*id).map_or_else(
            || plain("commented"),
            |LineComment {
                 comment, path, line, ..
             }| {
                (
                    format!("commented on {path}:{line}{}", edited(comment)),
                    comment.body.clone(),
                )
            },
        ),
        What::CommentEdited(id) => {
            let is_review = item.review(*id).is_some();
            let kind = if is_review { "review" } else { "comment" };
            plain(&format!("edited the {kind} of {}", item.author_of(*id)))
        }
        What::Mentioned(by) => {
            let source = state.item(by);
            let title = source.map(|source| source.title.as_str()).unwrap_or_default();
            let is_pull = source.is_some_and(|source| source.pull.is_some());
            let deed = if is_pull {
                "opened pull request"
            } else {
                "mentioned this in"
            };
            plain(&format!("{deed} {}#{} \"{title}\"", by.repository, by.number))
        }
        What::Reviewed(id) => {
            let review = item.review(*id).expect("a review is never taken away");
            let deed = match review.state {
                Verdict::Commented => "reviewed",
                Verdict::Approved => "approved this",
                Verdict::ChangesRequested => "requested changes",
            };
            (deed.to_owned(), review.body.clone())
        }
        _ => unreachable!("told in the same words for both forges"),
    }
}

fn edited(comment: &Comment) -> &'static str {
    if comment.earlier.is_empty() {
        ""
    } else {
        " (edited since)"
    }
}

fn opened(place: &Repository, item: &Item) -> (String, String) {
    let text = item.text.clone().unwrap_or_default();
    let Some(pull) = &item.pull else {
        return ("opened this issue".to_owned(), text);
    };
    let from = if pull.head_repository == place.full_name() {
        pull.head.clone()
    } else {
        format!("{}:{}", pull.head_repository, pull.head)
    };
    (format!("opened this pull request: {from} -> {}", pull.base), text)
}
