//! Markdown that a model or a stranger wrote, fit to stand in a comment under the bot's name.
//!
//! The text is parsed once and written again from the parser's events. Paragraphs, headings,
//! emphasis, lists, quotes, tables and code come out in one plain form that all readers of Markdown
//! understand alike; everything else becomes text that can be seen: HTML, pictures, links,
//! definitions. So nothing that was written can call people, command a bot, close or mention an
//! item, load a picture, hide what stands below or reach out of its place. Disarming the text by
//! patterns instead was tried: each reader of Markdown finds the beginnings and ends of code
//! elsewhere.
//!
//! Does not judge what is said, and takes no secrets out.

use std::collections::BTreeSet;
use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::block::Block;
use super::escape::escaped;
use super::inline::Inline;
use super::visible;

/// Quotes and lists in one another; deeper ones are written as if they were not there.
const DEEPEST: usize = 6;
/// Rows are filled up with cells: a wide head would make a long text of many short rows.
const MOST_COLUMNS: usize = 20;

/// Returns the blocks of Markdown that say what `text` says and do nothing.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut reading = Reading::new(&text);
    for (event, range) in Parser::new_ext(&text, Options::ENABLE_TABLES).into_offset_iter() {
        reading.take(&event, range);
    }
    reading.end()
}

/// Returns the words of `text` on one line, at most `most` characters of it, so that they do
/// nothing.
pub(super) fn line(text: &str, most: usize) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let text = words.join(" ");
    let end = text.char_indices().nth(most).map(|(end, _)| end);
    let text = end.map_or_else(|| text.clone(), |end| format!("{}…", &text[..end]));
    // Behind other words nothing is the beginning of a block.
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

/// Reads the parser's events into blocks.
struct Reading<'text> {
    text: &'text str,
    /// Containers that are open, the page first.
    open: Vec<Container>,
    /// How many containers are open that are written as if they were not there.
    passed_over: usize,
    inline: Option<Inline>,
    leaf: Leaf,
    /// Where links lead that have no address of their own, and one of which told it.
    told: BTreeSet<String>,
    /// The end of what was read.
    seen: usize,
}

/// A container, with the blocks in it.
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

/// The block that is read.
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

    /// Takes what stands within a block; text that stands in an item of a list without a paragraph
    /// begins one.
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
        // An item belongs to its list: both are there, or neither is.
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

    /// Ends the text of an item, and writes definitions of links that stand before the next block:
    /// the parser has no event for them.
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

/// Returns source as lines of text, without the marks of quotes before them.
fn lines(source: &str) -> String {
    let lines = source
        .lines()
        .map(|line| line.trim_start_matches([' ', '\t', '>']).trim_end());
    let lines = lines.filter(|line| !line.is_empty());
    let lines: Vec<_> = lines.map(|line| escaped(&visible::plain(line), true)).collect();
    lines.join("\n")
}
