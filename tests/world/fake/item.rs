//! An issue or a change request of a fake forge, as a test or a person sees and changes it. Parts
//! with another name on one forge, or that only one forge has, are in a file of that forge.
//!
//! A method that changes the item returns it again, so that `open_issue("...").label("...")` reads
//! as one sentence.

use std::sync::Arc;

use crate::fake::bare::Bare;
use crate::fake::bare::Commit;
use crate::fake::board::Board;
use crate::fake::board::HUMAN;
use crate::fake::forge::Forge;
use crate::fake::history::What;
use crate::fake::remark::Remark;

/// An issue or a change request of the forge whose state `S` is.
pub struct Item<S: Board> {
    forge: Arc<Forge<S>>,
    place: S::Place,
}

impl<S: Board> Clone for Item<S> {
    fn clone(&self) -> Self {
        Self::at(&self.forge, self.place.clone())
    }
}

impl<S: Board> Item<S> {
    pub fn at(forge: &Arc<Forge<S>>, place: S::Place) -> Self {
        Self {
            forge: forge.clone(),
            place,
        }
    }

    pub fn place(&self) -> &S::Place {
        &self.place
    }

    pub fn title(&self) -> String {
        self.with(|item| item.title.clone())
    }

    pub fn text(&self) -> String {
        self.with(|item| item.text.clone().unwrap_or_default())
    }

    pub fn is_open(&self) -> bool {
        self.with(|item| item.is_open)
    }

    pub fn labels(&self) -> Vec<String> {
        self.with(|item| item.labels.clone())
    }

    pub fn assignees(&self) -> Vec<String> {
        self.with(|item| item.assignees.clone())
    }

    /// Returns what happened, in order, for people.
    pub fn timeline(&self) -> String {
        self.forge.read(|state| state.story(&self.place))
    }

    /// Says whether the text of this item leads to another one.
    pub fn mentions(&self, other: &Self) -> bool {
        let mention = What::Mentioned(self.place.clone());
        other.with(|item| item.history.iter().any(|happening| happening.what == mention))
    }

    /// Waits until the item satisfies the condition.
    pub async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        self.forge
            .until_some(|| self.timeline(), || is_so(self).then_some(()))
            .await;
    }

    /// Waits until all kinds of comments are asked for once more, from now on.
    pub async fn until_comments_are_read(&self) {
        let arrived = self.forge.traffic.arrived();
        let routes = self.forge.read(|state| state.comment_routes(&self.place));
        self.until(|item| {
            let requests = item.forge.traffic.requests();
            let is_read = |route: &String| requests.iter().any(|request| request.was_answered(route, arrived));
            routes.iter().all(is_read)
        })
        .await;
    }

    /// Sets the text without a trace, as if it had been opened so.
    pub fn body(&self, text: &str) -> Self {
        self.alter(|item| item.text = Some(text.to_owned()))
    }

    /// Sets the author without a trace.
    pub fn by(&self, author: &str) -> Self {
        self.forge.change(|state| state.meets(author));
        self.alter(|item| {
            author.clone_into(&mut item.author);
            let opened = item.history.iter_mut().take(1);
            opened.for_each(|opened| author.clone_into(&mut opened.actor));
        })
    }

    pub fn label(&self, name: &str) -> Self {
        self.label_by(HUMAN, name)
    }

    pub fn label_by(&self, person: &str, name: &str) -> Self {
        self.act(|state| state.add_label(&self.place, name, person))
    }

    pub fn unlabel(&self, name: &str) -> Self {
        self.act(|state| _ = state.remove_label(&self.place, name, HUMAN))
    }

    /// Has so many answers about the history not show its newest event yet.
    pub fn history_comes_late(&self, answers: u32) -> Self {
        self.alter(|item| item.late = answers)
    }

    pub fn comment(&self, author: &str, text: &str) -> Self {
        self.act(|state| _ = state.comment(&self.place, author, text))
    }

    /// Returns the newest comment, to be edited, deleted or looked at.
    pub fn last_comment(&self) -> Remark<S> {
        let newest = self.with(S::newest_comment);
        Remark::at(self, newest.expect("a comment was written"))
    }

    /// Lets everything that happened here have happened an hour earlier.
    pub fn an_hour_passes(&self) -> Self {
        let hour = chrono::Duration::hours(1);
        self.alter(|item| {
            item.created -= hour;
            item.history.iter_mut().for_each(|happening| happening.when -= hour);
            S::age_comments(item, hour);
        })
    }

    pub fn rename(&self, title: &str) -> Self {
        self.rename_by(HUMAN, title)
    }

    pub fn rename_by(&self, person: &str, title: &str) -> Self {
        self.act(|state| state.rename(&self.place, person, title))
    }

    /// Changes the text, and leaves a trace.
    pub fn rewrite(&self, text: &str) -> Self {
        self.rewrite_by(HUMAN, text)
    }

    pub fn rewrite_by(&self, person: &str, text: &str) -> Self {
        self.act(|state| state.rewrite(&self.place, person, Some(text)))
    }

    pub fn assign(&self, people: &[&str]) -> Self {
        let people: Vec<_> = people.iter().map(|&person| person.to_owned()).collect();
        self.act(|state| state.assign(&self.place, HUMAN, &people))
    }

    pub fn assign_by(&self, actor: &str, person: &str) -> Self {
        let people = [self.assignees(), vec![person.to_owned()]].concat();
        self.act(|state| state.assign(&self.place, actor, &people))
    }

    pub fn unassign(&self, person: &str) -> Self {
        let others: Vec<_> = self.assignees().into_iter().filter(|other| other != person).collect();
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

    /// Deletes the item: the API does not show it from now on.
    pub fn delete(&self) -> Self {
        self.alter(|item| item.is_deleted = true);
        self.act(|state| state.happened(&self.place, HUMAN, What::Deleted))
    }

    /// Returns the text of a file as the change request would have it.
    pub fn file(&self, path: &str) -> Option<String> {
        self.git(|git, _, head| git.file(head, path))
    }

    /// Returns every path that the change request would leave.
    pub fn files(&self) -> Vec<String> {
        self.git(|git, _, head| git.files(head))
    }

    pub fn diff(&self) -> String {
        self.git(Bare::diff)
    }

    /// Returns the commits that it would add, oldest first.
    pub fn commits(&self) -> Vec<Commit> {
        self.git(Bare::commits)
    }

    fn git<R>(&self, look: impl FnOnce(&Bare, &str, &str) -> R) -> R {
        let ends = self.look(|state| state.ends(&self.place));
        let (git, base, head) = ends.expect("a change request");
        look(&git, &base, &head)
    }

    pub fn with<R>(&self, look: impl FnOnce(&S::Item) -> R) -> R {
        self.look(|state| look(state.item(&self.place).expect("an item is never forgotten")))
    }

    pub fn alter(&self, alter: impl FnOnce(&mut S::Item)) -> Self {
        self.act(|state| alter(state.item_mut(&self.place).expect("an item is never forgotten")))
    }

    pub fn act(&self, act: impl FnOnce(&mut S)) -> Self {
        self.forge.change(act);
        self.clone()
    }

    pub fn look<R>(&self, look: impl FnOnce(&S) -> R) -> R {
        self.forge.read(look)
    }
}
