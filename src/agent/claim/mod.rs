//! A claimed run: its lease, state and record, and how they are saved.

pub mod git_login; // how git logs in at a forge
pub mod on_forge; // the claim on the item that other installations see

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::agent::claim::on_forge::ClaimOnForge;
use crate::agent::record::Record;
use crate::agent::record::budget::Spent;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::message::SeenComment;
use crate::agent::record::redaction;
use crate::agent::record::stop::Stop;
use crate::agent::services::Services;
use crate::agent::tool_outputs::ToolOutputs;
use crate::forge::{CommentId, CommentKey};
use crate::journal::fact::{Fact, Subject};
use crate::llm::config::role::Role;
use crate::llm::model::Model;
use crate::store::Lease;
use crate::task::state::{Signal, State};

/// Longest time to tell other installations that the work on an item has ended.
const END_TIME: Duration = Duration::from_secs(20);

/// State of a claimed run, without the resources that are open for it in this process.
pub(crate) struct Claim {
    pub(crate) services: Arc<Services>,
    pub(crate) lease: Arc<Lease>,
    /// The claim on the item that other installations see; a local task has none.
    pub(crate) on_forge: Option<Arc<ClaimOnForge>>,
    pub(crate) subject: Subject,
    pub(crate) state: State,
    pub(crate) record: Record,
    /// Cancelled with the program, or for this run alone by its mailbox.
    pub(crate) stop: Stop,
    /// Keeps the full text of outputs that are too long for the model.
    pub(crate) outputs: ToolOutputs,
    /// Time at which this process claimed the run.
    pub(crate) begun: Instant,
    /// Whether an earlier process worked on the run.
    pub(crate) was_taken_up: bool,
    /// Whether the item was seen assigned to the bot's account, by now. It is set by whoever
    /// watches the item, and saved with the record.
    pub(crate) was_assigned: Arc<AtomicBool>,
}

impl Claim {
    /// Applies `signal` and saves the resulting state.
    ///
    /// # Errors
    /// [`Interruption::Cancelled`] if the program was asked to stop; the step itself is saved.
    pub(crate) async fn step(&mut self, signal: Signal) -> Result<(), Interruption> {
        let from = self.state;
        self.state = from
            .on(signal)
            .map_err(|error| Interruption::failed(error.to_string()))?;
        self.record.waiting.postponed = 0;
        self.record.waiting.parked_since = None;
        self.record.waiting.parked = None;
        if let Err(interruption) = self.save().await {
            // A step that was not saved did not take place.
            self.state = from;
            return Err(interruption);
        }
        self.note(Fact::StageChanged { from, to: self.state });
        if self.stop.asked.is_cancelled() && !self.state.is_final() {
            return Err(Interruption::Cancelled);
        }
        Ok(())
    }

    /// Aborts `work` when the program is asked to stop; for work that may take long and can simply
    /// be repeated.
    pub(crate) async fn unless_stopped<T, E: Into<Interruption>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Interruption> {
        tokio::select! {
            biased;
            () = self.stop.asked.cancelled() => Err(Interruption::Cancelled),
            result = work => result.map_err(Into::into),
        }
    }

    /// Returns the model of a role, or the one that was named for the work; for confidential work
    /// one that refuses servers that are not local.
    pub(crate) fn model(&self, role: Role) -> Model {
        let (models, request) = (&self.services.models, &self.record.request);
        let local_only = request.local_only.as_deref();
        let named = request.model.as_deref();
        let named = named.filter(|_| matches!(role, Role::Planner | Role::Worker));
        named
            .and_then(|name| models.named(name, role, local_only))
            .unwrap_or_else(|| models.of(role, local_only))
    }

    /// Returns the smaller context window of the models that read the task, in tokens.
    pub(crate) fn window(&self) -> u64 {
        let windows = [Role::Planner, Role::Worker].map(|role| self.model(role).window());
        windows.into_iter().min().unwrap_or_default()
    }

    /// Makes sure that no other installation has claimed the item meanwhile.
    pub(crate) async fn confirm_item(&self) -> Result<(), Interruption> {
        match &self.on_forge {
            Some(on_forge) => on_forge.confirm().await,
            None => Ok(()),
        }
    }

    /// Claims the run's item on its forge, for installations that do not share the store: another
    /// one may have it by now.
    pub(crate) async fn begin_item(&self) -> Result<(), Interruption> {
        match &self.on_forge {
            Some(on_forge) => {
                // Of a run that was worked on before, the claim has changed since it was written
                // down.
                let known = self.record.request.claimed.as_ref();
                on_forge.begin(known.filter(|_| !self.was_taken_up)).await
            }
            None => Ok(()),
        }
    }

    /// Tells other installations that the work on the item has ended, if it has.
    pub(crate) async fn end_item(&self) {
        if let Some(on_forge) = self.on_forge.as_ref().filter(|_| self.state.is_final()) {
            // Too late, it runs out by itself.
            let _ = tokio::time::timeout(END_TIME, on_forge.end()).await;
        }
    }

    /// Saves the record and the current state.
    pub(crate) async fn save(&self) -> Result<(), Interruption> {
        let record = self.written_record()?;
        Ok(self.services.store.save(&self.lease, self.state, &record).await?)
    }

    /// Saves what a visit to the waiting run has seen of its item, if that is not saved yet.
    pub(crate) async fn save_visit(&mut self, seen: BTreeMap<CommentKey, SeenComment>) -> Result<(), Interruption> {
        let was_assigned = self.was_assigned.load(Ordering::Relaxed);
        let thread = &mut self.record.thread;
        if was_assigned == thread.was_assigned && seen == thread.seen {
            return Ok(());
        }
        thread.was_assigned = was_assigned;
        thread.seen = seen;
        self.save().await
    }

    /// Returns the record to save: without secrets, and with the time worked and what was seen of
    /// the item until now.
    pub(crate) fn written_record(&self) -> Result<serde_json::Value, Interruption> {
        let mut record = self
            .record
            .to_saved()
            .map_err(|error| Interruption::failed(error.to_string()))?;
        record["worked"]["worked_seconds"] = self.spent().seconds.into();
        record["thread"]["was_assigned"] = self.was_assigned.load(Ordering::Relaxed).into();
        redaction::clean_record(&self.services.redactor, &mut record);
        Ok(record)
    }

    /// Returns the usage of the run so far.
    pub(crate) fn spent(&self) -> Spent {
        Spent {
            usage: self.record.worked.usage,
            cost_usd: self.record.cost(&self.services.settings.prices),
            turns: self.record.worked.turns,
            seconds: self.record.worked.worked_seconds + self.begun.elapsed().as_secs(),
        }
    }

    /// Returns the marker of the run's comment `what`, by which it is found again.
    pub(crate) fn marker(&self, what: &str) -> String {
        format!("{}:{what}", self.lease.run)
    }

    /// Returns the run's comment `what`, if it was posted.
    pub(crate) fn comment(&self, what: &str) -> Option<CommentId> {
        self.record.thread.comments.get(&self.marker(what)).copied().flatten()
    }

    /// Records `fact` about this run in the journal.
    pub(crate) fn note(&self, fact: Fact) {
        self.services.journal.record(&self.subject, fact);
    }

    /// Records the current plan in the journal.
    pub(crate) fn note_plan(&self) {
        let plan = self.record.planned.plan.as_ref();
        if let Some(plan) = plan.and_then(|plan| serde_json::to_value(plan).ok()) {
            self.note(Fact::PlanMade { plan });
        }
    }

    /// Records a remark for people, in the journal and for the comments.
    pub(crate) fn warn(&mut self, text: impl Into<String>) {
        // Redacted before it is stored: comments escape it, and an escaped secret would no longer
        // match the redactor's patterns.
        let text = self.services.redactor.clean(&text.into()).into_string();
        self.note(Fact::Warned { text: text.clone() });
        if !self.record.thread.notes.contains(&text) {
            self.record.thread.notes.push(text);
        }
    }
}
