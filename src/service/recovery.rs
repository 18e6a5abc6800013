//! Recovery at every start: sweeps unneeded containers and wakes consumers for unfinished runs.

use std::collections::HashSet;
use std::time::Duration;

use chrono::{TimeDelta, Utc};

use super::Service;
use crate::environment::{Engine, EnvironmentError, ListedContainer};
use crate::index;
use crate::journal::fact::{Fact, Subject};
use crate::repository::mirror::Mirror;
use crate::store::StoreError;
use crate::task::id::{RunId, TaskId};
use crate::task::state::State;
use crate::tool::program;
use crate::workspace::pool_filler::PoolFiller;

/// Long enough to save one state.
const LEASE: Duration = Duration::from_secs(10);

impl Service {
    /// Closes abandoned local runs, wakes consumers for unfinished runs, and sweeps containers. A
    /// Docker engine that does not answer is left to the runs that need it.
    pub async fn recover(&self) -> Result<(), StoreError> {
        self.services.store.free_runs_of_the_dead().await?;
        self.drop_local_runs().await?;
        program::sweep(&self.services.settings.review.program_paths.folder);
        for _ in self.services.store.unfinished().await? {
            self.wake_ups.wake_one();
        }
        // Boxed: its large future is rarely needed, but would be part of every caller's.
        Box::pin(self.sweep()).await
    }

    /// Removes containers that nobody needs, left by a killed process or by a failed removal.
    pub async fn sweep(&self) -> Result<(), StoreError> {
        // Listed before the runs are read, so that a run that begins meanwhile keeps its container.
        let left = self.containers().await;
        let unfinished = self.services.store.unfinished().await?;
        let keep: HashSet<_> = unfinished.iter().map(|run| run.id).collect();
        let swept = match left {
            Ok((engine, mut left)) => {
                // A living worker's containers stay, however old: also this one's own. A slow model
                // takes longer over a run than what is abandoned may lie.
                let held = self.services.store.held_anywhere().await?;
                left.retain(|container| container.run().is_none_or(|run| !held.contains(&run)));
                let mut unclaimed = Vec::new();
                for container in left {
                    if !self.is_kept_waiting(&container).await {
                        unclaimed.push(container);
                    }
                }
                engine.sweep(unclaimed, &keep).await
            }
            Err(error) => Err(error),
        };
        match swept {
            Ok(0) => {}
            Ok(containers) => self
                .services
                .journal
                .record(&Subject::default(), Fact::Swept { containers }),
            Err(error) => tracing::warn!("old containers could not be looked for: {error}"),
        }
        Ok(())
    }

    /// Returns true if a container is in the warm pool of this or another living process.
    async fn is_kept_waiting(&self, container: &ListedContainer) -> bool {
        let (store, pool) = (&self.services.store, &self.services.containers.pool);
        match container.waits_with() {
            Some(worker) if worker == store.worker() => pool.has(container.name()),
            Some(worker) => store.is_at_work(worker).await,
            None => false,
        }
    }

    /// Keeps the warm pool filled as configured, until the program is asked to stop.
    pub async fn keep_warm(&self) {
        let filler = PoolFiller {
            containers: &self.services.containers,
            journal: &self.services.journal,
            worker: self.services.store.worker(),
            stop: &self.stop.asked,
        };
        Box::pin(filler.run()).await;
    }

    /// Returns true if the removal of a container failed since the last sweep.
    pub fn has_leftovers(&self) -> bool {
        self.services.containers.has_leftovers()
    }

    async fn containers(&self) -> Result<(&Engine, Vec<ListedContainer>), EnvironmentError> {
        let engine = self.services.containers.engine().await?;
        Ok((engine, engine.all().await?))
    }

    /// Returns how many containers of this installation there are; `None` if the engine does not
    /// answer within `patience`.
    pub async fn count_containers(&self, patience: Duration) -> Option<usize> {
        let counted = tokio::time::timeout(patience, Box::pin(self.containers())).await;
        counted.ok()?.ok().map(|(_, all)| all.len())
    }

    /// Stops the local runs that a killed command left, and removes their copies of the folder: a
    /// local task ends with its command.
    async fn drop_local_runs(&self) -> Result<(), StoreError> {
        let store = &self.services.store;
        let now = Utc::now();
        for run in store.unfinished().await? {
            // A new run is about to be claimed by its own command.
            let is_fresh = run.state == State::Queued && now - run.created_at < TimeDelta::minutes(1);
            if is_fresh || !matches!(run.task, TaskId::Local { .. }) {
                continue;
            }
            if let Some((lease, run)) = store.claim_run(run.id, LEASE).await? {
                store.save(&lease, State::Stopped, &run.record).await?;
                self.discard_copy(&run.id.to_string()).await;
            }
        }
        let copies = Mirror::locals(&self.services.settings.state_dir).into_iter();
        // A folder that somebody searches keeps its copy until nobody has used it for long.
        for name in copies.filter(|name| !name.starts_with(index::FOLDER)) {
            let run = match name.parse::<RunId>() {
                Ok(run) => store.run(run).await?,
                Err(_) => None,
            };
            // The command of a run that just ended may still read its result.
            let is_in_use = run.is_some_and(|run| !run.state.is_final() || now - run.updated_at < TimeDelta::hours(1));
            if !is_in_use {
                self.discard_copy(&name).await;
            }
        }
        Ok(())
    }

    async fn discard_copy(&self, name: &str) {
        let settings = &self.services.settings;
        if let Err(error) = Mirror::discard_local(&settings.repository, &settings.state_dir, name).await {
            tracing::warn!("the copy of a local task's folder could not be removed: {error}");
        }
    }
}
