//! The history of an issue or merge request, told for people.

use crate::fake::board::Board as _;
use crate::fake::gitlab::state::Item;
use crate::fake::gitlab::state::Kind;
use crate::fake::gitlab::state::Place;
use crate::fake::gitlab::state::State;
use crate::fake::history;
use crate::fake::history::What;

/// Returns where everything is that was not deleted.
pub fn places(state: &State) -> Vec<Place> {
    let all = state.projects.iter().flat_map(|project| {
        let kinds = [Kind::Issue, Kind::MergeRequest].into_iter();
        kinds.flat_map(move |kind| {
            let items = project.items(kind).values().filter(|item| !item.is_deleted);
            items.map(move |item| Place {
                project: project.path.clone(),
                kind,
                iid: item.number,
            })
        })
    });
    all.collect()
}

/// Tells the history of everything that happened anywhere.
pub fn of_everything(state: &State) -> String {
    let stories: Vec<_> = places(state).iter().map(|place| of_item(state, place)).collect();
    stories.join("\n")
}

/// Tells the history of one item.
pub fn of_item(state: &State, place: &Place) -> String {
    let item = state.item(place).expect("an item is never forgotten");
    let condition = match &item.merge {
        _ if item.is_deleted => "deleted",
        Some(merge) if merge.merged.is_some() => "merged",
        _ if item.is_open => "open",
        _ => "closed",
    };
    let heading = format!("{} {} ({condition})", place.name(), item.title);
    let author_of = |id| State::author_of(item, id);
    history::told(&heading, &item.history, author_of, |what| {
        deed(state, place, item, what)
    })
}

fn deed(state: &State, place: &Place, item: &Item, what: &What<Place>) -> (String, String) {
    let plain = |deed: &str| (deed.to_owned(), String::new());
    match what {
        What::Opened => opened(place, item),
        What::Commented(id) => item.note(*id).map_or_else(
            || plain("commented"),
            |note| {
                let is_edited = if note.earlier.is_empty() { "" } else { " (edited since)" };
                let line = note.position.as_ref().map(|(path, line)| format!(" on {path}:{line}"));
                (
                    format!("commented{}{is_edited}", line.unwrap_or_default()),
                    note.body.clone(),
                )
            },
        ),
        What::CommentEdited(id) => plain(&format!("edited the comment of {}", State::author_of(item, *id))),
        What::Mentioned(by) => {
            let title = state.item(by).map(|source| source.title.as_str()).unwrap_or_default();
            plain(&format!("opened merge request {} \"{title}\"", by.name()))
        }
        _ => unreachable!("told in the same words for both forges"),
    }
}

fn opened(place: &Place, item: &Item) -> (String, String) {
    let text = item.text.clone().unwrap_or_default();
    let Some(merge) = &item.merge else {
        return ("opened this issue".to_owned(), text);
    };
    let is_own = merge.source_project == place.project;
    let from = if is_own {
        merge.source.clone()
    } else {
        format!("{}:{}", merge.source_project, merge.source)
    };
    (format!("opened this merge request: {from} -> {}", merge.target), text)
}
