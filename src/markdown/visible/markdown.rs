//! What is seen of Markdown, as GitHub and GitLab render it: the text's own words, kept as they
//! were written.
//!
//! The parser tells where everything stands; the source is copied, and what is not seen is left out
//! of the copy. Rendering to plain text instead would lose lists, tables and code, which the model
//! reads as well as people read the page.

use std::collections::BTreeSet;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, LinkType, Options, Parser, Tag, TagEnd};

use super::html::Hidden;

/// The longest name of a language behind a code block's fence.
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
            // What stands inside was dealt with as a whole.
            for (event, _) in events.by_ref() {
                if event == Event::End(end) {
                    break;
                }
            }
        }
    }
    reading.written()
}

fn parser(text: &str) -> Parser<'_> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM;
    Parser::new_ext(text, options)
}

/// Returns the notes that the text mentions: the others are not shown.
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
    /// What stands in the place of a range.
    edits: Vec<(Range<usize>, String)>,
    /// Ranges that are seen but for the edits. Between them are the marks of lists and quotes, and
    /// definitions of links, which nobody sees.
    covered: Vec<Range<usize>>,
    /// The link that is open.
    link: Option<Link>,
    /// Where links lead that have no address of their own, and one of which told it.
    defined: BTreeSet<String>,
    hidden: Hidden,
    dropped: Vec<Range<usize>>,
}

struct Link {
    range: Range<usize>,
    /// Where it leads, if that is to be told.
    address: Option<String>,
    /// Its text.
    inner: Option<Range<usize>>,
}

impl Reading<'_> {
    /// Takes the next event. Returns what ends the part that was dealt with as a whole.
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
                // One definition may serve many links: a short text would become a long one if each
                // told where it leads.
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
            // The first of a name is shown.
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

    /// Keeps a link's text and address; a title is seen by whoever waits above it, a link without a
    /// text by nobody.
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

    /// Keeps only the language of what stands behind a code block's fence.
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

    /// Leaves out the comments of a diagram, of which only the picture is seen.
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
        // Of what begins at the same place the longest counts.
        self.edits
            .sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let mut seen = String::with_capacity(end);
        let mut at = 0;
        for (range, instead) in self.edits {
            if range.start < at {
                // It lies in what was left out or written already, or reaches beyond it.
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

/// Tells whether an event spans blocks or cells, between which there may be what is not seen.
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

/// Returns what the ranges leave between 0 and `end`.
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

/// Returns what is seen of a text between blocks: the marks of lists, quotes, tables and notes that
/// its lines begin with.
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
