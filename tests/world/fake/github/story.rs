//! The history of an issue or pull request, told for people.

use crate::fake::github::state::Comment;
use crate::fake::github::state::Item;
use crate::fake::github::state::Repository;
use crate::fake::github::state::State;
use crate::fake::github::state::Verdict;
use crate::fake::github::state::What;
use crate::fake::history;

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
pub fn of_item(state: &State, repository: &str, number: u64) -> String {
    let place = state.repository(repository).expect("a repository is never taken away");
    told(
        state,
        place,
        place.items.get(&number).expect("an item is never forgotten"),
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
    let is_edit = |what: &What| matches!(what, What::CommentEdited(_));
    history::told(&heading, &item.history, is_edit, |what| deed(state, place, item, what))
}

fn deed(state: &State, place: &Repository, item: &Item, what: &What) -> (String, String) {
    let comment = |id: &u64| item.comment(*id);
    let plain = |deed: &str| (deed.to_owned(), String::new());
    match what {
        What::Opened => opened(place, item),
        What::Labeled(label) => plain(&format!("added the label \"{label}\"")),
        What::Unlabeled(label) => plain(&format!("removed the label \"{label}\"")),
        What::Assigned(login) => plain(&format!("assigned {login}")),
        What::Unassigned(login) => plain(&format!("unassigned {login}")),
        What::Commented(id) => {
            let text = comment(id).map(|comment| comment.body.clone()).unwrap_or_default();
            let is_edited = comment(id).is_some_and(|comment| !comment.earlier.is_empty());
            (
                if is_edited {
                    "commented (edited since)"
                } else {
                    "commented"
                }
                .to_owned(),
                text,
            )
        }
        What::CommentEdited(id) => {
            let kind = if item.review(*id).is_some() {
                "review"
            } else {
                "comment"
            };
            plain(&format!("edited the {kind} of {}", item.author_of(*id)))
        }
        What::CommentDeleted => plain("deleted a comment"),
        What::Reacted { comment: id, content } => {
            let author = item.author_of(*id);
            plain(&format!("reacted with :{content}: to the comment of {author}"))
        }
        What::Renamed { from, .. } => plain(&format!("changed the title from \"{from}\"")),
        What::BodyEdited => plain("changed the description"),
        What::BaseChanged => plain("changed the base branch"),
        What::Closed => plain("closed this"),
        What::Reopened => plain("reopened this"),
        What::Locked => plain("locked the conversation"),
        What::Unlocked => plain("unlocked the conversation"),
        What::Deleted => plain("deleted this"),
        What::Merged => plain("merged this"),
        What::HeadDeleted => plain("deleted the branch"),
        What::Mentioned { repository, number } => {
            let source = state.item(repository, *number);
            let title = source.map(|source| source.title.as_str()).unwrap_or_default();
            let is_pull = source.is_some_and(|source| source.pull.is_some());
            let deed = if is_pull {
                "opened pull request"
            } else {
                "mentioned this in"
            };
            plain(&format!("{deed} {repository}#{number} \"{title}\""))
        }
        What::Pushed { subject, is_forced, .. } => plain(&format!(
            "{} \"{subject}\"",
            if *is_forced { "force-pushed" } else { "pushed" }
        )),
        What::Reviewed(id) => {
            let review = item.review(*id).expect("a review is never taken away");
            let deed = match review.state {
                Verdict::Commented => "reviewed",
                Verdict::Approved => "approved this",
                Verdict::ChangesRequested => "requested changes",
            };
            (deed.to_owned(), review.body.clone())
        }
        What::LineCommented(id) => {
            let written = item
                .pull
                .iter()
                .flat_map(|pull| &pull.line_comments)
                .find(|written| written.comment.id == *id);
            written.map_or_else(
                || plain("commented"),
                |written| {
                    let is_edited = !written.comment.earlier.is_empty();
                    let edited = if is_edited { " (edited since)" } else { "" };
                    (
                        format!("commented on {}:{}{edited}", written.path, written.line),
                        written.comment.body.clone(),
                    )
                },
            )
        }
    }
}

/// Returns what one account thinks of a comment, in the order it was given.
pub fn reactions_of(comment: &Comment, login: &str) -> Vec<String> {
    let given = comment.reactions.iter().filter(|reaction| reaction.author == login);
    given.map(|reaction| reaction.content.clone()).collect()
}

fn opened(place: &Repository, item: &Item) -> (String, String) {
    let text = item.body.clone().unwrap_or_default();
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
