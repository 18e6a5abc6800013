//! Pool of started containers with tunnel and tools, which only lack the project.
//!
//! A run takes one if a new container would be identical. Nothing depends on the pool: if a part is
//! missing or broken, a new container is started. Pooled containers are removed at the end of the
//! process, or by a sweep after it was killed.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use uuid::Uuid;

use crate::environment::{StartImages, WarmContainer};
use crate::tool::mcp::McpServer;
use crate::workspace::project::UploadTarget;
use crate::workspace::streams::tunnel::TunnelEnd;

/// The pooled containers of this process.
#[derive(Default)]
pub struct Pool {
    shelves: Mutex<Shelves>,
    /// Names of containers in the pool, being started, or being prepared for their run.
    names: Arc<Mutex<HashSet<String>>>,
    /// Notified when the pool has to be filled or cleared.
    changed: Arc<Notify>,
}

#[derive(Default)]
struct Shelves {
    waiting: HashMap<String, Vec<PooledContainer>>,
    /// Containers to remove: outdated ones, and those that are no longer trusted.
    stale: Vec<PooledContainer>,
}

/// A container of the pool.
pub(crate) struct PooledContainer {
    pub(crate) warm: WarmContainer,
    /// Set if the configuration gives containers a tunnel.
    pub(crate) inner_end: Option<TunnelEnd>,
    /// The process that will receive the project.
    pub(crate) receiver: UploadTarget,
    /// The built-in tools, connected.
    pub(crate) tools: McpServer,
    /// Protects the container from being swept.
    pub(crate) mark: NameGuard,
    /// Time at which the container was added to the pool.
    pub(crate) since: Instant,
}

/// Protects a container from being swept until it belongs to a run; dropping it refills the pool.
pub(crate) struct NameGuard {
    name: String,
    names: Arc<Mutex<HashSet<String>>>,
    changed: Arc<Notify>,
}

impl Pool {
    /// Takes a container for `environment` that is identical to a new one, if there is one.
    pub(crate) fn take(&self, environment: &str, images: &StartImages) -> Option<PooledContainer> {
        if images.has_set_up() {
            return None;
        }
        let mut shelves = self.shelves();
        let waiting = shelves.waiting.get_mut(environment)?;
        let (mut fit, stale): (Vec<_>, Vec<_>) = std::mem::take(waiting)
            .into_iter()
            .partition(|waiting| images.is_that_of(&waiting.warm));
        let taken = fit.pop();
        *waiting = fit;
        if !stale.is_empty() {
            shelves.stale.extend(stale);
            self.changed.notify_one();
        }
        taken
    }

    /// Returns true if the container with this name belongs to this process.
    pub fn has(&self, name: &str) -> bool {
        lock(&self.names).contains(name)
    }

    /// Discards the containers for `environment`, because one of them could not be used.
    pub(crate) fn distrust(&self, environment: &str) {
        let mut shelves = self.shelves();
        let distrusted = shelves.waiting.remove(environment).unwrap_or_default();
        shelves.stale.extend(distrusted);
        self.changed.notify_one();
    }

    /// Takes out discarded containers, and those that have waited for longer than `longest`.
    pub(crate) fn stale(&self, longest: Duration) -> Vec<PooledContainer> {
        let mut shelves = self.shelves();
        let mut stale = std::mem::take(&mut shelves.stale);
        for waiting in shelves.waiting.values_mut() {
            stale.extend(waiting.extract_if(.., |waiting| waiting.since.elapsed() > longest));
        }
        stale
    }

    /// Takes out all containers.
    pub(crate) fn all(&self) -> Vec<PooledContainer> {
        let shelves = std::mem::take(&mut *self.shelves());
        shelves.waiting.into_values().flatten().chain(shelves.stale).collect()
    }

    pub(crate) fn count(&self, environment: &str) -> usize {
        self.shelves().waiting.get(environment).map_or(0, Vec::len)
    }

    pub(crate) fn put(&self, environment: &str, waiting: PooledContainer) {
        let mut shelves = self.shelves();
        shelves.waiting.entry(environment.to_owned()).or_default().push(waiting);
    }

    /// Waits until a container was taken, or one has to be removed.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns a guard for a new name, which protects that container from being swept.
    pub(crate) fn mark(&self) -> NameGuard {
        let name = format!("coding-agent-warm-{}", Uuid::now_v7().simple());
        lock(&self.names).insert(name.clone());
        NameGuard {
            name,
            names: Arc::clone(&self.names),
            changed: Arc::clone(&self.changed),
        }
    }

    fn shelves(&self) -> MutexGuard<'_, Shelves> {
        lock(&self.shelves)
    }
}

impl NameGuard {
    /// Returns the container's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for NameGuard {
    fn drop(&mut self) {
        lock(&self.names).remove(&self.name);
        self.changed.notify_one();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
