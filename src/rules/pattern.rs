//! Patterns with `*`, for paths and for names of tools. Every text is a pattern; none is invalid,
//! and none is slow.

use regex::bytes::{RegexSet, RegexSetBuilder};

/// Largest compiled set, in bytes. No rules file of an allowed size reaches it, whatever its
/// patterns are made of.
const LARGEST_SET: usize = 64 * 1024 * 1024;
/// Any character except `/`, matched by bytes: one that begins it, and those that continue it. A
/// Unicode class would be a hundred times as large, and there may be many of it.
const SIGN: &str = r"[^/\x80-\xbf][\x80-\xbf]*";

/// Patterns for paths: `*` is any number of characters except `/`, `**` any number of characters,
/// `?` one character except `/`. A pattern without a `/` fits in every folder, and one that fits a
/// folder fits everything below it.
#[derive(Debug)]
pub(super) struct Patterns {
    /// `None` if there is no pattern.
    set: Option<RegexSet>,
}

/// The patterns are too large to be compiled.
#[derive(Debug)]
pub(super) struct TooLarge;

impl Patterns {
    pub(super) fn new(patterns: &[String]) -> Result<Self, TooLarge> {
        if patterns.is_empty() {
            return Ok(Self { set: None });
        }
        let expressions = patterns.iter().map(|pattern| expression(pattern));
        // An escaped pattern cannot be invalid, only too large.
        let set = RegexSetBuilder::new(expressions)
            .unicode(false)
            .size_limit(LARGEST_SET)
            .build()
            .map_err(|_| TooLarge)?;
        Ok(Self { set: Some(set) })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.set.is_none()
    }

    pub(super) fn fit(&self, path: &str) -> bool {
        self.set.as_ref().is_some_and(|set| set.is_match(path.as_bytes()))
    }
}

fn expression(pattern: &str) -> String {
    let pattern = pattern.trim().trim_start_matches("./");
    let is_anchored = pattern.trim_end_matches('/').contains('/');
    let pattern = pattern.trim_matches('/');
    let start = if is_anchored { "" } else { "(?:.*/)?" };
    let mut expression = format!("(?s)^{start}");
    let mut rest = pattern;
    while let Some(sign) = rest.chars().next() {
        let (length, piece) = if rest.starts_with("**/") {
            (3, "(?:.*/)?".to_owned())
        } else if rest.starts_with("**") {
            (2, ".*".to_owned())
        } else {
            let piece = match sign {
                '*' => "[^/]*".to_owned(),
                '?' => SIGN.to_owned(),
                other => regex::escape(other.encode_utf8(&mut [0; 4])),
            };
            (sign.len_utf8(), piece)
        };
        expression.push_str(&piece);
        rest = &rest[length..];
    }
    expression.push_str("(?:/.*)?$");
    expression
}

/// Tells whether `name` fits `pattern`, in which `*` is any number of characters.
pub(super) fn fits_name(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.trim().split('*');
    let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else {
        return rest.is_empty();
    };
    for piece in pieces {
        let Some((_, after)) = rest.split_once(piece) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(pattern: &str, fitting: &[&str], others: &[&str]) {
        let patterns = Patterns::new(&[pattern.to_owned()]).unwrap();
        for path in fitting {
            assert!(patterns.fit(path), "{pattern} should fit {path}");
        }
        for path in others {
            assert!(!patterns.fit(path), "{pattern} should not fit {path}");
        }
    }

    #[test]
    fn paths_fit_as_people_expect() {
        check("*.pem", &["a.pem", "deep/down/a.pem"], &["a.pem.txt", "apem"]);
        check("secrets/", &["secrets/a", "app/secrets/b/c"], &["my-secrets/a"]);
        check("/infra", &["infra/a.tf", "infra"], &["app/infra-old/a"]);
        check("src/*.rs", &["src/a.rs"], &["src/deep/a.rs", "app/src/a.rs"]);
        check("src/**/*.rs", &["src/a.rs", "src/deep/down/a.rs"], &["src/a.py"]);
        check("src/**", &["src/a", "src/b/c"], &["src", "srcs/a"]);
        check("**/test_?.py", &["test_1.py", "a/test_2.py"], &["a/test_10.py"]);
        check("a+(b)[c]", &["a+(b)[c]"], &["aab", "ac"]);
        check("./docs/日本語.md", &["docs/日本語.md"], &["docs/日本.md"]);
        check(
            "docs/日?語.*",
            &["docs/日本語.md", "docs/日x語.é"],
            &["docs/日本本語.md"],
        );
    }

    #[test]
    fn names_of_tools_fit_as_people_expect() {
        for (pattern, name, expected) in [
            ("workspace/*", "workspace/read_file", true),
            ("*/read_*", "docs/read_page", true),
            ("*", "any/thing", true),
            ("docs/search", "docs/search", true),
            ("docs/search", "docs/search_all", false),
            ("*a*a", "a", false),
            ("*a*a", "xaa", true),
        ] {
            assert_eq!(fits_name(pattern, name), expected, "{pattern} and {name}");
        }
    }

    proptest! {
        #[test]
        fn every_text_is_a_pattern_and_fits_itself(path in "[a-z/.+(\\[{|^$日]{1,40}") {
            let path = path.trim_start_matches("./").trim_matches('/').trim();
            // No path of a repository begins with `./`, and a pattern drops it.
            if !path.is_empty() && !path.starts_with("./") {
                prop_assert!(Patterns::new(&[path.to_owned()]).unwrap().fit(path));
                prop_assert!(fits_name(path, path));
            }
        }

        #[test]
        fn no_pattern_makes_the_program_fall_over(pattern in any::<String>(), path in any::<String>()) {
            let _ = Patterns::new(std::slice::from_ref(&pattern)).unwrap().fit(&path);
            let _ = fits_name(&pattern, &path);
        }
    }
}
