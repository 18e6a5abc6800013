//! The places of the repository that a plan rests on, as the planner cites them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::lenient;

/// Most places that are read; a plan that cites more cites nothing in particular.
const MOST: usize = 20;
const LONGEST_WHY: usize = 400;
/// The characters that are percent-encoded in the address of a file.
const IN_ADDRESSES: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'.').remove(b'-').remove(b'_');

/// A place of the repository, and what it shows.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Citation {
    #[serde(deserialize_with = "lenient::text")]
    pub path: String,
    /// A line or a range, such as `12-40`; empty for the whole file.
    #[serde(deserialize_with = "lines", skip_serializing_if = "String::is_empty")]
    pub lines: String,
    #[serde(deserialize_with = "lenient::text")]
    pub why: String,
}

impl Citation {
    /// Returns first and last line, from 1; `None` for the whole file.
    pub fn lines(&self) -> Option<(usize, usize)> {
        let mut numbers = self
            .lines
            .split(|letter: char| !letter.is_ascii_digit())
            .filter(|number| !number.is_empty())
            .map(|number| number.parse::<usize>().unwrap_or(usize::MAX).max(1));
        let first = numbers.next()?;
        Some((first, numbers.next().unwrap_or(first)))
    }

    /// Reads `path`, `path:12-40` or `path#L12-L40`.
    pub fn read(place: &str) -> Self {
        from_place(place)
    }

    /// Returns the place as `path:first-last`.
    pub fn place(&self) -> String {
        match self.lines() {
            Some((first, last)) if first == last => format!("{}:{first}", self.path),
            Some((first, last)) => format!("{}:{first}-{last}", self.path),
            None => self.path.clone(),
        }
    }

    /// Returns the address of the place, by the one below which the files of a commit can be looked
    /// at; `None` where that is empty.
    pub fn link(&self, files_url: &str) -> Option<String> {
        if files_url.is_empty() {
            return None;
        }
        let path = utf8_percent_encode(&self.path, IN_ADDRESSES);
        let separator = if files_url.contains("/-/blob/") { "-" } else { "-L" };
        let lines = match self.lines() {
            Some((first, last)) if first == last => format!("#L{first}"),
            Some((first, last)) => format!("#L{first}{separator}{last}"),
            None => String::new(),
        };
        Some(format!("{files_url}{path}{lines}"))
    }
}

/// Returns the address below which the files of a commit can be looked at, by that of the page of
/// the repository (`home`); empty where that is none.
pub fn files_url_of(home: &str, is_gitlab: bool, commit: &str) -> String {
    let is_address = home.starts_with("https://") || home.starts_with("http://");
    let folder = if is_gitlab { "/-/blob" } else { "/blob" };
    if is_address {
        format!("{home}{folder}/{commit}/")
    } else {
        String::new()
    }
}

/// Returns the address below which the files of another commit of the same repository can be looked
/// at; empty where that is the one that is known.
pub fn files_url_at(files_url: &str, commit: &str) -> String {
    let folder = files_url.trim_end_matches('/').rsplit_once('/');
    folder.map_or_else(String::new, |(folder, _)| format!("{folder}/{commit}/"))
}

/// Reads citations, also ones written as `path:first-last`. What is none is left out, since a plan
/// can be worked on without.
pub(super) fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Citation>, D::Error> {
    let list = match Value::deserialize(deserializer)? {
        Value::Array(list) => list,
        Value::Null => Vec::new(),
        one => vec![one],
    };
    let mut citations: Vec<Citation> = Vec::new();
    for value in list.into_iter().take(MOST) {
        let citation = match value {
            Value::String(place) => Some(from_place(&place)),
            other => serde_json::from_value::<Citation>(other).ok().map(|citation| {
                let mut read = from_place(&citation.path);
                if read.lines.is_empty() || !citation.lines.is_empty() {
                    read.lines = citation.lines;
                }
                read.why = citation.why.chars().take(LONGEST_WHY).collect();
                read
            }),
        };
        citations.extend(citation.filter(|citation| !citation.path.is_empty()));
    }
    Ok(citations)
}

/// Reads `path`, `path:12-40` or `path#L12-L40`.
fn from_place(place: &str) -> Citation {
    let place = place.trim().trim_start_matches("./");
    let split = place.rsplit_once([':', '#']);
    let is_lines = |text: &str| {
        text.contains(|letter: char| letter.is_ascii_digit())
            && text
                .chars()
                .all(|letter| letter.is_ascii_digit() || "L-– ".contains(letter))
    };
    let (path, lines) = match split {
        Some((path, lines)) if is_lines(lines) => (path, lines),
        _ => (place, ""),
    };
    Citation {
        path: path.to_owned(),
        lines: lines.to_owned(),
        why: String::new(),
    }
}

/// Reads lines as a text, a number, or a list of first and last.
fn lines<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) => text,
        Value::Number(number) => number.to_string(),
        Value::Array(list) => {
            let numbers = list.iter().filter_map(Value::as_u64).map(|number| number.to_string());
            numbers.collect::<Vec<_>>().join("-")
        }
        _ => String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Citation, files_url_at};

    #[test]
    fn links_have_the_form_of_each_forge() {
        let link = |url: &str, path: &str, lines: &str| {
            let citation = Citation {
                path: path.to_owned(),
                lines: lines.to_owned(),
                why: String::new(),
            };
            citation.link(url)
        };
        for (url, path, lines, expected) in [
            (
                "https://github.com/o/r/blob/abc/",
                "src/a b.py",
                "3-9",
                "https://github.com/o/r/blob/abc/src/a%20b.py#L3-L9",
            ),
            (
                "https://lab.test/g/r/-/blob/abc/",
                "a.py",
                "3-9",
                "https://lab.test/g/r/-/blob/abc/a.py#L3-9",
            ),
            (
                "https://github.com/o/r/blob/abc/",
                "a.py",
                "7",
                "https://github.com/o/r/blob/abc/a.py#L7",
            ),
        ] {
            assert_eq!(link(url, path, lines).as_deref(), Some(expected));
        }
        assert_eq!(link("", "a.py", ""), None);
    }

    #[test]
    fn another_commit_is_looked_at_beside_the_first() {
        let of = |url| files_url_at(url, "def");
        assert_eq!(
            of("https://lab.test/g/r/-/blob/abc/"),
            "https://lab.test/g/r/-/blob/def/"
        );
        assert_eq!(of(""), "");
    }
}
