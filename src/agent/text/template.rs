//! A project's own template of change requests, filled in.
//!
//! The template comes from the repository, so it is data: comments in it are left out, the rest is
//! sanitized like any stranger's text, and it is short. The sections that the program owns go below
//! the headings that ask for them; where none does, they stand before the template.

use std::mem::take;

use crate::markdown::compose::{Line, Page};
use crate::markdown::visible;
use crate::secret::Redactor;

/// Maximum characters that are taken from a template.
const LONGEST: usize = 6_000;
/// Maximum characters of a heading, and of one line of a checklist.
const LONGEST_LINE: usize = 500;
/// The beginnings of headings.
const LEVELS: [&str; 6] = ["# ", "## ", "### ", "#### ", "##### ", "###### "];

/// Words of a heading below which it is told what was done.
const ASKS_WHAT: [&str; 8] = [
    "description",
    "summary",
    "what",
    "changes",
    "overview",
    "motivation",
    "概要",
    "変更",
];
/// Words of a heading below which it is told how that was checked.
const ASKS_HOW: [&str; 6] = ["test", "verif", "validat", "qa", "checked", "テスト"];
/// A heading over a list that people tick off.
const FOR_PEOPLE: &str = "checklist";

/// A part of a template.
enum Piece {
    /// With the signs before it.
    Heading(&'static str, String),
    Item(String),
    Text(String),
}

/// The section of a change request that a heading asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    What,
    How,
}

/// Returns the text of a change request: `template` with both sections in it.
pub(crate) fn filled(template: &str, about: &str, standing: &str, redactor: &Redactor) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (page, asked) in cut(template) {
        parts.push(page.written(redactor).into_string());
        match asked {
            Some(Section::What) => parts.push(about.to_owned()),
            Some(Section::How) => parts.push(standing.to_owned()),
            None => {}
        }
    }
    // What no heading asks for stands at the beginning, or below what was done.
    let what = parts.iter().position(|part| part == about);
    if !parts.iter().any(|part| part == standing) {
        parts.insert(what.map_or(0, |what| what + 1), standing.to_owned());
    }
    if what.is_none() {
        parts.insert(0, about.to_owned());
    }
    parts.retain(|part| !part.trim().is_empty());
    parts.join("\n\n")
}

/// Returns what is shown of a template.
pub fn pages(template: &str) -> Vec<Page> {
    cut(template).into_iter().map(|(page, _)| page).collect()
}

/// Cuts a template behind the headings that ask for a section, each section once.
fn cut(template: &str) -> Vec<(Page, Option<Section>)> {
    let mut cuts: Vec<(Page, Option<Section>)> = Vec::new();
    let mut page = Page::default();
    let mut items = Vec::new();
    for piece in pieces(template) {
        if !matches!(piece, Piece::Item(_)) {
            page.items(take(&mut items));
        }
        match piece {
            Piece::Item(text) => items.push(Line::from("[ ] ").and(Line::said(&text, LONGEST_LINE))),
            Piece::Text(text) => page.said(&text),
            Piece::Heading(level, text) => {
                page.paragraph(Line::from(level).and(Line::said(&text, LONGEST_LINE)));
                let asked = asked_for(&text).filter(|asked| cuts.iter().all(|(_, other)| *other != Some(*asked)));
                if asked.is_some() {
                    cuts.push((take(&mut page), asked));
                }
            }
        }
    }
    page.items(items);
    cuts.push((page, None));
    cuts
}

/// Returns the section that a heading asks for.
fn asked_for(heading: &str) -> Option<Section> {
    let heading = heading.to_lowercase();
    let asks = |words: &[&str]| words.iter().any(|word| heading.contains(word));
    if heading.contains(FOR_PEOPLE) {
        None
    } else if asks(&ASKS_HOW) {
        Some(Section::How)
    } else if asks(&ASKS_WHAT) {
        Some(Section::What)
    } else {
        None
    }
}

fn pieces(template: &str) -> Vec<Piece> {
    let template: String = template.chars().take(LONGEST).collect();
    let template = visible::markdown(&without_front_matter(&template.replace("\r\n", "\n")));
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut is_code = false;
    for line in template.lines() {
        is_code ^= line.trim_start().starts_with("```");
        let piece = (!is_code).then(|| special(line)).flatten();
        if piece.is_none() {
            text.push_str(line);
            text.push('\n');
            continue;
        }
        if !text.trim().is_empty() {
            pieces.push(Piece::Text(take(&mut text)));
        }
        pieces.extend(piece);
    }
    pieces.push(Piece::Text(text));
    pieces
}

fn special(line: &str) -> Option<Piece> {
    let bare = line.trim_start();
    if let Some(level) = LEVELS.into_iter().find(|level| bare.starts_with(level)) {
        return Some(Piece::Heading(level, bare[level.len()..].trim().to_owned()));
    }
    let item = bare.strip_prefix(['-', '*', '+'])?.trim_start();
    let boxes = ["[ ] ", "[x] ", "[X] "];
    let text = boxes.iter().find_map(|tick| item.strip_prefix(tick))?;
    Some(Piece::Item(text.to_owned()))
}

/// GitHub's templates may begin with settings between two lines of dashes.
fn without_front_matter(template: &str) -> String {
    let rest = template
        .strip_prefix("---\n")
        .and_then(|rest| rest.split_once("\n---\n"));
    rest.map_or_else(|| template.to_owned(), |(_, rest)| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(template: &str) -> String {
        filled(template, "ABOUT", "STANDING", &Redactor::new(&[]))
    }

    #[test]
    fn the_sections_go_where_the_template_asks_for_them() {
        let text = fill(
            "<!-- Thanks! -->\n## What does it change?\n\n## How was it tested?\n<!-- say how -->\n\n## Checklist\n- [x] I ran the tests\n- [ ] docs\n",
        );
        assert_eq!(
            text,
            "## What does it change?\n\nABOUT\n\n## How was it tested?\n\nSTANDING\n\n## Checklist\n\n- [ ] I ran the tests\n- [ ] docs"
        );
    }

    #[test]
    fn a_template_that_asks_for_nothing_stands_behind_the_sections() {
        assert_eq!(fill("Be kind."), "ABOUT\n\nSTANDING\n\nBe kind.");
        assert_eq!(
            fill("# Summary\n\nBe kind."),
            "# Summary\n\nABOUT\n\nSTANDING\n\nBe kind."
        );
        assert_eq!(fill("# Tests\n\nBe kind."), "ABOUT\n\n# Tests\n\nSTANDING\n\nBe kind.");
        assert_eq!(fill(""), "ABOUT\n\nSTANDING");
    }

    #[test]
    fn a_template_does_nothing_by_itself() {
        let text = fill("---\nname: x\n---\n# Summary\n\nFixes #7, cc @all <img src=x>\n\n<!-- coding-agent:end -->");
        for live in ["Fixes #7", "@all", "<img", "<!--", "name: x"] {
            assert!(!text.contains(live), "{live}: {text}");
        }
        assert!(fill(&"long ".repeat(10_000)).len() < 8_000);
    }
}
