//! Verdicts in labelled lines, headings with what stands below them, rows of tables, and tags.

use super::labels::{self, Label};
use super::{Statements, words};
use crate::review::score::Score;

/// Between a label and its value.
const SEPARATORS: [&str; 9] = [":", "：", "=", "|", "→", "—", "–", " - ", "】"];
/// Between two labelled values on one line.
const DELIMITERS: [char; 6] = ['|', ';', '·', ',', '、', '。'];
/// Most labelled values that are looked for on one line.
const MOST_ON_A_LINE: usize = 12;

/// Tells whether the text holds the keys of a verdict in JSON. The objects that could be read were
/// taken out before, so what is left is broken.
pub(super) fn holds_keys(prose: &str) -> bool {
    ["ready_for_implementation", "score", "pass", "ready"]
        .iter()
        .any(|key| {
            ['"', '\''].iter().any(|quote| {
                let quoted = format!("{quote}{key}{quote}");
                let places = prose.match_indices(&quoted);
                places
                    .take(MOST_ON_A_LINE)
                    .any(|(at, _)| prose[at + quoted.len()..].trim_start().starts_with(':'))
            })
        })
}

/// Takes the statements of the lines. Quoted lines can only speak against the document.
pub(super) fn take(prose: &str, statements: &mut Statements) {
    if words::speaks_against(prose) {
        statements.is_vetoed = true;
    }
    let prose = untagged(prose);
    let mut taker = Taker {
        statements,
        overall: Vec::new(),
        plain: Vec::new(),
    };
    let mut section = None;
    let mut fence = None;
    let mut before = "";
    for line in prose.lines() {
        if is_fence(line) {
            fence = match fence {
                None => Some(words::quotes(before)),
                Some(_) => None,
            };
        } else if !line.trim_start().starts_with('>') && fence != Some(true) {
            section = taker.take(line, section);
        }
        if !line.trim().is_empty() {
            before = line;
        }
    }
    // Scores that are said to be of the whole count before others.
    let scores = if taker.overall.is_empty() {
        taker.plain
    } else {
        taker.overall
    };
    statements.scores.extend(scores);
}

struct Taker<'a> {
    statements: &'a mut Statements,
    overall: Vec<Option<Score>>,
    plain: Vec<Option<Score>>,
}

impl Taker<'_> {
    /// Takes one line, which may belong to the section that a line before it opened; returns the
    /// section that the next line belongs to.
    fn take(&mut self, line: &str, section: Option<Label>) -> Option<Label> {
        let bare = undecorated(line);
        if bare.is_empty() {
            return section;
        }
        if let Some((label, value)) = labelled(&bare) {
            if value.is_empty() {
                return Some(label);
            }
            if matches!(label, Label::Text(_) | Label::List(_)) {
                self.states(label, value);
                return Some(label);
            }
        }
        let is_labelled = self.take_parts(&bare);
        if is_labelled {
            return section.filter(|_| labelled(&bare).is_none());
        }
        let is_heading = is_heading(line);
        if let Some(label) = section.filter(|_| !is_heading)
            && !matches!(label, Label::Text(_) | Label::List(_))
            && self.states(label, &bare)
        {
            return None;
        }
        if let Some(label) = labels::of(&bare) {
            return Some(label);
        }
        let section = section.filter(|_| !is_heading)?;
        self.states(section, &content(line));
        Some(section)
    }

    /// Takes the labelled values of a line; tells whether there was one.
    fn take_parts(&mut self, line: &str) -> bool {
        let starts = line.match_indices(DELIMITERS).map(|(at, sign)| at + sign.len());
        let mut is_labelled = false;
        for start in std::iter::once(0).chain(starts).take(MOST_ON_A_LINE) {
            if words::quotes(&line[..start]) {
                break;
            }
            if let Some((label, value)) = labelled(&line[start..])
                && !matches!(label, Label::Text(_) | Label::List(_))
            {
                is_labelled |= self.states(label, value);
            }
        }
        is_labelled
    }

    /// Takes a value with its label; tells whether the two belong together.
    fn states(&mut self, label: Label, value: &str) -> bool {
        match label {
            Label::Ready => self.statements.ready.push(words::answer(value).unwrap_or(false)),
            Label::Verdict => match words::answer(value) {
                Some(answer) => self.statements.ready.push(answer),
                None => return false,
            },
            Label::Overall | Label::Score if !value.contains(char::is_numeric) => return false,
            Label::Overall => self.overall.push(Score::read(value).ok()),
            Label::Score => self.plain.push(Score::read(value).ok()),
            Label::Confidence => self.statements.confidences.push(value.to_lowercase()),
            Label::Text(field) => self.statements.add_text(field, value),
            Label::List(list) => self.statements.add_entry(list, value),
            Label::Analysis | Label::Wrapper => return false,
        }
        true
    }
}

/// Returns the label at the beginning of `part` and the value behind it.
fn labelled(part: &str) -> Option<(Label, &str)> {
    let separated = SEPARATORS
        .iter()
        .filter_map(|separator| part.find(separator).map(|at| (at, at + separator.len())))
        .min();
    if let Some((end, behind)) = separated
        && let Some(label) = labels::of(&part[..end])
    {
        return Some((label, part[behind..].trim()));
    }
    let digit = part.find(char::is_numeric)?;
    let label = labels::of(&part[..digit])?;
    matches!(label, Label::Overall | Label::Score).then(|| (label, part[digit..].trim()))
}

/// Returns the text with tags that are named like a field as labelled lines.
fn untagged(prose: &str) -> String {
    let mut text = String::with_capacity(prose.len());
    let mut rest = prose;
    while let Some(start) = rest.find('<') {
        let (before, tag) = rest.split_at(start);
        text.push_str(before);
        let inner = tag[1..].split(['<', '>', '\n']).next().unwrap_or("");
        let closes = tag[1 + inner.len()..].starts_with('>');
        let name = inner.trim_start_matches('/').trim();
        if closes && labels::of(name).is_some() {
            text.push('\n');
            if !inner.starts_with('/') {
                text.push_str(name);
                text.push_str(": ");
            }
            rest = &tag[inner.len() + 2..];
        } else {
            text.push('<');
            rest = &tag[1..];
        }
    }
    text.push_str(rest);
    text
}

fn is_fence(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("```") || line.starts_with("~~~")
}

fn is_heading(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('#') || line.starts_with(['■', '【', '●']) || (line.starts_with("**") && line.ends_with("**"))
}

/// Returns a line without the signs of a list, a heading or a table before it.
fn content(line: &str) -> String {
    let line = line.trim().trim_matches('|').trim();
    let line = line.trim_start_matches('#').trim_start();
    let line = ["- ", "* ", "+ ", "・", "• "]
        .iter()
        .find_map(|marker| line.strip_prefix(marker))
        .unwrap_or(line);
    let behind_number = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let line = [". ", ") "]
        .iter()
        .filter(|_| behind_number.len() < line.len())
        .find_map(|marker| behind_number.strip_prefix(marker))
        .unwrap_or(line);
    let line = ["[ ] ", "[x] ", "[X] "]
        .iter()
        .find_map(|marker| line.strip_prefix(marker))
        .unwrap_or(line);
    line.trim().to_owned()
}

/// Returns a line without the signs of Markdown.
fn undecorated(line: &str) -> String {
    let content = content(line).replace(['*', '`'], "");
    content.trim().to_owned()
}
