//! A file of the repository as the index keeps it: places, the words in them, names that it uses.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::stored::digest;
use super::stored::places::Place;
use super::stored::postings::{MOST_IN_BODY, MOST_IN_NAME, Mark};
use crate::syntax::words::each;
use crate::syntax::{self, Chunk, Language};

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

/// A file as the database keeps it.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) object: String,
    pub(super) language: Language,
    /// Bytes of its text; 0 if it is none.
    pub(super) size: usize,
    pub(super) places: Vec<Place>,
    /// In which of its places each word stands, counted from 0.
    pub(super) words: HashMap<String, Vec<Mark>>,
    /// The digests of the names that it uses, in order.
    pub(super) uses: Vec<u32>,
}

/// Reads files, on as many threads as the machine has to give, and returns them in their order.
pub(super) fn parse_all(files: &[Unread]) -> Vec<Parsed> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let next = AtomicUsize::new(0);
    let mut parsed = thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut part = Vec::new();
                    while let Some((number, file)) = taken(files, &next) {
                        part.push((number, parse(file)));
                    }
                    part
                })
            })
            .collect();
        // A part whose thread fell is missing, and its files are read anew the next time.
        let parts = parts.into_iter().filter_map(|part| part.join().ok());
        parts.flatten().collect::<Vec<_>>()
    });
    parsed.sort_unstable_by_key(|(number, _)| *number);
    parsed.into_iter().map(|(_, file)| file).collect()
}

fn taken<'f>(files: &'f [Unread], next: &AtomicUsize) -> Option<(usize, &'f Unread)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    Some((number, files.get(number)?))
}

fn parse(file: &Unread) -> Parsed {
    let mut parsed = Parsed {
        object: file.object.clone(),
        language: Language::of(&file.path),
        size: 0,
        places: Vec::new(),
        words: HashMap::new(),
        uses: Vec::new(),
    };
    let head = &file.content[..file.content.len().min(LOOKED_AT)];
    if head.contains(&0) {
        return parsed;
    }
    let text = String::from_utf8_lossy(&file.content);
    parsed.size = file.content.len();
    let outline = syntax::outline(&file.path, &text);
    let lines: Vec<&str> = text.lines().collect();
    for chunk in outline.chunks {
        parsed.take(chunk, &lines);
    }
    parsed.uses = outline.references.iter().map(|name| digest(name)).collect();
    parsed.uses.sort_unstable();
    parsed.uses.dedup();
    parsed
}

impl Parsed {
    fn take(&mut self, chunk: Chunk, lines: &[&str]) {
        let place = self.places.len() as u64;
        let mut length = 0;
        for name in [&chunk.name, &chunk.parent] {
            each(name, |word| {
                length += 1;
                self.count(word, place, |mark| mark.name = MOST_IN_NAME.min(mark.name + 1));
            });
        }
        for &(first, last) in &chunk.own {
            for line in lines.get(first - 1..last).unwrap_or_default() {
                each(line, |word| {
                    self.count(word, place, |mark| {
                        if mark.body < MOST_IN_BODY {
                            mark.body += 1;
                            length += 1;
                        }
                    });
                });
            }
        }
        self.places.push(Place {
            name: chunk.name,
            parent: chunk.parent,
            kind: chunk.kind,
            first: chunk.first,
            last: chunk.last,
            length,
        });
    }

    /// Counts a word of a place, which is the last of those that it stands in.
    fn count(&mut self, word: &str, place: u64, count: impl FnOnce(&mut Mark)) {
        let marks = match self.words.get_mut(word) {
            Some(marks) => marks,
            None => self.words.entry(word.to_owned()).or_default(),
        };
        match marks.last_mut() {
            Some(mark) if mark.place == place => count(mark),
            _ => {
                let mut mark = Mark {
                    place,
                    body: 0,
                    name: 0,
                };
                count(&mut mark);
                marks.push(mark);
            }
        }
    }
}
