//! Something that was written on a fake forge, as a test or a person sees and changes it: a comment
//! on an item or on a line of its changes, or the text of a review.

use crate::fake::board::Board;
use crate::fake::item::Item;

/// A text of one author.
pub struct Remark<S: Board> {
    item: Item<S>,
    id: u64,
}

impl<S: Board> Clone for Remark<S> {
    fn clone(&self) -> Self {
        Self::at(&self.item, self.id)
    }
}

impl<S: Board> Remark<S> {
    pub fn at(item: &Item<S>, id: u64) -> Self {
        Self { item: item.clone(), id }
    }

    pub fn id(&self) -> u64 {
        self.id
    }

    pub fn author(&self) -> String {
        self.item.with(|item| S::author_of(item, self.id))
    }

    /// Changes the text, as its author does.
    pub fn edit(&self, text: &str) -> Self {
        self.edit_as(&self.author(), text)
    }

    /// Changes the text, as anybody with the right does: the author stays.
    pub fn edit_as(&self, actor: &str, text: &str) -> Self {
        self.item
            .act(|state| state.edit_comment(self.item.place(), self.id, actor, text));
        self.clone()
    }

    /// Takes it away, as its author does.
    pub fn delete(&self) {
        let author = self.author();
        self.item
            .act(|state| state.delete_comment(self.item.place(), self.id, &author));
    }

    /// Returns the reactions of one account, in order, such as `eyes` and `+1`.
    pub fn reactions_of(&self, person: &str) -> Vec<String> {
        self.item.with(|item| S::reactions_of(item, self.id, person))
    }

    /// Waits until an account has reacted.
    pub async fn until_reaction(&self, person: &str, content: &str) {
        let is_there = |remark: &Self| remark.reactions_of(person).iter().any(|given| given == content);
        self.item.until(|_| is_there(self)).await;
    }
}
