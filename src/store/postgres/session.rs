//! Tells by the server's locks which workers are alive.
//!
//! Each open store is a worker with a lock of its own session, on a connection that does nothing
//! else but listen and look around. The server lets go of the lock when the process dies, since
//! its kernel closes the connection, and some seconds after the end of a lease where a machine
//! has fallen silent (`tcp_keepalives_*`). A heartbeat alone makes everybody wait for the expiry
//! after each crash.
//!
//! A lock that is not there says that its worker is dead, with one exception: after the server, or
//! our own way to it, was gone, the others may be about to come back, and are believed for a while.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::PgListener;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::link::Link;
use crate::store::StoreError;
use crate::store::engine::{Alive, Liveness};
use crate::store::sql::Statement;

/// Interval at which a worker looks around by itself.
const LOOK_EVERY: Duration = Duration::from_millis(1_500);
/// How far back runs are looked for that became due.
const DUE_SINCE_MICROS: i64 = 10_000_000;
const RECONNECT_EVERY: Duration = Duration::from_millis(500);

/// This process's place among the workers. Dropping it, like dying, makes its leases claimable.
#[derive(Debug)]
pub(super) struct Session {
    worker: Uuid,
    link: Link,
    state: Arc<State>,
    _keeping: AbortOnDropHandle<()>,
}

#[derive(Debug)]
struct State {
    rung: watch::Sender<u64>,
    /// When the session was made anew, if it was.
    restored_at: Mutex<Option<Instant>>,
    /// For how long others are believed after the server or the way to it was gone.
    grace: Duration,
}

impl State {
    fn ring(&self) {
        self.rung.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn was_away(&self) -> bool {
        let restored_at = *self.restored_at.lock().unwrap_or_else(PoisonError::into_inner);
        restored_at.is_some_and(|restored_at| restored_at.elapsed() < self.grace)
    }
}

impl Session {
    /// Takes a place among the workers, and keeps it until this is dropped.
    pub(super) async fn enter(link: Link, grace: Duration) -> Result<Self, sqlx::Error> {
        let worker = Uuid::now_v7();
        let state = Arc::new(State {
            rung: watch::Sender::new(0),
            restored_at: Mutex::default(),
            grace,
        });
        let listener = locked(&link, worker).await?;
        let keeping = keep(link.clone(), worker, listener, Arc::clone(&state));
        Ok(Self {
            worker,
            link,
            state,
            _keeping: AbortOnDropHandle::new(tokio::spawn(keeping)),
        })
    }

    pub(super) fn rung(&self) -> watch::Receiver<u64> {
        self.state.rung.subscribe()
    }

    /// Returns the keys of the workers whose sessions are there, and whether the others are dead.
    async fn present(&self) -> Result<(HashSet<i64>, bool), StoreError> {
        let query = Statement::new(
            "SELECT objid::BIGINT, (EXTRACT(EPOCH FROM clock_timestamp() - pg_postmaster_start_time()) * 1000)::BIGINT
             FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND classid::BIGINT = $1
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
        );
        let rows = self.link.look(&query.with(class(&self.link))).await?;
        let mut present = HashSet::new();
        let mut is_new = false;
        for row in &rows {
            present.insert(row.number(0)?);
            is_new |= u128::from(row.number(1)?.unsigned_abs()) < self.state.grace.as_millis();
        }
        let is_sure = !is_new && !self.state.was_away() && present.contains(&key(self.worker));
        Ok((present, is_sure))
    }
}

#[async_trait]
impl Liveness for Session {
    fn worker(&self) -> Uuid {
        self.worker
    }

    /// Workers of all machines see one another.
    fn host(&self) -> &'static str {
        "session"
    }

    async fn of(&self, worker: Uuid) -> Alive {
        let found = self.of_all(&[worker]).await;
        // An answer that did not come proves nothing.
        found
            .ok()
            .and_then(|found| found.get(&worker).copied())
            .unwrap_or(Alive::Yes)
    }

    async fn of_all(&self, workers: &[Uuid]) -> Result<HashMap<Uuid, Alive>, StoreError> {
        let others = workers.iter().any(|worker| *worker != self.worker);
        let (present, is_sure) = if others {
            self.present().await?
        } else {
            (HashSet::new(), false)
        };
        let life = |worker: Uuid| match worker {
            worker if worker == self.worker => Alive::Yes,
            worker if is_sure && !present.contains(&key(worker)) => Alive::No,
            _ => Alive::Connected,
        };
        Ok(workers.iter().map(|worker| (*worker, life(*worker))).collect())
    }

    async fn has_others(&self) -> Result<bool, StoreError> {
        let (present, _) = self.present().await?;
        Ok(present.iter().any(|other| *other != key(self.worker)))
    }

    /// The server keeps no traces of a session.
    async fn bury(&self, _worker: Uuid) {}
}

/// Returns the number of a worker's lock, as the server's list of locks shows it: the end of its
/// id, which is random.
pub(super) fn key(worker: Uuid) -> i64 {
    let [.., a, b, c, d] = worker.into_bytes();
    u32::from_be_bytes([a, b, c, d]).into()
}

fn class(link: &Link) -> i64 {
    link.installation().cast_unsigned().into()
}

/// Makes a connection that holds the worker's lock.
async fn locked(link: &Link, worker: Uuid) -> Result<PgListener, sqlx::Error> {
    let mut listener = link.listen().await?;
    lock(link, worker, &mut listener).await?;
    Ok(listener)
}

async fn lock(link: &Link, worker: Uuid, listener: &mut PgListener) -> Result<(), sqlx::Error> {
    let [.., a, b, c, d] = worker.into_bytes();
    // Shared, so that a session that the server has not missed yet does not keep its successor out.
    let lock = sqlx::query("SELECT pg_advisory_lock_shared($1, $2)::TEXT")
        .bind(link.installation())
        .bind(i32::from_be_bytes([a, b, c, d]));
    link.within(lock.execute(listener)).await.map(|_| ())
}

/// Keeps the session, and makes it anew whenever it is lost.
async fn keep(link: Link, worker: Uuid, listener: PgListener, state: Arc<State>) {
    let mut listener = Some(listener);
    loop {
        if let Some(listener) = listener.take() {
            let error = attend(&link, worker, listener, &state).await;
            tracing::warn!("the session with the store was lost, and is made anew: {error}");
        }
        match locked(&link, worker).await {
            Ok(made) => {
                *state.restored_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                tracing::info!("the session with the store is back");
                listener = Some(made);
                // What was told meanwhile was told to nobody.
                state.ring();
            }
            Err(error) => {
                tracing::debug!("the store cannot be reached: {error}");
                sleep(RECONNECT_EVERY).await;
            }
        }
    }
}

/// Listens and looks around until the session is lost.
async fn attend(link: &Link, worker: Uuid, mut listener: PgListener, state: &State) -> sqlx::Error {
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            heard = listener.try_recv() => match heard {
                Ok(Some(_)) => state.ring(),
                Ok(None) => return sqlx::Error::WorkerCrashed,
                Err(error) => return error,
            },
            _ = looks.tick() => match has_work(link, worker, &mut listener).await {
                Ok(true) => state.ring(),
                Ok(false) => {}
                Err(error) => return error,
            },
        }
    }
}

/// Tells whether there are runs of the dead, or runs that have just become due. Fails if the
/// session does not hold its lock: a listener reconnects by itself where nobody notices.
async fn has_work(link: &Link, worker: Uuid, listener: &mut PgListener) -> Result<bool, sqlx::Error> {
    let query = sqlx::query_as::<_, (bool, bool)>(
        "WITH clock AS (SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::BIGINT AS now),
         sessions AS (
             SELECT objid::BIGINT AS key, pid FROM pg_locks
             WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND classid::BIGINT = $2
             AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))
         SELECT EXISTS (SELECT 1 FROM sessions WHERE pid = pg_backend_pid()),
             EXISTS (SELECT 1 FROM runs, clock WHERE finished_at IS NULL AND (
                 (lease_token IS NULL AND not_before <= now AND not_before > now - $3)
                 OR (lease_worker <> $1 AND NOT EXISTS (
                     SELECT 1 FROM sessions WHERE key = ('x' || RIGHT(lease_worker, 8))::BIT(32)::BIGINT))))",
    );
    let query = query.bind(worker.to_string()).bind(class(link)).bind(DUE_SINCE_MICROS);
    let (is_locked, has_work) = link.within(query.fetch_one(listener)).await?;
    if is_locked {
        Ok(has_work)
    } else {
        Err(sqlx::Error::WorkerCrashed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_lock_is_the_end_of_the_worker_s_id() {
        let worker: Uuid = "01234567-89ab-7cde-8f01-0123fedcba98".parse().unwrap();
        assert_eq!(key(worker), 0xfedc_ba98);
    }
}
