//! How a file of source falls into places that can be searched for and cited: functions, methods,
//! classes, sections of Markdown, keys of configuration, and windows of lines elsewhere.
//!
//! The bytes are a stranger's. Nothing of them is run; parsing has limits of size, time, depth and
//! number, and a file beyond them falls into windows of lines instead.

mod language; // which language a file is in, by its path
mod definitions; // what a definition is in each language
mod tree; // definitions and references, by tree-sitter
mod sections; // sections of Markdown, keys of configuration
pub mod fragment; // a piece of a file in its place
mod chunks; // the places of a file, from its definitions
mod stem; // the stem of an English word
pub mod words; // the words of source and of questions
pub mod cited; // names that are said to stand somewhere

use serde::{Deserialize, Serialize};

pub use language::Language;

/// The kind of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Function,
    Method,
    Class,
    Type,
    Module,
    Macro,
    Section,
    Key,
    /// Lines outside of any definition.
    Lines,
}

impl Kind {
    const ALL: [(Self, &'static str); 9] = [
        (Self::Function, "function"),
        (Self::Method, "method"),
        (Self::Class, "class"),
        (Self::Type, "type"),
        (Self::Module, "module"),
        (Self::Macro, "macro"),
        (Self::Section, "section"),
        (Self::Key, "key"),
        (Self::Lines, "lines"),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(kind, _)| *kind == self)
            .map_or("", |(_, name)| name)
    }

    /// Returns the number by which it is kept.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Returns the kind with this number.
    pub fn numbered(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).map(|(kind, _)| *kind)
    }

    /// Returns the kind with this name.
    pub fn read(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(kind, _)| *kind)
    }

    /// True for a kind whose members are places of their own.
    fn holds_members(self) -> bool {
        matches!(self, Self::Class | Self::Type | Self::Module)
    }
}

/// A definition, section or key: something with a name and lines in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Definition {
    name: String,
    /// The name of the class or module around it; empty if there is none.
    parent: String,
    kind: Kind,
    /// First and last line, from 0.
    first: usize,
    last: usize,
}

/// A place of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The name of what is defined there; empty for lines outside of any definition.
    pub name: String,
    /// The name of the class or module around it; empty if there is none.
    pub parent: String,
    pub kind: Kind,
    /// First and last line, from 1.
    pub first: usize,
    pub last: usize,
    /// The ranges of lines, from 1, whose words count for this place. They are of no other place.
    pub own: Vec<(usize, usize)>,
}

/// The places of a file, and the names that it uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    pub language: Language,
    pub chunks: Vec<Chunk>,
    /// The names that the file calls, extends or imports, each once.
    pub references: Vec<String>,
}

/// Returns the places of a file.
pub fn outline(path: &str, text: &str) -> Outline {
    let language = Language::of(path);
    let (definitions, references) = match language {
        Language::Markdown => (sections::of_markdown(text), Vec::new()),
        Language::Configuration => (sections::of_configuration(path, text), Vec::new()),
        _ => tree::read(language, text),
    };
    Outline {
        language,
        chunks: chunks::cut(text, &definitions),
        references,
    }
}

#[cfg(test)]
mod tests;
