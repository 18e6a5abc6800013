//! PostgreSQL's own behaviour: sessions, lost connections, claims that would run side by side. All
//! else is in the suite of the store, which `make test-postgres` plays with a server too.

mod server; // the server they need
mod claims;
mod connections;
mod poolers;

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::{AssertSqlSafe, PgPool};
use tokio::time::sleep;
use uuid::Uuid;

use super::session::key;
use super::{Postgres, open};
use crate::store::config::Server;
use crate::store::tests::Place;
use crate::store::{Store, StoreError};

/// The variable that names a server to try the store on.
pub(in crate::store) const SERVER: &str = "CODING_AGENT_TEST_POSTGRES";

/// A schema of its own on a server; it goes with the server.
pub(in crate::store) struct Schema {
    server: String,
    name: String,
    distant: Mutex<Vec<Store>>,
}

impl Schema {
    pub(in crate::store) fn on(server: &str) -> Self {
        Self {
            server: server.to_owned(),
            name: format!("s{}", Uuid::new_v4().simple()),
            distant: Mutex::default(),
        }
    }

    /// Returns the address of the database in this schema, which is made if it is missing.
    async fn address(&self) -> Server {
        let pool = PgPool::connect(&self.server).await.unwrap();
        let make = AssertSqlSafe(format!("CREATE SCHEMA IF NOT EXISTS {}", self.name));
        // Of two that make it at once one may find it there.
        let _ = sqlx::query(make).execute(&pool).await;
        pool.close().await;
        let url = format!("{}&options=-csearch_path%3D{}", self.server, self.name);
        Server::new(&url, None)
    }

    /// Opens the database as another process does; a worker is not believed without its lock.
    async fn engine(&self) -> Postgres {
        open(&self.address().await, Duration::ZERO).await.unwrap()
    }

    async fn pool(&self) -> PgPool {
        PgPool::connect(&self.address().await.url).await.unwrap()
    }
}

/// Tells whether the server holds the lock of a worker.
async fn is_there(pool: &PgPool, worker: Uuid) -> bool {
    let query =
        "SELECT EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND objid::BIGINT = $1)";
    sqlx::query_scalar(query)
        .bind(key(worker))
        .fetch_one(pool)
        .await
        .unwrap()
}

#[async_trait]
impl Place for Schema {
    async fn open(&self) -> Store {
        Store::over(self.engine().await)
    }

    /// The kernel closes a killed process's connections, and the server lets go of its lock then.
    async fn kill(&self, store: Store) {
        let worker = store.worker();
        drop(store);
        let pool = self.pool().await;
        while is_there(&pool, worker).await {
            sleep(Duration::from_millis(5)).await;
        }
        pool.close().await;
    }

    /// Returns a worker whose session is there.
    async fn distant_worker(&self) -> Uuid {
        let store = self.open().await;
        let worker = store.worker();
        self.distant.lock().unwrap_or_else(PoisonError::into_inner).push(store);
        worker
    }
}

async fn sentence(url: &str) -> String {
    match open(&Server::new(url, None), Duration::ZERO).await {
        Ok(_) => panic!("opened"),
        Err(error @ StoreError::Unusable { .. }) => error.to_string(),
        Err(error) => panic!("not explained: {error}"),
    }
}

#[tokio::test]
async fn what_keeps_a_database_from_being_opened_is_said_with_what_to_do() {
    let server = server::start().await;
    let missing = server.address.replacen("/postgres?", "/nowhere?", 1);
    let said = sentence(&missing).await;
    assert!(said.contains("nowhere") && said.contains("createdb"), "{said}");

    let schema = Schema::on(&server.address);
    drop(schema.open().await);
    let step = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
                VALUES (99, 'from the future', TRUE, '', 0)";
    sqlx::query(step).execute(&schema.pool().await).await.unwrap();
    let said = sentence(&schema.address().await.url).await;
    assert!(said.contains("newer version"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn first_starts_at_the_same_moment_make_the_tables_once() {
    let server = server::start().await;
    let schema = Schema::on(&server.address);
    let address = schema.address().await;
    let mut starts = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let address = address.clone();
        starts.spawn(async move { open(&address, Duration::ZERO).await.map(drop) });
    }
    for start in starts.join_all().await {
        start.unwrap();
    }
}
