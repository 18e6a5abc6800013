//! Sanitizes Markdown of a model or a stranger for a comment under the bot's name.
//!
//! The text is parsed once and written again from the parser's events. Paragraphs, headings,
//! emphasis, lists, quotes, tables and code come out in one plain form that all Markdown parsers
//! read alike; everything else becomes visible text: HTML, images, links, definitions. So the text
//! cannot mention people, command a bot, close or mention an item, load an image, hide what follows
//! or break out of its place. Disarming the text by patterns instead was tried: each parser finds
//! the beginnings and ends of code elsewhere.
//!
//! Does not judge the content and does not remove secrets.

use std::collections::BTreeSet;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::block::Block;
use super::escape::escaped;
use super::inline::Inline;
use super::visible;
use crate::plain::one_line;

/// Maximum nesting of quotes and lists; deeper ones are flattened.
const DEEPEST: usize = 6;
/// Maximum columns of a table: rows are padded, so a wide head would make a short text long.
const MOST_COLUMNS: usize = 20;

/// Parses `text` into blocks that keep its words and have no effect.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut reading = Reading::new(&text);
    for (event, range) in Parser::new_ext(&text, Options::ENABLE_TABLES).into_offset_iter() {
        reading.take(&event, range);
    }
    reading.end()
}

/// Returns `text` on one line, cut to `most` characters and sanitized.
pub(super) fn line(text: &str, most: usize) -> String {
    let text = one_line(text);
    let end = text.char_indices().nth(most).map(|(end, _)| end);
    let text = end.map_or_else(|| text.clone(), |end| format!("{}…", &text[..end]));
    // With a word in front, the text cannot begin a block.
    let page = format!("{OTHER_WORDS} {text}");
    let mut inline = Inline::cell();
    let mut told = BTreeSet::new();
    let mut is_first = true;
    for event in Parser::new(&page) {
        match event {
            Event::Text(text) if std::mem::take(&mut is_first) => {
                let text = text.strip_prefix(OTHER_WORDS).unwrap_or(&text).to_owned();
                inline.take(&Event::Text(text.into()), &mut told);
            }
            event => {
                inline.take(&event, &mut told);
            }
        }
    }
    inline.written()
}

const OTHER_WORDS: &str = "Line:";

/// Builds blocks from the parser's events.
struct Reading<'text> {
    text: &'text str,
    /// The open containers, the page first.
    open: Vec<Container>,
    /// Number of open containers that are flattened.
    passed_over: usize,
    inline: Option<Inline>,
    leaf: Leaf,
    /// Addresses of reference links that were already written once.
    told: BTreeSet<String>,
    /// End of the source that was handled.
    seen: usize,
}

/// An open container and its blocks.
enum Container {
    Page(Vec<Block>),
    Quote(Vec<Block>),
    List {
        start: Option<u64>,
        is_loose: bool,
        items: Vec<Vec<Block>>,
    },
    Item(Vec<Block>),
}

/// The open leaf block.
enum Leaf {
    Paragraph,
    Heading,
    Code { language: String, text: String },
    Html(String),
    Table { columns: usize, rows: Vec<Vec<String>> },
}

impl<'text> Reading<'text> {
    fn new(text: &'text str) -> Self {
        Self {
            text,
            open: vec![Container::Page(Vec::new())],
            passed_over: 0,
            inline: None,
            leaf: Leaf::Paragraph,
            told: BTreeSet::new(),
            seen: 0,
        }
    }

    fn take(&mut self, event: &Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(Tag::TableHead | Tag::TableRow) => {
                if let Leaf::Table { rows, .. } = &mut self.leaf {
                    rows.push(Vec::new());
                }
            }
            Event::Start(Tag::TableCell) => self.inline = Some(Inline::cell()),
            Event::End(TagEnd::TableCell) => self.end_cell(),
            Event::Start(tag) if is_block(tag) => self.begin(tag, &range),
            Event::End(end) if ends_a_block(*end) => self.end_block(*end, &range),
            Event::Rule => {
                self.before_block(range.start);
                self.add(Block::Rule);
                self.seen = range.end;
            }
            event => self.line(event, &range),
        }
    }

    /// Takes an inline event; text directly in a list item begins a paragraph.
    fn line(&mut self, event: &Event<'_>, range: &Range<usize>) {
        let text = match &mut self.leaf {
            Leaf::Code { text, .. } | Leaf::Html(text) => Some(text),
            Leaf::Paragraph | Leaf::Heading | Leaf::Table { .. } => None,
        };
        if let (Some(text), Event::Text(more) | Event::Html(more)) = (text, event) {
            text.push_str(more);
        } else {
            let inline = self.inline.get_or_insert_default();
            inline.take(event, &mut self.told);
        }
        self.seen = self.seen.max(range.end);
    }

    fn begin(&mut self, tag: &Tag<'_>, range: &Range<usize>) {
        self.before_block(range.start);
        let container = match tag {
            Tag::BlockQuote(_) => Container::Quote(Vec::new()),
            Tag::List(start) => Container::List {
                start: *start,
                is_loose: false,
                items: Vec::new(),
            },
            Tag::Item => Container::Item(Vec::new()),
            Tag::CodeBlock(kind) => {
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.leaf = Leaf::Code {
                    language,
                    text: String::new(),
                };
                return;
            }
            Tag::HtmlBlock => {
                self.leaf = Leaf::Html(String::new());
                return;
            }
            Tag::Table(columns) => {
                self.leaf = Leaf::Table {
                    columns: columns.len(),
                    rows: Vec::new(),
                };
                return;
            }
            Tag::Heading { .. } => {
                self.leaf = Leaf::Heading;
                self.inline = Some(Inline::cell());
                return;
            }
            _ => {
                if let [.., Container::List { is_loose, .. }, Container::Item(_)] = self.open.as_mut_slice() {
                    *is_loose = true;
                }
                self.inline = Some(Inline::default());
                return;
            }
        };
        // An item is kept if and only if its list is.
        let deepest = DEEPEST + usize::from(matches!(container, Container::Item(_)));
        if self.passed_over > 0 || self.open.len() > deepest {
            self.passed_over += 1;
        } else {
            self.open.push(container);
        }
        self.seen = self.seen.max(range.start);
    }

    fn end_block(&mut self, end: TagEnd, range: &Range<usize>) {
        match end {
            TagEnd::BlockQuote(_) | TagEnd::List(_) | TagEnd::Item => self.end_container(range.end),
            TagEnd::CodeBlock | TagEnd::HtmlBlock | TagEnd::Table => self.end_leaf(),
            TagEnd::TableHead | TagEnd::TableRow => {}
            _ => self.end_line(),
        }
        self.seen = self.seen.max(range.end);
    }

    fn end_container(&mut self, end: usize) {
        self.before_block(end);
        if self.passed_over > 0 {
            self.passed_over -= 1;
            return;
        }
        match self.open.pop() {
            Some(Container::Quote(blocks)) => self.add(Block::Quote(blocks)),
            Some(Container::List { start, is_loose, items }) => self.add(Block::List { start, is_loose, items }),
            Some(Container::Item(blocks)) => match self.open.last_mut() {
                Some(Container::List { items, .. }) if !blocks.is_empty() => items.push(blocks),
                _ => {}
            },
            Some(page @ Container::Page(_)) => self.open.push(page),
            None => {}
        }
    }

    fn end_cell(&mut self) {
        let cell = self.inline.take().unwrap_or_default().written();
        if let Leaf::Table { rows, .. } = &mut self.leaf
            && let Some(row) = rows.last_mut()
        {
            row.push(cell);
        }
    }

    fn end_leaf(&mut self) {
        let block = match std::mem::replace(&mut self.leaf, Leaf::Paragraph) {
            Leaf::Code { language, text } => Block::Code {
                language,
                text: visible::plain(&text).into_owned(),
            },
            Leaf::Html(text) => Block::Paragraph(lines(&text)),
            Leaf::Table { columns, rows } if columns <= MOST_COLUMNS => Block::Table { columns, rows },
            Leaf::Table { rows, .. } => {
                let rows: Vec<_> = rows.iter().map(|row| row.join(" ")).collect();
                Block::Paragraph(rows.join("\n"))
            }
            Leaf::Paragraph | Leaf::Heading => return,
        };
        self.add(block);
    }

    /// Ends a paragraph or heading, if one is open.
    fn end_line(&mut self) {
        let Some(inline) = self.inline.take() else { return };
        let text = inline.written();
        let leaf = std::mem::replace(&mut self.leaf, Leaf::Paragraph);
        self.add(match leaf {
            Leaf::Heading => Block::Heading(text),
            _ => Block::Paragraph(text),
        });
    }

    /// Ends the text of an item, and writes link definitions before the next block as text: the
    /// parser has no event for them.
    fn before_block(&mut self, at: usize) {
        self.end_line();
        let Some(gap) = self.text.get(self.seen..at).filter(|gap| gap.contains("]:")) else {
            return;
        };
        self.add(Block::Paragraph(lines(gap)));
        self.seen = at;
    }

    fn add(&mut self, block: Block) {
        let blocks = match self.open.last_mut() {
            Some(Container::Page(blocks) | Container::Quote(blocks) | Container::Item(blocks)) => blocks,
            Some(Container::List { .. }) | None => return,
        };
        if !block.is_empty() {
            blocks.push(block);
        }
    }

    fn end(mut self) -> Vec<Block> {
        self.before_block(self.text.len());
        match self.open.into_iter().next() {
            Some(Container::Page(blocks)) => blocks,
            _ => Vec::new(),
        }
    }
}

fn is_block(tag: &Tag<'_>) -> bool {
    !matches!(
        tag,
        Tag::Emphasis
            | Tag::Strong
            | Tag::Strikethrough
            | Tag::Superscript
            | Tag::Subscript
            | Tag::Link { .. }
            | Tag::Image { .. }
    )
}

fn ends_a_block(end: TagEnd) -> bool {
    !matches!(
        end,
        TagEnd::Emphasis
            | TagEnd::Strong
            | TagEnd::Strikethrough
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::Link
            | TagEnd::Image
    )
}

/// Returns source as lines of text without leading quote markers.
fn lines(source: &str) -> String {
    let lines = source
        .lines()
        .map(|line| line.trim_start_matches([' ', '\t', '>']).trim_end());
    let lines = lines.filter(|line| !line.is_empty());
    let lines: Vec<_> = lines.map(|line| escaped(&visible::plain(line), true)).collect();
    lines.join("\n")
}
