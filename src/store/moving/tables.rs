//! The tables, in the order in which they are copied: what others refer to comes first.

/// How one table is read and written, page by page in the order of its key.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    /// The page behind a key; a text that is empty and a number below zero are before all keys.
    pub(super) page: &'static str,
    pub(super) insert: &'static str,
    /// The last key that is there.
    pub(super) last: &'static str,
    /// Deletes a page of rows.
    pub(super) empty: &'static str,
    pub(super) key: &'static [Kind],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Number,
}

/// Writes a table's statements down. The key comes first among the columns.
macro_rules! table {
    ($name:literal, $columns:literal, $values:literal, $key:literal, $place:literal, $down:literal, $kinds:expr, $rows:literal) => {
        Table {
            name: $name,
            page: concat!(
                "SELECT ",
                $columns,
                " FROM ",
                $name,
                " WHERE (",
                $key,
                ") > (",
                $place,
                ") ORDER BY ",
                $key,
                " LIMIT ",
                $rows
            ),
            insert: concat!(
                "INSERT INTO ",
                $name,
                " (",
                $columns,
                ") VALUES (",
                $values,
                ") ON CONFLICT DO NOTHING"
            ),
            last: concat!("SELECT ", $key, " FROM ", $name, " ORDER BY ", $down, " LIMIT 1"),
            empty: concat!(
                "DELETE FROM ",
                $name,
                " WHERE (",
                $key,
                ") IN (SELECT ",
                $key,
                " FROM ",
                $name,
                " ORDER BY ",
                $key,
                " LIMIT ",
                $rows,
                ")"
            ),
            key: $kinds,
        }
    };
}

use Kind::{Number, Text};

/// All tables but that of the migrations.
pub(super) const TABLES: [Table; 17] = [
    table!(
        "runs",
        "id, task, title, state, record, created_at, updated_at, finished_at, not_before, lease_token, lease_worker, \
         lease_host, lease_expires_at, format",
        "$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14",
        "id",
        "$1",
        "id DESC",
        &[Text],
        "100"
    ),
    table!(
        "messages",
        "run, position, message",
        "$1, $2, $3",
        "run, position",
        "$1, $2",
        "run DESC, position DESC",
        &[Text, Number],
        "200"
    ),
    table!(
        "requests",
        "id, run, request, asked_by",
        "$1, $2, $3, $4",
        "id",
        "$1",
        "id DESC",
        &[Text],
        "200"
    ),
    table!(
        "remembered",
        "name, value",
        "$1, $2",
        "name",
        "$1",
        "name DESC",
        &[Text],
        "50"
    ),
    table!(
        "followed",
        "task, notes, active_at, ended_at, origin",
        "$1, $2, $3, $4, $5",
        "task",
        "$1",
        "task DESC",
        &[Text],
        "200"
    ),
    table!("switches", "name", "$1", "name", "$1", "name DESC", &[Text], "200"),
    table!(
        "facts",
        "sequence, at, run, task, fact",
        "$1, $2, $3, $4, $5",
        "sequence",
        "$1",
        "sequence DESC",
        &[Number],
        "500"
    ),
    table!(
        "used_by_model",
        "day, model, input, output, cached, cache_written",
        "$1, $2, $3, $4, $5, $6",
        "day, model",
        "$1, $2",
        "day DESC, model DESC",
        &[Text, Text],
        "200"
    ),
    table!(
        "unfinished_work",
        "run, upload, about",
        "$1, $2, $3",
        "run",
        "$1",
        "run DESC",
        &[Text],
        "200"
    ),
    // A part is a megabyte.
    table!(
        "unfinished_parts",
        "run, upload, position, content",
        "$1, $2, $3, $4",
        "run, upload, position",
        "$1, $2, $3",
        "run DESC, upload DESC, position DESC",
        &[Text, Text, Number],
        "8"
    ),
    table!(
        "automatic_approval",
        "id, started_by, until",
        "$1, $2, $3",
        "id",
        "$1",
        "id DESC",
        &[Number],
        "1"
    ),
    table!(
        "evaluations",
        "id, begun_at, ended_at, document",
        "$1, $2, $3, $4",
        "id",
        "$1",
        "id DESC",
        &[Text],
        "100"
    ),
    table!(
        "once",
        "name, at, value",
        "$1, $2, $3",
        "name",
        "$1",
        "name DESC",
        &[Text],
        "200"
    ),
    table!(
        "chat_sessions",
        "id, document, active_at",
        "$1, $2, $3",
        "id",
        "$1",
        "id DESC",
        &[Text],
        "100"
    ),
    table!(
        "chat_messages",
        "id, session, at, document, handled_at",
        "$1, $2, $3, $4, $5",
        "id",
        "$1",
        "id DESC",
        &[Text],
        "200"
    ),
    table!(
        "chat_outbox",
        "id, session, at, document, wanted, shown, begun, not_before, message, failing_since",
        "$1, $2, $3, $4, $5, $6, $7, $8, $9, $10",
        "id",
        "$1",
        "id DESC",
        &[Text],
        "200"
    ),
    table!(
        "chat_watches",
        "task, session, document, since",
        "$1, $2, $3, $4",
        "task",
        "$1",
        "task DESC",
        &[Text],
        "200"
    ),
];

/// Tables whose rows have times of what happened to them, each with a query for the newest one; 0
/// where there are no rows.
pub(super) const TIMES: [(&str, &str); 8] = [
    ("runs", "SELECT COALESCE(MAX(updated_at), 0) FROM runs"),
    ("facts", "SELECT COALESCE(MAX(at), 0) FROM facts"),
    (
        "followed",
        "SELECT COALESCE(MAX(COALESCE(ended_at, active_at)), 0) FROM followed",
    ),
    (
        "evaluations",
        "SELECT COALESCE(MAX(COALESCE(ended_at, begun_at)), 0) FROM evaluations",
    ),
    ("once", "SELECT COALESCE(MAX(at), 0) FROM once"),
    (
        "chat_messages",
        "SELECT COALESCE(MAX(COALESCE(handled_at, at)), 0) FROM chat_messages",
    ),
    ("chat_outbox", "SELECT COALESCE(MAX(at), 0) FROM chat_outbox"),
    ("chat_watches", "SELECT COALESCE(MAX(since), 0) FROM chat_watches"),
];

/// Tables whose content is of the moment: who has a turn now.
#[cfg(test)]
pub(super) const LEFT_OUT: [&str; 1] = ["turns"];
