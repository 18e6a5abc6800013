//! Writes files, words and commits into the tables, and forgets what no commit has.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::Utc;
use sqlx::{QueryBuilder, Row, Sqlite, SqliteConnection};

use super::{Key, key};
use crate::index::error::unreadable;
use crate::index::parsed::Parsed;
use crate::index::stored::postings::{Block, Blocks, Mark};
use crate::index::stored::{from_hex, paths, places};
use crate::repository::CommitId;
use crate::repository::reading::files::TreeEntry;

/// Commits that are kept.
const KEPT: i64 = 8;
/// Rows of one statement.
const ROWS: usize = 1_000;

/// Writes files that nobody wrote meanwhile, and a segment with their words.
pub(super) async fn write(connection: &mut SqliteConnection, parsed: &Arc<Vec<Parsed>>) -> Result<(), sqlx::Error> {
    let newest = sqlx::query("SELECT coalesce(max(next), 1) FROM segment")
        .fetch_one(&mut *connection)
        .await?;
    let first = newest.get::<i64, _>(0).cast_unsigned();
    let mut next = first;
    let mut added = Vec::new();
    for (number, file) in parsed.iter().enumerate() {
        let Some(object) = from_hex(&file.object) else { continue };
        let uses: Vec<u8> = file.uses.iter().flat_map(|digest| digest.to_le_bytes()).collect();
        let count = file.places.len() as u64;
        let inserted = sqlx::query(
            "INSERT OR IGNORE INTO blob (id, object, language, size, count, places, uses) VALUES (?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(next.cast_signed())
        .bind(object)
        .bind(i64::from(file.language.number()))
        .bind((file.size as u64).cast_signed())
        .bind(count.cast_signed())
        .bind(places::written(&file.places))
        .bind(uses)
        .execute(&mut *connection)
        .await?;
        if inserted.rows_affected() > 0 {
            added.push((number, next));
            // One without places has an id nevertheless.
            next += count.max(1);
        }
    }
    if added.is_empty() {
        return Ok(());
    }
    let parsed = Arc::clone(parsed);
    let blocks = tokio::task::spawn_blocking(move || blocks(&parsed, &added, first)).await;
    let blocks = blocks.map_err(|error| sqlx::Error::Protocol(error.to_string()))?;
    write_segment(connection, (first, next), next - first, &blocks).await
}

/// Returns the words of these files, each of which begins with the place beside it.
fn blocks(parsed: &[Parsed], added: &[(usize, u64)], base: u64) -> Vec<Block> {
    let mut words: HashMap<&str, Vec<Mark>> = HashMap::new();
    for (number, first) in added {
        for (word, marks) in parsed.get(*number).into_iter().flat_map(|file| &file.words) {
            let moved = marks.iter().map(|mark| Mark {
                place: mark.place + first,
                ..*mark
            });
            words.entry(word.as_str()).or_default().extend(moved);
        }
    }
    let mut words: Vec<(&str, Vec<Mark>)> = words.into_iter().collect();
    words.sort_unstable_by_key(|(word, _)| *word);
    let mut blocks = Blocks::new(base);
    for (word, marks) in &words {
        blocks.add(word, marks);
    }
    blocks.finished()
}

/// Writes a segment, whose places are `first` to before `next`; `count` of them are there.
pub(super) async fn write_segment(
    connection: &mut SqliteConnection,
    (first, next): (u64, u64),
    count: u64,
    blocks: &[Block],
) -> Result<(), sqlx::Error> {
    let segment = sqlx::query("INSERT INTO segment (first, next, count) VALUES (?, ?, ?)")
        .bind(first.cast_signed())
        .bind(next.cast_signed())
        .bind(count.cast_signed())
        .execute(&mut *connection)
        .await?
        .last_insert_rowid();
    for rows in blocks.chunks(ROWS) {
        let mut insert = QueryBuilder::<Sqlite>::new("INSERT INTO block (segment, first, data) ");
        insert.push_values(rows, |mut row, block| {
            row.push_bind(segment);
            row.push_bind(block.first.as_str()).push_bind(block.data.as_slice());
        });
        insert.build().execute(&mut *connection).await?;
    }
    Ok(())
}

/// The time of use of a commit that is used now, bound to the clock. It is the last of all, also
/// where the clock was set back: else the commit would be forgotten at once, for those that were
/// noted before that.
macro_rules! used_last {
    () => {
        "max(?, (SELECT coalesce(max(used), 0) + 1 FROM snapshot))"
    };
}
pub(super) use used_last;

/// Writes which files a commit has. It counts as used last.
pub(super) async fn note(
    connection: &mut SqliteConnection,
    commit: &CommitId,
    files: &[TreeEntry],
    blobs: &HashMap<Key, u64>,
) -> Result<(), sqlx::Error> {
    // A file that was not read has no places, and is known by its path alone.
    let id = |file: &TreeEntry| key(file).and_then(|key| blobs.get(&key).copied()).unwrap_or(0);
    let listed = paths::written(files.iter().map(|file| (file.path.as_str(), id(file))));
    sqlx::query(concat!(
        "INSERT INTO snapshot (object, used, count, files) VALUES (?, ",
        used_last!(),
        ", ?, ?) ON CONFLICT (object) DO UPDATE SET used = excluded.used"
    ))
    .bind(commit.as_str())
    .bind(Utc::now().timestamp_micros())
    .bind((files.len() as u64).cast_signed())
    .bind(listed)
    .execute(&mut *connection)
    .await?;
    Ok(())
}

/// Forgets the commits that were not used for longest, and contents that no other one has. Their
/// words stay until segments are joined, and are passed over till then.
pub(super) async fn forget_others(connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
    let forgotten = sqlx::query(
        "DELETE FROM snapshot WHERE id NOT IN (SELECT id FROM snapshot ORDER BY used DESC, id DESC LIMIT ?)",
    )
    .bind(KEPT)
    .execute(&mut *connection)
    .await?;
    if forgotten.rows_affected() == 0 {
        return Ok(());
    }
    let mut kept = HashSet::new();
    for row in sqlx::query("SELECT files FROM snapshot")
        .fetch_all(&mut *connection)
        .await?
    {
        paths::each(row.get::<&[u8], _>(0), |_, id| {
            kept.insert(id);
        })
        .ok_or_else(|| unreadable("the list of files of a commit"))?;
    }
    let ids = sqlx::query("SELECT id FROM blob").fetch_all(&mut *connection).await?;
    let ids = ids.iter().map(|row| row.get::<i64, _>(0));
    let forgotten: Vec<i64> = ids.filter(|id| !kept.contains(&id.cast_unsigned())).collect();
    sqlx::query("DELETE FROM blob WHERE id IN (SELECT value FROM json_each(?))")
        .bind(serde_json::to_string(&forgotten).unwrap_or_default())
        .execute(&mut *connection)
        .await?;
    Ok(())
}
