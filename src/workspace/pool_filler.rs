//! Containers are kept waiting for runs, as many as the configuration wants.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::environment::container::Container;
use crate::environment::{Environment, EnvironmentError};
use crate::journal::Journal;
use crate::journal::fact::{Fact, Subject};
use crate::tool::ToolServer;
use crate::tool::mcp::McpServer;
use crate::workspace::containers::Containers;
use crate::workspace::containers::milliseconds_since;
use crate::workspace::pool::PooledContainer;
use crate::workspace::project::Workspace;
use crate::workspace::streams::tunnel::TunnelEnd;

/// From the moment a run has its container to the start of the next that waits, which would take
/// the processor from its first command.
const SETTLING: Duration = Duration::from_secs(1);

/// How long one waits at most. An engine or a firewall may have closed its streams meanwhile
/// without a word, and its age counts as the age of the run's container.
const LONGEST: Duration = Duration::from_mins(30);

/// Between two looks for such.
const LOOK: Duration = Duration::from_mins(5);

/// Between two tries where one could not be started, doubled each time: an image that cannot be had
/// may be pulled or built for each.
const FIRST_PAUSE: Duration = Duration::from_mins(1);
const LONGEST_PAUSE: Duration = Duration::from_hours(1);

/// Keeps the pool as full as the configuration wants.
pub struct PoolFiller<'a> {
    pub containers: &'a Containers,
    pub journal: &'a Journal,
    /// This process, by whose end other processes know that a container is left over.
    pub worker: Uuid,
    /// Ends the filling.
    pub stop: &'a CancellationToken,
}

impl PoolFiller<'_> {
    /// Starts containers until there are enough, again and again until stopped; then removes them.
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

    /// Fills up each environment; where one of them cannot be had, the others are filled up all the
    /// same.
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

    /// Returns `None` where the program is asked to stop.
    async fn start(&self, name: &str, environment: &Environment) -> Result<Option<PooledContainer>, EnvironmentError> {
        let (containers, stop) = (self.containers, self.stop);
        let config = &containers.config;
        let docker = containers.docker().await?;
        let progress = |line: String| tracing::info!("{line}");
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(None),
            image = docker.ensure_image(environment, &progress) => image?,
        }
        let begun = Instant::now();
        let executor = config.executor_file();
        let executor = executor.map_err(|reason| unexpected("looking for the executor", reason))?;
        let mark = containers.pool.mark();
        let place = (name, environment.image.as_str());
        // To its end, so that no container comes into being that nobody knows.
        let warm = docker.start_warm(mark.name(), place, &executor, self.worker).await?;
        let tools = Workspace::server(&warm.container, config);
        let inner_end = async {
            match config.policy(environment) {
                Some(_) => TunnelEnd::open(&warm.container).await.map(Some),
                None => Ok(None),
            }
        };
        let connected = async {
            let connected = tools.connect().await;
            connected.map_err(|error| unexpected("starting the tools", error.to_string()))
        };
        let receiver = Workspace::receiver(&warm.container);
        let furnished = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            furnished = async { tokio::try_join!(receiver, inner_end, connected) } => Some(furnished),
        };
        let (receiver, inner_end) = match furnished {
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
