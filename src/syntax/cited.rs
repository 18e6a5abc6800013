//! Names that a text in backticks says to stand in lines of a file, and whether they do.
//!
//! A text may name more than what stands there: what is to be made, or what calls it. So one of its
//! names is enough, and a text without names says nothing that could be wrong.

use super::words;

/// Returns the names in backticks of a text about a file: identifiers, members and calls. Names of
/// files and places in them are none.
pub fn names<'t>(text: &'t str, path: &str) -> Vec<&'t str> {
    let file = path.rsplit('/').next().unwrap_or(path);
    let in_ticks = text.split('`').skip(1).step_by(2);
    let names = in_ticks.map(|name| name.trim().trim_end_matches("()"));
    names.filter(|name| *name != file && is_name(name)).collect()
}

fn is_name(text: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || "_.:".contains(letter);
    // `app.py:12` is a place.
    let is_place = text
        .rsplit_once(':')
        .is_some_and(|(_, line)| line.starts_with(|first: char| first.is_ascii_digit()));
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    !text.is_empty() && text.chars().all(is_part) && !is_place && !is_number
}

/// Returns the first of these names if none of them stands in the lines.
pub fn missing<'n>(names: &[&'n str], lines: &str) -> Option<&'n str> {
    let here = words::identifiers(lines);
    let is_there = |name: &str| {
        let parts = words::identifiers(name);
        // Words of a language without spaces are no identifiers, and stand within others.
        if parts.is_empty() {
            return lines.contains(name);
        }
        parts.iter().all(|part| here.contains(part))
    };
    let first = names.first()?;
    (!names.iter().any(|name| is_there(name))).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::{missing, names};

    #[test]
    fn names_are_what_stands_in_backticks_and_is_no_place() {
        let text =
            "`greet()` of `app.py` calls `os.name`, see `app.py:12`, `make test`, `a/b`, `3.12` and `12`; `再試行` too";
        assert_eq!(names(text, "src/app.py"), ["greet", "os.name", "再試行"]);
        assert_eq!(names("`app.py`", "src/other.py"), ["app.py"]);
        assert_eq!(names("no name", "a.py"), Vec::<&str>::new());
    }

    #[test]
    fn one_of_the_names_must_stand_in_the_lines_as_a_whole() {
        let lines = "def greet(name):\n    return os.name  # 再試行の回数\n";
        assert_eq!(missing(&["greet"], lines), None);
        assert_eq!(missing(&["os.name", "new_thing"], lines), None);
        assert_eq!(missing(&["gree"], lines), Some("gree"));
        assert_eq!(missing(&["one", "two"], lines), Some("one"));
        assert_eq!(missing(&["再試行"], lines), None);
        assert_eq!(missing(&[], lines), None);
    }
}
