//! Connections to the server, and statements over them.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions, PgRow};
use sqlx::{Executor, PgConnection, PgPool, Postgres, Transaction};
use tokio::time::{Instant, sleep, timeout};

use super::explained::{self, is_loss, is_of_old_connections};
use super::patience::{Attempts, LONGEST};
use super::values;
use crate::store::StoreError;
use crate::store::sql::{Row, Statement};

/// Longest wait for one answer. A link that was cut says nothing, so silence has to end.
const ANSWER: Duration = Duration::from_secs(15);
/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);
const CONNECTIONS: u32 = 5;
/// The channel on which workers wake one another.
pub(super) const CHANNEL: &str = "coding_agent";

/// The settings of every connection. A worker that falls silent must not hold a transaction, and
/// with it the claims of all, for long; how long its session stays is the business of
/// [`super::session`].
const SESSION: &str = "SET default_transaction_isolation = 'read committed';
     SET default_transaction_read_only = off; SET bytea_output = 'hex';
     SET idle_in_transaction_session_timeout = '10s'; SET lock_timeout = '12s'; SET statement_timeout = '60s';
     SET tcp_keepalives_idle = 40; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3;
     SET tcp_user_timeout = 70000";

/// What differs on the connection that brings the tables up to date: an index over millions of rows
/// takes longer than a minute. For a lock of somebody else it waits no longer than any other.
const OF_STEPS: &str = "SET statement_timeout = '1h'";

/// The way to the server. Clones share the connections.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pool: PgPool,
    /// Connections for queries while a transaction of the others is open: with one pool for both,
    /// as many transactions as it has connections would wait for one another.
    looks: PgPool,
    options: PgConnectOptions,
    name: Arc<str>,
    installation: i32,
    patience: Duration,
    losses: Losses,
}

/// When a connection was lost last. Those made before that may be dead without knowing it.
#[derive(Debug, Clone)]
struct Losses {
    since: Instant,
    last_micros: Arc<AtomicU64>,
}

impl Losses {
    fn now(&self) -> u64 {
        u64::try_from(self.since.elapsed().as_micros()).unwrap_or(u64::MAX)
    }

    fn note(&self) {
        self.last_micros.fetch_max(self.now(), Ordering::Relaxed);
    }

    fn is_older(&self, age: Duration) -> bool {
        let age = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
        self.now().saturating_sub(age) < self.last_micros.load(Ordering::Relaxed)
    }
}

impl Link {
    /// Returns a way to the server over which nothing was sent yet.
    pub(super) fn new(options: PgConnectOptions, name: Arc<str>) -> Self {
        let losses = Losses {
            since: Instant::now(),
            last_micros: Arc::default(),
        };
        Self {
            pool: pool(&options, CONNECTIONS, &losses, &[SESSION]),
            looks: pool(&options, 1, &losses, &[SESSION]),
            options,
            name,
            installation: 0,
            patience: LONGEST,
            losses,
        }
    }

    /// Takes over the number by which the server's locks tell installations apart that share a
    /// database: that of the schema with their tables.
    pub(super) async fn with_installation(mut self) -> Result<Self, StoreError> {
        let schema = Statement::new("SELECT COALESCE(hashtext(current_schema()), 0)::BIGINT");
        let rows = self.fetch(&schema).await?;
        let number = rows.first().map(|row| row.number(0)).transpose()?.unwrap_or_default();
        self.installation = i32::try_from(number).unwrap_or_default();
        Ok(self)
    }

    /// Waits no longer than this for a connection that is lost.
    pub(super) fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    pub(super) fn attempts(&self) -> Attempts {
        Attempts::within(self.patience)
    }

    /// Returns a connection of its own, whose statements may take an hour.
    pub(super) fn for_steps(&self) -> PgPool {
        pool(&self.options, 1, &self.losses, &[SESSION, OF_STEPS])
    }

    pub(super) fn installation(&self) -> i32 {
        self.installation
    }

    pub(super) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Makes a connection that belongs to nobody else.
    pub(super) async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let made = timeout(CONNECT, async {
            let mut connection: PgConnection = sqlx::ConnectOptions::connect(&self.options).await?;
            connection.execute(SESSION).await?;
            Ok(connection)
        });
        made.await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    /// Makes a connection on which this process is woken.
    pub(super) async fn listen(&self) -> Result<PgListener, sqlx::Error> {
        let made = timeout(CONNECT, async {
            let pool = pool(&self.options, 1, &self.losses, &[SESSION]);
            let mut listener = PgListener::connect_with(&pool).await?;
            listener.listen(CHANNEL).await?;
            Ok(listener)
        });
        made.await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    /// Waits for an answer, for a bounded time.
    pub(super) async fn within<T>(
        &self,
        answer: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        let answered = timeout(ANSWER, answer).await.unwrap_or_else(|_| {
            let silence = std::io::Error::new(std::io::ErrorKind::TimedOut, "the server has not answered in time");
            Err(sqlx::Error::Io(silence))
        });
        answered.inspect_err(|error| {
            if is_of_old_connections(error) {
                self.losses.note();
            }
        })
    }

    /// Runs a statement that may be repeated; returns how many rows it changed.
    pub(super) async fn execute(&self, statement: &Statement) -> Result<u64, StoreError> {
        let mut attempts = self.attempts();
        loop {
            let done = self.within(values::query(statement).execute(&self.pool)).await;
            match done {
                Err(error) if is_loss(&error) && attempts.wait().await => {}
                done => return Ok(done.map_err(|error| self.failed(error))?.rows_affected()),
            }
        }
    }

    /// Runs a query.
    pub(super) async fn fetch(&self, statement: &Statement) -> Result<Vec<Row>, StoreError> {
        self.fetch_from(&self.pool, statement).await
    }

    /// Runs a query that may be asked while a transaction is open.
    pub(super) async fn look(&self, statement: &Statement) -> Result<Vec<Row>, StoreError> {
        self.fetch_from(&self.looks, statement).await
    }

    async fn fetch_from(&self, pool: &PgPool, statement: &Statement) -> Result<Vec<Row>, StoreError> {
        let mut attempts = self.attempts();
        loop {
            match self.within(values::query(statement).fetch_all(pool)).await {
                Err(error) if is_loss(&error) && attempts.wait().await => {}
                rows => return self.rows(rows),
            }
        }
    }

    /// Begins a transaction that holds a lock to its end, if one is named; returns the
    /// transaction's number too.
    pub(super) async fn begin(
        &self,
        lock: Option<i32>,
    ) -> Result<(Transaction<'static, Postgres>, String), StoreError> {
        let mut attempts = self.attempts();
        loop {
            match self.begin_once(lock).await {
                Err(error) if is_loss(&error) && attempts.wait().await => {}
                begun => return begun.map_err(|error| self.failed(error)),
            }
        }
    }

    async fn begin_once(&self, lock: Option<i32>) -> Result<(Transaction<'static, Postgres>, String), sqlx::Error> {
        let mut transaction = self.within(self.pool.begin()).await?;
        let id = match lock {
            None => {
                let query = sqlx::query_scalar("SELECT pg_current_xact_id()::TEXT");
                self.within(query.fetch_one(&mut *transaction)).await?
            }
            Some(lock) => {
                let query = sqlx::query_as::<_, (String, String)>(
                    "SELECT pg_current_xact_id()::TEXT, pg_advisory_xact_lock($1, $2)::TEXT",
                );
                let locked = query.bind(lock).bind(self.installation).fetch_one(&mut *transaction);
                self.within(locked).await?.0
            }
        };
        Ok((transaction, id))
    }

    /// Finds out what became of a transaction whose commit was sent and not answered. A server that
    /// does not come back in time leaves that open, which is not [`StoreError::Away`]: whoever
    /// hears that nothing was done does it again, beside what may have been kept.
    pub(super) async fn outcome_of(&self, id: &str, error: sqlx::Error) -> Result<(), StoreError> {
        let status = Statement::new("SELECT pg_xact_status($1::TEXT::xid8)").with(id);
        let mut attempts = self.attempts();
        while attempts.wait().await {
            let rows = match self.look(&status).await {
                Err(StoreError::Away { .. }) => break,
                rows => rows?,
            };
            match rows.first().map(|row| row.text(0)).transpose()? {
                Some("committed") => return Ok(()),
                // The server does not know yet that nobody is there any more.
                Some("in progress") => sleep(Duration::from_millis(200)).await,
                _ => return Err(self.failed(error)),
            }
        }
        Err(StoreError::Database {
            store: self.name.to_string(),
            source: "it is not known whether what was written was kept: the server has not answered".into(),
        })
    }

    /// Wakes the workers; one that is not reached looks by the clock.
    pub(super) async fn ring(&self) {
        let rung = self.within(
            sqlx::query("SELECT pg_notify($1, '')")
                .bind(CHANNEL)
                .execute(&self.pool),
        );
        if let Err(error) = rung.await {
            tracing::debug!("the other workers were not woken: {error}");
        }
    }

    pub(super) fn rows(&self, rows: Result<Vec<PgRow>, sqlx::Error>) -> Result<Vec<Row>, StoreError> {
        let rows = rows.map_err(|error| self.failed(error))?;
        let read = rows.iter().map(|row| values::row(&self.name, row));
        read.collect::<Result<_, _>>().map_err(|error| self.failed(error))
    }

    pub(super) fn failed(&self, error: sqlx::Error) -> StoreError {
        explained::failed(&self.name, error)
    }

    pub(super) fn unusable(&self, reason: &str) -> StoreError {
        StoreError::Unusable {
            store: self.name.to_string(),
            reason: reason.to_owned(),
        }
    }
}

fn pool(options: &PgConnectOptions, most: u32, losses: &Losses, settings: &'static [&'static str]) -> PgPool {
    let losses = losses.clone();
    PgPoolOptions::new()
        .max_connections(most)
        .acquire_timeout(CONNECT)
        // A question before each statement would double the way; a lost connection shows at once.
        .test_before_acquire(false)
        .after_connect(move |connection, _| {
            Box::pin(async move {
                for text in settings {
                    Executor::execute(&mut *connection, *text).await?;
                }
                Ok(())
            })
        })
        .before_acquire(move |_, about| {
            let is_good = !losses.is_older(about.age);
            Box::pin(async move { Ok(is_good) })
        })
        .connect_lazy_with(options.clone())
}
