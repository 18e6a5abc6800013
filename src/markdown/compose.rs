//! Builds the bot's comments and bodies from parts.
//!
//! The program's own words are `'static`. All other text is added as code, a name, figures or
//! quoted text, and is escaped so that it has no effect beyond its place; raw text cannot be added.
//! Secrets are removed before escaping, whose backslashes would split them, and once more from the
//! whole.

use super::block::{Block, written};
use super::code::{code, fenced};
use super::escape::{escaped, push_code};
use super::sanitize::{blocks, line};
use super::visible;
use crate::conversation::excerpt::middle_cut;
use crate::secret::{Clean, Redactor};

/// Maximum bytes of one quoted text.
const LONGEST_SAID: usize = 16 * 1024;
/// Maximum characters of a name.
const LONGEST_NAME: usize = 200;

/// Inline content of one line.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Line(Vec<Piece>);

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Own(&'static str),
    Figures(String),
    Code(String),
    Name(String),
    Said { text: String, most: usize },
    Address(String),
}

impl From<&'static str> for Line {
    /// Adds the program's own words, which are Markdown.
    fn from(words: &'static str) -> Self {
        Self(vec![Piece::Own(words)])
    }
}

impl Line {
    /// Returns the program's own words with `parts` in the place of each `{}`.
    pub fn filled<const PARTS: usize>(words: &'static str, parts: [Self; PARTS]) -> Self {
        let mut line = Vec::new();
        let mut parts = parts.into_iter();
        for (number, own) in words.split("{}").enumerate() {
            if number > 0 {
                line.extend(parts.next().unwrap_or_default().0);
            }
            line.push(Piece::Own(own));
        }
        Self(line)
    }

    /// Returns numbers and their units. Any character that does not belong in figures is removed.
    pub fn figures(text: &str) -> Self {
        let is_of_figures = |letter: &char| letter.is_ascii_alphanumeric() || " .,:;·()$%-".contains(*letter);
        Self(vec![Piece::Figures(text.chars().filter(is_of_figures).collect())])
    }

    /// Returns a command, a path, a label or a branch as a code span.
    pub fn code(text: &str) -> Self {
        Self(vec![Piece::Code(text.to_owned())])
    }

    /// Returns a name or another plain text, escaped.
    pub fn name(text: &str) -> Self {
        Self(vec![Piece::Name(text.to_owned())])
    }

    /// Returns text of a model or a stranger, sanitized, as one line of at most `most` characters.
    pub fn said(text: &str, most: usize) -> Self {
        Self(vec![Piece::Said {
            text: text.to_owned(),
            most,
        }])
    }

    /// Returns an address from the forge, which stays a link.
    pub fn address(url: &str) -> Self {
        Self(vec![Piece::Address(url.to_owned())])
    }

    #[must_use]
    pub fn and(mut self, other: impl Into<Self>) -> Self {
        self.0.extend(other.into().0);
        self
    }

    fn written(&self, redactor: &Redactor) -> String {
        let clean = |text: &str| redactor.clean(&visible::plain(text)).into_string();
        self.0.iter().fold(String::new(), |mut out, piece| {
            match piece {
                Piece::Own(words) => out.push_str(words),
                Piece::Figures(text) => out.push_str(text),
                Piece::Code(text) => {
                    let text = clean(text);
                    // There is no empty code span.
                    push_code(&mut out, if text.trim().is_empty() { "?" } else { &text });
                }
                Piece::Name(text) => {
                    let text: String = visible::line(&clean(text)).chars().take(LONGEST_NAME).collect();
                    out.push_str(&escaped(&text, out.is_empty()));
                }
                Piece::Said { text, most } => out.push_str(&line(&clean(text), *most)),
                Piece::Address(url) => out.push_str(&address(&clean(url))),
            }
            out
        })
    }
}

/// Returns a web address without special characters as it is, anything else as code.
fn address(url: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._/:?=&%+#".contains(letter);
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    if is_web && url.chars().all(is_plain) && !url.contains('&') {
        url.to_owned()
    } else {
        code(url)
    }
}

/// A comment or a body, as a sequence of parts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page(Vec<Part>);

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Own(&'static str),
    Heading(Line),
    Paragraph(Line),
    Items(Vec<Line>),
    Said(String),
    Note(String),
    Code(String),
    Details(Line, Page),
    Small(Vec<Line>),
    Closes(u64),
}

impl From<&'static str> for Page {
    /// Adds the program's own words, which are Markdown.
    fn from(words: &'static str) -> Self {
        Self(vec![Part::Own(words)])
    }
}

impl Page {
    pub fn heading(&mut self, line: impl Into<Line>) {
        self.0.push(Part::Heading(line.into()));
    }

    pub fn paragraph(&mut self, line: impl Into<Line>) {
        self.0.push(Part::Paragraph(line.into()));
    }

    /// Adds the program's own words, which are Markdown.
    pub fn own(&mut self, words: &'static str) {
        self.0.push(Part::Own(words));
    }

    /// Adds a list, unless `items` is empty.
    pub fn items(&mut self, items: Vec<Line>) {
        if !items.is_empty() {
            self.0.push(Part::Items(items));
        }
    }

    /// Adds Markdown of a model or a stranger, sanitized, unless it is empty.
    pub fn said(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.0.push(Part::Said(text.to_owned()));
        }
    }

    /// Adds a warning as a quote.
    pub fn note(&mut self, text: &str) {
        self.0.push(Part::Note(text.to_owned()));
    }

    /// Adds a code block.
    pub fn code(&mut self, text: &str) {
        self.0.push(Part::Code(text.to_owned()));
    }

    /// Adds a collapsed section.
    pub fn details(&mut self, summary: impl Into<Line>, page: Self) {
        self.0.push(Part::Details(summary.into(), page));
    }

    /// Adds lines in small print.
    pub fn small(&mut self, lines: Vec<Line>) {
        self.0.push(Part::Small(lines));
    }

    /// Adds the line that closes an item when the change is merged; no other part can close one.
    pub fn closes(&mut self, number: u64) {
        self.0.push(Part::Closes(number));
    }

    /// Returns the Markdown, without secrets.
    pub fn written(&self, redactor: &Redactor) -> Clean {
        redactor.clean(&self.markdown(redactor))
    }

    fn markdown(&self, redactor: &Redactor) -> String {
        let parts = self.0.iter().map(|part| part.markdown(redactor));
        let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
        parts.join("\n\n")
    }
}

impl Part {
    fn markdown(&self, redactor: &Redactor) -> String {
        match self {
            Self::Own(words) => (*words).to_owned(),
            Self::Heading(line) => format!("### {}", line.written(redactor)),
            Self::Paragraph(line) => line.written(redactor),
            Self::Items(items) => {
                let items: Vec<_> = items
                    .iter()
                    .map(|item| format!("- {}", item.written(redactor)))
                    .collect();
                items.join("\n")
            }
            Self::Said(text) => written(&said(text, redactor)),
            Self::Note(text) => {
                let mut blocks = said(text, redactor);
                match blocks.first_mut() {
                    Some(Block::Paragraph(text)) => text.insert_str(0, "⚠️ "),
                    _ => blocks.insert(0, Block::Paragraph("⚠️".to_owned())),
                }
                written(&[Block::Quote(blocks)])
            }
            Self::Code(text) => fenced(redactor.clean(&visible::plain(text)).as_str()),
            Self::Details(summary, page) => format!(
                "<details><summary>{}</summary>\n\n{}\n\n</details>",
                summary.written(redactor),
                page.markdown(redactor)
            ),
            Self::Small(lines) => {
                let lines: Vec<_> = lines.iter().map(|line| line.written(redactor)).collect();
                format!("<sub>{}</sub>", lines.join("<br>"))
            }
            Self::Closes(number) => format!("Closes #{number}"),
        }
    }
}

fn said(text: &str, redactor: &Redactor) -> Vec<Block> {
    // Cut after secrets were removed: half a secret would not be recognized.
    let text = redactor.clean(&visible::plain(text));
    blocks(&middle_cut(text.as_str(), LONGEST_SAID, None))
}
