//! The address of an item on its forge.

use std::fmt;

use crate::task::id::{ItemId, ItemKind};

/// An item on the forge that is being asked.
#[derive(Debug, Clone, Copy)]
pub struct ItemAddress<'a> {
    pub(crate) repository: &'a str,
    pub(crate) kind: ItemKind,
    pub(crate) number: u64,
}

impl<'a> From<&'a ItemId> for ItemAddress<'a> {
    fn from(item: &'a ItemId) -> Self {
        Self {
            repository: &item.repository,
            kind: item.kind,
            number: item.number,
        }
    }
}

impl fmt::Display for ItemAddress<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}{}", self.repository, self.kind.character(), self.number)
    }
}
