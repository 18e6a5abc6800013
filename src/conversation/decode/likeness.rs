//! Finds the shown file that a text without a path is made of.

use std::collections::HashSet;

/// Share of a text's lines, in percent, that have to stand in a file for the text to be of it,
/// and by how much that has to be more than in any other file.
const LIKENESS: usize = 34;
const DISTANCE: usize = 15;

/// Returns the path of the file, of those in `shown` with their texts, that `content` is a new or
/// changed text of.
pub(super) fn of<'shown>(content: &str, shown: &'shown [(String, String)]) -> Option<&'shown str> {
    of_public_class(content, shown).or_else(|| most_like(content, shown))
}

/// Returns the path of the shown file of Java that has the name of the public class in `content`:
/// the language allows no other name.
fn of_public_class<'shown>(content: &str, shown: &'shown [(String, String)]) -> Option<&'shown str> {
    let words: Vec<&str> = content
        .lines()
        .find(|line| line.starts_with("public "))?
        .split_whitespace()
        .collect();
    let kind = words
        .iter()
        .position(|word| ["class", "interface", "enum", "record"].contains(word))?;
    let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let name = words.get(kind + 1)?.split(|letter| !is_of_name(letter)).next()?;
    let file = format!("{name}.java");
    let mut paths = shown.iter().map(|(path, _)| path.as_str());
    paths.find(|path| path.rsplit('/').next() == Some(file.as_str()))
}

/// Returns the path of the shown file that most lines of `content` stand in.
fn most_like<'shown>(content: &str, shown: &'shown [(String, String)]) -> Option<&'shown str> {
    let is_telling = |line: &&str| line.len() > 2;
    let lines: Vec<&str> = content.lines().map(str::trim).filter(is_telling).collect();
    if lines.is_empty() {
        return None;
    }
    let share = |text: &str| {
        let known: HashSet<&str> = text.lines().map(str::trim).collect();
        100 * lines.iter().filter(|line| known.contains(*line)).count() / lines.len()
    };
    let mut shares: Vec<(usize, &str)> = shown.iter().map(|(path, text)| (share(text), path.as_str())).collect();
    shares.sort_by_key(|(share, _)| std::cmp::Reverse(*share));
    let (best, path) = *shares.first()?;
    let next = shares.get(1).map_or(0, |(share, _)| *share);
    (best >= LIKENESS && best - next >= DISTANCE).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_class_of_java_names_its_file() {
        let shown = ["src/Point.java", "src/Total.java"].map(|path| (path.to_owned(), "x\n".to_owned()));
        for (first, path) in [
            ("public class Point {", Some("src/Point.java")),
            ("public final class Total<T> extends Sum {", Some("src/Total.java")),
            ("public record Point(int x, int y) {", Some("src/Point.java")),
            ("public class Points {", None),
            ("class Point {", None),
            ("public", None),
        ] {
            assert_eq!(
                of_public_class(&format!("import a.B;\n\n{first}\n}}\n"), &shown),
                path,
                "{first}"
            );
        }
    }
}
