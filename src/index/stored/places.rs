//! The places of a file as bytes: names once, then a few numbers for each place.

use super::bytes::{Reader, put, put_text};
use crate::syntax::Kind;

/// Most places of a file that are believed.
const MOST: usize = 1 << 20;

/// A place of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::index) struct Place {
    pub(in crate::index) name: String,
    pub(in crate::index) parent: String,
    pub(in crate::index) kind: Kind,
    pub(in crate::index) first: usize,
    pub(in crate::index) last: usize,
    /// Words of it, of its name too, as they are counted.
    pub(in crate::index) length: usize,
}

/// The places of a file as they are kept in memory: a name is there once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::index) struct Places {
    names: Vec<Box<str>>,
    rows: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    name: u32,
    parent: u32,
    kind: Kind,
    first: u32,
    last: u32,
    length: u32,
}

/// A place of [`Places`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::index) struct PlaceOf<'p> {
    pub(in crate::index) name: &'p str,
    pub(in crate::index) parent: &'p str,
    pub(in crate::index) kind: Kind,
    pub(in crate::index) first: usize,
    pub(in crate::index) last: usize,
    pub(in crate::index) length: usize,
}

impl Places {
    pub(in crate::index) fn count(&self) -> usize {
        self.rows.len()
    }

    pub(in crate::index) fn get(&self, at: usize) -> Option<PlaceOf<'_>> {
        self.rows.get(at).map(|row| self.shown(row))
    }

    pub(in crate::index) fn each(&self) -> impl Iterator<Item = PlaceOf<'_>> {
        self.rows.iter().map(|row| self.shown(row))
    }

    fn shown(&self, row: &Row) -> PlaceOf<'_> {
        let name = |at: u32| self.names.get(at as usize).map_or("", |name| name);
        PlaceOf {
            name: name(row.name),
            parent: name(row.parent),
            kind: row.kind,
            first: row.first as usize,
            last: row.last as usize,
            length: row.length as usize,
        }
    }

    /// Reads what [`written`] wrote.
    pub(in crate::index) fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let count = reader.size().filter(|count| *count <= MOST)?;
        let mut names = Vec::with_capacity(count);
        for _ in 0..count {
            names.push(Box::from(reader.text()?));
        }
        let mut rows = Vec::new();
        let mut before = 0_u32;
        while !reader.is_at_end() {
            let kind = Kind::numbered(reader.byte()?)?;
            let mut number = || u32::try_from(reader.number()?).ok();
            let (name, parent) = (number()?, number()?);
            let first = before.checked_add(number()?)?;
            let last = first.checked_add(number()?)?;
            let length = number()?;
            before = first;
            rows.push(Row {
                name,
                parent,
                kind,
                first,
                last,
                length,
            });
        }
        Some(Self { names, rows })
    }
}

/// Returns the places of a file as bytes. They are in the order of their first lines.
pub(in crate::index) fn written(places: &[Place]) -> Vec<u8> {
    let mut names: Vec<&str> = vec![""];
    let mut numbers = std::collections::HashMap::from([("", 0_u64)]);
    for name in places.iter().flat_map(|place| [&place.name, &place.parent]) {
        numbers.entry(name).or_insert_with(|| {
            names.push(name);
            names.len() as u64 - 1
        });
    }
    let mut bytes = Vec::new();
    put(&mut bytes, names.len() as u64);
    for name in &names {
        put_text(&mut bytes, name.as_bytes());
    }
    let mut before = 0;
    for place in places {
        bytes.push(place.kind.number());
        for name in [&place.name, &place.parent] {
            put(&mut bytes, numbers.get(name.as_str()).copied().unwrap_or_default());
        }
        put(&mut bytes, place.first.saturating_sub(before) as u64);
        put(&mut bytes, place.last.saturating_sub(place.first) as u64);
        put(&mut bytes, place.length as u64);
        before = place.first;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_were_written() {
        let place = |name: &str, parent: &str, first, last| Place {
            name: name.to_owned(),
            parent: parent.to_owned(),
            kind: Kind::Method,
            first,
            last,
            length: 300,
        };
        let places = [
            place("", "", 1, 2),
            place("送る", "Session", 3, 400),
            place("close", "Session", 401, 401),
        ];
        let bytes = written(&places);
        let read = Places::read(&bytes).unwrap();
        let owned = read.each().map(|place| Place {
            name: place.name.to_owned(),
            parent: place.parent.to_owned(),
            kind: place.kind,
            first: place.first,
            last: place.last,
            length: place.length,
        });
        assert_eq!(owned.collect::<Vec<_>>(), places);
        assert_eq!(Places::read(&written(&[])).unwrap().count(), 0);
        for end in 0..bytes.len() {
            // Cut off anywhere, it is either refused or has fewer places.
            assert!(
                Places::read(&bytes[..end]).is_none_or(|read| read.count() < places.len()),
                "{end}"
            );
        }
    }
}
