//! Where items are searched: one repository, or all of an owner or group.

/// An entry of the configuration's list of repositories or projects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Source {
    Repository(String),
    /// `owner/*`, `group/*` or `group/subgroup/*`.
    All(String),
}

impl Source {
    pub(super) fn parse(entry: &str) -> Self {
        let entry = entry.trim().trim_matches('/');
        match entry.strip_suffix("/*") {
            Some(owner) => Self::All(owner.to_owned()),
            None => Self::Repository(entry.to_owned()),
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
}
