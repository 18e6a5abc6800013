//! Changes to the store of a world that otherwise only time, or another process, would make.

use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use sqlx::{PgPool, SqlitePool};

use crate::world::World;

/// Does something with the database of a world, a file or one on a server.
macro_rules! in_store {
    ($world:expr, $pool:ident => $what:expr) => {
        if let Some(url) = $world.store_url() {
            let $pool = PgPool::connect(&url).await.unwrap();
            $what;
            $pool.close().await;
        } else {
            let url = format!("sqlite://{}", $world.state_dir().join("coding-agent.db").display());
            let $pool = SqlitePool::connect(&url).await.unwrap();
            $what;
            $pool.close().await;
        }
    };
}

impl World {
    /// Makes the runs that were put back due.
    pub async fn make_everything_due(&self) {
        in_store!(self, pool => {
            let update = sqlx::query("UPDATE runs SET not_before = 0 WHERE not_before IS NOT NULL").execute(&pool);
            update.await.unwrap();
        });
    }

    /// Breaks what is remembered of the looks for mentions and assignments.
    pub async fn break_memory_of_start_requests(&self) {
        in_store!(self, pool => {
            let update = sqlx::query("UPDATE remembered SET value = '?' WHERE name LIKE 'wishes of %'").execute(&pool);
            update.await.unwrap();
        });
    }

    /// Changes the saved records of all runs.
    pub async fn rewrite_records(&self, change: impl Fn(&mut Value)) {
        self.rewrite(
            "SELECT id, record FROM runs",
            "UPDATE runs SET record = $2 WHERE id = $1",
            change,
        )
        .await;
    }

    /// Adds a fact about the only run, as a process on another machine would.
    pub async fn add_fact(&self, mut fact: Value) {
        let now = Utc::now();
        in_store!(self, pool => {
            let (run, task): (String, String) = sqlx::query_as("SELECT id, task FROM runs")
                .fetch_one(&pool)
                .await
                .unwrap();
            fact["at"] = json!(now);
            fact["run"] = json!(run);
            fact["task"] = json!(task);
            sqlx::query("INSERT INTO facts (at, run, task, fact) VALUES ($1, $2, $3, $4)")
                .bind(now.timestamp_micros())
                .bind(run)
                .bind(task)
                .bind(fact.to_string())
                .execute(&pool)
                .await
                .unwrap();
        });
    }

    /// Adds facts of runs that there were before, each with its time; the store must be there.
    pub async fn add_history(&self, history: &[(DateTime<Utc>, String, Value)]) {
        in_store!(self, pool => {
            for (at, run, fact) in history {
                let mut fact = fact.clone();
                fact["at"] = json!(at);
                fact["run"] = json!(run);
                fact["task"] = json!("github:acme/widgets#1");
                sqlx::query("INSERT INTO facts (at, run, task, fact) VALUES ($1, $2, $3, $4)")
                    .bind(at.timestamp_micros())
                    .bind(run)
                    .bind("github:acme/widgets#1")
                    .bind(fact.to_string())
                    .execute(&pool)
                    .await
                    .unwrap();
            }
        });
    }

    /// Makes the last look at the checks of all followed changes one of long ago.
    pub async fn make_checks_old(&self) {
        let age = |notes: &mut Value| {
            for time in ["first_seen", "seen"] {
                notes["checks"][time] = json!("2026-01-01T00:00:00Z");
            }
        };
        self.rewrite_notes(age).await;
    }

    /// Changes the notes on all followed changes.
    pub async fn rewrite_notes(&self, change: impl Fn(&mut Value)) {
        self.rewrite(
            "SELECT task, notes FROM followed",
            "UPDATE followed SET notes = $2 WHERE task = $1",
            change,
        )
        .await;
    }

    async fn rewrite(&self, select: &'static str, update: &'static str, change: impl Fn(&mut Value)) {
        in_store!(self, pool => {
            let rows: Vec<(String, String)> = sqlx::query_as(select).fetch_all(&pool).await.unwrap();
            for (key, document) in rows {
                let mut document: Value = serde_json::from_str(&document).unwrap();
                change(&mut document);
                let update = sqlx::query(update).bind(key).bind(document.to_string());
                update.execute(&pool).await.unwrap();
            }
        });
    }
}
