//! Keeps the progress comment up to date: subscribes to the facts of the run, and edits the comment
//! after those that change what it shows, at most every five seconds, and ever more rarely for
//! those that come with each turn: a long run does not cost hundreds of requests.
//!
//! The record is read from the store at the moment of the edit. So the stages need not call
//! anything, a delayed edit shows the latest, and facts that another process wrote count as well.
//! It follows that such a fact must not be noted before the record that it tells of is saved.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::agent::claim::Claim;
use crate::agent::record::Record;
use crate::agent::services::Services;
use crate::agent::text::comments;
use crate::forge::{Forge, ForgeError, Post};
use crate::journal::fact::Fact;
use crate::journal::subscription::Subscription;
use crate::secret::Clean;
use crate::store::FactFilter;
use crate::task::id::{RunId, TaskId};
use crate::task::labels::Labels;
use crate::task::state::State;

/// Shortest time between two edits.
const SHORTEST_PAUSE: Duration = Duration::from_secs(5);
/// Longest wait for an edit that was already sent.
const PATIENCE: Duration = Duration::from_secs(30);

/// The task that edits the comment; it is aborted when dropped.
pub(crate) struct ProgressEditor {
    stop: CancellationToken,
    editing: AbortOnDropHandle<()>,
}

impl ProgressEditor {
    /// Starts the task. A comment that an earlier process posted is edited at once.
    pub(crate) async fn start(claim: &Claim, forge: Arc<dyn Forge>, labels: Labels, what: &str) -> Self {
        let facts = facts_of(claim).await;
        let posted_before = claim.comment(what).map(|_| Instant::now());
        let comment = Comment {
            services: Arc::clone(&claim.services),
            forge,
            labels,
            task: claim.lease.task.clone(),
            run: claim.lease.run,
            begun: claim.begun,
            shown_at: posted_before,
            due: posted_before,
            arriving: None,
            marker: claim.marker(what),
        };
        let stop = CancellationToken::new();
        Self {
            editing: AbortOnDropHandle::new(tokio::spawn(comment.follow(facts, stop.clone()))),
            stop,
        }
    }

    /// Starts a task that shows on a terminal how much of a long reply has arrived.
    pub(crate) async fn on_terminal(claim: &Claim, show: Arc<dyn Fn(&Clean) + Send + Sync>) -> Self {
        let mut facts = facts_of(claim).await;
        let redactor = Arc::clone(&claim.services.redactor);
        let stop = CancellationToken::new();
        let told = stop.clone();
        let telling = tokio::spawn(async move {
            loop {
                tokio::select! {
                    biased;
                    () = told.cancelled() => return,
                    fact = facts.next() => {
                        if let Fact::ReplyArriving { tokens } = fact.entry.fact {
                            show(&redactor.clean(&comments::arriving(tokens)));
                        }
                    }
                }
            }
        });
        Self {
            editing: AbortOnDropHandle::new(telling),
            stop,
        }
    }

    /// Ends the task; if an edit was already sent, waits for it, so that it cannot overtake the
    /// next one.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        // If that takes longer, the drop aborts it.
        let _ = tokio::time::timeout(PATIENCE, self.editing).await;
    }
}

/// Subscribes to the facts of the run from now on.
async fn facts_of(claim: &Claim) -> Subscription {
    let store = &claim.services.store;
    let newest = store.newest_fact().await.unwrap_or_else(|error| {
        tracing::warn!(task = %claim.lease.task, "earlier facts are read again: {error}");
        0
    });
    let of_run = FactFilter::OfRun(claim.lease.run);
    claim.services.journal.subscribe(store, of_run, newest)
}

/// The comment of one run, and when it is edited next.
struct Comment {
    services: Arc<Services>,
    forge: Arc<dyn Forge>,
    labels: Labels,
    task: TaskId,
    run: RunId,
    marker: String,
    /// Time at which this process claimed the run.
    begun: Instant,
    /// Time of the last edit, or of the post. Before the post no edit is due.
    shown_at: Option<Instant>,
    /// Time of the next edit, if there is something new to show.
    due: Option<Instant>,
    /// Description of the transfer in progress: of a long reply, or of a large repository.
    arriving: Option<String>,
}

impl Comment {
    async fn follow(mut self, mut facts: Subscription, stop: CancellationToken) {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = until(self.due) => {}
                fact = facts.next() => {
                    self.take(&fact.entry.fact);
                    continue;
                }
            }
            self.due = None;
            self.shown_at = Some(Instant::now());
            match self.edit().await {
                Ok(()) => {}
                // Somebody did not want it.
                Err(error) if matches!(error.downcast_ref(), Some(ForgeError::Gone { .. })) => return,
                Err(error) => tracing::warn!(task = %self.task, "the progress could not be shown: {error:#}"),
            }
        }
    }

    /// Records a fact, and decides when it is shown.
    fn take(&mut self, fact: &Fact) {
        match fact {
            Fact::ReplyArriving { tokens } => self.arriving = Some(comments::arriving(*tokens)),
            Fact::RepositoryArriving { progress } => {
                self.arriving = Some(format!("the repository is being fetched: {progress}"));
            }
            Fact::ModelCalled { .. } | Fact::StageChanged { .. } => self.arriving = None,
            _ => {}
        }
        let pause = |shown_at: Instant| match fact {
            Fact::StageChanged { .. }
            | Fact::PlanMade { .. }
            | Fact::ReplyArriving { .. }
            | Fact::ReviewGiven { .. }
            | Fact::ReviewMissing { .. }
            | Fact::RepositoryArriving { .. } => Some(SHORTEST_PAUSE),
            // A quarter of the time from the claim to the next edit.
            Fact::ModelCalled { .. } => Some(SHORTEST_PAUSE.max(shown_at.duration_since(self.begun) / 3)),
            _ => None,
        };
        if matches!(fact, Fact::Commented { marker } if *marker == self.marker) {
            self.shown_at = Some(Instant::now());
        } else if let Some(shown_at) = self.shown_at
            && let Some(pause) = pause(shown_at)
        {
            let due = shown_at + pause;
            self.due = Some(self.due.map_or(due, |earlier| earlier.min(due)));
        }
    }

    /// Edits the comment, if it was posted and the run is at work. The end of the work, for good or
    /// for now, is shown by those who end it; after a delivery that is at once.
    async fn edit(&self) -> anyhow::Result<()> {
        let Some(stored) = self.services.store.run(self.run).await? else {
            return Ok(());
        };
        if stored.state.stage().is_none() || stored.state == State::Delivering {
            return Ok(());
        }
        let mut record = Record::read(&stored)?;
        if let Some(arriving) = &self.arriving {
            record.worked.doing.clone_from(arriving);
        }
        let Some(Some(comment)) = record.thread.comments.get(&self.marker).copied() else {
            return Ok(());
        };
        let page = comments::progress(self.run, stored.state, &record, &self.services.settings, &self.labels);
        let post = Post {
            marker: &self.marker,
            body: &page.written(&self.services.redactor),
            search_first: false,
        };
        Ok(self.forge.edit_comment(&self.task, comment, &post).await?)
    }
}

/// Waits until `due`; for ever if there is no such time.
async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}
