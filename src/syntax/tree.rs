//! Reads definitions and references with tree-sitter.
//!
//! The walk keeps no call stack of its own, so that a file nested a million times deep ends like
//! any other; parsing is given up after a time, and the file then has no definitions.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tree_sitter::{Node, ParseOptions, ParseState, Parser, Tree};

use super::definitions::{defined, referred};
use super::language::Language;
use super::{Definition, Kind};

/// Longest time that one file may take. Files of 512 KiB as people write them take a tenth of it.
const LONGEST_PARSE: Duration = Duration::from_secs(2);
const MOST_NODES: usize = 2_000_000;
const DEEPEST: usize = 400;
const MOST_DEFINITIONS: usize = 4_000;
const MOST_REFERENCES: usize = 2_000;

/// A definition around the current node: where it ends, its name, and its kind, by which a function
/// in it is a method or not.
struct Around<'t> {
    end: usize,
    name: &'t str,
    kind: Kind,
}

/// Returns the definitions of a file in their order, and the names that it uses.
pub(super) fn read(language: Language, text: &str) -> (Vec<Definition>, Vec<String>) {
    let Some(tree) = parse(language, text) else {
        return (Vec::new(), Vec::new());
    };
    let mut found = Found::new(language, text);
    let mut cursor = tree.walk();
    let (mut depth, mut kinds) = (0_usize, vec![""]);
    for _ in 0..MOST_NODES {
        let node = cursor.node();
        let around = [kinds[depth], if depth == 0 { "" } else { kinds[depth - 1] }];
        let kind = node.kind();
        found.take(node, kind, around);
        if depth < DEEPEST && cursor.goto_first_child() {
            depth += 1;
            kinds.truncate(depth);
            kinds.push(kind);
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found.end();
            }
            depth = depth.saturating_sub(1);
        }
    }
    found.end()
}

fn parse(language: Language, text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser.set_language(&language.grammar()?).ok()?;
    let begun = Instant::now();
    let mut patience = |_: &ParseState| {
        if begun.elapsed() > LONGEST_PARSE {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let bytes = text.as_bytes();
    parser.parse_with_options(
        &mut |at, _| bytes.get(at..).unwrap_or_default(),
        None,
        Some(ParseOptions::new().progress_callback(&mut patience)),
    )
}

struct Found<'t> {
    language: Language,
    text: &'t str,
    around: Vec<Around<'t>>,
    definitions: Vec<Definition>,
    references: BTreeSet<&'t str>,
}

impl<'t> Found<'t> {
    fn new(language: Language, text: &'t str) -> Self {
        Self {
            language,
            text,
            around: Vec::new(),
            definitions: Vec::new(),
            references: BTreeSet::new(),
        }
    }

    /// Takes the next node, in the order of the text, with its kind and those around it.
    fn take(&mut self, node: Node<'_>, of: &str, around: [&str; 2]) {
        if !node.is_named() {
            return;
        }
        while self.around.last().is_some_and(|around| around.end <= node.start_byte()) {
            self.around.pop();
        }
        if let Some((kind, name)) = defined(self.language, node, of, self.text) {
            self.define(node, kind, name);
        } else if self.references.len() < MOST_REFERENCES
            && let Some(name) = referred(node, of, around, self.text)
        {
            self.references.insert(name);
        }
    }

    fn define(&mut self, node: Node<'_>, kind: Kind, name: &'t str) {
        let holder = self.around.last();
        let is_inner = holder.is_some_and(|around| !around.kind.holds_members());
        let is_member = holder.is_some_and(|around| matches!(around.kind, Kind::Class | Kind::Type));
        let kind = match kind {
            Kind::Function if is_member => Kind::Method,
            kind => kind,
        };
        // A macro of C ends with its line break, which is the beginning of the next line.
        let (begin, end) = (node.start_position(), node.end_position());
        let is_before = end.column == 0 && end.row > begin.row;
        let last = if is_before { end.row - 1 } else { end.row };
        // What is defined within a function is part of it.
        if !is_inner && self.definitions.len() < MOST_DEFINITIONS {
            self.definitions.push(Definition {
                name: name.to_owned(),
                parent: holder
                    .map(|around| around.name)
                    .or_else(|| receiver(node, self.text))
                    .unwrap_or_default()
                    .to_owned(),
                kind,
                first: begin.row,
                last,
            });
        }
        self.around.push(Around {
            end: node.end_byte(),
            name,
            kind,
        });
    }

    fn end(self) -> (Vec<Definition>, Vec<String>) {
        let names = self.references.into_iter().filter(|name| name.len() > 1);
        (self.definitions, names.map(str::to_owned).collect())
    }
}

/// Returns the type that a method of Go belongs to.
fn receiver<'t>(node: Node<'_>, text: &'t str) -> Option<&'t str> {
    let receiver = text.get(node.child_by_field_name("receiver")?.byte_range())?;
    let name = receiver.trim_matches(['(', ')', ' ']).rsplit([' ', '*']).next()?;
    Some(name.split('[').next().unwrap_or(name))
}
