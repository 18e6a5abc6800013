//! People whom the configuration lets have the program work, whatever the forge says of their rights.

/// A list of names, compared without regard to case as both forges do.
#[derive(Debug, Default)]
pub(super) struct AllowedUsers {
    names: Vec<String>,
}

impl AllowedUsers {
    /// Takes the names as people write them, `@name` too.
    pub(super) fn new(names: &[String]) -> Self {
        let names = names
            .iter()
            .map(|name| name.trim().trim_start_matches('@').to_lowercase());
        Self {
            names: names.filter(|name| !name.is_empty()).collect(),
        }
    }

    /// Tells whether the list names `user`.
    pub(super) fn name(&self, user: &str) -> bool {
        self.names.contains(&user.to_lowercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_whole_and_without_regard_to_case() {
        let allowed = AllowedUsers::new(&["@Carol ".to_owned(), "dependabot[bot]".to_owned(), " @".to_owned()]);
        let named: Vec<&str> = ["carol", "CAROL", "car", "carol2", "dependabot[bot]", "dependabot", ""]
            .into_iter()
            .filter(|user| allowed.name(user))
            .collect();
        assert_eq!(named, ["carol", "CAROL", "dependabot[bot]"]);
    }
}
