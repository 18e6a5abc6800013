//! An issue or a pull request of the fake GitHub, as a test or a person sees and changes it.
//!
//! What changes it returns it again, so that `open_issue("...").label("...")` reads as one
//! sentence.

use std::sync::Arc;

use crate::fake::forge::Forge;
use crate::fake::github::Comment;
use crate::fake::github::HUMAN;
use crate::fake::github::Remark;
use crate::fake::github::state;
use crate::fake::github::state::State;
use crate::fake::github::state::What;
use crate::fake::github::story;

/// An issue or a pull request. On GitHub every pull request is an issue, too.
#[derive(Clone)]
pub struct Item {
    forge: Arc<Forge<State>>,
    repository: String,
    number: u64,
}

impl Item {
    pub(super) fn at(forge: &Arc<Forge<State>>, repository: &str, number: u64) -> Self {
        Self {
            forge: forge.clone(),
            repository: repository.to_owned(),
            number,
        }
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    /// The full name of the repository.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    pub fn title(&self) -> String {
        self.with(|item| item.title.clone())
    }

    pub fn text(&self) -> String {
        self.with(|item| item.body.clone().unwrap_or_default())
    }

    pub fn is_open(&self) -> bool {
        self.with(|item| item.is_open)
    }

    pub fn is_pull(&self) -> bool {
        self.with(|item| item.pull.is_some())
    }

    pub fn labels(&self) -> Vec<String> {
        self.with(|item| item.labels.clone())
    }

    pub fn assignees(&self) -> Vec<String> {
        self.with(|item| item.assignees.clone())
    }

    /// Returns all comments in order, each with what it said before it was edited.
    pub fn comments(&self) -> Vec<Comment> {
        self.with(|item| item.comments.clone())
    }

    /// Returns the texts of the comments of one author.
    pub fn comments_of(&self, author: &str) -> Vec<String> {
        let comments = self.comments().into_iter().filter(|comment| comment.author == author);
        comments.map(|comment| comment.body).collect()
    }

    /// Returns what happened, in order, for people.
    pub fn timeline(&self) -> String {
        self.forge
            .read(|state| story::of_item(state, &self.repository, self.number))
    }

    /// Says whether the text of this item leads to another one.
    pub fn mentions(&self, other: &Self) -> bool {
        let mention = What::Mentioned {
            repository: self.repository.clone(),
            number: self.number,
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
        self.alter(|item| item.body = Some(text.to_owned()))
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
        self.act(|state| state.add_label(&self.repository, self.number, name, HUMAN))
    }

    pub fn label_by(&self, login: &str, name: &str) -> Self {
        self.act(|state| state.add_label(&self.repository, self.number, name, login))
    }

    pub fn unlabel(&self, name: &str) -> Self {
        self.act(|state| _ = state.remove_label(&self.repository, self.number, name, HUMAN))
    }

    pub fn comment(&self, author: &str, text: &str) -> Self {
        self.act(|state| _ = state.comment(&self.repository, self.number, author, text))
    }

    /// Returns the newest comment, to be edited, deleted or looked at.
    pub fn last_comment(&self) -> Remark {
        let id = self.with(|item| item.comments.last().map(|comment| comment.id));
        Remark::at(self, id.expect("a comment was written"))
    }

    /// Waits until all kinds of comments are asked for once more, from now on.
    pub async fn until_comments_are_read(&self) {
        let arrived = self.forge.traffic.arrived();
        let (place, number) = (&self.repository, self.number);
        let mut routes = vec![format!("GET /repos/{place}/issues/{number}/comments")];
        if self.is_pull() {
            let parts = ["comments", "reviews"];
            routes.extend(parts.map(|part| format!("GET /repos/{place}/pulls/{number}/{part}")));
        }
        self.until(|item| {
            let requests = item.forge.traffic.requests();
            let is_read = |route: &String| requests.iter().any(|request| request.was_answered(route, arrived));
            routes.iter().all(is_read)
        })
        .await;
    }

    /// Lets everything that happened here have happened an hour earlier.
    pub fn an_hour_passes(&self) -> Self {
        let hour = chrono::Duration::hours(1);
        self.alter(|item| {
            item.created -= hour;
            item.history.iter_mut().for_each(|happening| happening.when -= hour);
            for comment in &mut item.comments {
                comment.created -= hour;
                comment.updated -= hour;
            }
        })
    }

    pub fn rename(&self, title: &str) -> Self {
        self.rename_by(HUMAN, title)
    }

    pub fn rename_by(&self, login: &str, title: &str) -> Self {
        self.act(|state| state.rename(&self.repository, self.number, login, title))
    }

    /// Changes the text, and leaves a trace.
    pub fn rewrite(&self, text: &str) -> Self {
        self.rewrite_by(HUMAN, text)
    }

    pub fn rewrite_by(&self, login: &str, text: &str) -> Self {
        self.act(|state| state.rewrite(&self.repository, self.number, login, Some(text)))
    }

    pub fn assign(&self, logins: &[&str]) -> Self {
        let logins: Vec<_> = logins.iter().map(|&login| login.to_owned()).collect();
        self.act(|state| state.assign(&self.repository, self.number, HUMAN, &logins))
    }

    pub fn assign_by(&self, actor: &str, login: &str) -> Self {
        let logins = [self.assignees(), vec![login.to_owned()]].concat();
        self.act(|state| state.assign(&self.repository, self.number, actor, &logins))
    }

    pub fn unassign(&self, login: &str) -> Self {
        let others: Vec<_> = self.assignees().into_iter().filter(|other| other != login).collect();
        self.act(|state| state.assign(&self.repository, self.number, HUMAN, &others))
    }

    pub fn close(&self) -> Self {
        self.act(|state| state.close(&self.repository, self.number, HUMAN, "completed"))
    }

    pub fn reopen(&self) -> Self {
        self.act(|state| state.reopen(&self.repository, self.number, HUMAN))
    }

    /// Lets nobody comment but those who may write.
    pub fn lock(&self) -> Self {
        self.alter(|item| item.is_locked = true);
        self.act(|state| state.happened(&self.repository, self.number, HUMAN, What::Locked))
    }

    /// Deletes the item: the API says 410 from now on.
    pub fn delete(&self) -> Self {
        self.alter(|item| item.is_deleted = true);
        self.act(|state| state.happened(&self.repository, self.number, HUMAN, What::Deleted))
    }

    pub(super) fn with<R>(&self, look: impl FnOnce(&state::Item) -> R) -> R {
        self.forge.read(|state| {
            look(
                state
                    .item(&self.repository, self.number)
                    .expect("an item is never forgotten"),
            )
        })
    }

    pub(super) fn alter(&self, alter: impl FnOnce(&mut state::Item)) -> Self {
        self.act(|state| {
            alter(
                state
                    .item_mut(&self.repository, self.number)
                    .expect("an item is never forgotten"),
            );
        })
    }

    pub(super) fn act(&self, act: impl FnOnce(&mut State)) -> Self {
        self.forge.change(act);
        self.clone()
    }

    pub(super) fn look<R>(&self, look: impl FnOnce(&State) -> R) -> R {
        self.forge.read(look)
    }
}
