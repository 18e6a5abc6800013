//! A claimed run: what it holds, and the small things every stage does with it.

use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Mutex;

use super::budget::Spent;
use super::desk::Desk;
use super::early::Early;
use super::listening::{Ear, NearEar};
use super::mailbox::Mailbox;
use super::outputs::Outputs;
use super::pending::Pending;
use super::record::{Failure, FailureKind, Record};
use super::setback::Setback;
use super::stop::Stop;
use super::stored;
use super::talk;
use super::thread::Thread;
use super::way_out;
use super::workshop::Workshop;
use crate::gateway::ledger::Ledger;
use crate::journal::fact::{Fact, Subject};
use crate::llm::chat::Model;
use crate::repository::mirror::Mirror;
use crate::store::{Lease, Run as StoredRun};
use crate::task::state::{Signal, State};

/// A claimed run.
pub struct Run {
    pub(super) workshop: Arc<Workshop>,
    pub(super) lease: Arc<Lease>,
    pub(super) subject: Subject,
    pub(super) state: State,
    pub(super) record: Record,
    pub(super) thread: Thread,
    /// Stopped with the program, or alone by what comes in through the mailbox.
    pub(super) stop: Stop,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) ear: Arc<Mutex<Ear>>,
    pub(super) near_ear: Arc<Mutex<NearEar>>,
    /// The repository, once it was fetched by this process.
    pub(super) mirror: Option<Mirror>,
    /// Container, tools and conversation, once they are open.
    pub(super) desk: Option<Desk>,
    /// The environment that is opened while the model plans.
    pub(super) early: Option<Early>,
    pub(super) outputs: Outputs,
    /// What the container asked for and did not get.
    pub(super) ledger: Arc<Ledger>,
    /// When the progress comment was last written, or when it will be.
    pub(super) shown_at: Option<Instant>,
    /// The edit of it that waits.
    pub(super) pending: Option<Pending>,
    /// When this process took the run up.
    pub(super) begun: Instant,
    /// Whether an earlier process worked on it.
    pub(super) was_taken_up: bool,
}

impl Run {
    /// Takes up a claimed run where it stands.
    pub fn new(workshop: Arc<Workshop>, lease: Arc<Lease>, stored: &StoredRun, thread: Thread, stop: &Stop) -> Self {
        let record = serde_json::from_value(stored.record.clone()).unwrap_or_else(|error| unreadable(stored, &error));
        let outputs = Outputs::new(workshop.settings.outputs_dir.join(lease.run.to_string()));
        let subject = Subject {
            task: Some(lease.task.clone()),
            run: Some(lease.run),
        };
        let (journal, about) = (workshop.journal.clone(), subject.clone());
        let ledger = Ledger::new(record.refused.iter().cloned(), move |news| {
            journal.record(&about, way_out::fact(news));
        });
        let stop = stop.child();
        let mailbox = Arc::new(Mailbox::new(stop.clone()));
        let mut ear = Ear::new(
            Arc::clone(&workshop),
            &lease,
            stored.created_at,
            thread.clone(),
            Arc::clone(&mailbox),
        );
        let may_pause = matches!(thread, Thread::Item { .. });
        let near_ear = NearEar::new(Arc::clone(&workshop), lease.run, may_pause, Arc::clone(&mailbox));
        if !matches!(stored.state, State::Queued | State::Planning) {
            ear.open(record.heard.clone());
        }
        Self {
            workshop,
            lease,
            subject,
            state: stored.state,
            record,
            thread,
            stop,
            mailbox,
            ear: Arc::new(Mutex::new(ear)),
            near_ear: Arc::new(Mutex::new(near_ear)),
            mirror: None,
            desk: None,
            early: None,
            outputs,
            ledger: Arc::new(ledger),
            shown_at: None,
            pending: None,
            begun: Instant::now(),
            was_taken_up: stored.state != State::Queued,
        }
    }

    /// Takes up a run that broke off by a fault of this program. It is not tried again: it would
    /// only break off again.
    pub fn broken(workshop: Arc<Workshop>, lease: Arc<Lease>, stored: &StoredRun, thread: Thread, stop: &Stop) -> Self {
        let mut run = Self::new(workshop, lease, stored, thread, stop);
        run.record.failure.get_or_insert(Failure {
            kind: FailureKind::Task,
            text: "a fault of this program broke the run off; its log says where, please report it".to_owned(),
        });
        run
    }

    /// Follows `signal` and saves where that leads.
    pub(super) async fn step(&mut self, signal: Signal) -> Result<(), Setback> {
        let from = self.state;
        self.state = from.on(signal).map_err(|error| Setback::failed(error.to_string()))?;
        self.record.postponed = 0;
        self.record.parked_since = None;
        self.record.parked = None;
        if let Err(setback) = self.save().await {
            // What is not saved has not happened.
            self.state = from;
            return Err(setback);
        }
        self.note(Fact::StageChanged { from, to: self.state });
        if !self.state.is_final() {
            self.tell_terminal(talk::headline(self.state));
        }
        if self.stop.asked.is_cancelled() && !self.state.is_final() {
            return Err(Setback::Interrupted);
        }
        Ok(())
    }

    /// Gives `work` up when the program is asked to stop: for what may take long and is simply done
    /// again.
    pub(super) async fn unless_stopped<T, E: Into<Setback>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Setback> {
        tokio::select! {
            biased;
            () = self.stop.asked.cancelled() => Err(Setback::Interrupted),
            result = work => result.map_err(Into::into),
        }
    }

    /// Returns the model, kept to what is near where the work is confidential.
    pub(super) fn model(&self) -> Model {
        let model = &self.workshop.model;
        match &self.record.local_only {
            Some(rule) => model.kept_near(rule.clone()),
            None => model.clone(),
        }
    }

    /// Saves the record in the state the run is in.
    pub(super) async fn save(&self) -> Result<(), Setback> {
        let record = self.written_record()?;
        Ok(self.workshop.store.save(&self.lease, self.state, &record).await?)
    }

    /// Returns the record as it is saved, with the time that was worked on it until now.
    pub(super) fn written_record(&self) -> Result<serde_json::Value, Setback> {
        let mut record = serde_json::to_value(&self.record).map_err(|error| Setback::failed(error.to_string()))?;
        record["worked_seconds"] = self.spent().seconds.into();
        stored::clean_record(&self.workshop.redactor, &mut record);
        Ok(record)
    }

    /// Returns what the run has used until now.
    pub(super) fn spent(&self) -> Spent {
        Spent {
            usage: self.record.usage,
            turns: self.record.turns,
            seconds: self.record.worked_seconds + self.begun.elapsed().as_secs(),
        }
    }

    pub(super) fn note(&self, fact: Fact) {
        self.workshop.journal.record(&self.subject, fact);
    }

    /// Notes something people should know, in the journal and for the comments.
    pub(super) fn warn(&mut self, text: impl Into<String>) {
        // The record is shown to people, and what is made fit for them later must not hide a secret
        // from the redactor.
        let text = self.workshop.redactor.clean(&text.into()).into_string();
        self.note(Fact::Warned { text: text.clone() });
        if !self.record.notes.contains(&text) {
            self.record.notes.push(text);
        }
    }

    /// Closes what is open; the container goes. So does the one an earlier process left, when
    /// nobody needs it any more.
    pub(super) async fn leave(&mut self) {
        if self.state == State::Done {
            self.forget_commits().await;
        }
        self.discard_early().await;
        if let Some(desk) = self.desk.take() {
            let container = desk.clear().await;
            self.note(Fact::EnvironmentRemoved { container });
        }
        if self.was_taken_up && self.state.is_final() {
            self.remove_left_container().await;
        }
        self.ledger.close();
        if self.state.is_final() {
            self.leave_fork().await;
        }
    }
}

/// Returns the record of a run whose own cannot be read: one that only fails, visibly. To begin
/// anew would comment, pay and perhaps push a second time.
fn unreadable(stored: &StoredRun, error: &serde_json::Error) -> Record {
    Record {
        title: stored.title.clone(),
        failure: Some(Failure {
            kind: FailureKind::Task,
            text: format!(
                "what was saved of the run cannot be read ({error}); was it written by a newer version of the program?"
            ),
        }),
        ..Record::default()
    }
}
