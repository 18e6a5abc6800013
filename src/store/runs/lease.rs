//! Leases: claiming a run, keeping the claim, and writing as its holder.

use std::collections::HashMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::followed::origin;
use super::holding::Holding;
use super::unfinished_work::delete_work;
use super::{FORMAT, select_runs, set_aside};
use crate::conversation::Message;
use crate::store::engine::{Alive, Purpose, Transaction};
use crate::store::sql::{Row, Statement, micros};
use crate::store::{Run, Store, StoreError, again, still_held};
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
    /// The worker that claimed the run.
    worker: Uuid,
    holding: Holding,
}

/// Time after the expiry of its lease for which a worker that still has a session with the database
/// is believed: its machine may have slept, or its clock have jumped.
const SILENT_AT_MOST: TimeDelta = TimeDelta::minutes(10);

/// The run that a claim wants.
#[derive(Clone, Copy)]
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
        again!(self.claim_wanted(Wanted::Next, ttl))
    }

    /// Claims this run in whatever unfinished state it is, also before it is due: to resume, stop
    /// or recover it. Returns `None` where it is finished, unknown or held by a living worker.
    pub async fn claim_run(&self, run: RunId, ttl: Duration) -> Result<Option<(Lease, Run)>, StoreError> {
        again!(self.claim_wanted(Wanted::This(run), ttl))
    }

    /// Frees the runs of workers that are no more: a run that waits is found by nobody else, since
    /// only a claim frees others' runs, and nobody claims what waits.
    pub async fn free_runs_of_the_dead(&self) -> Result<(), StoreError> {
        again!(self.free_once())
    }

    async fn free_once(&self) -> Result<(), StoreError> {
        let now = self.engine.now().await?;
        let mut transaction = self.engine.begin(Purpose::Claim).await?;
        let dead = self.free_abandoned(&mut *transaction, now).await?;
        transaction.commit().await?;
        for worker in dead {
            self.engine.liveness().bury(worker).await;
        }
        Ok(())
    }

    async fn claim_wanted(&self, wanted: Wanted, ttl: Duration) -> Result<Option<(Lease, Run)>, StoreError> {
        let now = self.engine.now().await?;
        let mut transaction = self.engine.begin(Purpose::Claim).await?;
        let dead = self.free_abandoned(&mut *transaction, now).await?;
        let query = match wanted {
            Wanted::Next => Statement::new(concat!(
                select_runs!(
                    "WHERE finished_at IS NULL AND lease_token IS NULL AND task NOT LIKE 'local:%'
                     AND (not_before IS NULL OR not_before <= $1) AND format <= $2 AND NOT "
                ),
                set_aside!(),
                " AND NOT EXISTS (",
                before_it!(),
                ") ORDER BY id LIMIT 1",
            ))
            .with(now)
            .with(FORMAT),
            Wanted::This(run) => Statement::new(select_runs!(
                "WHERE id = $1 AND finished_at IS NULL AND lease_token IS NULL AND format <= $2"
            ))
            .with(run)
            .with(FORMAT),
        };
        let claimed = match transaction.fetch(query).await?.first() {
            Some(row) => Some(self.take(&mut *transaction, Run::read(row)?, now + ttl).await?),
            None => None,
        };
        transaction.commit().await?;
        for worker in dead {
            self.engine.liveness().bury(worker).await;
        }
        Ok(claimed)
    }

    /// Writes the lease of `run`. Returns it with the run as it was before.
    async fn take(
        &self,
        transaction: &mut dyn Transaction,
        run: Run,
        expires_at: DateTime<Utc>,
    ) -> Result<(Lease, Run), StoreError> {
        let holding = self.held.take_up();
        let update = Statement::new(
            "UPDATE runs SET lease_token = $2, lease_worker = $3, lease_host = $4, lease_expires_at = $5, not_before = NULL,
             format = $6 WHERE id = $1",
        );
        let update = update
            .with(run.id)
            .with(holding.token)
            .with(self.worker())
            .with(self.engine.liveness().host())
            .with(expires_at)
            .with(FORMAT);
        transaction.execute(update).await?;
        let lease = Lease {
            run: run.id,
            task: run.task.clone(),
            worker: self.worker(),
            holding,
        };
        Ok((lease, run))
    }

    /// Extends the lease by `ttl` from now.
    pub async fn heartbeat(&self, lease: &Lease, ttl: Duration) -> Result<(), StoreError> {
        // A finished run still answers to its last token: a heartbeat that comes late is no lost
        // lease.
        let expires_at = self.engine.now().await? + ttl;
        let update = Statement::new("UPDATE runs SET lease_expires_at = $3 WHERE id = $1 AND lease_token = $2")
            .held_by(lease, self.worker());
        let updated = self.execute(update.with(expires_at)).await?;
        still_held(lease, updated)
    }

    /// Saves the state and the record. A final state also ends the lease and deletes the unfinished
    /// work.
    pub async fn save(&self, lease: &Lease, state: State, record: &Value) -> Result<(), StoreError> {
        again!(self.save_once(lease, state, record))?;
        if state.is_final() {
            // Whoever waits for the branch may go on.
            self.engine.ring().await;
        }
        Ok(())
    }

    async fn save_once(&self, lease: &Lease, state: State, record: &Value) -> Result<(), StoreError> {
        let now = Utc::now();
        let update = Statement::new(
            "UPDATE runs SET state = $3, record = $4, updated_at = $5, finished_at = $6
             WHERE id = $1 AND lease_token = $2 AND finished_at IS NULL",
        );
        let update = update
            .held_by(lease, self.worker())
            .with(state)
            .with(record.to_string())
            .with(now)
            .with(state.is_final().then_some(now));
        let mut transaction = self.begin().await?;
        still_held(lease, transaction.execute(update).await?)?;
        if state.is_final() {
            delete_work(&mut *transaction, lease.run).await?;
        }
        transaction.commit().await
    }

    /// Gives the run back, unfinished, to be claimed again not before `not_before`. A finished run
    /// stays as it is.
    pub async fn release(&self, lease: &Lease, not_before: Option<DateTime<Utc>>) -> Result<(), StoreError> {
        again!(self.release_once(lease, not_before))?;
        self.engine.ring().await;
        Ok(())
    }

    async fn release_once(&self, lease: &Lease, not_before: Option<DateTime<Utc>>) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let update = Statement::new("UPDATE runs SET not_before = $3 WHERE id = $1 AND lease_token = $2");
        let held = transaction
            .execute(update.held_by(lease, self.worker()).with(not_before))
            .await?;
        still_held(lease, held)?;
        free(&mut *transaction, lease.holding.token).await?;
        transaction.commit().await
    }

    /// Appends to the run's conversation and saves the record that goes with it, in one
    /// transaction: a crash leaves both or neither. The state stays, which spares its indexes.
    /// Costs the same whatever the length of the conversation.
    ///
    /// `first` is the place of the first message, counted from 0. A message whose place is taken is
    /// the same one, from an earlier call of which nobody knew whether it was kept, and stays.
    pub async fn append(
        &self,
        lease: &Lease,
        record: &Value,
        first: usize,
        messages: &[Message],
    ) -> Result<(), StoreError> {
        again!(self.append_once(lease, record, first, messages))
    }

    async fn append_once(
        &self,
        lease: &Lease,
        record: &Value,
        first: usize,
        messages: &[Message],
    ) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let update = Statement::new(
            "UPDATE runs SET record = $3, updated_at = $4 WHERE id = $1 AND lease_token = $2 AND finished_at IS NULL",
        );
        let update = update
            .held_by(lease, self.worker())
            .with(record.to_string())
            .with(Utc::now());
        still_held(lease, transaction.execute(update).await?)?;
        for (position, message) in (first..).zip(messages) {
            let text = serde_json::to_string(message).map_err(|error| StoreError::Database {
                store: format!("a message of run {}", lease.run),
                source: error.into(),
            })?;
            let insert = Statement::new(
                "INSERT INTO messages (run, position, message) VALUES ($1, $2, $3)
                 ON CONFLICT (run, position) DO NOTHING",
            );
            let insert = insert.with(lease.run).with(position as u64).with(text);
            transaction.execute(insert).await?;
        }
        transaction.commit().await
    }

    /// Returns the unfinished runs that a living worker holds, this one included; their containers
    /// must not be touched, however old. One that a task of this process dropped is held by nobody.
    pub async fn held_anywhere(&self) -> Result<Vec<RunId>, StoreError> {
        let holders = self.holders().await?;
        Ok(holders.into_iter().map(|(run, _)| run).collect())
    }

    /// Returns the unfinished runs that another, living worker holds.
    pub async fn held_elsewhere(&self) -> Result<Vec<RunId>, StoreError> {
        let own = self.worker().to_string();
        let elsewhere = self.holders().await?.into_iter().filter(|(_, worker)| *worker != own);
        Ok(elsewhere.map(|(run, _)| run).collect())
    }

    /// Returns the unfinished runs that somebody holds, each with its living worker.
    async fn holders(&self) -> Result<Vec<(RunId, String)>, StoreError> {
        let query = Statement::new(
            "SELECT id, lease_worker, lease_host, lease_expires_at, lease_token FROM runs
             WHERE finished_at IS NULL AND lease_token IS NOT NULL ORDER BY id",
        );
        self.living(query).await
    }

    /// Returns those of the leases in an answer whose worker is alive, each as its run and the
    /// worker.
    pub(in crate::store) async fn living(&self, leases: Statement) -> Result<Vec<(RunId, String)>, StoreError> {
        let rows = self.fetch(leases).await?;
        let now = self.engine.now().await?;
        let seen = self.seen(&rows, 1).await?;
        let own = self.worker().to_string();
        let mut holders = Vec::new();
        for row in &rows {
            let worker = row.text(1)?;
            let is_held = if worker == own {
                self.held.contains(&row.parsed::<Uuid>(4)?)
            } else {
                !self.is_abandoned(&seen, worker, row.text(2)?, row.number(3)?, now)
            };
            if is_held {
                holders.push((row.parsed(0)?, worker.to_owned()));
            }
        }
        Ok(holders)
    }

    /// Frees the runs whose lease nobody holds any more: the worker died, or a task of this process
    /// dropped it. Returns the dead workers, whose traces are removed once this is committed.
    async fn free_abandoned(
        &self,
        transaction: &mut dyn Transaction,
        now: DateTime<Utc>,
    ) -> Result<Vec<Uuid>, StoreError> {
        let leases = transaction
            .fetch(Statement::new(
                "SELECT lease_token, lease_worker, lease_host, lease_expires_at FROM runs
                 WHERE finished_at IS NULL AND lease_worker IS NOT NULL",
            ))
            .await?;
        let own = self.worker().to_string();
        let seen = self.seen(&leases, 1).await?;
        let mut dead = Vec::new();
        for row in &leases {
            let (token, worker): (Uuid, &str) = (row.parsed(0)?, row.text(1)?);
            let dropped = worker == own && !self.held.contains(&token);
            if !dropped && !self.is_abandoned(&seen, worker, row.text(2)?, row.number(3)?, now) {
                continue;
            }
            free(transaction, token).await?;
            if !dropped {
                dead.extend(worker.parse::<Uuid>().ok());
            }
        }
        Ok(dead)
    }

    /// Tells of the workers in a column of these rows whether they are alive.
    async fn seen(&self, rows: &[Row], column: usize) -> Result<HashMap<Uuid, Alive>, StoreError> {
        let mut workers: Vec<Uuid> = Vec::new();
        for row in rows {
            workers.extend(row.text(column)?.parse::<Uuid>().ok());
        }
        workers.sort_unstable();
        workers.dedup();
        if workers.is_empty() {
            return Ok(HashMap::new());
        }
        self.engine.liveness().of_all(&workers).await
    }

    /// Decides by what is seen of the worker, and by the expiry only for one that cannot be seen.
    /// The clock alone would take a run from a living worker when it jumps or a laptop sleeps.
    fn is_abandoned(
        &self,
        seen: &HashMap<Uuid, Alive>,
        worker: &str,
        host: &str,
        expires_at: i64,
        now: DateTime<Utc>,
    ) -> bool {
        let Ok(id) = worker.parse::<Uuid>() else { return true };
        match seen.get(&id) {
            Some(Alive::Yes) | None => false,
            Some(Alive::No) => true,
            Some(Alive::Connected) => expires_at < micros(now - SILENT_AT_MOST),
            Some(Alive::Unseen) => host == self.engine.liveness().host() || expires_at < micros(now),
        }
    }
}

impl Statement {
    /// Adds the run and the token of its lease, which every statement asks for that only the holder
    /// may run. Another worker's token is none: it would write what that one has not seen.
    pub(in crate::store) fn held_by(self, lease: &Lease, worker: Uuid) -> Self {
        let is_own = lease.worker == worker;
        self.with(lease.run)
            .with(if is_own { lease.holding.token } else { Uuid::nil() })
    }
}

async fn free(transaction: &mut dyn Transaction, token: Uuid) -> Result<(), StoreError> {
    let update = Statement::new(
        "UPDATE runs SET lease_token = NULL, lease_worker = NULL, lease_host = NULL, lease_expires_at = NULL
         WHERE lease_token = $1 AND finished_at IS NULL",
    );
    transaction.execute(update.with(token)).await?;
    Ok(())
}
