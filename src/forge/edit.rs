//! One change of an item, as the forge tells of it.

use super::Deed;

/// One change of an item after it was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub what: EditedPart,
    pub deed: Deed,
}

/// The part of an item that was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditedPart {
    /// Its title, its text, or the branch that it is to be merged into.
    Words,
    /// The commits of its head branch.
    Head,
}

impl Edit {
    pub(super) fn of_words(deed: Deed) -> Self {
        Self {
            what: EditedPart::Words,
            deed,
        }
    }

    pub(super) fn of_head(deed: Deed) -> Self {
        Self {
            what: EditedPart::Head,
            deed,
        }
    }
}
