//! Something that was written on the fake GitHub, as a test or a person sees and changes it: a
//! comment, a remark on a line, or the text of a review.

use crate::fake::github::Item;
use crate::fake::github::state::Comment;
use crate::fake::github::story;

/// A text of one author.
#[derive(Clone)]
pub struct Remark {
    item: Item,
    id: u64,
}

impl Remark {
    pub(super) fn at(item: &Item, id: u64) -> Self {
        Self { item: item.clone(), id }
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn author(&self) -> String {
        self.item.with(|item| item.author_of(self.id).to_owned())
    }

    /// Changes the text, as its author does.
    pub fn edit(&self, text: &str) -> Self {
        self.edit_as(&self.author(), text)
    }

    /// Changes the text, as anybody with the right does: the author stays.
    pub fn edit_as(&self, actor: &str, text: &str) -> Self {
        let (repository, number) = (self.item.repository(), self.item.number());
        self.item
            .act(|state| state.edit_comment(repository, number, self.id, actor, text));
        self.clone()
    }

    /// Takes it away, as its author does.
    pub fn delete(&self) {
        let (repository, number) = (self.item.repository(), self.item.number());
        let author = self.author();
        self.item
            .act(|state| state.delete_comment(repository, number, self.id, &author));
    }

    /// Returns the reactions of one account, in order, such as `eyes` and `+1`.
    pub fn reactions_of(&self, login: &str) -> Vec<String> {
        let told = |comment: &Comment| story::reactions_of(comment, login);
        self.item
            .with(|item| item.comment(self.id).map(told).unwrap_or_default())
    }

    /// Waits until an account has reacted.
    pub async fn until_reaction(&self, login: &str, content: &str) {
        let is_there = |remark: &Self| remark.reactions_of(login).iter().any(|given| given == content);
        self.item.until(|_| is_there(self)).await;
    }
}
