//! People whom the configuration lets have the program work, whatever the forge says of their
//! rights.

use crate::finding::Verdict;
use crate::forge::item::account::Account;

/// Prefix of an entry that names an account by its id.
const ID: &str = "id:";

/// A list of accounts: by id, and by login, compared without regard to case as both forges do.
#[derive(Debug, Default)]
pub struct AllowedUsers {
    entries: Vec<Entry>,
}

/// An account, as the configuration names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// Login in lower case.
    Login(String),
    Id(u64),
}

impl Entry {
    /// Reads an entry such as `carol`, `@carol` or `id:12345`; `None` where it names nobody.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some(id) = text.strip_prefix(ID) {
            return id.trim().parse().ok().map(Self::Id);
        }
        let login = text.trim_start_matches('@').to_lowercase();
        (!login.is_empty()).then_some(Self::Login(login))
    }

    /// Returns the verdict of `doctor` on the entry; `found` is the login and id of its account, if
    /// the forge knows it.
    pub(crate) fn told(&self, section: &str, found: Option<(&str, u64)>) -> Verdict {
        match (self, found) {
            (Self::Id(id), Some((login, _))) => Verdict::Good {
                detail: format!("{ID}{id} is {login} now"),
            },
            (Self::Login(login), Some((_, id))) => Verdict::Doubtful {
                detail: format!("{login} is {ID}{id}; a login that is given up can be taken by anybody"),
                remedy: format!("write \"{ID}{id}\" instead of {login} in {section}.allowed_users"),
            },
            (Self::Id(id), None) => Verdict::Doubtful {
                detail: format!("there is no account {ID}{id}"),
                remedy: format!("take it out of {section}.allowed_users"),
            },
            (Self::Login(login), None) => Verdict::Doubtful {
                detail: format!("nobody is called {login}"),
                remedy: format!("take it out of {section}.allowed_users: whoever takes that name is obeyed"),
            },
        }
    }
}

impl AllowedUsers {
    /// Parses the entries of the configuration.
    pub(crate) fn new(entries: &[String]) -> Self {
        Self {
            entries: entries.iter().filter_map(|entry| Entry::parse(entry)).collect(),
        }
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Tells whether the list contains the account.
    pub(crate) fn name(&self, who: Account<'_>) -> bool {
        let login = who.login.to_lowercase();
        self.entries.iter().any(|entry| match entry {
            Entry::Login(name) => *name == login,
            Entry::Id(id) => who.id == Some(*id),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(allowed: &AllowedUsers, people: &[(&'static str, Option<u64>)]) -> Vec<&'static str> {
        let named = people
            .iter()
            .filter(|(login, id)| allowed.name(Account { login, id: *id }));
        named.map(|(login, _)| *login).collect()
    }

    #[test]
    fn names_are_compared_whole_and_without_regard_to_case() {
        let allowed = AllowedUsers::new(&["@Carol ".to_owned(), "dependabot[bot]".to_owned(), " @".to_owned()]);
        let people =
            ["carol", "CAROL", "car", "carol2", "dependabot[bot]", "dependabot", ""].map(|login| (login, None));
        assert_eq!(named(&allowed, &people), ["carol", "CAROL", "dependabot[bot]"]);
    }

    #[test]
    fn an_id_names_its_account_whatever_that_is_called_and_nobody_else() {
        let allowed = AllowedUsers::new(&["id:42".to_owned(), "id:x".to_owned()]);
        let people = [
            ("carol", Some(42)),
            ("renamed", Some(42)),
            ("id:42", Some(7)),
            ("42", None),
            ("", None),
        ];
        assert_eq!(named(&allowed, &people), ["carol", "renamed"]);
    }
}
