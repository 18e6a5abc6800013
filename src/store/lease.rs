//! Who works on what: claiming a run, keeping it, and writing with the right to.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::sqlite::SqliteConnection;
use uuid::Uuid;

use super::row::micros;
use super::worker::{Holding, Liveness};
use super::{Run, Store, StoreError, origin, set_aside};
use crate::conversation::Message;
use crate::task::id::{RunId, TaskId};
use crate::task::state::State;

/// The right to work on one run. Only a claim makes one.
///
/// Dropping it without [`Store::release`] (a task that panicked) gives the run back as well, at the
/// next claim.
#[derive(Debug)]
pub struct Lease {
    pub run: RunId,
    pub task: TaskId,
    holding: Holding,
}

/// Which run a claim wants.
enum Wanted {
    /// The oldest that is due and not set aside by a person.
    Next,
    /// This one, paused or parked as well.
    This(RunId),
}

/// The runs that have the branch of `runs` before it, as SQL. Begun before not begun, then by age:
/// no two wait for each other.
macro_rules! before_it {
    () => {
        concat!(
            "SELECT 1 FROM runs AS other WHERE other.finished_at IS NULL AND other.id <> runs.id
             AND (other.state <> 'queued' OR other.lease_token IS NOT NULL)
             AND (runs.state = 'queued' OR other.id < runs.id) AND ",
            origin!("other.task"),
            " = ",
            origin!("runs.task")
        )
    };
}

impl Store {
    /// Claims the oldest run that is unfinished, due (`not_before`), not set aside for people, held
    /// by no living worker, and whose branch no other run works on. The lease lasts `ttl` unless
    /// [`Store::heartbeat`] extends it.
    pub async fn claim(&self, ttl: Duration) -> Result<Option<(Lease, Run)>, StoreError> {
        self.claim_wanted(&Wanted::Next, ttl).await
    }

    /// Claims this run in whatever unfinished state it is, also before it is due: to resume, stop
    /// or recover it. Returns `None` where it is finished, unknown or held by a living worker.
    pub async fn claim_run(&self, run: RunId, ttl: Duration) -> Result<Option<(Lease, Run)>, StoreError> {
        self.claim_wanted(&Wanted::This(run), ttl).await
    }

    async fn claim_wanted(&self, wanted: &Wanted, ttl: Duration) -> Result<Option<(Lease, Run)>, StoreError> {
        let now = Utc::now();
        let mut transaction = self.begin().await?;
        let dead = self.free_abandoned(&mut transaction, now).await?;
        let query = match wanted {
            Wanted::Next => sqlx::query(concat!(
                "SELECT * FROM runs
                 WHERE finished_at IS NULL AND lease_token IS NULL AND task NOT LIKE 'local:%' AND NOT ",
                set_aside!(),
                " AND (not_before IS NULL OR not_before <= $1) AND NOT EXISTS (",
                before_it!(),
                ") ORDER BY id LIMIT 1",
            ))
            .bind(micros(now)),
            Wanted::This(run) => {
                sqlx::query("SELECT * FROM runs WHERE id = $1 AND finished_at IS NULL AND lease_token IS NULL")
                    .bind(run.to_string())
            }
        };
        let row = query
            .fetch_optional(&mut *transaction)
            .await
            .map_err(|error| self.failed(error))?;
        let claimed = match row {
            Some(row) => Some(self.take(&mut transaction, self.read(&row)?, now + ttl).await?),
            None => None,
        };
        transaction.commit().await.map_err(|error| self.failed(error))?;
        for worker in dead {
            self.worker.bury(worker);
        }
        Ok(claimed)
    }

    /// The run is returned as it was before.
    async fn take(
        &self,
        connection: &mut SqliteConnection,
        run: Run,
        expires_at: DateTime<Utc>,
    ) -> Result<(Lease, Run), StoreError> {
        let holding = self.worker.held.take_up();
        sqlx::query(
            "UPDATE runs SET lease_token = $2, lease_worker = $3, lease_host = $4, lease_expires_at = $5, not_before = NULL
             WHERE id = $1",
        )
        .bind(run.id.to_string())
        .bind(holding.token.to_string())
        .bind(self.worker.id.to_string())
        .bind(&self.worker.host)
        .bind(micros(expires_at))
        .execute(connection)
        .await
        .map_err(|error| self.failed(error))?;
        let lease = Lease {
            run: run.id,
            task: run.task.clone(),
            holding,
        };
        Ok((lease, run))
    }

    /// Extends the lease by `ttl` from now.
    pub async fn heartbeat(&self, lease: &Lease, ttl: Duration) -> Result<(), StoreError> {
        // A finished run still answers to its last token: a heartbeat that comes late is no lost
        // lease.
        let updated = sqlx::query("UPDATE runs SET lease_expires_at = $3 WHERE id = $1 AND lease_token = $2")
            .bind(lease.run.to_string())
            .bind(lease.holding.token.to_string())
            .bind(micros(Utc::now() + ttl))
            .execute(&self.pool)
            .await
            .map_err(|error| self.failed(error))?;
        still_held(lease, updated.rows_affected())
    }

    /// Saves where the run stands. A final state ends the lease as well.
    pub async fn save(&self, lease: &Lease, state: State, record: &Value) -> Result<(), StoreError> {
        let now = micros(Utc::now());
        let updated = sqlx::query(
            "UPDATE runs SET state = $3, record = $4, updated_at = $5, finished_at = $6
             WHERE id = $1 AND lease_token = $2 AND finished_at IS NULL",
        )
        .bind(lease.run.to_string())
        .bind(lease.holding.token.to_string())
        .bind(state.to_string())
        .bind(record.to_string())
        .bind(now)
        .bind(state.is_final().then_some(now))
        .execute(&self.pool)
        .await
        .map_err(|error| self.failed(error))?;
        still_held(lease, updated.rows_affected())
    }

    /// Gives the run back, unfinished, to be claimed again not before `not_before`. A finished run
    /// stays as it is.
    pub async fn release(&self, lease: &Lease, not_before: Option<DateTime<Utc>>) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let held = sqlx::query("UPDATE runs SET not_before = $3 WHERE id = $1 AND lease_token = $2")
            .bind(lease.run.to_string())
            .bind(lease.holding.token.to_string())
            .bind(not_before.map(micros))
            .execute(&mut *transaction)
            .await
            .map_err(|error| self.failed(error))?;
        self.free(&mut transaction, lease.holding.token).await?;
        transaction.commit().await.map_err(|error| self.failed(error))?;
        still_held(lease, held.rows_affected())
    }

    /// Appends to the run's conversation and saves the record that goes with it, in one
    /// transaction: a crash leaves both or neither. The state stays, which spares its indexes.
    /// Costs the same whatever the length of the conversation.
    pub async fn append(&self, lease: &Lease, record: &Value, messages: &[Message]) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let held = sqlx::query(
            "UPDATE runs SET record = $3, updated_at = $4 WHERE id = $1 AND lease_token = $2 AND finished_at IS NULL",
        )
        .bind(lease.run.to_string())
        .bind(lease.holding.token.to_string())
        .bind(record.to_string())
        .bind(micros(Utc::now()))
        .execute(&mut *transaction)
        .await
        .map_err(|error| self.failed(error))?;
        still_held(lease, held.rows_affected())?;
        for message in messages {
            let text =
                serde_json::to_string(message).map_err(|error| self.failed(sqlx::Error::Encode(Box::new(error))))?;
            sqlx::query(
                "INSERT INTO messages (run, position, message)
                 SELECT $1, COALESCE(MAX(position), -1) + 1, $2 FROM messages WHERE run = $1",
            )
            .bind(lease.run.to_string())
            .bind(text)
            .execute(&mut *transaction)
            .await
            .map_err(|error| self.failed(error))?;
        }
        transaction.commit().await.map_err(|error| self.failed(error))
    }

    /// Returns the unfinished runs that another, living worker holds: hands off their containers.
    pub async fn held_elsewhere(&self) -> Result<Vec<RunId>, StoreError> {
        let rows: Vec<(String, String, String, i64)> = sqlx::query_as(
            "SELECT id, lease_worker, lease_host, lease_expires_at FROM runs
             WHERE finished_at IS NULL AND lease_token IS NOT NULL AND lease_worker <> $1 ORDER BY id",
        )
        .bind(self.worker.id.to_string())
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.failed(error))?;
        let now = micros(Utc::now());
        let mut held = Vec::new();
        for (run, worker, host, expires_at) in rows {
            if !self.is_abandoned(&worker, &host, expires_at, now) {
                held.push(self.run_id(&run)?);
            }
        }
        Ok(held)
    }

    /// Frees the runs whose lease nobody holds any more: the worker died, or a task of this process
    /// dropped it. Returns the dead workers, to be buried once this is committed.
    async fn free_abandoned(
        &self,
        connection: &mut SqliteConnection,
        now: DateTime<Utc>,
    ) -> Result<Vec<Uuid>, StoreError> {
        let leases: Vec<(String, String, String, i64)> = sqlx::query_as(
            "SELECT lease_token, lease_worker, lease_host, lease_expires_at FROM runs
             WHERE finished_at IS NULL AND lease_worker IS NOT NULL",
        )
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| self.failed(error))?;
        let mut dead = Vec::new();
        for (token, worker, host, expires_at) in leases {
            let token: Uuid = token.parse().map_err(|error| self.unreadable(&token, &error))?;
            let dropped = worker == self.worker.id.to_string() && !self.worker.held.contains(&token);
            if !dropped && !self.is_abandoned(&worker, &host, expires_at, micros(now)) {
                continue;
            }
            self.free(connection, token).await?;
            if !dropped {
                dead.extend(worker.parse::<Uuid>().ok());
            }
        }
        Ok(dead)
    }

    /// Decides from the lock file, and from the expiry only for a worker of another machine.
    fn is_abandoned(&self, worker: &str, host: &str, expires_at: i64, now: i64) -> bool {
        let Ok(id) = worker.parse() else { return true };
        match self.worker.liveness(id) {
            Liveness::Alive => false,
            Liveness::Dead => true,
            Liveness::Unseen => host == self.worker.host || expires_at < now,
        }
    }

    async fn free(&self, connection: &mut SqliteConnection, token: Uuid) -> Result<(), StoreError> {
        sqlx::query(
            "UPDATE runs SET lease_token = NULL, lease_worker = NULL, lease_host = NULL, lease_expires_at = NULL
             WHERE lease_token = $1 AND finished_at IS NULL",
        )
        .bind(token.to_string())
        .execute(connection)
        .await
        .map_err(|error| self.failed(error))?;
        Ok(())
    }
}

fn still_held(lease: &Lease, rows: u64) -> Result<(), StoreError> {
    if rows == 0 {
        return Err(StoreError::LeaseLost(lease.run));
    }
    Ok(())
}
