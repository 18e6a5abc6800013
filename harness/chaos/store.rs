//! The program's store, as seen from outside.

use anyhow::Context;
use coding_agent::conversation::Message;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{PgPool, SqlitePool};

use crate::site::Site;

/// The program's database: in a file, or on a server that several machines share.
pub enum Store {
    File(SqlitePool),
    Server(PgPool),
}

/// A row of the store.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Run {
    pub id: String,
    pub task: String,
    pub state: String,
    pub is_finished: bool,
}

/// Asks either database in the same words.
macro_rules! fetched {
    ($store:expr, $query:expr) => {
        match $store {
            Store::File(pool) => $query.fetch_all(pool).await?,
            Store::Server(pool) => $query.fetch_all(pool).await?,
        }
    };
}

impl Store {
    /// Opens the store in the site's file; it is not there before the program has made it.
    pub async fn open(site: &Site) -> anyhow::Result<Self> {
        let options = SqliteConnectOptions::new()
            .filename(site.state_dir().join("coding-agent.db"))
            .create_if_missing(false);
        Ok(Self::File(SqlitePool::connect_with(options).await?))
    }

    pub fn on_server(pool: PgPool) -> Self {
        Self::Server(pool)
    }

    pub async fn runs(&self) -> anyhow::Result<Vec<Run>> {
        let query = "SELECT id, task, state, finished_at IS NOT NULL AS is_finished FROM runs ORDER BY id";
        Ok(fetched!(self, sqlx::query_as(query)))
    }

    pub async fn conversation(&self, run: &Run) -> anyhow::Result<Vec<Message>> {
        let query = "SELECT message FROM messages WHERE run = $1 ORDER BY position";
        let rows: Vec<(String,)> = fetched!(self, sqlx::query_as(query).bind(&run.id));
        let read = rows.iter().map(|(message,)| serde_json::from_str(message));
        read.collect::<Result<_, _>>()
            .context("a stored message cannot be read")
    }

    /// Makes the runs that were put back due now, as the passing of time would.
    pub async fn make_everything_due(&self) -> anyhow::Result<()> {
        let update = "UPDATE runs SET not_before = NULL WHERE not_before IS NOT NULL";
        match self {
            Self::File(pool) => _ = sqlx::query(update).execute(pool).await?,
            Self::Server(pool) => _ = sqlx::query(update).execute(pool).await?,
        }
        Ok(())
    }

    pub async fn close(self) {
        match self {
            Self::File(pool) => pool.close().await,
            Self::Server(pool) => pool.close().await,
        }
    }
}
