//! Who works on what, as the database tells it, and how soon others take it over.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;
use sqlx::PgPool;
use tokio::time::sleep;

/// How often the database is asked while something is to be taken over.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A run that is worked on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub run: String,
    pub task: String,
    token: String,
}

/// A run that another machine took over.
#[derive(Debug, Clone)]
pub struct TakenOver {
    pub task: String,
    pub run: String,
    pub from: String,
    pub at: Instant,
    pub after: Duration,
    /// The database had just come back, so that nobody was taken for dead for some seconds.
    pub is_in_grace: bool,
}

/// Reads the leases of the cluster.
pub struct Leases(pub PgPool);

impl Leases {
    /// Returns the runs that this machine holds.
    pub async fn of(&self, machine: &str) -> anyhow::Result<Vec<Held>> {
        let claimed = self.claimed().await?;
        let query = "SELECT id, task, lease_token FROM runs WHERE lease_token IS NOT NULL AND finished_at IS NULL";
        let rows: Vec<(String, String, String)> = sqlx::query_as(query).fetch_all(&self.0).await?;
        let is_its_own = |run: &String| {
            claimed
                .get(run)
                .is_some_and(|claims| claims.last().is_some_and(|last| last == machine))
        };
        let held = rows.into_iter().filter(|(run, ..)| is_its_own(run));
        Ok(held.map(|(run, task, token)| Held { run, task, token }).collect())
    }

    /// Returns which machines have claimed each run, one after the other.
    pub async fn claimed(&self) -> anyhow::Result<BTreeMap<String, Vec<String>>> {
        let query = "SELECT run, fact FROM facts WHERE run IS NOT NULL AND fact LIKE '%\"claimed\"%' ORDER BY sequence";
        let rows: Vec<(String, String)> = sqlx::query_as(query).fetch_all(&self.0).await?;
        let mut claimed: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (run, fact) in rows {
            let fact: Value = serde_json::from_str(&fact)?;
            if let Some(machine) = fact["machine"].as_str() {
                claimed.entry(run).or_default().push(machine.to_owned());
            }
        }
        Ok(claimed)
    }

    /// Waits until others have taken over, or ended, what this machine held since `begun`; returns
    /// what they took over, and what nobody did within `longest`.
    pub async fn taken_over(
        &self,
        from: &str,
        mut held: Vec<Held>,
        begun: Instant,
        longest: Duration,
    ) -> (Vec<TakenOver>, Vec<Held>) {
        let mut taken = Vec::new();
        while !held.is_empty() && begun.elapsed() < longest {
            let query = "SELECT id, lease_token, finished_at IS NOT NULL FROM runs WHERE id = ANY($1)";
            let runs: Vec<String> = held.iter().map(|held| held.run.clone()).collect();
            let rows: Vec<(String, Option<String>, bool)> = sqlx::query_as(query)
                .bind(&runs)
                .fetch_all(&self.0)
                .await
                .unwrap_or_default();
            for (run, token, is_finished) in rows {
                let Some(place) = held.iter().position(|held| held.run == run) else {
                    continue;
                };
                if is_finished {
                    held.swap_remove(place);
                } else if token.is_some_and(|token| token != held[place].token) {
                    let of = held.swap_remove(place);
                    taken.push(TakenOver {
                        task: of.task,
                        run,
                        from: from.to_owned(),
                        at: Instant::now(),
                        after: begun.elapsed(),
                        is_in_grace: false,
                    });
                }
            }
            sleep(LOOK_AGAIN).await;
        }
        (taken, held)
    }
}
