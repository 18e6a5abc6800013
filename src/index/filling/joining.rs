//! Joins the segments of words to fewer and larger ones, without the places that were forgotten.
//!
//! A commit that changes little adds a small segment; many of them would make each question slow,
//! and a large one that is written anew for each commit would make the commit slow. So one is
//! joined with those after it when they have grown to half of its size.

use sqlx::{Row, SqliteConnection};

use super::writing::write_segment;
use crate::index::error::unreadable;
use crate::index::stored::postings::{self, Block, Blocks};

/// Most blocks that are joined at once, which are held in memory meanwhile.
const MOST: u64 = 16_384;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Segment {
    id: i64,
    first: u64,
    next: u64,
    /// Places that were there when it was written.
    count: u64,
    blocks: u64,
}

/// The places of a content that is known: the first, and how many they are.
type Range = (u64, u64);

/// The blocks of a segment, and the place from which it tells others.
type Part = (u64, Vec<Vec<u8>>);

/// Joins segments where that is due.
pub(super) async fn join(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let rows = sqlx::query(
        "SELECT s.id, s.first, s.next, s.count, (SELECT count(*) FROM block b WHERE b.segment = s.id) \
         FROM segment s ORDER BY s.first",
    )
    .fetch_all(&mut *connection)
    .await?;
    let number = |value: i64| value.cast_unsigned();
    let segments: Vec<Segment> = rows
        .iter()
        .map(|row| Segment {
            id: row.get(0),
            first: number(row.get(1)),
            next: number(row.get(2)),
            count: number(row.get(3)),
            blocks: number(row.get(4)),
        })
        .collect();
    let known = sqlx::query("SELECT coalesce(sum(max(count, 1)), 0) FROM blob")
        .fetch_one(&mut *connection)
        .await?;
    for run in runs(&segments, number(known.get(0))) {
        join_run(connection, run).await?;
    }
    Ok(())
}

/// Returns which segments are to be joined: neighbours, since places are told in their order.
fn runs(segments: &[Segment], known: u64) -> Vec<&[Segment]> {
    let places: u64 = segments.iter().map(|segment| segment.count).sum();
    let blocks: u64 = segments.iter().map(|segment| segment.blocks).sum();
    if places > 2 * known.max(1) && blocks <= MOST {
        // Most of it is forgotten.
        return vec![segments];
    }
    let mut runs = Vec::new();
    let mut end = segments.len();
    while end > 0 {
        let mut begin = end - 1;
        let mut blocks = segments[begin].blocks;
        while begin > 0 {
            let before = segments[begin - 1].blocks;
            if before > 2 * blocks.max(1) || before + blocks > MOST {
                break;
            }
            begin -= 1;
            blocks += before;
        }
        if end - begin > 1 {
            runs.push(&segments[begin..end]);
        }
        end = begin;
    }
    runs
}

async fn join_run(connection: &mut SqliteConnection, run: &[Segment]) -> Result<(), sqlx::Error> {
    let (Some(oldest), Some(newest)) = (run.first(), run.last()) else {
        return Ok(());
    };
    let (first, next) = (oldest.first, newest.next);
    let rows = sqlx::query("SELECT id, count FROM blob WHERE id >= ? AND id < ? ORDER BY id")
        .bind(first.cast_signed())
        .bind(next.cast_signed())
        .fetch_all(&mut *connection)
        .await?;
    let range = |row: &sqlx::sqlite::SqliteRow| -> Range {
        (
            row.get::<i64, _>(0).cast_unsigned(),
            row.get::<i64, _>(1).cast_unsigned(),
        )
    };
    let known: Vec<Range> = rows.iter().map(range).collect();
    let count = known.iter().map(|(_, count)| (*count).max(1)).sum();
    let mut parts: Vec<Part> = Vec::new();
    for segment in run {
        let rows = sqlx::query("SELECT data FROM block WHERE segment = ? ORDER BY id")
            .bind(segment.id)
            .fetch_all(&mut *connection)
            .await?;
        parts.push((segment.first, rows.iter().map(|row| row.get(0)).collect()));
    }
    let joined = tokio::task::spawn_blocking(move || joined(&parts, &known, first)).await;
    let blocks = joined
        .map_err(|error| sqlx::Error::Protocol(error.to_string()))?
        .ok_or_else(|| unreadable("a block of words"))?;
    for segment in run {
        for statement in [
            "DELETE FROM block WHERE segment = ?",
            "DELETE FROM segment WHERE id = ?",
        ] {
            sqlx::query(statement)
                .bind(segment.id)
                .execute(&mut *connection)
                .await?;
        }
    }
    write_segment(connection, (first, next), count, &blocks).await
}

/// Returns the words of all parts with the places that are known; `None` if a block is damaged.
fn joined(parts: &[Part], known: &[Range], base: u64) -> Option<Vec<Block>> {
    let mut entries: Vec<(Vec<u8>, u64, &[u8])> = Vec::new();
    for (from, blocks) in parts {
        for block in blocks {
            postings::each(block, |word, list| entries.push((word.to_vec(), *from, list)))?;
        }
    }
    // Lists of a word stay in the order of their places.
    entries.sort_by(|one, other| one.0.cmp(&other.0));
    let is_known = |place: u64| {
        let at = known.partition_point(|(first, _)| *first <= place);
        let range = at.checked_sub(1).and_then(|at| known.get(at));
        range.is_some_and(|(first, count)| place < first + count)
    };
    let mut blocks = Blocks::new(base);
    for same in entries.chunk_by(|one, other| one.0 == other.0) {
        let mut marks = Vec::new();
        for (_, from, list) in same {
            postings::marks(list, *from, |mark| {
                if is_known(mark.place) {
                    marks.push(mark);
                }
            })?;
        }
        let (word, _, _) = same.first()?;
        blocks.add(std::str::from_utf8(word).ok()?, &marks);
    }
    Some(blocks.finished())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::stored::postings::Mark;

    fn segments(blocks: &[u64]) -> Vec<Segment> {
        let numbered = (1..).zip(blocks);
        let segment = |(id, blocks): (i64, &u64)| Segment {
            id,
            first: id.cast_unsigned() * 10,
            next: id.cast_unsigned() * 10 + 10,
            count: 10,
            blocks: *blocks,
        };
        numbered.map(segment).collect()
    }

    fn joined_ids(blocks: &[u64], known: u64) -> Vec<Vec<i64>> {
        let segments = segments(blocks);
        let ids = |run: &[Segment]| run.iter().map(|segment| segment.id).collect();
        runs(&segments, known).into_iter().map(ids).collect()
    }

    #[test]
    fn small_segments_are_joined_and_large_ones_only_with_about_as_large_ones() {
        assert_eq!(joined_ids(&[], 0), Vec::<Vec<i64>>::new());
        assert_eq!(joined_ids(&[900], 10), Vec::<Vec<i64>>::new());
        assert_eq!(joined_ids(&[900, 1], 20), Vec::<Vec<i64>>::new());
        assert_eq!(joined_ids(&[900, 1, 1], 30), [[2, 3]]);
        assert_eq!(joined_ids(&[900, 800, 500], 30), [[1, 2, 3]]);
        assert_eq!(joined_ids(&[10_000, 10_000, 10_000], 30), Vec::<Vec<i64>>::new());
        assert_eq!(joined_ids(&[8_000, 8_000, 8_000, 8_000], 40), [[3, 4], [1, 2]]);
        // Half of the places are forgotten.
        assert_eq!(joined_ids(&[900, 1], 9), [[1, 2]]);
    }

    #[test]
    fn what_is_joined_has_the_places_that_are_known_in_their_order() {
        let mark = |place| Mark {
            place,
            body: 1,
            name: 0,
        };
        let part = |base: u64, words: &[(&str, &[u64])]| -> Part {
            let mut blocks = Blocks::new(base);
            for (word, places) in words {
                let marks: Vec<Mark> = places.iter().copied().map(mark).collect();
                blocks.add(word, &marks);
            }
            (base, blocks.finished().into_iter().map(|block| block.data).collect())
        };
        let parts = [
            part(1, &[("adapter", &[1, 2, 5]), ("gone", &[5])]),
            part(10, &[("adapter", &[10]), ("close", &[11])]),
        ];
        // The content with the places 5 to 9 is forgotten.
        let blocks = joined(&parts, &[(1, 4), (10, 2)], 1).unwrap();
        let mut read = Vec::new();
        for block in &blocks {
            postings::each(&block.data, |word, list| {
                let mut places = Vec::new();
                postings::marks(list, 1, |mark| places.push(mark.place)).unwrap();
                read.push((String::from_utf8(word.to_vec()).unwrap(), places));
            })
            .unwrap();
        }
        assert_eq!(
            read,
            [("adapter".to_owned(), vec![1, 2, 10]), ("close".to_owned(), vec![11])]
        );
        assert_eq!(joined(&[(1, vec![vec![7]])], &[], 1), None);
    }
}
