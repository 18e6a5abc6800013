//! An issue or a merge request of the fake GitLab, as a test or a person sees and changes it.
//!
//! What changes it returns it again, so that `open_issue("...").label("...")` reads as one
//! sentence.

use std::sync::Arc;

use crate::fake::forge::Forge;
use crate::fake::gitlab::HUMAN;
use crate::fake::gitlab::Note;
use crate::fake::gitlab::Remark;
use crate::fake::gitlab::state;
use crate::fake::gitlab::state::Kind;
use crate::fake::gitlab::state::Place;
use crate::fake::gitlab::state::State;
use crate::fake::gitlab::state::What;
use crate::fake::gitlab::story;

/// An issue or a merge request: they differ less than their names.
#[derive(Clone)]
pub struct Item {
    forge: Arc<Forge<State>>,
    place: Place,
}

impl Item {
    pub(super) fn at(forge: &Arc<Forge<State>>, place: Place) -> Self {
        Self {
            forge: forge.clone(),
            place,
        }
    }

    /// The number within its project, as in `#12` or `!12`.
    pub fn iid(&self) -> u64 {
        self.place.iid
    }

    /// The full path of the project.
    pub fn project(&self) -> &str {
        &self.place.project
    }

    pub fn title(&self) -> String {
        self.with(|item| item.title.clone())
    }

    pub fn text(&self) -> String {
        self.with(|item| item.description.clone().unwrap_or_default())
    }

    pub fn is_open(&self) -> bool {
        self.with(|item| item.is_open)
    }

    pub fn is_merge_request(&self) -> bool {
        self.with(|item| item.merge.is_some())
    }

    pub fn labels(&self) -> Vec<String> {
        self.with(|item| item.labels.clone())
    }

    pub fn assignees(&self) -> Vec<String> {
        self.with(|item| item.assignees.clone())
    }

    /// Returns all notes in order, GitLab's own among them.
    pub fn notes(&self) -> Vec<Note> {
        self.with(|item| item.notes.clone())
    }

    /// Returns what people and bots wrote, in order, each with what it said before it was edited.
    pub fn comments(&self) -> Vec<Note> {
        self.notes().into_iter().filter(|note| !note.is_system).collect()
    }

    /// Returns the texts of the comments of one author.
    pub fn comments_of(&self, author: &str) -> Vec<String> {
        let comments = self.comments().into_iter().filter(|comment| comment.author == author);
        comments.map(|comment| comment.body).collect()
    }

    /// Returns what happened, in order, for people.
    pub fn timeline(&self) -> String {
        self.forge.read(|state| story::of_item(state, &self.place))
    }

    /// Says whether the text of this item leads to another one.
    pub fn mentions(&self, other: &Self) -> bool {
        let mention = What::Mentioned {
            project: self.place.project.clone(),
            iid: self.place.iid,
        };
        other.with(|item| item.history.iter().any(|happening| happening.what == mention))
    }

    /// Waits until something is so.
    pub async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        self.forge
            .until_some(|| self.timeline(), || is_so(self).then_some(()))
            .await;
    }

    /// Sets the text without a trace, as if it had been opened so.
    pub fn body(&self, text: &str) -> Self {
        self.alter(|item| item.description = Some(text.to_owned()))
    }

    /// Sets the author without a trace.
    pub fn by(&self, author: &str) -> Self {
        self.forge.change(|state| state.people.insert(author.to_owned()));
        self.alter(|item| {
            author.clone_into(&mut item.author);
            item.history
                .iter_mut()
                .take(1)
                .for_each(|opened| author.clone_into(&mut opened.actor));
        })
    }

    pub fn label(&self, name: &str) -> Self {
        self.act(|state| state.add_label(&self.place, name, HUMAN))
    }

    pub fn label_by(&self, username: &str, name: &str) -> Self {
        self.act(|state| state.add_label(&self.place, name, username))
    }

    pub fn unlabel(&self, name: &str) -> Self {
        self.act(|state| state.remove_label(&self.place, name, HUMAN))
    }

    pub fn comment(&self, author: &str, text: &str) -> Self {
        self.act(|state| _ = state.note(&self.place, author, text, None))
    }

    /// Returns the newest comment, to be edited, deleted or looked at.
    pub fn last_comment(&self) -> Remark {
        let newest = self.comments().into_iter().last().expect("a comment was written");
        Remark::at(self, newest.id)
    }

    /// Waits until the notes are asked for once more, from now on.
    pub async fn until_comments_are_read(&self) {
        let arrived = self.forge.traffic.arrived();
        let kind = match self.place.kind {
            Kind::Issue => "issues",
            Kind::MergeRequest => "merge_requests",
        };
        let project = self.place.project.replace('/', "%2F");
        let route = format!("GET /projects/{project}/{kind}/{}/notes", self.place.iid);
        self.until(|item| {
            let requests = item.forge.traffic.requests();
            requests.iter().any(|request| request.was_answered(&route, arrived))
        })
        .await;
    }

    /// Lets everything that happened here have happened an hour earlier.
    pub fn an_hour_passes(&self) -> Self {
        let hour = chrono::Duration::hours(1);
        self.alter(|item| {
            item.created -= hour;
            item.history.iter_mut().for_each(|happening| happening.when -= hour);
            for note in &mut item.notes {
                note.created -= hour;
                note.updated -= hour;
            }
            if let Some((at, _)) = &mut item.edited {
                *at -= hour;
            }
        })
    }

    pub fn rename(&self, title: &str) -> Self {
        self.rename_by(HUMAN, title)
    }

    pub fn rename_by(&self, username: &str, title: &str) -> Self {
        self.act(|state| state.rename(&self.place, username, title))
    }

    /// Lets nobody see it but its author, whoever it is assigned to, and the team.
    pub fn confidential(&self) -> Self {
        self.alter(|item| item.is_confidential = true)
    }

    /// Writes a comment that only the team sees.
    pub fn internal_note(&self, author: &str, text: &str) -> Self {
        self.act(|state| {
            let id = state.note(&self.place, author, text, None);
            let note = state.item_mut(&self.place).and_then(|item| item.note_mut(id));
            note.expect("the note was just written").is_internal = true;
        })
    }

    /// Changes the text, and leaves a trace.
    pub fn rewrite(&self, text: &str) -> Self {
        self.rewrite_by(HUMAN, text)
    }

    pub fn rewrite_by(&self, username: &str, text: &str) -> Self {
        self.act(|state| state.describe(&self.place, username, text))
    }

    pub fn assign(&self, usernames: &[&str]) -> Self {
        let usernames: Vec<_> = usernames.iter().map(|&username| username.to_owned()).collect();
        self.act(|state| state.assign(&self.place, HUMAN, &usernames))
    }

    pub fn assign_by(&self, actor: &str, username: &str) -> Self {
        let usernames = [self.assignees(), vec![username.to_owned()]].concat();
        self.act(|state| state.assign(&self.place, actor, &usernames))
    }

    /// Assigns it an hour ago without a note about who did, as an import does.
    pub fn assigned_without_a_word(&self, username: &str) -> Self {
        self.alter(|item| {
            item.assignees.push(username.to_owned());
            item.updated -= chrono::Duration::hours(1);
        })
    }

    pub fn unassign(&self, username: &str) -> Self {
        let others: Vec<_> = self.assignees().into_iter().filter(|other| other != username).collect();
        self.act(|state| state.assign(&self.place, HUMAN, &others))
    }

    pub fn close(&self) -> Self {
        self.act(|state| state.close(&self.place, HUMAN))
    }

    pub fn reopen(&self) -> Self {
        self.act(|state| state.reopen(&self.place, HUMAN))
    }

    /// Lets nobody comment but those who may write.
    pub fn lock(&self) -> Self {
        self.alter(|item| item.is_locked = true);
        self.act(|state| state.happened(&self.place, HUMAN, What::Locked))
    }

    /// Deletes the item: the API says 404 from now on.
    pub fn delete(&self) -> Self {
        self.alter(|item| item.is_deleted = true);
        self.act(|state| state.happened(&self.place, HUMAN, What::Deleted))
    }

    pub(super) fn with<R>(&self, look: impl FnOnce(&state::Item) -> R) -> R {
        self.forge
            .read(|state| look(state.item(&self.place).expect("an item is never forgotten")))
    }

    pub(super) fn alter(&self, alter: impl FnOnce(&mut state::Item)) -> Self {
        self.act(|state| {
            alter(state.item_mut(&self.place).expect("an item is never forgotten"));
        })
    }

    pub(super) fn act(&self, act: impl FnOnce(&mut State)) -> Self {
        self.forge.change(act);
        self.clone()
    }

    pub(super) fn look<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        self.forge.read(look)
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }
}
