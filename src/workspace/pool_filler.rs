//! Keeps the pool at the size that the configuration asks for.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::environment::{Container, Environment, EnvironmentError, WarmRequest};
use crate::journal::Journal;
use crate::journal::fact::{Fact, Subject};
use crate::tool::ToolServer;
use crate::tool::mcp::McpServer;
use crate::workspace::containers::Containers;
use crate::workspace::containers::milliseconds_since;
use crate::workspace::pool::PooledContainer;
use crate::workspace::project::Project;
use crate::workspace::streams::multiplexer::Channels;
use crate::workspace::streams::tunnel::TunnelEnd;

/// Delay between the handover of a container and the start of its replacement, which would compete
/// with the first commands of the run for the processor.
const SETTLING: Duration = Duration::from_secs(1);

/// Maximum time in the pool. An engine or firewall may have silently closed older streams, and the
/// time in the pool counts toward the maximum age of the run's container.
const LONGEST: Duration = Duration::from_mins(30);

/// Interval between scans for expired containers.
const LOOK: Duration = Duration::from_mins(5);

/// Delay after a failed start, doubled each time up to the longest: every attempt may pull or build
/// an image that cannot be had.
const FIRST_PAUSE: Duration = Duration::from_mins(1);
const LONGEST_PAUSE: Duration = Duration::from_hours(1);

/// Task that fills the pool.
pub struct PoolFiller<'a> {
    pub containers: &'a Containers,
    pub journal: &'a Journal,
    /// Id of this process; its end tells other processes that the container is left over.
    pub worker: Uuid,
    /// Stops the task.
    pub stop: &'a CancellationToken,
}

impl PoolFiller<'_> {
    /// Fills the pool until stopped; then removes its containers.
    pub async fn run(&self) {
        if self.containers.config.warm.is_empty() {
            return;
        }
        let (pool, stop) = (&self.containers.pool, self.stop);
        let mut pause = FIRST_PAUSE;
        while !stop.is_cancelled() {
            join_all(pool.stale(LONGEST).into_iter().map(discard)).await;
            let rest = match self.fill().await {
                Ok(()) => {
                    pause = FIRST_PAUSE;
                    LOOK
                }
                Err(error) => {
                    tracing::warn!("no container could be started to wait for a run: {error}");
                    let next = (pause * 2).min(LONGEST_PAUSE);
                    std::mem::replace(&mut pause, next)
                }
            };
            let changed = async {
                pool.changed().await;
                sleep(SETTLING).await;
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = changed => {}
                () = sleep(rest) => {}
            }
        }
        join_all(pool.all().into_iter().map(discard)).await;
    }

    /// Fills the pool for each environment; if one fails, the others are still filled.
    async fn fill(&self) -> Result<(), EnvironmentError> {
        let (config, pool) = (&self.containers.config, &self.containers.pool);
        let mut filled = Ok(());
        for (name, wanted) in &config.warm {
            let Some(environment) = config.environments.get(name) else {
                continue;
            };
            while pool.count(name) < *wanted {
                match Box::pin(self.start(name, environment)).await {
                    Ok(Some(waiting)) => pool.put(name, waiting),
                    Ok(None) => return Ok(()),
                    Err(error) => {
                        filled = filled.and(Err(error));
                        break;
                    }
                }
            }
        }
        filled
    }

    /// Starts a container for the pool; `None` if the program was asked to stop.
    async fn start(&self, name: &str, environment: &Environment) -> Result<Option<PooledContainer>, EnvironmentError> {
        let (containers, stop) = (self.containers, self.stop);
        let config = &containers.config;
        let engine = containers.engine().await?;
        let progress = |line: String| tracing::info!("{line}");
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(None),
            image = engine.ensure_image(environment, &progress) => image?,
        }
        let begun = Instant::now();
        let executor = engine.find_executor(&environment.image).await?;
        let mark = containers.pool.mark();
        let request = WarmRequest {
            name: mark.name(),
            environment: name,
            image: &environment.image,
            executor: &executor,
            worker: self.worker,
        };
        // Not cancelled, so that no container is created without a record of it.
        let warm = engine.start_warm(&request).await?;
        let channels = Channels::of(&warm.container).await;
        let tools = Project::server(&warm.container, config, channels.tools);
        let inner_end = async {
            match config.policy(environment) {
                Some(_) => TunnelEnd::over(channels.tunnel, &warm.container).await.map(Some),
                None => Ok(None),
            }
        };
        let connected = async {
            let connected = tools.connect().await;
            connected.map_err(|error| unexpected("starting the tools", error.to_string()))
        };
        let receiver = Project::receiver(&warm.container, channels.script);
        let completed = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            completed = async { tokio::try_join!(receiver, inner_end, connected) } => Some(completed),
        };
        let (receiver, inner_end) = match completed {
            Some(Ok((receiver, inner_end, ()))) => (receiver, inner_end),
            failed => {
                remove(&warm.container, &tools).await;
                return failed.map_or(Ok(None), |failed| failed.map(|_| None));
            }
        };
        let warmed = Fact::EnvironmentWarmed {
            environment: name.to_owned(),
            container: warm.container.id().to_owned(),
            milliseconds: milliseconds_since(begun),
        };
        self.journal.record(&Subject::default(), warmed);
        Ok(Some(PooledContainer {
            warm,
            inner_end,
            receiver,
            tools,
            mark,
            since: Instant::now(),
        }))
    }
}

async fn discard(waiting: PooledContainer) {
    let PooledContainer { warm, tools, .. } = &waiting;
    remove(&warm.container, tools).await;
}

async fn remove(container: &Container, tools: &McpServer) {
    tools.close().await;
    if let Err(error) = container.remove().await {
        tracing::warn!("a container that waited could not be removed, it is swept later: {error}");
    }
}

fn unexpected(what: &str, reason: String) -> EnvironmentError {
    EnvironmentError::Unexpected {
        what: what.to_owned(),
        reason,
    }
}
