//! Values in statements and rows.

use std::sync::Arc;

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::types::Oid;
use sqlx::postgres::{PgArgumentBuffer, PgArguments, PgRow, PgTypeInfo};
use sqlx::query::Query;
use sqlx::{Encode, Row as _, Type, TypeInfo as _, ValueRef as _};

use crate::store::sql::{Cell, Row, Statement};

/// NULL without a type: the server finds out which is meant. A statement is prepared once, maybe
/// with a NULL where later a number stands.
struct Nothing;

impl Type<sqlx::Postgres> for Nothing {
    fn type_info() -> PgTypeInfo {
        PgTypeInfo::with_oid(Oid(0))
    }
}

impl Encode<'_, sqlx::Postgres> for Nothing {
    fn encode_by_ref(&self, _buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        Ok(IsNull::Yes)
    }
}

/// Returns a statement with its values.
pub(super) fn query(statement: &Statement) -> Query<'static, sqlx::Postgres, PgArguments> {
    let bare = sqlx::query(statement.text);
    statement.values.iter().fold(bare, |query, value| match value {
        Cell::Null => query.bind(Nothing),
        // The server's texts hold no NUL; one that a forge has sent says nothing to anybody.
        Cell::Text(text) if text.contains('\0') => query.bind(text.replace('\0', "\u{fffd}")),
        Cell::Text(text) => query.bind(text.clone()),
        Cell::Number(number) => query.bind(*number),
        Cell::Bytes(bytes) => query.bind(bytes.clone()),
    })
}

/// Reads a row of the store with this name.
pub(super) fn row(store: &Arc<str>, row: &PgRow) -> Result<Row, sqlx::Error> {
    let cells: Result<Vec<_>, _> = (0..row.len()).map(|column| cell(row, column)).collect();
    Ok(Row {
        store: Arc::clone(store),
        cells: cells?,
    })
}

fn cell(row: &PgRow, column: usize) -> Result<Cell, sqlx::Error> {
    let value = row.try_get_raw(column)?;
    if value.is_null() {
        return Ok(Cell::Null);
    }
    let kind = value.type_info().name().to_owned();
    Ok(match kind.as_str() {
        "INT8" => Cell::Number(row.try_get(column)?),
        "INT4" => Cell::Number(row.try_get::<i32, _>(column)?.into()),
        "BYTEA" => Cell::Bytes(row.try_get(column)?),
        _ => Cell::Text(row.try_get(column)?),
    })
}
