//! Writes files, commits and what they hold into the tables, and forgets what no commit has.

use std::collections::{HashMap, HashSet};

use chrono::Utc;
use sqlx::sqlite::SqliteRow;
use sqlx::{QueryBuilder, Row, Sqlite, SqliteConnection};

use super::language;
use crate::index::parsed::{Parsed, path_words};
use crate::repository::CommitId;
use crate::repository::reading::files::TreeEntry;

/// Commits that are kept.
const KEPT: i64 = 8;
/// Rows of one statement.
const ROWS: usize = 1_000;

async fn next_id(connection: &mut SqliteConnection, table: &'static str) -> Result<i64, sqlx::Error> {
    let newest = match table {
        "blob" => "SELECT coalesce(max(id), 0) FROM blob",
        "chunk" => "SELECT coalesce(max(id), 0) FROM chunk",
        "path" => "SELECT coalesce(max(id), 0) FROM path",
        _ => "SELECT coalesce(max(id), 0) FROM name",
    };
    let row: SqliteRow = sqlx::query(newest).fetch_one(connection).await?;
    Ok(row.get::<i64, _>(0) + 1)
}

/// Writes files that nobody wrote meanwhile.
pub(super) async fn write(connection: &mut SqliteConnection, parsed: &[Parsed]) -> Result<(), sqlx::Error> {
    let mut blobs = Vec::new();
    let first = next_id(connection, "blob").await?;
    for (id, file) in (first..).zip(parsed) {
        let added = sqlx::query("INSERT OR IGNORE INTO blob (id, object, language) VALUES (?, ?, ?)")
            .bind(id)
            .bind(&file.object)
            .bind(format!("{:?}", file.language))
            .execute(&mut *connection)
            .await?;
        if added.rows_affected() > 0 {
            blobs.push((id, file));
        }
    }
    let names = name_ids(connection, &blobs).await?;
    let mut id = next_id(connection, "chunk").await?;
    let mut places = Vec::new();
    for (blob, file) in &blobs {
        for place in &file.places {
            places.push((id, *blob, place));
            id += 1;
        }
    }
    for rows in places.chunks(ROWS) {
        let mut insert = QueryBuilder::<Sqlite>::new("INSERT INTO chunk (id, blob, name, parent, kind, first, last) ");
        insert.push_values(rows, |mut row, (id, blob, place)| {
            row.push_bind(*id).push_bind(*blob);
            row.push_bind(names.get(place.name.as_str()).copied());
            row.push_bind(names.get(place.parent.as_str()).copied());
            row.push_bind(place.kind.name());
            row.push_bind(number(place.first)).push_bind(number(place.last));
        });
        insert.build().execute(&mut *connection).await?;
        let mut insert = QueryBuilder::<Sqlite>::new("INSERT INTO words (rowid, name, body) ");
        insert.push_values(rows, |mut row, (id, _, place)| {
            row.push_bind(*id)
                .push_bind(place.name_words.as_str())
                .push_bind(place.body_words.as_str());
        });
        insert.build().execute(&mut *connection).await?;
    }
    write_references(connection, &blobs, &names).await
}

/// Writes which names the files use.
async fn write_references(
    connection: &mut SqliteConnection,
    blobs: &[(i64, &Parsed)],
    names: &HashMap<&str, i64>,
) -> Result<(), sqlx::Error> {
    let mut references: Vec<(i64, i64)> = Vec::new();
    for (blob, file) in blobs {
        references.extend(
            file.references
                .iter()
                .filter_map(|name| Some((*names.get(name.as_str())?, *blob))),
        );
    }
    references.sort_unstable();
    for rows in references.chunks(ROWS) {
        let mut insert = QueryBuilder::<Sqlite>::new("INSERT OR IGNORE INTO reference (name, blob) ");
        insert.push_values(rows, |mut row, (name, blob)| {
            row.push_bind(*name).push_bind(*blob);
        });
        insert.build().execute(&mut *connection).await?;
    }
    Ok(())
}

/// Returns the ids of all names of these files, and writes those that are new.
async fn name_ids<'p>(
    connection: &mut SqliteConnection,
    blobs: &[(i64, &'p Parsed)],
) -> Result<HashMap<&'p str, i64>, sqlx::Error> {
    let mut wanted: HashSet<&str> = HashSet::new();
    for (_, file) in blobs {
        wanted.extend(file.references.iter().map(String::as_str));
        wanted.extend(
            file.places
                .iter()
                .flat_map(|place| [place.name.as_str(), place.parent.as_str()]),
        );
    }
    wanted.remove("");
    let list = serde_json::to_string(&wanted).unwrap_or_default();
    let known = sqlx::query("SELECT name, id FROM name WHERE name IN (SELECT value FROM json_each(?))")
        .bind(list)
        .fetch_all(&mut *connection)
        .await?;
    let mut ids: HashMap<&str, i64> = HashMap::new();
    for row in &known {
        if let Some(name) = wanted.get(row.get::<&str, _>(0)) {
            ids.insert(name, row.get(1));
        }
    }
    let mut new: Vec<&str> = wanted.into_iter().filter(|name| !ids.contains_key(name)).collect();
    new.sort_unstable();
    let first = next_id(connection, "name").await?;
    let new: Vec<(i64, &str)> = (first..).zip(new).collect();
    for rows in new.chunks(ROWS) {
        let mut insert = QueryBuilder::<Sqlite>::new("INSERT INTO name (id, name) ");
        insert.push_values(rows, |mut row, (id, name)| {
            row.push_bind(*id).push_bind(*name);
        });
        insert.build().execute(&mut *connection).await?;
    }
    let defined: HashSet<&str> = blobs
        .iter()
        .flat_map(|(_, file)| file.places.iter().map(|place| place.name.as_str()))
        .collect();
    let parts: Vec<_> = new.iter().filter(|(_, name)| defined.contains(name)).collect();
    for rows in parts.chunks(ROWS) {
        let mut insert = QueryBuilder::<Sqlite>::new("INSERT INTO name_parts (rowid, name) ");
        insert.push_values(rows, |mut row, (id, name)| {
            row.push_bind(*id).push_bind(*name);
        });
        insert.build().execute(&mut *connection).await?;
    }
    ids.extend(new.into_iter().map(|(id, name)| (name, id)));
    Ok(ids)
}

/// Writes which files a commit has.
pub(super) async fn note(
    connection: &mut SqliteConnection,
    commit: &CommitId,
    files: &[TreeEntry],
    blobs: &HashMap<(String, String), i64>,
) -> Result<(), sqlx::Error> {
    let known = sqlx::query("SELECT path, id FROM path")
        .fetch_all(&mut *connection)
        .await?;
    let mut paths: HashMap<String, i64> = known.iter().map(|row| (row.get(0), row.get(1))).collect();
    let first = next_id(connection, "path").await?;
    let new = files.iter().filter(|file| !paths.contains_key(&file.path));
    let new: Vec<(i64, &str)> = (first..).zip(new.map(|file| file.path.as_str())).collect();
    for rows in new.chunks(ROWS) {
        let mut insert = QueryBuilder::<Sqlite>::new("INSERT INTO path (id, path) ");
        insert.push_values(rows, |mut row, (id, path)| {
            row.push_bind(*id).push_bind(*path);
        });
        insert.build().execute(&mut *connection).await?;
        let mut insert = QueryBuilder::<Sqlite>::new("INSERT INTO path_words (rowid, words) ");
        insert.push_values(rows, |mut row, (id, path)| {
            row.push_bind(*id).push_bind(path_words(path));
        });
        insert.build().execute(&mut *connection).await?;
    }
    paths.extend(new.into_iter().map(|(id, path)| (path.to_owned(), id)));
    let added = sqlx::query("INSERT OR IGNORE INTO snapshot (object, used) VALUES (?, ?)")
        .bind(commit.as_str())
        .bind(Utc::now().timestamp_micros())
        .execute(&mut *connection)
        .await?;
    if added.rows_affected() == 0 {
        return Ok(());
    }
    let snapshot = added.last_insert_rowid();
    let mut rows: Vec<(i64, i64)> = files
        .iter()
        .filter_map(|file| {
            // A file that was not read has no places, and is known by its path alone.
            let blob = blobs
                .get(&(file.object.clone(), language(&file.path)))
                .copied()
                .unwrap_or(0);
            Some((*paths.get(&file.path)?, blob))
        })
        .collect();
    rows.sort_unstable();
    for rows in rows.chunks(ROWS) {
        let mut insert = QueryBuilder::<Sqlite>::new("INSERT OR IGNORE INTO tree (snapshot, path, blob) ");
        insert.push_values(rows, |mut row, (path, blob)| {
            row.push_bind(snapshot).push_bind(*path).push_bind(*blob);
        });
        insert.build().execute(&mut *connection).await?;
    }
    Ok(())
}

/// Forgets the commits that were not used for longest, and what no other one has.
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
    for statement in [
        "DELETE FROM tree WHERE snapshot NOT IN (SELECT id FROM snapshot)",
        "DELETE FROM blob WHERE id NOT IN (SELECT blob FROM tree)",
        "DELETE FROM words WHERE rowid IN (SELECT id FROM chunk WHERE blob NOT IN (SELECT id FROM blob))",
        "DELETE FROM chunk WHERE blob NOT IN (SELECT id FROM blob)",
        "DELETE FROM reference WHERE blob NOT IN (SELECT id FROM blob)",
        "DELETE FROM path_words WHERE rowid IN (SELECT id FROM path WHERE id NOT IN (SELECT path FROM tree))",
        "DELETE FROM path WHERE id NOT IN (SELECT path FROM tree)",
    ] {
        sqlx::query(statement).execute(&mut *connection).await?;
    }
    Ok(())
}

/// Returns a line's number as the database keeps it.
fn number(line: usize) -> i64 {
    i64::try_from(line).unwrap_or(i64::MAX)
}
