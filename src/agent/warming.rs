//! Containers are kept waiting for runs, as many as the configuration wants.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::warm::{Pool, Waiting};
use super::way_out::InnerEnd;
use super::workshop::Workshop;
use super::workspace::Workspace;
use crate::environment::container::Container;
use crate::environment::docker::Docker;
use crate::environment::{Environment, EnvironmentError};
use crate::journal::fact::{Fact, Subject};
use crate::tool::ToolServer;
use crate::tool::mcp::McpServer;

/// Between two tries where none could be started.
const LATER: Duration = Duration::from_mins(1);

/// From the moment a run has its container to the start of the next that waits, which would take the processor from its first command.
const SETTLING: Duration = Duration::from_secs(1);

/// Keeps as many as the configuration wants, until `stop`; then removes them.
pub async fn keep_full(workshop: &Workshop, stop: &CancellationToken) {
    if workshop.settings.environments.warm.is_empty() {
        return;
    }
    let pool = &workshop.warm;
    while !stop.is_cancelled() {
        join_all(pool.stale().into_iter().map(discard)).await;
        let filled = fill(pool, workshop, stop).await;
        if let Err(error) = &filled {
            tracing::warn!("no container could be started to wait for a run: {error}");
        }
        let next = async {
            match filled {
                Ok(()) => {
                    pool.changed().await;
                    sleep(SETTLING).await;
                }
                Err(_) => sleep(LATER).await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = next => {}
        }
    }
    join_all(pool.all().into_iter().map(discard)).await;
}

async fn fill(pool: &Pool, workshop: &Workshop, stop: &CancellationToken) -> Result<(), EnvironmentError> {
    let config = &workshop.settings.environments;
    for (name, wanted) in &config.warm {
        let Some(environment) = config.environments.get(name) else {
            continue;
        };
        while pool.count(name) < *wanted {
            let docker = workshop.docker().await?;
            let progress = |line: String| tracing::info!("{line}");
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                image = docker.ensure_image(environment, &progress) => image?,
            }
            // To its end, so that nothing is left half made.
            let waiting = Box::pin(start(workshop, docker, (name, environment))).await?;
            pool.put(name, waiting);
        }
    }
    Ok(())
}

async fn start(
    workshop: &Workshop,
    docker: &Docker,
    (name, environment): (&str, &Environment),
) -> Result<Waiting, EnvironmentError> {
    let begun = Instant::now();
    let config = &workshop.settings.environments;
    let executor = config.executor_file();
    let executor = executor.map_err(|reason| unexpected("looking for the executor", reason))?;
    let mark = workshop.warm.mark();
    let of = (name, environment.image.as_str());
    let warm = docker
        .start_warm(mark.name(), of, &executor, workshop.store.worker())
        .await?;
    let tools = Workspace::server(&warm.container, config);
    let inner_end = async {
        match config.policy(environment) {
            Some(_) => InnerEnd::open(&warm.container).await.map(Some),
            None => Ok(None),
        }
    };
    let connected = async {
        let connected = tools.connect().await;
        connected.map_err(|error| unexpected("starting the tools", error.to_string()))
    };
    let receiver = Workspace::receiver(&warm.container);
    let (receiver, inner_end) = match tokio::try_join!(receiver, inner_end, connected) {
        Ok((receiver, inner_end, ())) => (receiver, inner_end),
        Err(error) => {
            remove(&warm.container, &tools).await;
            return Err(error);
        }
    };
    let warmed = Fact::EnvironmentWarmed {
        environment: name.to_owned(),
        container: warm.container.id().to_owned(),
        milliseconds: super::ask::milliseconds(begun),
    };
    workshop.journal.record(&Subject::default(), warmed);
    Ok(Waiting {
        warm,
        inner_end,
        receiver,
        tools,
        mark,
    })
}

async fn discard(waiting: Waiting) {
    let Waiting { warm, tools, .. } = &waiting;
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
