//! The files that a task names, so that the model begins with their text: a small model edits a
//! file that it has never read.

use crate::agent::prompt::file_block::FileFence;
use crate::conversation::excerpt;

/// Most files that are shown.
const MOST: usize = 3;
/// Fewest bytes of a file that are worth showing.
const FEWEST_BYTES: usize = 400;

/// Returns the first few files of `paths` that `text` names, see [`all_named`].
pub(crate) fn named<'paths>(text: &str, paths: &'paths [String]) -> Vec<&'paths str> {
    let mut found = all_named(text, paths);
    found.truncate(MOST);
    found
}

/// Returns the files of `paths` that `text` names, in the order in which it names them: by their
/// path, or by a name that only one of them has.
pub(crate) fn all_named<'paths>(text: &str, paths: &'paths [String]) -> Vec<&'paths str> {
    let mut found: Vec<(usize, &str)> = Vec::new();
    for path in paths {
        let name = path.rsplit('/').next().unwrap_or(path);
        // A name without an extension is a word of many texts.
        let is_telling = name.trim_start_matches('.').contains('.');
        let place = position(text, path).filter(|_| path.contains('/') || is_telling);
        let by_name = || {
            let place = position(text, name).filter(|_| is_telling)?;
            let is_only_one = paths
                .iter()
                .filter(|other| other.rsplit('/').next() == Some(name))
                .count()
                == 1;
            is_only_one.then_some(place)
        };
        found.extend(place.or_else(by_name).map(|place| (place, path.as_str())));
    }
    found.sort_unstable();
    found.into_iter().map(|(_, path)| path).collect()
}

/// Returns the block with the texts of the named files, in at most about `max_bytes`; empty if
/// there are none.
pub(crate) fn block(fence: &FileFence, files: &[(&str, String)], max_bytes: usize) -> String {
    let mut text = String::new();
    let mut left = max_bytes;
    for (path, content) in files {
        if left < FEWEST_BYTES {
            break;
        }
        let shown = excerpt::middle_cut(content.trim_end(), left, None);
        left = left.saturating_sub(shown.len());
        text.push_str(&fence.block(path, &shown));
    }
    text
}

/// Returns the position of `name` in `text` as a whole, not as part of a longer path or word.
fn position(text: &str, name: &str) -> Option<usize> {
    let is_part = |letter: char| letter.is_alphanumeric() || "_-/\\".contains(letter);
    text.match_indices(name).map(|(start, _)| start).find(|start| {
        let before = text[..*start].trim_end_matches("./").chars().next_back();
        let mut after = text[start + name.len()..].chars();
        let next = after.next();
        // A full stop ends a sentence, unless an extension follows.
        let goes_on = next == Some('.') && after.next().is_some_and(char::is_alphanumeric);
        !before.is_some_and(is_part) && !next.is_some_and(is_part) && !goes_on
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> Vec<String> {
        [
            "LICENSE",
            "README.md",
            "docs/README.md",
            "src/app/views.py",
            "src/util.py",
            "test/util.py",
            "v.py",
        ]
        .map(str::to_owned)
        .into()
    }

    #[test]
    fn a_file_is_named_by_its_path_or_by_a_name_of_its_own() {
        for (text, expected) in [
            ("The bug is in src/util.py.", &["src/util.py"][..]),
            (
                "see `views.py`: it calls ./src/util.py",
                &["src/app/views.py", "src/util.py"],
            ),
            // Two files are called so, and one of them by its whole path.
            ("util.py is wrong", &[]),
            ("Add to README.md", &["README.md"]),
            // Parts of other names.
            ("my_views.py, views.pyc, lib/views.py, views.py.bak", &[]),
            ("The LICENSE is unclear", &[]),
            ("日本語のviews.pyを直す", &[]),
            ("日本語の views.py を直す", &["src/app/views.py"]),
            (
                "docs/README.md, v.py, views.py, src/util.py",
                &["docs/README.md", "v.py", "src/app/views.py"],
            ),
        ] {
            assert_eq!(named(text, &paths()), expected, "{text}");
        }
    }

    #[test]
    fn the_texts_stay_within_their_share() {
        let long = "line\n".repeat(1_000);
        let files = [
            ("a.py", "a = 1\n".to_owned()),
            ("b\n.py", long),
            ("c.py", "c".to_owned()),
        ];
        let text = block(&FileFence::Tag("data-1".to_owned()), &files, 1_000);
        assert!(
            text.starts_with("\na.py:\n<data-1>\na = 1\n</data-1>\n\nb\u{fffd}.py:\n<data-1>\n"),
            "{text}"
        );
        assert!(
            text.len() < 1_100 && text.contains("bytes left out") && !text.contains("c.py"),
            "{text}"
        );
        assert_eq!(block(&FileFence::Backticks, &[], 1_000), "");
    }
}
