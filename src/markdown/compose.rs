//! Comments and bodies of the bot, put together of parts.
//!
//! The program's own words are known when it is compiled (`'static`); whatever else comes in is
//! code, a name, a figure or something said, and is written so that it stays where it was put.
//! There is no way to put in a text as it is. Secrets go before anything is written in Markdown,
//! whose backslashes would tear them apart, and once more from the whole.

use super::block::{Block, written};
use super::code::{code, fenced};
use super::escape::{escaped, push_code};
use super::sanitize::{blocks, line};
use super::visible;
use crate::conversation::excerpt::middle_cut;
use crate::secret::{Clean, Redactor};

/// Most bytes of one text that somebody said.
const LONGEST_SAID: usize = 16 * 1024;
/// Most characters of a name.
const LONGEST_NAME: usize = 200;

/// Words on one line.
#[derive(Debug, Clone, Default)]
pub struct Line(Vec<Piece>);

#[derive(Debug, Clone)]
enum Piece {
    Own(&'static str),
    Figures(String),
    Code(String),
    Name(String),
    Said { text: String, most: usize },
    Address(String),
}

impl From<&'static str> for Line {
    /// The program's own words, as Markdown.
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

    /// Numbers and their units. Of other signs than those of figures nothing is left.
    pub fn figures(text: &str) -> Self {
        let is_of_figures = |letter: &char| letter.is_ascii_alphanumeric() || " .,:;·()$%-".contains(*letter);
        Self(vec![Piece::Figures(text.chars().filter(is_of_figures).collect())])
    }

    /// A command, a path, a label, a branch: shown as it is.
    pub fn code(text: &str) -> Self {
        Self(vec![Piece::Code(text.to_owned())])
    }

    /// A name, or a plain text that is no Markdown.
    pub fn name(text: &str) -> Self {
        Self(vec![Piece::Name(text.to_owned())])
    }

    /// What somebody said, as one line of at most `most` characters.
    pub fn said(text: &str, most: usize) -> Self {
        Self(vec![Piece::Said {
            text: text.to_owned(),
            most,
        }])
    }

    /// An address that the forge gave, which stays a link.
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
                    // Of nothing a span cannot be made.
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

/// Returns an address as it is, if it is one and has no sign of Markdown in it; else as code.
fn address(url: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-._/:?=&%+#".contains(letter);
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    if is_web && url.chars().all(is_plain) && !url.contains('&') {
        url.to_owned()
    } else {
        code(url)
    }
}

/// A comment or a body, part below part.
#[derive(Debug, Clone, Default)]
pub struct Page(Vec<Part>);

#[derive(Debug, Clone)]
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
    /// The program's own words, as Markdown.
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

    /// The program's own words, as Markdown.
    pub fn own(&mut self, words: &'static str) {
        self.0.push(Part::Own(words));
    }

    /// A list; nothing where there are no items.
    pub fn items(&mut self, items: Vec<Line>) {
        if !items.is_empty() {
            self.0.push(Part::Items(items));
        }
    }

    /// What a model or a stranger said, as Markdown; nothing where it is empty.
    pub fn said(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.0.push(Part::Said(text.to_owned()));
        }
    }

    /// A warning, set apart.
    pub fn note(&mut self, text: &str) {
        self.0.push(Part::Note(text.to_owned()));
    }

    /// A block of code.
    pub fn code(&mut self, text: &str) {
        self.0.push(Part::Code(text.to_owned()));
    }

    /// A page that is folded up.
    pub fn details(&mut self, summary: impl Into<Line>, page: Self) {
        self.0.push(Part::Details(summary.into(), page));
    }

    /// Lines in small letters.
    pub fn small(&mut self, lines: Vec<Line>) {
        self.0.push(Part::Small(lines));
    }

    /// Closes an item when the change is merged. Nothing else does.
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
    // Cut behind the search for secrets: half of one is none.
    let text = redactor.clean(&visible::plain(text));
    blocks(&middle_cut(text.as_str(), LONGEST_SAID, None))
}
