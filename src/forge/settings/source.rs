//! A place to search for items: one repository, or all of an owner or group.

use crate::forge::FoundItem;

/// An entry of the configuration's list of repositories or projects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Repository(String),
    /// `owner/*`, `group/*` or `group/subgroup/*`.
    All(String),
}

impl Source {
    pub(crate) fn parse(entry: &str) -> Self {
        let entry = entry.trim().trim_matches('/');
        match entry.strip_suffix("/*") {
            Some(owner) => Self::All(owner.to_owned()),
            None => Self::Repository(entry.to_owned()),
        }
    }
}

impl Source {
    /// Keeps only items of the repositories that the entry names: the configuration decides what is
    /// worked on, not the forge.
    pub(crate) fn keep_own(&self, found: &mut Vec<FoundItem>) {
        found.retain(|item| item.task.repository().is_some_and(|name| self.holds(name)));
    }

    /// Tells whether all items are in repositories of the entry.
    pub(crate) fn has_all(&self, found: &[FoundItem]) -> bool {
        let mut names = found.iter().map(|item| item.task.repository());
        names.all(|name| name.is_some_and(|name| self.holds(name)))
    }

    pub(crate) fn holds(&self, repository: &str) -> bool {
        match self {
            Self::Repository(name) => name.eq_ignore_ascii_case(repository),
            Self::All(owner) => repository
                .split_at_checked(owner.len())
                .is_some_and(|(start, rest)| start.eq_ignore_ascii_case(owner) && rest.starts_with('/')),
        }
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Repository(name) => formatter.write_str(name),
            Self::All(owner) => write!(formatter, "{owner}/*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_means_all() {
        assert_eq!(Source::parse("owner/repo"), Source::Repository("owner/repo".to_owned()));
        assert_eq!(Source::parse("group/sub/*"), Source::All("group/sub".to_owned()));
    }

    #[test]
    fn what_an_entry_does_not_name_is_not_of_it() {
        for (entry, repository, expected) in [
            ("owner/repo", "Owner/Repo", true),
            ("owner/repo", "owner/repository", false),
            ("group/*", "Group/project", true),
            ("group/*", "group/sub/project", true),
            ("group/*", "group", false),
            ("group/*", "groups/project", false),
            ("gruppe/*", "gruppé/x", false),
        ] {
            assert_eq!(Source::parse(entry).holds(repository), expected, "{entry} {repository}");
        }
    }
}
