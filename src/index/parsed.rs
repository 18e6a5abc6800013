//! A file of the repository as the index keeps it: places with their words, names that it uses.

use std::thread;

use crate::syntax::words::{counted, each, written};
use crate::syntax::{self, Kind, Language};

/// How often a word counts in one place at most.
const MOST_REPEATS: usize = 5;
/// Bytes of zeros and other signs of a file that is no text are looked for in its beginning.
const LOOKED_AT: usize = 8 * 1024;
/// Most threads that read files at once.
const MOST_THREADS: usize = 4;

/// A file that is to be read.
#[derive(Debug)]
pub(super) struct Unread {
    pub(super) object: String,
    pub(super) path: String,
    pub(super) content: Vec<u8>,
}

/// A file as rows of the database.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) object: String,
    pub(super) language: Language,
    pub(super) places: Vec<Place>,
    pub(super) references: Vec<String>,
}

/// A place with its words.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) parent: String,
    pub(super) kind: Kind,
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) name_words: String,
    pub(super) body_words: String,
}

/// Reads files, on as many threads as the machine has to give.
pub(super) fn parse_all(files: &[Unread]) -> Vec<Parsed> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let share = files.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let parts: Vec<_> = files
            .chunks(share)
            .map(|part| scope.spawn(|| part.iter().map(parse).collect::<Vec<_>>()))
            .collect();
        // A part whose thread fell is missing, and its files are read anew the next time.
        parts
            .into_iter()
            .filter_map(|part| part.join().ok())
            .flatten()
            .collect()
    })
}

fn parse(file: &Unread) -> Parsed {
    let language = Language::of(&file.path);
    let head = &file.content[..file.content.len().min(LOOKED_AT)];
    if head.contains(&0) {
        return Parsed {
            object: file.object.clone(),
            language,
            places: Vec::new(),
            references: Vec::new(),
        };
    }
    let text = String::from_utf8_lossy(&file.content);
    let outline = syntax::outline(&file.path, &text);
    let lines: Vec<&str> = text.lines().collect();
    let places = outline.chunks.into_iter().map(|chunk| {
        let mut body = String::new();
        for &(first, last) in &chunk.own {
            for line in lines.get(first - 1..last).unwrap_or_default() {
                body.push_str(line);
                body.push('\n');
            }
        }
        let mut name_words = String::new();
        each(&chunk.name, |word| push(&mut name_words, word));
        each(&chunk.parent, |word| push(&mut name_words, word));
        Place {
            name_words,
            body_words: written(&counted(&body), MOST_REPEATS),
            name: chunk.name,
            parent: chunk.parent,
            kind: chunk.kind,
            first: chunk.first,
            last: chunk.last,
        }
    });
    Parsed {
        object: file.object.clone(),
        language,
        places: places.collect(),
        references: outline.references,
    }
}

/// Returns the words of a path.
pub(super) fn path_words(path: &str) -> String {
    let mut words = String::new();
    each(path, |word| push(&mut words, word));
    words
}

fn push(words: &mut String, word: &str) {
    if !words.is_empty() {
        words.push(' ');
    }
    words.push_str(word);
}
