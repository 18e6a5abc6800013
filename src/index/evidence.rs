//! The check of the places that a plan cites: whether they exist at a commit, and hold the names
//! that it speaks of.

use std::fmt;

use crate::plain::counted;
use crate::plan::evidence::Citation;
use crate::repository::mirror::Mirror;
use crate::repository::{CommitId, RepositoryError};
use crate::secret::Redactor;
use crate::syntax::cited;

/// Largest file that is cited.
const LARGEST: u64 = 4 * 1024 * 1024;

/// The fault of a cited place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    NoFile,
    /// The file is too large, or no text.
    Unreadable,
    /// The file has only so many lines.
    NoLines(usize),
    /// None of the names in backticks stands there; this is the first of them.
    WithoutName(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFile => write!(formatter, "there is no such file"),
            Self::Unreadable => write!(formatter, "it is no text file"),
            Self::NoLines(lines) => write!(formatter, "the file has {}", counted(*lines, "line")),
            Self::WithoutName(name) => write!(formatter, "`{name}` does not stand there"),
        }
    }
}

/// Returns what is wrong with the lines that are cited, if anything is.
pub async fn cited(
    mirror: &Mirror,
    commit: &CommitId,
    citation: &Citation,
) -> Result<Result<(), Fault>, RepositoryError> {
    let text = text_of(mirror, commit, citation).await?;
    Ok(text.and_then(|text| check(&text, citation).map(|_| ())))
}

/// Returns the text of the lines that are cited, or what is wrong with them. Secrets are taken out
/// of the whole file: nobody recognises the part of a key that stands in some lines.
pub async fn lines(
    mirror: &Mirror,
    commit: &CommitId,
    citation: &Citation,
    redactor: &Redactor,
) -> Result<Result<String, Fault>, RepositoryError> {
    let text = text_of(mirror, commit, citation).await?;
    Ok(text.and_then(|text| clean_lines(&text, citation, redactor)))
}

async fn text_of(
    mirror: &Mirror,
    commit: &CommitId,
    citation: &Citation,
) -> Result<Result<String, Fault>, RepositoryError> {
    let bytes = match mirror.file(commit, &citation.path, LARGEST).await {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(Err(Fault::NoFile)),
        Err(RepositoryError::Unexpected { .. }) => return Ok(Err(Fault::Unreadable)),
        Err(error) => return Err(error),
    };
    Ok(String::from_utf8(bytes).map_err(|_| Fault::Unreadable))
}

fn clean_lines(text: &str, citation: &Citation, redactor: &Redactor) -> Result<String, Fault> {
    check(text, citation)?;
    Ok(shown(redactor.clean_in_lines(text).as_str(), citation))
}

fn shown(text: &str, citation: &Citation) -> String {
    let (first, last) = citation.lines().unwrap_or((1, usize::MAX));
    let lines = text.lines().skip(first.saturating_sub(1));
    let lines: Vec<&str> = lines.take(last.saturating_sub(first).saturating_add(1)).collect();
    lines.join("\n")
}

fn check(text: &str, citation: &Citation) -> Result<String, Fault> {
    let count = text.lines().count();
    let (first, last) = citation.lines().unwrap_or((1, count));
    if first > last || last > count {
        return Err(Fault::NoLines(count));
    }
    let shown = shown(text, citation);
    match cited::missing(&cited::names(&citation.why, &citation.path), &shown) {
        Some(name) => Err(Fault::WithoutName(name.to_owned())),
        None => Ok(shown),
    }
}

#[cfg(test)]
mod tests {
    use super::{Citation, Fault, Redactor, check, clean_lines};

    const TEXT: &str = "import os\n\ndef greet(name):\n    return os.name\n\n# 再試行の回数\n";

    fn of(lines: &str, why: &str) -> Result<String, Fault> {
        check(
            TEXT,
            &Citation {
                path: "a.py".to_owned(),
                lines: lines.to_owned(),
                why: why.to_owned(),
            },
        )
    }

    #[test]
    fn lines_from_the_middle_of_a_key_are_not_shown() {
        let line = "x0".repeat(32) + "\n";
        let frame = |word: &str| format!("-----{word} {}-----\n", "PRIVATE KEY");
        let text = [frame("BEGIN"), line.repeat(9), frame("END"), "last\n".to_owned()].concat();
        let of = |lines: &str| {
            let citation = Citation {
                path: "notes.txt".to_owned(),
                lines: lines.to_owned(),
                why: String::new(),
            };
            clean_lines(&text, &citation, &Redactor::default())
        };
        let mark = "[redacted:private-key]";
        assert_eq!(of("4-5"), Ok(format!("{mark}\n{mark}")));
        assert_eq!(of("11-12"), Ok(format!("{mark}\nlast")));
        assert_eq!(of("13"), Err(Fault::NoLines(12)));
    }

    #[test]
    fn lines_must_exist_and_hold_what_is_said_of_them() {
        assert_eq!(
            of("3-4", "`greet()` returns the wrong name"),
            Ok("def greet(name):\n    return os.name".to_owned())
        );
        assert_eq!(of("L3-L4", "returns the wrong name").map(|text| text.len()), Ok(35));
        assert_eq!(of("3-9", "").unwrap_err(), Fault::NoLines(6));
        assert_eq!(
            of("1", "`greet` is here").unwrap_err(),
            Fault::WithoutName("greet".to_owned())
        );
        // The name of the file itself is none that stands in it.
        assert_eq!(of("1", "`a.py` reads it, see `a.py:1`"), Ok("import os".to_owned()));
        assert_eq!(of("", "`os.name`"), Ok(TEXT.trim_end().to_owned()));
        assert_eq!(
            of("3", "`再試行` の回数").unwrap_err(),
            Fault::WithoutName("再試行".to_owned())
        );
        assert_eq!(of("6", "`再試行` の回数"), Ok("# 再試行の回数".to_owned()));
    }
}
