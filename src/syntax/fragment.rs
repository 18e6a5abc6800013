//! Puts a piece of a file in the place of what it replaces: a model that is asked for a whole file
//! often writes only the function that it changed.

use std::collections::HashSet;

use super::language::Language;
use super::{Definition, tree};

/// A file with a piece of it replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    pub text: String,
    /// The names of the definitions that were replaced.
    pub names: Vec<String>,
}

/// Returns `whole` with the definitions that `piece` holds in the place of their namesakes. `None`
/// if `piece` is more than definitions of that file, or leaves none of them out: then it is the
/// whole file. `None`, too, if two of its definitions belong into the same lines.
///
/// Written over the file instead, such a piece would lose all else in it.
pub fn merge(path: &str, whole: &str, piece: &str) -> Option<Merged> {
    let language = Language::of(path);
    let (all, _) = tree::read(language, whole);
    let (inner, _) = tree::read(language, piece);
    let outermost: Vec<&Definition> = outermost(&inner).collect();
    let mut replacements = Vec::new();
    for definition in &outermost {
        let mut namesakes = all.iter().filter(|known| {
            known.name == definition.name && (definition.parent.is_empty() || known.parent == definition.parent)
        });
        let known = namesakes.next()?;
        if namesakes.next().is_some() {
            return None;
        }
        replacements.push((known, *definition));
    }
    let replaced = |definition: &Definition| {
        let is_within = |known: &Definition| known.first <= definition.first && definition.last <= known.last;
        replacements.iter().any(|(known, _)| is_within(known))
    };
    if replacements.is_empty() || all.iter().all(replaced) {
        return None;
    }
    replacements.sort_by_key(|(known, _)| std::cmp::Reverse(known.first));
    // Two of them in the same lines: what is put there first moves the lines that the other one is
    // to replace, and what stands behind them would be lost.
    if replacements.windows(2).any(|pair| pair[1].0.last >= pair[0].0.first) {
        return None;
    }
    let (lines, pieces): (Vec<&str>, Vec<&str>) = (whole.lines().collect(), piece.lines().collect());
    if !is_known_around(&lines, &pieces, &outermost) {
        return None;
    }
    let mut names = Vec::new();
    let mut text: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    for (known, definition) in replacements {
        let new = indented(pieces.get(definition.first..=definition.last)?, lines.get(known.first)?);
        text.get(known.first..=known.last)?;
        text.splice(known.first..=known.last, new);
        names.insert(0, definition.name.clone());
    }
    Some(Merged {
        text: text.join("\n") + "\n",
        names,
    })
}

/// Returns the definitions that stand within no other.
fn outermost(definitions: &[Definition]) -> impl Iterator<Item = &Definition> {
    definitions.iter().filter(|one| {
        let is_around = |other: &Definition| other.first <= one.first && one.last <= other.last && *other != **one;
        !definitions.iter().any(is_around)
    })
}

/// Tells whether what `pieces` has around its definitions stands in the file as well, or is empty
/// or a comment.
fn is_known_around(lines: &[&str], pieces: &[&str], definitions: &[&Definition]) -> bool {
    let known: HashSet<&str> = lines.iter().map(|line| line.trim()).collect();
    let is_of_definition = |number: usize| definitions.iter().any(|one| one.first <= number && number <= one.last);
    let is_comment = |line: &str| ["#", "//", "/*", "*"].iter().any(|mark| line.starts_with(mark));
    pieces
        .iter()
        .enumerate()
        .filter(|(number, _)| !is_of_definition(*number))
        .map(|(_, line)| line.trim())
        .all(|line| line.is_empty() || is_comment(line) || known.contains(line))
}

/// Returns `new` with the indentation of `old`, the line that it begins in the place of.
fn indented(new: &[&str], old: &str) -> Vec<String> {
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let (own, wanted) = (
        new.first().map_or(0, |line| indentation(line)),
        &old[..indentation(old)],
    );
    new.iter()
        .map(|line| {
            let rest = &line[own.min(indentation(line))..];
            if rest.is_empty() {
                String::new()
            } else {
                format!("{wanted}{rest}")
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PYTHON: &str = "import math\n\nTAX = 1\n\n\ndef net(a):\n    return a\n\n\nclass Shop:\n    def open(self):\n        return 1\n\n    def shut(self):\n        return 2\n";

    fn merged(path: &str, whole: &str, piece: &str) -> Option<String> {
        merge(path, whole, piece).map(|merged| merged.text)
    }

    #[test]
    fn a_function_alone_takes_the_place_of_its_namesake() {
        assert_eq!(
            merge("a.py", PYTHON, "import math\n\ndef net(a):\n    return a * TAX\n").unwrap(),
            Merged {
                text: PYTHON.replace("return a\n", "return a * TAX\n"),
                names: vec!["net".to_owned()],
            }
        );
        let script = "/** Day. */\nfunction day(a) {\n  return a;\n}\n\nmodule.exports = { day };\n";
        assert_eq!(merged("a.js", script, "function day(a) {\n  return a - 1;\n}\n"), None);
        let two = format!("function month() {{}}\n{script}");
        assert_eq!(
            merged("a.js", &two, "function day(a) {\n  return a - 1;\n}\n"),
            Some(two.replace("return a;", "return a - 1;"))
        );
    }

    #[test]
    fn a_method_is_found_within_its_class_and_indented_as_it_was() {
        let expected = Some(PYTHON.replace("return 2", "return 3"));
        assert_eq!(merged("a.py", PYTHON, "def shut(self):\n    return 3\n"), expected);
        assert_eq!(
            merged("a.py", PYTHON, "    def shut(self):\n        return 3\n"),
            expected
        );
        let of_class = "class Shop:\n    def shut(self):\n        return 3\n";
        assert_eq!(
            merged("a.py", PYTHON, of_class),
            Some(PYTHON.replace(
                "    def open(self):\n        return 1\n\n    def shut(self):\n        return 2\n",
                "    def shut(self):\n        return 3\n"
            ))
        );
    }

    #[test]
    fn what_is_whole_or_new_is_no_piece() {
        for piece in [
            PYTHON,
            "def other(a):\n    return a\n",
            "import re\n\ndef net(a):\n    return re\n",
            "x = 1\n",
            "",
        ] {
            assert_eq!(merged("a.py", PYTHON, piece), None, "{piece}");
        }
        assert_eq!(merged("a.txt", "def a(): 1\ndef b(): 2\n", "def a(): 3\n"), None);
    }

    #[test]
    fn a_macro_alone_leaves_the_line_behind_it() {
        let whole = "#define TWICE(a) ((a) + (a))\nint one(void) { return 1; }\n\nint two(void) { return 2; }\n";
        assert_eq!(
            merged("a.c", whole, "#define TWICE(a) (2 * (a))\n"),
            Some(whole.replace("((a) + (a))", "(2 * (a))"))
        );
    }

    #[test]
    fn two_definitions_for_the_same_lines_are_no_piece() {
        let with_method = "class Shop:\n    def open(self):\n        return 3\n\n\ndef shut(self):\n    return 4\n";
        let twice = "def net(a):\n    b = a\n    return b\n\n\ndef net(a):\n    return a\n";
        for piece in [with_method, twice] {
            assert_eq!(merged("a.py", PYTHON, piece), None, "{piece}");
        }
    }

    proptest! {
        #[test]
        fn any_texts_are_taken(whole in "(def [ab]\\(\\):\n|    x\n|class C:\n|é\n|\n){0,12}", piece in "(def [ab]\\(\\):\n|    y\n|class C:\n|\n| ){0,8}") {
            let _ = merge("a.py", &whole, &piece);
        }
    }
}
