//! Who did or said something on a forge, by login and by id.

use super::{Comment, Deed, Item};

/// Somebody with an account on a forge. A login can be given up and taken by somebody else; an id
/// stays with its account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Who<'a> {
    /// Empty where the account was deleted.
    pub login: &'a str,
    /// `None` where the forge did not tell it.
    pub id: Option<u64>,
}

impl Who<'_> {
    /// Tells whether the account that the forge found under this login is another one than the one
    /// that is meant.
    pub(super) fn is_another(self, found: Option<u64>) -> bool {
        matches!((self.id, found), (Some(meant), Some(found)) if meant != found)
    }
}

impl Item {
    pub fn who(&self) -> Who<'_> {
        Who {
            login: &self.author,
            id: self.author_id,
        }
    }
}

impl Comment {
    pub fn who(&self) -> Who<'_> {
        Who {
            login: &self.author,
            id: self.author_id,
        }
    }
}

impl Deed {
    pub fn who(&self) -> Who<'_> {
        Who {
            login: &self.by,
            id: self.by_id,
        }
    }
}
