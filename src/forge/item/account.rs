//! An account on a forge, by login and by id.

/// Somebody with an account on a forge. A login can be given up and taken by somebody else; an id
/// stays with its account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Account<'a> {
    /// Empty where the account was deleted.
    pub login: &'a str,
    /// `None` where the forge did not tell it.
    pub id: Option<u64>,
}

impl Account<'_> {
    /// Tells whether the account that the forge found under this login is not the one that is
    /// meant.
    pub(crate) fn is_another(self, found: Option<u64>) -> bool {
        matches!((self.id, found), (Some(meant), Some(found)) if meant != found)
    }
}
