//! Markdown blocks, and the one form in which the bot writes each.

use super::code::fenced_as;

pub(super) enum Block {
    /// Lines of inline Markdown.
    Paragraph(String),
    Heading(String),
    Code {
        language: String,
        text: String,
    },
    Quote(Vec<Block>),
    List {
        /// The number of the first item; `None` for a bullet list.
        start: Option<u64>,
        is_loose: bool,
        items: Vec<Vec<Block>>,
    },
    /// The first row is the head.
    Table {
        columns: usize,
        rows: Vec<Vec<String>>,
    },
    Rule,
}

impl Block {
    /// Returns true if the block would show nothing.
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Paragraph(text) | Self::Heading(text) => text.is_empty(),
            Self::Code { text, .. } => text.trim().is_empty(),
            Self::Quote(blocks) => blocks.is_empty(),
            Self::List { items, .. } => items.is_empty(),
            Self::Table { rows, .. } => rows.iter().flatten().all(String::is_empty),
            Self::Rule => false,
        }
    }
}

/// Returns the blocks as Markdown.
pub(super) fn written(blocks: &[Block]) -> String {
    lines_of(blocks, true).join("\n")
}

/// Returns the lines of `blocks`. Unless `loose`, a list follows its item's text without an empty
/// line.
fn lines_of(blocks: &[Block], loose: bool) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    // Two adjacent lists with the same marker would merge into one.
    let mut is_other = false;
    let mut before: Option<&Block> = None;
    for block in blocks {
        let is_list = matches!(block, Block::List { .. });
        let joins = !loose && is_list && matches!(before, Some(Block::Paragraph(_)));
        if before.is_some() && !joins {
            lines.push(String::new());
        }
        is_other = is_list && matches!(before, Some(Block::List { .. })) && !is_other;
        lines.extend(block.lines(is_other));
        before = Some(block);
    }
    lines
}

impl Block {
    fn lines(&self, is_other_list: bool) -> Vec<String> {
        match self {
            Self::Paragraph(text) => text.lines().map(str::to_owned).collect(),
            // Below the headings of the program's own sections.
            Self::Heading(text) => vec![format!("#### {text}")],
            Self::Code { language, text } => fenced_as(language, text).split('\n').map(str::to_owned).collect(),
            Self::Quote(blocks) => lines_of(blocks, true)
                .into_iter()
                .map(|line| {
                    if line.is_empty() {
                        ">".to_owned()
                    } else {
                        format!("> {line}")
                    }
                })
                .collect(),
            Self::List { start, is_loose, items } => list(*start, *is_loose, items, is_other_list),
            Self::Table { columns, rows } => table(*columns, rows),
            Self::Rule => vec!["___".to_owned()],
        }
    }
}

/// Writes a list. Never uses `-`, the marker of the program's own lists, so that it cannot continue
/// one.
fn list(start: Option<u64>, is_loose: bool, items: &[Vec<Block>], is_other: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let mut number = start;
    for item in items {
        if is_loose && !lines.is_empty() {
            lines.push(String::new());
        }
        let mark = match number {
            Some(number) => format!("{number}{} ", if is_other { ')' } else { '.' }),
            None => if is_other { "+ " } else { "* " }.to_owned(),
        };
        for (at, line) in lines_of(item, is_loose).into_iter().enumerate() {
            lines.push(match (at, line.is_empty()) {
                (0, _) => format!("{mark}{line}"),
                (_, true) => line,
                (_, false) => format!("{}{line}", " ".repeat(mark.len())),
            });
        }
        // A number of more than nine digits is no list marker.
        number = number.map(|number| (number + 1).min(999_999_999));
    }
    lines
}

fn table(columns: usize, rows: &[Vec<String>]) -> Vec<String> {
    let row = |cells: &Vec<String>| format!("| {} |", cells.join(" | "));
    let mut lines: Vec<String> = rows.iter().map(row).collect();
    lines.insert(1.min(lines.len()), format!("|{}", " --- |".repeat(columns)));
    lines
}
