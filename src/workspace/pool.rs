//! Containers that wait for runs: started, with way out and tools at hand, so that only the project
//! is missing.
//!
//! A run takes one where it has in it what a new one would have; everything about it can be missing
//! or broken, and then a new one is started as ever. They go with the process, or with the sweep
//! after it was killed.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use uuid::Uuid;

use crate::environment::starting::{Basis, Warm};
use crate::tool::mcp::McpServer;
use crate::workspace::project::UploadTarget;
use crate::workspace::streams::tunnel::TunnelEnd;

/// The containers that wait in this process.
#[derive(Default)]
pub struct Pool {
    shelves: Mutex<Shelves>,
    /// Names of those that are here, are being started, or are being made ready for their run.
    names: Arc<Mutex<HashSet<String>>>,
    /// Rings when there is something to fill up or to clear away.
    changed: Arc<Notify>,
}

#[derive(Default)]
struct Shelves {
    waiting: HashMap<String, Vec<PooledContainer>>,
    /// The image or the executor is another one by now.
    stale: Vec<PooledContainer>,
}

/// One of them.
pub(crate) struct PooledContainer {
    pub(crate) warm: Warm,
    /// Where containers have a way out.
    pub(crate) inner_end: Option<TunnelEnd>,
    /// Takes the project in.
    pub(crate) receiver: UploadTarget,
    /// The built-in tools, connected.
    pub(crate) tools: McpServer,
    /// Says that it is not litter.
    pub(crate) mark: NameGuard,
    /// Since when it waits.
    pub(crate) since: Instant,
}

/// Keeps a container from being swept until it is a run's; dropping it has the pool filled up.
pub(crate) struct NameGuard {
    name: String,
    names: Arc<Mutex<HashSet<String>>>,
    changed: Arc<Notify>,
}

impl Pool {
    /// Takes one for `environment` that is what a new container would be, if there is one.
    pub(crate) fn take(&self, environment: &str, basis: &Basis) -> Option<PooledContainer> {
        if basis.has_set_up() {
            return None;
        }
        let mut shelves = self.shelves();
        let waiting = shelves.waiting.get_mut(environment)?;
        let (mut fit, stale): (Vec<_>, Vec<_>) = std::mem::take(waiting)
            .into_iter()
            .partition(|waiting| basis.is_that_of(&waiting.warm));
        let taken = fit.pop();
        *waiting = fit;
        if !stale.is_empty() {
            shelves.stale.extend(stale);
            self.changed.notify_one();
        }
        taken
    }

    /// Tells whether the container with this name is of this process.
    pub fn has(&self, name: &str) -> bool {
        lock(&self.names).contains(name)
    }

    /// Trusts none of those any more that wait for `environment`: one of them could not be used.
    pub(crate) fn distrust(&self, environment: &str) {
        let mut shelves = self.shelves();
        let distrusted = shelves.waiting.remove(environment).unwrap_or_default();
        shelves.stale.extend(distrusted);
        self.changed.notify_one();
    }

    /// Takes out what is no use any more, or has waited for longer than `longest`.
    pub(crate) fn stale(&self, longest: Duration) -> Vec<PooledContainer> {
        let mut shelves = self.shelves();
        let mut stale = std::mem::take(&mut shelves.stale);
        for waiting in shelves.waiting.values_mut() {
            stale.extend(waiting.extract_if(.., |waiting| waiting.since.elapsed() > longest));
        }
        stale
    }

    /// Takes out all there is.
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

    /// Waits until one was taken, or there is something to clear away.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Returns a new name, and keeps what bears it from being swept.
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
