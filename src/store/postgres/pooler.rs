//! Tells whether somebody between hands sessions of the server from one client to another.
//!
//! A connection pooler that does so for each transaction (`PgBouncer`'s `pool_mode = transaction`)
//! gives the lock that tells that a worker lives to whoever comes next.

use sqlx::{AssertSqlSafe, PgConnection, Row as _};
use uuid::Uuid;

use super::link::Link;

/// Tells whether what one session was told is known to another one, or forgotten by itself. Plain
/// statements alone: prepared ones fail with such a pooler before it can be told.
pub(super) async fn is_between(link: &Link) -> Result<bool, sqlx::Error> {
    let mut first = link.connect().await?;
    let mut second = link.connect().await?;
    let mark = Uuid::new_v4().simple().to_string();
    let set = format!("SELECT set_config('coding_agent.mark', '{mark}', false), pg_backend_pid()::TEXT");
    let (_, process) = link.within(ask(&mut first, set)).await?;
    let read = "SELECT COALESCE(current_setting('coding_agent.mark', true), ''), pg_backend_pid()::TEXT";
    // A transaction keeps its session to itself, so the first one has to take another.
    link.within(sqlx::raw_sql("BEGIN").execute(&mut second)).await?;
    let (of_second, _) = link.within(ask(&mut second, read.to_owned())).await?;
    let (of_first, process_now) = link.within(ask(&mut first, read.to_owned())).await?;
    link.within(sqlx::raw_sql("ROLLBACK").execute(&mut second)).await?;
    Ok(of_second == mark || of_first != mark || process_now != process)
}

async fn ask(connection: &mut PgConnection, text: String) -> Result<(String, String), sqlx::Error> {
    let row = sqlx::raw_sql(AssertSqlSafe(text)).fetch_one(connection).await?;
    Ok((row.try_get(0)?, row.try_get(1)?))
}
