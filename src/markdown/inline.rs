//! Writes the inline content of a paragraph, a heading, a table cell or one line of a comment.
//!
//! Text, code spans, line breaks, emphasis. A link or image is written as its text and its address
//! in code, so that nothing is loaded, nobody follows an unseen link, and no page records a
//! reference.

use std::collections::BTreeSet;

use pulldown_cmark::{Event, LinkType, Tag, TagEnd};

use super::escape::{GAP, escaped, push_code};
use super::visible;

/// The tokens of the inline events taken so far.
#[derive(Default)]
pub(super) struct Inline {
    tokens: Vec<Token>,
    /// Text that is not a token yet.
    text: String,
    /// Addresses of the open links and images, innermost last.
    addresses: Vec<String>,
    depth: usize,
    is_cell: bool,
}

enum Token {
    /// Escaped text.
    Text(String),
    Code(String),
    Break,
    /// An emphasis delimiter.
    Mark(&'static str, End),
    /// A boundary across which two texts must not become one word.
    Seam,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Opens,
    Closes,
}

impl Inline {
    /// Returns empty content that is kept on one line, as in a table cell.
    pub(super) fn cell() -> Self {
        Self {
            is_cell: true,
            ..Self::default()
        }
    }

    /// Takes an inline event; returns false for any other. An address that several reference links
    /// share is written for the first only, or a short text would become a long one.
    pub(super) fn take(&mut self, event: &Event<'_>, told: &mut BTreeSet<String>) -> bool {
        match event {
            Event::Text(text)
            | Event::Html(text)
            | Event::InlineHtml(text)
            | Event::InlineMath(text)
            | Event::DisplayMath(text)
            | Event::FootnoteReference(text) => self.text.push_str(text),
            Event::Code(code) => self.code(code),
            Event::SoftBreak | Event::HardBreak => self.line_break(),
            Event::Start(Tag::Emphasis) => self.mark("*", End::Opens),
            Event::End(TagEnd::Emphasis) => self.mark("*", End::Closes),
            Event::Start(Tag::Strong) => self.mark("**", End::Opens),
            Event::End(TagEnd::Strong) => self.mark("**", End::Closes),
            Event::Start(
                Tag::Link {
                    link_type, dest_url, ..
                }
                | Tag::Image {
                    link_type, dest_url, ..
                },
            ) => {
                let is_itself = matches!(link_type, LinkType::Autolink | LinkType::Email);
                let is_new = !is_itself && (*link_type == LinkType::Inline || told.insert(dest_url.to_string()));
                self.seam();
                self.addresses
                    .push(if is_new { dest_url.to_string() } else { String::new() });
            }
            Event::End(TagEnd::Link | TagEnd::Image) => self.end_link(),
            Event::Start(Tag::Strikethrough | Tag::Superscript | Tag::Subscript)
            | Event::End(TagEnd::Strikethrough | TagEnd::Superscript | TagEnd::Subscript) => self.seam(),
            Event::Start(_) | Event::End(_) | Event::Rule | Event::TaskListMarker(_) => return false,
        }
        true
    }

    /// Breaks the line; adds a space in one-line content.
    fn line_break(&mut self) {
        if self.is_cell {
            self.text.push(' ');
            return;
        }
        self.flush();
        self.tokens.push(Token::Break);
    }

    fn code(&mut self, code: &str) {
        self.flush();
        let code = visible::plain(code).trim().to_owned();
        if self.is_cell && code.contains('|') {
            // Parsers differ in how they split cells before they look for code.
            self.tokens.push(Token::Seam);
            self.text.push_str(&code);
            self.seam();
        } else if !code.is_empty() {
            self.tokens.push(Token::Code(code));
        }
    }

    fn end_link(&mut self) {
        let address = self.addresses.pop().unwrap_or_default();
        let address = visible::plain(&address).trim().to_owned();
        if address.is_empty() || self.text.trim() == address {
            return self.seam();
        }
        self.text.push_str(" (");
        self.code(&address);
        self.text.push(')');
        self.seam();
    }

    fn mark(&mut self, signs: &'static str, end: End) {
        self.flush();
        if end == End::Closes {
            self.depth = self.depth.saturating_sub(1);
        }
        // Parsers differ most in nested emphasis.
        let token = if self.depth == 0 {
            Token::Mark(signs, end)
        } else {
            Token::Seam
        };
        self.tokens.push(token);
        if end == End::Opens {
            self.depth += 1;
        }
    }

    fn seam(&mut self) {
        self.flush();
        self.tokens.push(Token::Seam);
    }

    fn flush(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let text = visible::plain(&std::mem::take(&mut self.text)).replace(['\n', '\t'], " ");
        let at_start = self.is_at_start();
        let text = if at_start { text.trim_start_matches(' ') } else { &text };
        if !text.is_empty() {
            self.tokens.push(Token::Text(escaped(text, at_start)));
        }
    }

    /// Returns true if the current line is empty.
    fn is_at_start(&self) -> bool {
        let line = self.tokens.iter().rev();
        let mut line = line.take_while(|token| !matches!(token, Token::Break));
        !line.any(|token| matches!(token, Token::Text(_) | Token::Code(_)))
    }

    /// Returns the Markdown.
    pub(super) fn written(mut self) -> String {
        self.flush();
        let mut out = String::new();
        let mut open = false;
        for (at, token) in self.tokens.iter().enumerate() {
            match token {
                Token::Text(text) => join(&mut out, text),
                Token::Code(code) => push_code(&mut out, code),
                Token::Break => {
                    out.truncate(out.trim_end_matches(' ').len());
                    if !out.is_empty() && !out.ends_with('\n') {
                        out.push('\n');
                    }
                }
                Token::Mark(signs, End::Opens) => {
                    open = self.is_emphasis(at, &out);
                    if open {
                        out.push_str(signs);
                    } else {
                        self.part(at, &mut out);
                    }
                }
                Token::Mark(signs, End::Closes) if open => {
                    out.push_str(signs);
                    open = false;
                }
                Token::Mark(_, End::Closes) | Token::Seam => self.part(at, &mut out),
            }
        }
        out.truncate(out.trim_end_matches([' ', '\n']).len());
        out
    }

    /// Returns true if every Markdown parser takes the mark at `at` and the next closing one as
    /// emphasis: alphanumeric characters at both inner ends, or whitespace outside.
    fn is_emphasis(&self, at: usize, out: &str) -> bool {
        let is_end = |token: &Token| matches!(token, Token::Mark(_, End::Closes));
        let Some(end) = self.tokens[at..].iter().position(is_end).map(|end| at + end) else {
            return false;
        };
        let inside = &self.tokens[at + 1..end];
        let (Some(first), Some(last)) = (inside.first().and_then(first_of), inside.last().and_then(last_of)) else {
            return false;
        };
        let is_apart = |sign: Option<char>| sign.is_none_or(char::is_whitespace);
        let follows = self.tokens.get(end + 1);
        let follows = match follows {
            None | Some(Token::Break) => None,
            Some(token) => Some(first_of(token).unwrap_or('*')),
        };
        let before = out.chars().next_back();
        before != Some('*')
            && !first.is_whitespace()
            && !last.is_whitespace()
            && (first.is_alphanumeric() || is_apart(before))
            && (last.is_alphanumeric() || is_apart(follows))
    }

    /// Inserts a gap if the texts around the token at `at` would become one word.
    fn part(&self, at: usize, out: &mut String) {
        let next = self.tokens.get(at + 1).and_then(first_of);
        let is_within = |sign: Option<char>| sign.is_some_and(|sign| !sign.is_whitespace());
        if is_within(out.chars().next_back()) && is_within(next) && !out.ends_with(GAP) {
            out.push(GAP);
        }
    }
}

fn first_of(token: &Token) -> Option<char> {
    match token {
        Token::Text(text) => text.chars().next(),
        Token::Code(_) => Some('`'),
        Token::Break | Token::Mark(..) | Token::Seam => None,
    }
}

fn last_of(token: &Token) -> Option<char> {
    match token {
        Token::Text(text) => text.chars().next_back(),
        Token::Code(_) => Some('`'),
        Token::Break | Token::Mark(..) | Token::Seam => None,
    }
}

fn join(out: &mut String, text: &str) {
    let is_link = out.ends_with(']') && text.starts_with(['(', '[', ':', '{']);
    let is_span = out.ends_with('`') && text.starts_with('`');
    if is_link || is_span {
        out.push(GAP);
    }
    out.push_str(text);
}
