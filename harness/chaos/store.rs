//! The program's store, as seen from outside.

use anyhow::Context;
use coding_agent::conversation::Message;
use sqlx::SqlitePool;
use sqlx::sqlite::SqliteConnectOptions;

use crate::site::Site;

pub struct Store(SqlitePool);

/// A row of the store.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Run {
    pub id: String,
    pub task: String,
    pub state: String,
    pub is_finished: bool,
}

impl Store {
    /// Opens the store; it is not there before the program has made it.
    pub async fn open(site: &Site) -> anyhow::Result<Self> {
        let options = SqliteConnectOptions::new()
            .filename(site.state_dir().join("coding-agent.db"))
            .create_if_missing(false);
        Ok(Self(SqlitePool::connect_with(options).await?))
    }

    pub async fn runs(&self) -> anyhow::Result<Vec<Run>> {
        let query = "SELECT id, task, state, finished_at IS NOT NULL AS is_finished FROM runs ORDER BY id";
        Ok(sqlx::query_as(query).fetch_all(&self.0).await?)
    }

    pub async fn conversation(&self, run: &Run) -> anyhow::Result<Vec<Message>> {
        let query = "SELECT message FROM messages WHERE run = $1 ORDER BY position";
        let rows: Vec<(String,)> = sqlx::query_as(query).bind(&run.id).fetch_all(&self.0).await?;
        let read = rows.iter().map(|(message,)| serde_json::from_str(message));
        read.collect::<Result<_, _>>()
            .context("a stored message cannot be read")
    }

    /// Makes the runs that were put back due now, as the passing of time would.
    pub async fn make_everything_due(&self) -> anyhow::Result<()> {
        sqlx::query("UPDATE runs SET not_before = NULL")
            .execute(&self.0)
            .await?;
        Ok(())
    }

    pub async fn close(self) {
        self.0.close().await;
    }
}
