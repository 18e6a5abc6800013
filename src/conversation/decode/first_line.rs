//! Tells what the first line of a text is that names a file: many models write the path there, and
//! many texts begin with a comment on another file.

use super::paths;

/// What the first line of a text that names a file may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstLine {
    /// It says to which file the text belongs, and is no line of it.
    Heading,
    /// A line of the text, such as a comment on another file.
    OfText,
    Unclear,
}

/// Returns what the first line of a text is that names `path`, beside the files in `shown`. `known`
/// is the one that the text is made of.
pub(super) fn sense(line: &str, path: &str, known: Option<&str>, shown: &[(String, String)]) -> FirstLine {
    if known.is_some_and(|known| is_own_line(known, line, path, shown)) {
        return FirstLine::OfText;
    }
    let meant = paths::in_full(path.to_owned(), shown);
    if paths::is_alone_on(line) || paths::is_labelled(line) || known == Some(meant.as_str()) {
        return FirstLine::Heading;
    }
    let is_shown = shown.iter().any(|(at, _)| *at == meant);
    match known {
        // Tests begin with a comment on the file that they test.
        Some(_) if is_shown && paths::is_comment(line) => FirstLine::OfText,
        None if !is_shown => FirstLine::Heading,
        Some(_) | None => FirstLine::Unclear,
    }
}

/// Tells whether `line`, which names `path`, is one of the file `known` itself, such as a comment
/// on other files, and does not say where the text belongs.
///
/// A document may quote a whole file, with the path on its first line. So a path alone is a file's
/// own line only where the file begins with it, and only if no other file at `path` was shown.
fn is_own_line(known: &str, line: &str, path: &str, shown: &[(String, String)]) -> bool {
    let line = line.trim();
    let Some((_, text)) = shown.iter().find(|(at, _)| at == known) else {
        return false;
    };
    let mut lines = text.lines().map(str::trim);
    if !paths::is_alone_on(line) {
        return lines.any(|own| own == line);
    }
    let meant = paths::in_full(path.to_owned(), shown);
    let is_another = meant != known && shown.iter().any(|(at, _)| *at == meant);
    !is_another && lines.find(|own| !own.is_empty()) == Some(line)
}
