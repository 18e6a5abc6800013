//! Turns at a model's server that several machines share: counted in the store.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::runtime::Handle;
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use crate::llm::models::SharedPlaces;
use crate::store::{Store, Turn};

/// Time after which a turn ends whose holder does not extend it.
const TURN: Duration = Duration::from_mins(1);
const EXTEND_EVERY: Duration = Duration::from_secs(20);
/// Interval at which somebody who waits looks again.
const LOOK_EVERY: Duration = Duration::from_millis(300);

/// The turns that a store counts.
pub struct SharedTurns(Store);

/// A turn that is kept until this is dropped.
struct Held {
    store: Store,
    turn: Turn,
    _keeping: AbortOnDropHandle<()>,
}

impl SharedTurns {
    pub fn over(store: &Store) -> Arc<dyn SharedPlaces> {
        Arc::new(Self(store.clone()))
    }
}

#[async_trait]
impl SharedPlaces for SharedTurns {
    /// A store that cannot be asked keeps nobody from the model: the places of this process are
    /// counted by itself.
    async fn place(&self, server: &str, at_once: u32) -> Box<dyn Send + Sync> {
        loop {
            match self.0.take_turn(server, at_once, TURN).await {
                Ok(Some(turn)) => return Box::new(Held::new(&self.0, turn)),
                Ok(None) => sleep(LOOK_EVERY).await,
                Err(error) => {
                    tracing::warn!("the turns at the model are not known, so none is waited for: {error}");
                    return Box::new(());
                }
            }
        }
    }
}

impl Held {
    fn new(store: &Store, turn: Turn) -> Self {
        let keeping = keep(store.clone(), turn.clone());
        Self {
            store: store.clone(),
            turn,
            _keeping: AbortOnDropHandle::new(tokio::spawn(keeping)),
        }
    }
}

async fn keep(store: Store, turn: Turn) {
    loop {
        sleep(EXTEND_EVERY).await;
        match store.keep_turn(&turn, TURN).await {
            Ok(true) => {}
            Ok(false) => return tracing::warn!("a turn at the model went to another machine before it ended"),
            Err(error) => tracing::warn!("a turn at the model could not be extended: {error}"),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Without a runtime the process ends, and the turn with it.
        let Ok(runtime) = Handle::try_current() else { return };
        let (store, turn) = (self.store.clone(), self.turn.clone());
        runtime.spawn(async move {
            if let Err(error) = store.end_turn(&turn).await {
                tracing::debug!("a turn at the model runs out by itself: {error}");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[tokio::test]
    async fn two_workers_have_as_many_turns_together_as_one() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (
            Store::open(folder.path()).await.unwrap(),
            Store::open(folder.path()).await.unwrap(),
        );
        let (now, most) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let mut requests = tokio::task::JoinSet::new();
        for number in 0..8 {
            let turns = SharedTurns::over(if number % 2 == 0 { &one } else { &other });
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            requests.spawn(async move {
                let held = turns.place("model", 2).await;
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                sleep(Duration::from_millis(30)).await;
                now.fetch_sub(1, Ordering::SeqCst);
                drop(held);
            });
        }
        requests.join_all().await;
        assert_eq!(most.load(Ordering::SeqCst), 2);
    }
}
