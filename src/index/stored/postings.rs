//! Posting lists: in which places a word stands, and how often. Words are in order, in blocks of
//! about the same size.
//!
//! The beginning that a word shares with the one before is not repeated, and places are told by
//! their distance. A word whose places do not fit into a block goes on in the next.

use super::bytes::{Reader, put, put_text};

/// Bytes of a block: four of them fill a page of the database, which has 4,096.
const BLOCK: usize = 984;
/// Bytes at the end of a block that are too few to begin a word in.
const SCANT: usize = 48;
/// How often a word counts in a place at most: in its lines, and in its name.
pub(in crate::index) const MOST_IN_BODY: u8 = 5;
pub(in crate::index) const MOST_IN_NAME: u8 = 3;

/// A word in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::index) struct Mark {
    pub(in crate::index) place: u64,
    /// How often it stands in the lines of the place, and in its name.
    pub(in crate::index) body: u8,
    pub(in crate::index) name: u8,
}

/// Some words, in order, with their places.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::index) struct Block {
    pub(in crate::index) first: String,
    pub(in crate::index) data: Vec<u8>,
}

/// Puts words into blocks.
pub(in crate::index) struct Blocks {
    /// Places are told by their distance from this one.
    base: u64,
    done: Vec<Block>,
    block: Option<Block>,
    before: String,
}

impl Blocks {
    pub(in crate::index) fn new(base: u64) -> Self {
        Self {
            base,
            done: Vec::new(),
            block: None,
            before: String::new(),
        }
    }

    /// Adds a word, which comes behind those that are there, with its places in their order.
    pub(in crate::index) fn add(&mut self, word: &str, marks: &[Mark]) {
        let mut rest = marks;
        while !rest.is_empty() {
            let shared = match &self.block {
                Some(_) => shared(&self.before, word),
                None => 0,
            };
            let used = self.block.as_ref().map_or(0, |block| block.data.len());
            let own = &word.as_bytes()[shared..];
            let room = BLOCK.saturating_sub(used + own.len() + 6);
            if room < SCANT && self.block.is_some() {
                self.end_block();
                continue;
            }
            let (list, count) = fitting(rest, self.base, room);
            let block = self.block.get_or_insert_with(|| Block {
                first: word.to_owned(),
                data: Vec::with_capacity(BLOCK),
            });
            put(&mut block.data, shared as u64);
            put_text(&mut block.data, own);
            put_text(&mut block.data, &list);
            word.clone_into(&mut self.before);
            rest = rest.get(count..).unwrap_or_default();
            if !rest.is_empty() {
                self.end_block();
            }
        }
    }

    fn end_block(&mut self) {
        self.done.extend(self.block.take());
    }

    pub(in crate::index) fn finished(mut self) -> Vec<Block> {
        self.end_block();
        self.done
    }
}

/// Returns as many places as fit into `room`, one at least, and how many they are.
fn fitting(marks: &[Mark], base: u64, room: usize) -> (Vec<u8>, usize) {
    let mut list = Vec::new();
    let mut before = base;
    for (count, mark) in marks.iter().enumerate() {
        let length = list.len();
        let distance = mark.place.saturating_sub(before);
        match (mark.body, mark.name) {
            (times @ 1..=3, 0) => put(&mut list, distance << 2 | u64::from(times - 1)),
            (body, name) => {
                put(&mut list, distance << 2 | 3);
                list.push(body.min(MOST_IN_BODY) | name.min(MOST_IN_NAME) << 4);
            }
        }
        if list.len() > room && count > 0 {
            list.truncate(length);
            return (list, count);
        }
        before = mark.place;
    }
    (list, marks.len())
}

/// Returns how many bytes two words have in common at their beginnings.
fn shared(one: &str, other: &str) -> usize {
    one.bytes()
        .zip(other.bytes())
        .take_while(|(one, other)| one == other)
        .count()
}

/// Calls `take` with each word of a block and the list of its places; `None` if it is damaged.
pub(in crate::index) fn each<'b>(data: &'b [u8], mut take: impl FnMut(&[u8], &'b [u8])) -> Option<()> {
    let mut reader = Reader::new(data);
    let mut word = Vec::new();
    while !reader.is_at_end() {
        let shared = reader.size().filter(|shared| *shared <= word.len())?;
        word.truncate(shared);
        let length = reader.size()?;
        word.extend_from_slice(reader.take(length)?);
        let length = reader.size()?;
        take(&word, reader.take(length)?);
    }
    Some(())
}

/// Calls `take` with each place of a list; `None` if it is damaged.
pub(in crate::index) fn marks(list: &[u8], base: u64, mut take: impl FnMut(Mark)) -> Option<()> {
    let mut reader = Reader::new(list);
    let mut place = base;
    while !reader.is_at_end() {
        let number = reader.number()?;
        place = place.checked_add(number >> 2)?;
        let (body, name) = match number & 3 {
            3 => {
                let both = reader.byte()?;
                (both & 15, both >> 4)
            }
            times => (u8::try_from(times).unwrap_or_default() + 1, 0),
        };
        take(Mark { place, body, name });
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(blocks: &[Block], base: u64) -> Vec<(String, Vec<Mark>)> {
        let mut found: Vec<(String, Vec<Mark>)> = Vec::new();
        for block in blocks {
            let mut is_first = true;
            let read = each(&block.data, |word, list| {
                let word = String::from_utf8(word.to_vec()).unwrap();
                assert!(!is_first || word == block.first);
                is_first = false;
                if found.last().is_none_or(|(last, _)| *last != word) {
                    found.push((word, Vec::new()));
                }
                let into = &mut found.last_mut().unwrap().1;
                marks(list, base, |mark| into.push(mark)).unwrap();
            });
            assert!(read.is_some());
        }
        found
    }

    #[test]
    fn words_are_read_with_their_places_also_where_they_fill_several_blocks() {
        let mark = |place: u64| Mark {
            place,
            body: u8::try_from(place % 6).unwrap(),
            name: u8::from(place.is_multiple_of(6)) + u8::from(place.is_multiple_of(7)),
        };
        let words: Vec<(String, Vec<Mark>)> = vec![
            ("adapter".to_owned(), vec![mark(5_001), mark(9_000)]),
            ("adapters".to_owned(), (5_000..9_000).map(mark).collect()),
            ("再試".to_owned(), vec![mark(5_003)]),
            ("試行".to_owned(), (5_000..5_040).map(mark).collect()),
        ];
        let mut blocks = Blocks::new(5_000);
        for (word, marks) in &words {
            blocks.add(word, marks);
        }
        let blocks = blocks.finished();
        assert!(blocks.len() > 2, "{}", blocks.len());
        assert!(blocks.iter().all(|block| block.data.len() <= BLOCK));
        assert_eq!(read(&blocks, 5_000), words);
    }

    #[test]
    fn a_block_that_is_damaged_is_refused() {
        let mut blocks = Blocks::new(0);
        let mark = Mark {
            place: 9,
            body: 2,
            name: 0,
        };
        blocks.add("adapter", &[mark]);
        blocks.add("adapting", &[mark]);
        let data = blocks.finished().remove(0).data;
        assert!(each(&data, |_, _| {}).is_some());
        for end in 1..data.len() {
            let mut words = 0;
            assert!(each(&data[..end], |_, _| words += 1).is_none() || words == 1, "{end}");
        }
        assert_eq!(each(&[3, 1, 97, 0], |_, _| {}), None);
        assert_eq!(marks(&[0x83], 0, |_| {}), None);
        assert_eq!(marks(&[3], 0, |_| {}), None);
    }
}
