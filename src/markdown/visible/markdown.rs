//! Returns the visible part of Markdown, as GitHub and GitLab render it, in the text's own words.
//!
//! The source is copied without the ranges that the parser's events show to be invisible. Rendering
//! to plain text instead would lose lists, tables and code, which help the model as they help
//! readers of the page.

use std::collections::BTreeSet;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd};

use super::html::Hidden;

/// Maximum length of a code block's language.
const LONGEST_LANGUAGE: usize = 20;

pub(super) fn seen(text: &str) -> String {
    let mut reading = Reading {
        text,
        mentioned: mentioned(text),
        ..Reading::default()
    };
    let mut events = parser(text).into_offset_iter();
    while let Some((event, range)) = events.next() {
        if let Some(end) = reading.take(event, range) {
            // The inner events were handled as a whole.
            for (event, _) in events.by_ref() {
                if event == Event::End(end) {
                    break;
                }
            }
        }
    }
    reading.written()
}

pub(super) fn parser(text: &str) -> Parser<'_> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM;
    Parser::new_ext(text, options)
}

/// Returns the names of the referenced footnotes: others are not shown.
fn mentioned(text: &str) -> BTreeSet<String> {
    parser(text)
        .filter_map(|event| match event {
            Event::FootnoteReference(name) => Some(name.into_string()),
            _ => None,
        })
        .collect()
}

#[derive(Default)]
struct Reading<'a> {
    text: &'a str,
    mentioned: BTreeSet<String>,
    /// Replacements of ranges.
    edits: Vec<(Range<usize>, String)>,
    /// Ranges that are visible except for the edits. Between them are markers of lists and quotes,
    /// and link definitions, which are invisible.
    covered: Vec<Range<usize>>,
    /// The open link.
    link: Option<Link>,
    /// Addresses of reference links that were already written once.
    defined: BTreeSet<String>,
    hidden: Hidden,
    dropped: Vec<Range<usize>>,
}

struct Link {
    range: Range<usize>,
    /// Its address, if it is to be written.
    address: Option<String>,
    /// The range of its text.
    inner: Option<Range<usize>>,
}

impl Reading<'_> {
    /// Takes the next event. If it handled a whole element, returns the event that ends it.
    fn take(&mut self, event: Event<'_>, range: Range<usize>) -> Option<TagEnd> {
        if let Some(link) = &mut self.link
            && link.range != range
        {
            let before = link.inner.get_or_insert(range.clone());
            *before = before.start.min(range.start)..before.end.max(range.end);
        }
        if !is_container(&event) {
            self.covered.push(range.clone());
        }
        match event {
            Event::Start(Tag::HtmlBlock) => {
                self.html(range);
                return Some(TagEnd::HtmlBlock);
            }
            Event::Html(_) | Event::InlineHtml(_) => self.html(range),
            Event::Start(Tag::Image { .. }) => {
                self.edits.push((range, "[image]".to_owned()));
                return Some(TagEnd::Image);
            }
            Event::Start(Tag::Link {
                link_type, dest_url, ..
            }) if !matches!(link_type, LinkType::Autolink | LinkType::Email) => {
                let address = dest_url.into_string();
                // One definition may serve many links: written for each, its address would make a
                // long text of a short one.
                let is_new = link_type == LinkType::Inline || self.defined.insert(address.clone());
                self.link = Some(Link {
                    range,
                    address: is_new.then_some(address),
                    inner: None,
                });
            }
            Event::End(TagEnd::Link) => self.end_link(),
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                self.fence(&range);
                if language.trim_start().starts_with("mermaid") {
                    self.diagram(&range);
                }
            }
            // Only the first definition of a footnote is shown.
            Event::Start(Tag::FootnoteDefinition(name)) if !self.mentioned.remove(name.as_ref()) => {
                self.dropped.push(range);
            }
            _ => {}
        }
        None
    }

    fn html(&mut self, range: Range<usize>) {
        let seen = self.hidden.text(&self.text[range.clone()], range.start);
        self.edits.push((range, seen));
    }

    /// Keeps a link's text and address. Its title shows only on hovering, and a link without a text
    /// not at all: both are dropped.
    fn end_link(&mut self) {
        let Some(Link { range, address, inner }) = self.link.take() else {
            return;
        };
        match inner {
            Some(inner) if inner.start < inner.end => {
                self.edits.push((range.start..inner.start, "[".to_owned()));
                let end = address.map_or("]".to_owned(), |address| format!("]({address})"));
                self.edits.push((inner.end..range.end, end));
            }
            _ => self.dropped.push(range),
        }
    }

    /// Reduces a code block's info string to its language.
    fn fence(&mut self, range: &Range<usize>) {
        let line = self.text[range.clone()].lines().next().unwrap_or_default();
        let information = line.trim_start_matches(['`', '~']);
        let start = range.start + line.len() - information.len();
        let language: String = information
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .chars()
            .filter(|letter| letter.is_ascii_alphanumeric() || "+-#._".contains(*letter))
            .take(LONGEST_LANGUAGE)
            .collect();
        if information.trim_end() != language {
            self.edits.push((start..range.start + line.len(), language));
        }
    }

    /// Drops the comments of a diagram, which only shows as a picture.
    fn diagram(&mut self, range: &Range<usize>) {
        let mut at = range.start;
        for line in self.text[range.clone()].split_inclusive('\n') {
            if line.trim_start_matches(['>', ' ', '\t']).starts_with("%%") {
                self.dropped.push(at..at + line.len());
            }
            at += line.len();
        }
    }

    fn written(mut self) -> String {
        let end = self.text.len();
        self.dropped.extend(self.hidden.into_spans(end));
        let gaps = gaps(self.covered, end);
        let marks = gaps.into_iter().map(|gap| (gap.clone(), marks(&self.text[gap])));
        let dropped = self.dropped.into_iter().map(|range| (range, String::new()));
        self.edits.extend(marks);
        self.edits.extend(dropped);
        // Of edits with the same start, the longest wins.
        self.edits
            .sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let mut seen = String::with_capacity(end);
        let mut at = 0;
        for (range, instead) in self.edits {
            if range.start < at {
                // It overlaps an edit that was already written.
                at = at.max(range.end);
                continue;
            }
            seen.push_str(&self.text[at..range.start]);
            seen.push_str(&instead);
            at = range.end;
        }
        seen.push_str(&self.text[at..]);
        seen
    }
}

/// Returns true if an event spans blocks or cells, which may have invisible text between them.
fn is_container(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::Start(
            Tag::BlockQuote(_)
                | Tag::List(_)
                | Tag::Item
                | Tag::FootnoteDefinition(_)
                | Tag::Table(_)
                | Tag::TableHead
                | Tag::TableRow
        ) | Event::End(
            TagEnd::BlockQuote(_)
                | TagEnd::List(_)
                | TagEnd::Item
                | TagEnd::FootnoteDefinition
                | TagEnd::Table
                | TagEnd::TableHead
                | TagEnd::TableRow
        )
    )
}

/// Returns the gaps between the ranges, from 0 to `end`.
fn gaps(mut covered: Vec<Range<usize>>, end: usize) -> Vec<Range<usize>> {
    covered.sort_by_key(|range| range.start);
    let mut gaps = Vec::new();
    let mut at = 0;
    for range in covered {
        if range.start > at {
            gaps.push(at..range.start);
        }
        at = at.max(range.end);
    }
    if at < end {
        gaps.push(at..end);
    }
    gaps
}

/// Returns the visible part of text between blocks: the leading markers of lists, quotes, tables
/// and footnotes.
fn marks(gap: &str) -> String {
    let is_mark = |letter: char| letter.is_whitespace() || letter.is_ascii_digit() || ">-*+.)|:".contains(letter);
    let mut marks = String::new();
    for line in gap.split_inclusive('\n') {
        let content = line.trim_end_matches('\n');
        let note = content.trim_start_matches(is_mark);
        let is_note = note.starts_with("[^") && note.trim_end().ends_with("]:");
        let length = if is_note {
            content.len()
        } else {
            content.len() - note.len()
        };
        marks.push_str(&content[..length]);
        marks.push_str(&line[content.len()..]);
    }
    marks
}
