//! Puts the own lines of a file back into its new text where that has them as the model was shown
//! them: with marks in the place of secrets.
//!
//! A secret is never put where another one was: of lines that look alike it must be certain which
//! is which. What tells them apart, such as the name of a section, may stand anywhere above, so all
//! that stands above the last of them must be as it was.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::file_text::FileText;
use crate::secret::Redactor;

/// A line of a file as it is shown. A secret over several lines is shown as one mark.
#[derive(Clone)]
struct Line {
    shown: String,
    /// The place of the file's own text of it, without the line end.
    own: Range<usize>,
}

/// Returns `content`, which takes the place of `file`, with the file's own lines for those with
/// marks. `None` if the file has no such line, or several of which it is not clear which is meant.
pub(super) fn put_back(redactor: &Redactor, file: &FileText, content: &str) -> Option<String> {
    let written: Vec<&str> = content.split_inclusive('\n').collect();
    let bare: Vec<&str> = written.iter().map(|line| without_end(line)).collect();
    let mut marked: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, line) in bare.iter().copied().enumerate() {
        if !redactor.marks(line).is_empty() {
            marked.entry(line).or_default().push(at);
        }
    }
    let lines = lines_of(redactor, file);
    let own = |at: usize| &file.text[lines[at].own.clone()];
    // A piece of a file is written with the rest of it as it is.
    let is_there: HashSet<&str> = bare.iter().copied().collect();
    let mut instead: Vec<Option<&str>> = vec![None; written.len()];
    for (shown, places) in marked {
        let is_meant = |at: &usize| lines[*at].shown == shown && (own(*at) == shown || !is_there.contains(own(*at)));
        let known: Vec<usize> = (0..lines.len()).filter(is_meant).collect();
        let (first, last) = (*known.first()?, *known.last()?);
        let is_as_it_was = |at: usize| bare[at] == lines[at].shown || bare[at] == own(at);
        let is_certain = places == known && (0..=last).all(is_as_it_was);
        if !is_certain && known.iter().any(|at| own(*at) != own(first)) {
            return None;
        }
        for (number, place) in places.into_iter().enumerate() {
            instead[place] = Some(own(*known.get(number).unwrap_or(&first)));
        }
    }
    let mut whole = String::with_capacity(content.len());
    for ((line, bare), own) in written.iter().zip(bare.iter().copied()).zip(instead) {
        whole.push_str(own.unwrap_or(bare));
        whole.push_str(&line[bare.len()..]);
    }
    Some(whole)
}

/// Returns the lines of a file as they are shown. Where it cannot be told how, and of a file that
/// is not whole, each is shown as it is, so that only its own marks count.
fn lines_of(redactor: &Redactor, file: &FileText) -> Vec<Line> {
    let mut end = 0;
    let as_they_are = file.text.split_inclusive('\n').map(|line| {
        let start = end;
        end += line.len();
        let shown = without_end(line);
        Line {
            shown: shown.to_owned(),
            own: start..start + shown.len(),
        }
    });
    let as_they_are: Vec<Line> = as_they_are.collect();
    let (clean, in_lines) = (redactor.clean(&file.text), redactor.clean_in_lines(&file.text));
    if !file.is_whole || in_lines.as_str().lines().count() != as_they_are.len() {
        return as_they_are;
    }
    let cleaned = as_they_are.iter().zip(in_lines.as_str().lines());
    let cleaned = cleaned.map(|(Line { own, .. }, shown)| Line {
        shown: shown.to_owned(),
        own: own.clone(),
    });
    let apart: Vec<Line> = cleaned.collect();
    let joined = joined(redactor, &apart);
    let is_shown = |lines: &Vec<Line>| lines.iter().map(|line| line.shown.as_str()).eq(clean.as_str().lines());
    [apart, joined].into_iter().find(is_shown).unwrap_or(as_they_are)
}

/// Joins lines that seem to be of one secret.
fn joined(redactor: &Redactor, lines: &[Line]) -> Vec<Line> {
    let mut all: Vec<Line> = Vec::new();
    for line in lines {
        if let Some(last) = all.last_mut()
            && let Some(rest) = behind_mark(redactor, &last.shown, &line.shown)
        {
            last.shown.push_str(rest);
            last.own.end = line.own.end;
        } else {
            all.push(line.clone());
        }
    }
    all
}

/// Returns what stands behind the mark at the beginning of `line`, if `before` ends with one.
fn behind_mark<'line>(redactor: &Redactor, before: &str, line: &'line str) -> Option<&'line str> {
    let last = *redactor.marks(before).last()?;
    let first = *redactor.marks(line).first()?;
    line.strip_prefix(first).filter(|_| before.ends_with(last))
}

fn without_end(line: &str) -> &str {
    let bare = line.strip_suffix('\n');
    bare.map_or(line, |bare| bare.strip_suffix('\r').unwrap_or(bare))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Built from parts, so that no scanner takes this file for a leak.
    fn token(prefix: &str) -> String {
        prefix.to_owned() + &"Ab3dEf6hIj9lMn2p".repeat(3)
    }

    /// Has a model change `old` into `new` in what it is shown of a file, and returns what is
    /// written.
    fn written(file: &str, old: &str, new: &str) -> Option<String> {
        let redactor = Redactor::default();
        let shown = redactor.clean(file).into_string();
        assert!(shown.contains(old) && !redactor.marks(&shown).is_empty(), "{shown}");
        let whole = FileText {
            text: file.to_owned(),
            is_whole: true,
        };
        put_back(&redactor, &whole, &shown.replace(old, new))
    }

    #[test]
    fn lines_with_secrets_keep_these_however_the_lines_around_them_change() {
        let (one, other) = (token("ghp_"), token("gho_"));
        let piece = "Ab3dEf6hIj9lMn2p".repeat(4);
        let frame = |word: &str| format!("-----{word} {}-----", "PRIVATE KEY");
        let key = format!("{}\n{piece}\n{piece}\n{}", frame("BEGIN"), frame("END"));
        for file in [
            format!("port = 1\r\ntoken = '{one}'\r\nlast = 1\r\n"),
            format!("{one}\n{other}\nport = 1"),
            format!("a:\n  token: {one}\nb:\n  token: {other}\nport = 1\n"),
            format!("port = 1\nkey = \"\"\"{key}\"\"\"\ntoken = '{one}'\n"),
        ] {
            for new in ["port = 2", "port = 2\nname = 3\n"] {
                assert_eq!(written(&file, "port = 1", new), Some(file.replace("port = 1", new)));
            }
        }
    }

    #[test]
    fn no_secret_is_put_where_another_one_was() {
        let (one, other) = (token("ghp_"), token("gho_"));
        let file = format!("a:\n  token: {one}\nb:\n  token: {other}\n");
        for (old, new) in [
            ("a:\n  token: [redacted:github-token]\n", ""),
            ("a:\n", "c:\n"),
            ("  token: [", "  secret: ["),
        ] {
            assert_eq!(written(&file, old, new), None, "{old}");
        }
        // Like sections in another order, each with what is the same in both of them.
        for same in ["user = app".to_owned(), format!("key = {}", token("ghs_"))] {
            let section = |name: &str, token: &str| format!("[{name}]\n{same}\ntoken = {token}\n");
            let file = section("dev", &one) + &section("prod", &other);
            let shown = Redactor::default().clean(&file).into_string();
            let turned = shown
                .replace("[dev]", "[first]")
                .replace("[prod]", "[dev]")
                .replace("[first]", "[prod]");
            assert_eq!(written(&file, &shown, &turned), None, "{turned}");
        }
        // One that stands there already is not meant.
        let first = format!("a:\n  token: {one}\n");
        let restored = written(&file, "a:\n  token: [redacted:github-token]\n", &first);
        assert_eq!(restored, Some(file));
    }

    #[test]
    fn of_a_file_that_is_not_whole_only_its_own_marks_count() {
        let text = format!("# as [redacted]\ntoken = {}\n", token("ghp_"));
        let part = FileText { text, is_whole: false };
        let put_back = |content| put_back(&Redactor::default(), &part, content);
        assert_eq!(put_back("# as [redacted]\n"), Some("# as [redacted]\n".to_owned()));
        assert_eq!(put_back("token = [redacted:github-token]\n"), None);
    }
}
