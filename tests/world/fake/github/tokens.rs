//! The tokens of a fake GitHub, and the App that makes some of them.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering;

#[derive(Clone, Debug)]
pub struct Token {
    pub login: String,
    /// Only classic tokens tell them.
    pub scopes: Option<String>,
    /// A token of an App's installation reaches what the App may reach, and no `/user`.
    pub installation: Option<Narrow>,
}

/// The repositories and permissions that a token of an installation was made for.
#[derive(Clone, Debug)]
pub struct Narrow {
    /// Full names in lower case; all that the App is installed on where there are none.
    pub repositories: Option<BTreeSet<String>>,
    pub permissions: BTreeMap<String, String>,
    /// How many more requests to the API are answered as if nobody knew the token yet.
    pub unknown_for: u32,
    /// The same for git, whose servers are others.
    pub unknown_to_git: Arc<AtomicU32>,
}

impl Narrow {
    pub fn reaches(&self, full_name: &str) -> bool {
        let names = self.repositories.as_ref();
        names.is_none_or(|names| names.contains(&full_name.to_lowercase()))
    }

    /// Takes one off the refusals of git, if there are any left.
    pub fn is_unknown_to_git(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.unknown_to_git
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
            .is_ok()
    }

    /// Says whether one of some permissions was given, for writing or for reading.
    pub fn may(&self, names: &[&str], is_write: bool) -> bool {
        names.iter().any(|name| {
            let given = self.permissions.get(*name).map(String::as_str);
            given == Some("write") || (!is_write && given == Some("read"))
        })
    }
}

/// A GitHub App, installed on every repository.
#[derive(Clone, Debug)]
pub struct App {
    pub id: u64,
    pub slug: String,
    pub installation: u64,
    pub permissions: BTreeMap<String, String>,
    /// The permissions that nobody accepted where it is installed.
    pub not_accepted: BTreeSet<String>,
}

impl App {
    /// Returns what it may do where it is installed.
    pub fn accepted(&self) -> BTreeMap<String, String> {
        let mut accepted = self.permissions.clone();
        accepted.retain(|name, _| !self.not_accepted.contains(name));
        accepted
    }
}
