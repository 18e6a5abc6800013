//! Decides which files may be changed only with a person's approval.

use super::pattern::{Patterns, TooLarge};

/// Characters that the file systems of macOS ignore in names.
const LEFT_OUT: [std::ops::RangeInclusive<char>; 4] = [
    '\u{200c}'..='\u{200f}',
    '\u{202a}'..='\u{202e}',
    '\u{206a}'..='\u{206f}',
    '\u{feff}'..='\u{feff}',
];

/// Protected files by patterns, and exceptions. Patterns are those of project rules; case is
/// ignored, as it is by the file systems of many developers.
#[derive(Debug)]
pub struct Protection {
    /// Protected and excepted; `None` if they are too large to be looked up, and every file is
    /// protected.
    patterns: Option<(Patterns, Patterns)>,
}

impl Protection {
    pub fn new(protected: &[String], excepted: &[String]) -> Self {
        let read = |patterns: &[String]| {
            let folded: Vec<String> = patterns.iter().map(|pattern| folded(pattern)).collect();
            Patterns::new(&folded)
        };
        let patterns = match (read(protected), read(excepted)) {
            (Ok(protected), Ok(excepted)) => Some((protected, excepted)),
            (Err(TooLarge), _) | (_, Err(TooLarge)) => None,
        };
        Self { patterns }
    }

    /// Tells whether the file at `path`, below the project's root, is protected.
    pub fn covers(&self, path: &str) -> bool {
        let path = folded(path);
        self.patterns
            .as_ref()
            .is_none_or(|(protected, excepted)| protected.fit(&path) && !excepted.fit(&path))
    }
}

/// Returns `text` as a file system that ignores case sees it.
fn folded(text: &str) -> String {
    let is_seen = |letter: &char| !LEFT_OUT.iter().any(|range| range.contains(letter));
    // By way of upper case, so that the long s and the Kelvin sign become the letters that they are
    // taken for.
    let letters = text.chars().filter(is_seen).flat_map(char::to_uppercase);
    letters.flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_in_every_spelling_of_theirs_and_exceptions_are_kept() {
        let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let protection = Protection::new(&owned(&["/.*/**", "Jenkinsfile*", ".husky"]), &owned(&["/.changeset"]));
        for path in [
            ".github/workflows/ci.yml",
            ".GITHUB/x",
            ".anything/x/y",
            "web/.husky/pre-commit",
            ".Husky",
            ".hus\u{212a}y/pre-commit",
            ".hu\u{17f}ky/pre-commit",
            ".hu\u{200c}sky/pre-commit",
            "JENKINSFILE.release",
        ] {
            assert!(protection.covers(path), "{path}");
        }
        for path in [
            ".changeset/a.md",
            ".gitignore",
            "src/.hidden/x",
            "docs/Jenkins.md",
            "README.md",
        ] {
            assert!(!protection.covers(path), "{path}");
        }
    }
}
