//! Something that was written on the fake GitLab, as a test or a person sees and changes it: a note
//! on an item or on a line of its changes.

use crate::fake::gitlab::Item;

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
        let mut notes = self.item.notes().into_iter();
        notes
            .find(|note| note.id == self.id)
            .map(|note| note.author)
            .unwrap_or_default()
    }

    /// Changes the text, as its author does.
    pub fn edit(&self, text: &str) -> Self {
        self.edit_as(&self.author(), text)
    }

    /// Changes the text, as a maintainer may: the author stays.
    pub fn edit_as(&self, actor: &str, text: &str) -> Self {
        self.item
            .act(|state| state.edit_note(self.item.place(), self.id, actor, text));
        self.clone()
    }

    /// Takes it away, as its author does.
    pub fn delete(&self) {
        let author = self.author();
        self.item
            .act(|state| state.delete_note(self.item.place(), self.id, &author));
    }

    /// Returns the emojis that one account gave, in order, such as `eyes` and `thumbsup`.
    pub fn reactions_of(&self, username: &str) -> Vec<String> {
        let notes = self.item.notes().into_iter().filter(|note| note.id == self.id);
        let awards = notes.flat_map(|note| note.awards);
        let given = awards.filter(|award| award.author == username);
        given.map(|award| award.name).collect()
    }

    /// Waits until an account has given an emoji.
    pub async fn until_reaction(&self, username: &str, name: &str) {
        let is_there = |remark: &Self| remark.reactions_of(username).iter().any(|given| given == name);
        self.item.until(|_| is_there(self)).await;
    }
}
