//! A claimed run: its lease, state and record, and how they are saved and noted down.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use crate::agent::record::Record;
use crate::agent::record::budget::Spent;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::redaction;
use crate::agent::record::stop::Stop;
use crate::agent::services::Services;
use crate::agent::tool_outputs::ToolOutputs;
use crate::journal::fact::{Fact, Subject};
use crate::llm::chat::Model;
use crate::store::Lease;
use crate::task::state::{Signal, State};

/// What is known of a claimed run, apart from what is open for it in this process.
pub(crate) struct Claim {
    pub(crate) services: Arc<Services>,
    pub(crate) lease: Arc<Lease>,
    pub(crate) subject: Subject,
    pub(crate) state: State,
    pub(crate) record: Record,
    /// Cancelled with the program, or for this run alone by what comes in through its inbox.
    pub(crate) stop: Stop,
    /// Where tool outputs that are too long for the model are kept whole.
    pub(crate) outputs: ToolOutputs,
    /// When this process took the run up.
    pub(crate) begun: Instant,
    /// Whether an earlier process worked on it.
    pub(crate) was_taken_up: bool,
}

impl Claim {
    /// Follows `signal` and saves the state it leads to.
    ///
    /// # Errors
    /// [`Interruption::Interrupted`] where the program is asked to stop: the step itself is saved
    /// then.
    pub(crate) async fn step(&mut self, signal: Signal) -> Result<(), Interruption> {
        let from = self.state;
        self.state = from
            .on(signal)
            .map_err(|error| Interruption::failed(error.to_string()))?;
        self.record.postponed = 0;
        self.record.parked_since = None;
        self.record.parked = None;
        if let Err(interruption) = self.save().await {
            // What is not saved has not happened.
            self.state = from;
            return Err(interruption);
        }
        self.note(Fact::StageChanged { from, to: self.state });
        if self.stop.asked.is_cancelled() && !self.state.is_final() {
            return Err(Interruption::Interrupted);
        }
        Ok(())
    }

    /// Gives `work` up when the program is asked to stop: for what may take long and is simply done
    /// again.
    pub(crate) async fn unless_stopped<T, E: Into<Interruption>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Interruption> {
        tokio::select! {
            biased;
            () = self.stop.asked.cancelled() => Err(Interruption::Interrupted),
            result = work => result.map_err(Into::into),
        }
    }

    /// Returns the model; only a local one where the work is confidential.
    pub(crate) fn model(&self) -> Model {
        let model = &self.services.model;
        match &self.record.local_only {
            Some(rule) => model.kept_near(rule.clone()),
            None => model.clone(),
        }
    }

    /// Saves the record in the state the run is in.
    pub(crate) async fn save(&self) -> Result<(), Interruption> {
        let record = self.written_record()?;
        Ok(self.services.store.save(&self.lease, self.state, &record).await?)
    }

    /// Returns the record as it is saved: without secrets, and with the time worked until now.
    pub(crate) fn written_record(&self) -> Result<serde_json::Value, Interruption> {
        let mut record = self
            .record
            .to_saved()
            .map_err(|error| Interruption::failed(error.to_string()))?;
        record["worked_seconds"] = self.spent().seconds.into();
        redaction::clean_record(&self.services.redactor, &mut record);
        Ok(record)
    }

    /// Returns what the run has used until now.
    pub(crate) fn spent(&self) -> Spent {
        Spent {
            usage: self.record.usage,
            turns: self.record.turns,
            seconds: self.record.worked_seconds + self.begun.elapsed().as_secs(),
        }
    }

    /// Records `fact` about this run in the journal.
    pub(crate) fn note(&self, fact: Fact) {
        self.services.journal.record(&self.subject, fact);
    }

    /// Records the current plan in the journal.
    pub(crate) fn note_plan(&self) {
        let plan = self.record.plan.as_ref();
        if let Some(plan) = plan.and_then(|plan| serde_json::to_value(plan).ok()) {
            self.note(Fact::PlanMade { plan });
        }
    }

    /// Notes something people should know, in the journal and for the comments.
    pub(crate) fn warn(&mut self, text: impl Into<String>) {
        // Cleaned before it is stored: comments escape it, and an escaped secret would no longer
        // match the redactor's patterns.
        let text = self.services.redactor.clean(&text.into()).into_string();
        self.note(Fact::Warned { text: text.clone() });
        if !self.record.notes.contains(&text) {
            self.record.notes.push(text);
        }
    }
}
