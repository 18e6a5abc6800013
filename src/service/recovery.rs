//! What every start begins with: containers nobody needs are swept, unfinished runs are rung for.

use std::collections::HashSet;
use std::time::Duration;

use super::Service;
use crate::environment::EnvironmentError;
use crate::environment::docker::{Docker, Found};
use crate::journal::fact::{Fact, Subject};
use crate::store::StoreError;
use crate::task::id::TaskId;
use crate::task::state::State;

/// Long enough to write one line.
const LEASE: Duration = Duration::from_secs(10);

impl Service {
    /// Brings the outside in line with the book. A Docker engine that does not answer is left to the runs that need it.
    pub async fn recover(&self) -> Result<(), StoreError> {
        self.drop_local_runs().await?;
        let left = self.containers().await;
        let unfinished = self.workshop.store.unfinished().await?;
        for _ in &unfinished {
            self.bell.ring();
        }
        let keep: HashSet<_> = unfinished.iter().map(|run| run.id).collect();
        let swept = match left {
            Ok((docker, left)) => docker.sweep(left, &keep).await,
            Err(error) => Err(error),
        };
        match swept {
            Ok(0) => {}
            Ok(containers) => self
                .workshop
                .journal
                .record(&Subject::default(), Fact::Swept { containers }),
            Err(error) => tracing::warn!("old containers could not be looked for: {error}"),
        }
        Ok(())
    }

    async fn containers(&self) -> Result<(Docker, Vec<Found>), EnvironmentError> {
        let settings = &self.workshop.settings;
        let docker = Docker::connect(
            &settings.environments,
            settings.docker_host.as_deref(),
            &settings.instance,
        )
        .await?;
        let found = docker.all().await?;
        Ok((docker, found))
    }

    /// A local task lives and dies with the command that gave it: what a killed one left is closed.
    async fn drop_local_runs(&self) -> Result<(), StoreError> {
        for run in self.workshop.store.unfinished().await? {
            if !matches!(run.task, TaskId::Local { .. }) {
                continue;
            }
            if let Some((lease, run)) = self.workshop.store.claim_run(run.id, LEASE).await? {
                self.workshop.store.save(&lease, State::Stopped, &run.record).await?;
            }
        }
        Ok(())
    }
}
