//! The history of an issue or merge request, told for people.

use crate::fake::gitlab::state::Item;
use crate::fake::gitlab::state::Kind;
use crate::fake::gitlab::state::Place;
use crate::fake::gitlab::state::State;
use crate::fake::gitlab::state::What;
use crate::fake::history;

/// Returns where everything is that was not deleted.
pub fn places(state: &State) -> Vec<Place> {
    let all = state.projects.iter().flat_map(|project| {
        let kinds = [Kind::Issue, Kind::MergeRequest].into_iter();
        kinds.flat_map(move |kind| {
            let items = project.items(kind).values().filter(|item| !item.is_deleted);
            items.map(move |item| Place {
                project: project.path.clone(),
                kind,
                iid: item.iid,
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
    let is_edit = |what: &What| matches!(what, What::NoteEdited(_));
    history::told(&heading, &item.history, is_edit, |what| deed(state, place, item, what))
}

fn deed(state: &State, place: &Place, item: &Item, what: &What) -> (String, String) {
    let note = |id: &u64| item.notes.iter().find(|note| note.id == *id);
    let author = |id: &u64| note(id).map(|note| note.author.as_str()).unwrap_or_default();
    let plain = |deed: &str| (deed.to_owned(), String::new());
    match what {
        What::Opened => opened(place, item),
        What::LabelAdded(label) => plain(&format!("added the label \"{label}\"")),
        What::LabelRemoved(label) => plain(&format!("removed the label \"{label}\"")),
        What::Assigned(name) => plain(&format!("assigned {name}")),
        What::Unassigned(name) => plain(&format!("unassigned {name}")),
        What::Commented(id) => note(id).map_or_else(
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
        What::NoteEdited(id) => plain(&format!("edited the comment of {}", author(id))),
        What::NoteDeleted => plain("deleted a comment"),
        What::Awarded { note, name } => plain(&format!("reacted with :{name}: to the comment of {}", author(note))),
        What::Renamed { from } => plain(&format!("changed the title from \"{from}\"")),
        What::DescriptionEdited => plain("changed the description"),
        What::Closed => plain("closed this"),
        What::Reopened => plain("reopened this"),
        What::Locked => plain("locked the conversation"),
        What::Deleted => plain("deleted this"),
        What::Mentioned { project, iid } => {
            let source = Place {
                project: project.clone(),
                kind: Kind::MergeRequest,
                iid: *iid,
            };
            let title = state
                .item(&source)
                .map(|source| source.title.as_str())
                .unwrap_or_default();
            plain(&format!("opened merge request {} \"{title}\"", source.name()))
        }
        What::Pushed { subject, is_forced } => plain(&format!(
            "{} \"{subject}\"",
            if *is_forced { "force-pushed" } else { "pushed" }
        )),
        What::BranchDeleted => plain("deleted the branch"),
    }
}

fn opened(place: &Place, item: &Item) -> (String, String) {
    let text = item.description.clone().unwrap_or_default();
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
