//! Claims of several machines at the same moment.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde_json::Value;
use tokio::sync::Barrier;
use tokio::time::{sleep, timeout};

use super::{Schema, server};
use crate::store::engine::{Engine, Liveness, Purpose, Transaction};
use crate::store::postgres::Postgres;
use crate::store::sql::{Row, Statement};
use crate::store::tests::{Place as _, TTL, admit, claim, issue};
use crate::store::{Store, StoreError};
use crate::task::state::State;

/// The engine with a pause between reading and writing. Without the lock on claims it is as long as
/// the other machine needs to have read as well.
#[derive(Debug)]
struct Slow {
    inner: Postgres,
    unlocked: Option<Arc<Barrier>>,
}

struct SlowTransaction {
    inner: Box<dyn Transaction>,
    unlocked: Option<Arc<Barrier>>,
}

#[async_trait]
impl Engine for Slow {
    async fn execute(&self, statement: Statement) -> Result<u64, StoreError> {
        self.inner.execute(statement).await
    }

    async fn fetch(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        self.inner.fetch(statement).await
    }

    async fn begin(&self, purpose: Purpose) -> Result<Box<dyn Transaction>, StoreError> {
        let purpose = if self.unlocked.is_none() {
            purpose
        } else {
            Purpose::Write
        };
        Ok(Box::new(SlowTransaction {
            inner: self.inner.begin(purpose).await?,
            unlocked: self.unlocked.clone(),
        }))
    }

    async fn now(&self) -> Result<DateTime<Utc>, StoreError> {
        self.inner.now().await
    }

    async fn settle(&self) -> Result<bool, StoreError> {
        self.inner.settle().await
    }

    fn liveness(&self) -> &dyn Liveness {
        self.inner.liveness()
    }
}

#[async_trait]
impl Transaction for SlowTransaction {
    async fn execute(&mut self, statement: Statement) -> Result<u64, StoreError> {
        match self.unlocked.take() {
            None => sleep(Duration::from_millis(100)).await,
            Some(both) => {
                let _ = timeout(Duration::from_mins(1), both.wait()).await;
            }
        }
        self.inner.execute(statement).await
    }

    async fn fetch(&mut self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        self.inner.fetch(statement).await
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        self.inner.commit().await
    }
}

/// Has two machines claim at the same moment, where an issue and the request that was opened for it
/// wait for their branch; returns how many leases came of it.
async fn leases_at_once(address: &str, is_locking: bool) -> usize {
    let schema = Schema::on(address);
    let store = schema.open().await;
    admit(&store, 1).await;
    store.follow(&issue(2), &issue(1), &Value::Null).await.unwrap();
    admit(&store, 2).await;
    let unlocked = (!is_locking).then(|| Arc::new(Barrier::new(2)));
    let mut claims = Vec::new();
    let engines = [schema.engine().await, schema.engine().await];
    for inner in engines {
        let unlocked = unlocked.clone();
        let machine = Arc::new(Store::over(Slow { inner, unlocked }));
        let claiming = Arc::clone(&machine);
        let claim = tokio::spawn(async move { claiming.claim(TTL).await.unwrap() });
        claims.push((machine, claim));
    }
    // Nobody puts down what was claimed before both have claimed.
    let (mut machines, mut leases) = (Vec::new(), Vec::new());
    for (machine, claim) in claims {
        leases.extend(claim.await.unwrap());
        machines.push(machine);
    }
    leases.len()
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_machines_that_claim_at_once_one_gets_the_branch_by_the_lock_alone() {
    let server = server::start().await;
    assert_eq!(leases_at_once(&server.address, true).await, 1);
    assert_eq!(
        leases_at_once(&server.address, false).await,
        2,
        "nothing else keeps two from it"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[expect(clippy::print_stdout, reason = "figures for whoever asks for the output of the test")]
async fn eight_workers_claim_a_thousand_runs_once_each() {
    let server = server::start().await;
    let schema = Schema::on(&server.address);
    let store = schema.open().await;
    for number in 0..1_000 {
        admit(&store, number).await;
    }
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let store = schema.open().await;
        workers.spawn(async move {
            let mut worked = Vec::new();
            loop {
                let begun = Instant::now();
                let Some((lease, run)) = store.claim(TTL).await.unwrap() else {
                    break worked;
                };
                let time = begun.elapsed();
                store.save(&lease, State::Done, &Value::Null).await.unwrap();
                worked.push((run.id, time));
            }
        });
    }
    let claims: Vec<_> = workers.join_all().await.into_iter().flatten().collect();
    let mut times: Vec<_> = claims.iter().map(|(_, time)| *time).collect();
    times.sort_unstable();
    let (median, p95) = (times[times.len() / 2], times[times.len() * 95 / 100]);
    println!("1,000 claims by 8 workers: median {median:?}, p95 {p95:?}");
    let mut worked: Vec<_> = claims.into_iter().map(|(run, _)| run).collect();
    assert_eq!(worked.len(), 1_000);
    worked.sort();
    worked.dedup();
    assert_eq!(worked.len(), 1_000);
}

#[tokio::test]
async fn a_machine_s_clock_decides_nothing() {
    let server = server::start().await;
    let schema = Schema::on(&server.address);
    let (store, pool) = (schema.open().await, schema.pool().await);
    let before = Utc::now();
    let now = store.engine.now().await.unwrap();
    let second = chrono::TimeDelta::seconds(1);
    assert!(before - second <= now && now <= Utc::now() + second, "{before} {now}");
    admit(&store, 1).await;
    let lease = claim(&store).await;
    let expiry = "SELECT lease_expires_at - (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::BIGINT FROM runs";
    let left: i64 = sqlx::query_scalar(expiry).fetch_one(&pool).await.unwrap();
    assert!((50_000_000..=60_000_000).contains(&left), "{left}");
    store.heartbeat(&lease, TTL * 2).await.unwrap();
    let left: i64 = sqlx::query_scalar(expiry).fetch_one(&pool).await.unwrap();
    assert!((110_000_000..=120_000_000).contains(&left), "{left}");
}
