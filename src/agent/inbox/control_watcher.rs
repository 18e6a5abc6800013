//! Listens to the operator: requests in the store, and a pause of all runs.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use uuid::Uuid;

use crate::agent::inbox::mailbox::Mailbox;
use crate::agent::record::PausedBy;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::message::{OPERATOR, Order, OrderSource};
use crate::agent::services::Services;
use crate::task::command::Command;
use crate::task::id::RunId;

/// Interval between looks at the store.
const TICK: Duration = Duration::from_secs(1);

/// Polls the store for requests, and for a pause of all runs. It is separate from
/// [`ThreadWatcher`], so that the operator is heard even while a forge does not answer.
pub struct ControlWatcher {
    services: Arc<Services>,
    run: RunId,
    may_pause: bool,
    mailbox: Arc<Mailbox>,
    requests: HashSet<Uuid>,
}

impl ControlWatcher {
    /// Creates a watcher. `may_pause` is false for a local task, which ends with the command that
    /// started it.
    pub fn new(services: Arc<Services>, run: RunId, may_pause: bool, mailbox: Arc<Mailbox>) -> Self {
        Self {
            services,
            run,
            may_pause,
            mailbox,
            requests: HashSet::new(),
        }
    }

    /// Polls at an interval until it is dropped.
    pub async fn listen(watcher: Arc<Mutex<Self>>) {
        loop {
            tokio::time::sleep(TICK).await;
            watcher.lock().await.look().await;
        }
    }

    /// Polls once.
    pub async fn look(&mut self) {
        match self.services.store.requests(self.run).await {
            Ok(requests) => {
                for request in requests {
                    if self.requests.insert(request.id) {
                        let Ok(command) = request.text.parse::<Command>();
                        self.mailbox.put_order(Order {
                            command,
                            by: request.by.unwrap_or_else(|| OPERATOR.to_owned()),
                            origin: OrderSource::Request(request.id),
                        });
                    }
                }
            }
            Err(error) => tracing::warn!(run = %self.run, "the store could not be asked for requests: {error}"),
        }
        if !self.may_pause {
            return;
        }
        match self.services.store.is_paused().await {
            Ok(true) => self.mailbox.interrupt_soon(Interruption::Paused {
                by: PausedBy::AllRuns,
                order: None,
            }),
            Ok(false) => {}
            Err(error) => tracing::warn!(run = %self.run, "the store could not be asked for a pause: {error}"),
        }
    }
}
