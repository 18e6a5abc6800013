//! The loop: one stage after the other until the run ends or has to be put down.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use chrono::{DateTime, Utc};
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::budget::Budget;
use super::desk::Desk;
use super::outputs::Outputs;
use super::record::{Failure, FailureKind, Record};
use super::setback::Setback;
use super::thread::Thread;
use super::{Planning, delivering, ending, planning, preparing, talk, verifying, working};
use crate::environment::docker::Docker;
use crate::environment::{self, EnvironmentError};
use crate::journal::Journal;
use crate::journal::fact::{Fact, Subject};
use crate::llm::chat::Model;
use crate::repository;
use crate::repository::mirror::Mirror;
use crate::secret::Redactor;
use crate::store::{Lease, Run as StoredRun, Store};
use crate::task::state::{Signal, State};
use crate::tool::McpServerConfig;

/// How often a run may lose its container and get a new one.
const MOST_LOSSES: u32 = 3;

/// What all runs of a process share.
pub struct Workshop {
    pub store: Store,
    pub journal: Journal,
    pub redactor: Arc<Redactor>,
    pub model: Model,
    pub settings: Settings,
    docker: OnceCell<Docker>,
}

impl Workshop {
    pub fn new(store: Store, journal: Journal, redactor: Arc<Redactor>, model: Model, settings: Settings) -> Self {
        Self {
            store,
            journal,
            redactor,
            model,
            settings,
            docker: OnceCell::new(),
        }
    }

    /// Returns the connection to the engine, made at the first need; an engine that did not answer is asked again.
    pub async fn docker(&self) -> Result<&Docker, EnvironmentError> {
        let settings = &self.settings;
        let connect = || {
            Docker::connect(
                &settings.environments,
                settings.docker_host.as_deref(),
                &settings.instance,
            )
        };
        self.docker.get_or_try_init(connect).await
    }
}

/// The part of the configuration that runs depend on.
#[derive(Clone)]
pub struct Settings {
    pub state_dir: PathBuf,
    /// Where the whole of long tool outputs is kept.
    pub outputs_dir: PathBuf,
    /// This program, which also is the guard of MCP servers.
    pub program: PathBuf,
    pub docker_host: Option<String>,
    /// Tells this installation's containers from those of others on the same engine.
    pub instance: String,
    pub max_turns: u32,
    pub budget: Budget,
    pub planning: Planning,
    pub environments: environment::Config,
    pub repository: repository::Config,
    pub mcp_servers: Vec<McpServerConfig>,
}

/// How a run is told to stop for the end of the program.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    /// Reach the next safe point: a model call is given up at once, a tool call may finish.
    pub asked: CancellationToken,
    /// Give up the tool call as well.
    pub deadline: CancellationToken,
}

/// How the work on a run ended, for the exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    Done,
    /// A person did not want it any more.
    Stopped,
    Failed(FailureKind),
    /// Put back until then; not finished.
    Postponed(DateTime<Utc>),
    /// Saved for the next process.
    Interrupted,
    /// Another worker has it.
    Disowned,
    /// The store could not be written: the run goes on from what it holds, when it can be written again.
    Unsaved,
}

impl std::fmt::Display for Ending {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Done => formatter.write_str("done"),
            Self::Stopped => formatter.write_str("stopped"),
            Self::Failed(FailureKind::Task) => formatter.write_str("failed"),
            Self::Failed(FailureKind::Policy) => formatter.write_str("failed: refused by a policy"),
            Self::Failed(FailureKind::Unreadable) => formatter.write_str("failed: unreadable replies"),
            Self::Postponed(until) => write!(formatter, "put back until {}", until.format("%Y-%m-%d %H:%M UTC")),
            Self::Interrupted => formatter.write_str("interrupted"),
            Self::Disowned => formatter.write_str("given up to another worker"),
            Self::Unsaved => formatter.write_str("put down, because the store cannot be written or read"),
        }
    }
}

/// A claimed run.
pub struct Run {
    pub(super) workshop: Arc<Workshop>,
    pub(super) lease: Arc<Lease>,
    pub(super) subject: Subject,
    pub(super) state: State,
    pub(super) record: Record,
    pub(super) thread: Thread,
    pub(super) stop: Stop,
    /// The repository, once it was fetched by this process.
    pub(super) mirror: Option<Mirror>,
    /// Container, tools and conversation, once they are open.
    pub(super) desk: Option<Desk>,
    pub(super) outputs: Outputs,
    /// When the item was last looked at.
    pub(super) looked_at: Option<Instant>,
    /// When the progress comment was last written.
    pub(super) shown_at: Option<Instant>,
    /// When this process took the run up.
    pub(super) begun: Instant,
    /// Whether an earlier process worked on it.
    was_taken_up: bool,
}

impl Run {
    /// Takes up a claimed run where it stands.
    pub fn new(workshop: Arc<Workshop>, lease: Arc<Lease>, stored: &StoredRun, thread: Thread, stop: Stop) -> Self {
        let record = serde_json::from_value(stored.record.clone()).unwrap_or_else(|error| unreadable(stored, &error));
        let outputs = Outputs::new(workshop.settings.outputs_dir.join(lease.run.to_string()));
        let subject = Subject {
            task: Some(lease.task.clone()),
            run: Some(lease.run),
        };
        let begun = Instant::now();
        Self {
            workshop,
            lease,
            subject,
            state: stored.state,
            record,
            thread,
            stop,
            mirror: None,
            desk: None,
            outputs,
            looked_at: None,
            shown_at: None,
            begun,
            was_taken_up: stored.state != State::Queued,
        }
    }

    /// Takes up a run that broke off by a fault of this program. It is not tried again: it would only break off again.
    pub fn broken(workshop: Arc<Workshop>, lease: Arc<Lease>, stored: &StoredRun, thread: Thread, stop: Stop) -> Self {
        let mut run = Self::new(workshop, lease, stored, thread, stop);
        run.record.failure.get_or_insert(Failure {
            kind: FailureKind::Task,
            text: "a fault of this program broke the run off; its log says where, please report it".to_owned(),
        });
        run
    }

    /// Works on the run until it ends, is put back or the program stops. The lease is given back in every case.
    pub async fn advance(mut self) -> Ending {
        if let Some(failure) = self.record.failure.clone() {
            // It failed before, and only saying so did not succeed.
            return ending::put_down(self, Setback::Failed(failure)).await;
        }
        let setback = loop {
            if let Some(ending) = self.final_ending() {
                self.leave().await;
                return ending;
            }
            let stage = match self.state {
                State::Planning => planning::plan(&mut self).await,
                State::Preparing => preparing::prepare(&mut self).await,
                State::Working => working::work(&mut self).await,
                State::Verifying => verifying::verify(&mut self).await,
                State::Delivering => delivering::deliver(&mut self).await,
                State::Queued | State::Paused(_) | State::Done | State::Stopped | State::Failed => Ok(Signal::Claimed),
            };
            let stepped = match stage {
                Ok(signal) => self.step(signal).await,
                Err(setback) => Err(setback),
            };
            match stepped {
                Ok(()) => {}
                Err(Setback::WorkspaceLost(reason)) if self.record.losses < MOST_LOSSES => {
                    // The stage begins again in a new container, with the work as it was last kept.
                    self.record.losses += 1;
                    self.warn(format!("The container was lost ({reason}); a new one took its place."));
                    self.leave().await;
                }
                Err(setback) => break setback,
            }
        };
        ending::put_down(self, setback).await
    }

    /// Follows `signal` and saves where that leads.
    pub(super) async fn step(&mut self, signal: Signal) -> Result<(), Setback> {
        let from = self.state;
        self.state = from.on(signal).map_err(|error| Setback::failed(error.to_string()))?;
        self.record.postponed = 0;
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

    /// Gives `work` up when the program is asked to stop: for what may take long and is simply done again.
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

    /// Saves the record in the state the run is in.
    pub(super) async fn save(&self) -> Result<(), Setback> {
        let record = self.written_record()?;
        Ok(self.workshop.store.save(&self.lease, self.state, &record).await?)
    }

    pub(super) fn written_record(&self) -> Result<serde_json::Value, Setback> {
        serde_json::to_value(&self.record).map_err(|error| Setback::failed(error.to_string()))
    }

    pub(super) fn note(&self, fact: Fact) {
        self.workshop.journal.record(&self.subject, fact);
    }

    /// Notes something people should know, in the journal and for the comments.
    pub(super) fn warn(&mut self, text: impl Into<String>) {
        // The record is shown to people, and what is made fit for them later must not hide a secret from the redactor.
        let text = self.workshop.redactor.clean(&text.into()).into_string();
        self.note(Fact::Warned { text: text.clone() });
        if !self.record.notes.contains(&text) {
            self.record.notes.push(text);
        }
    }

    fn final_ending(&self) -> Option<Ending> {
        match self.state {
            State::Done => Some(Ending::Done),
            State::Stopped => Some(Ending::Stopped),
            State::Failed => Some(Ending::Failed(
                self.record
                    .failure
                    .as_ref()
                    .map_or(FailureKind::Task, |failure| failure.kind),
            )),
            _ => None,
        }
    }

    /// Closes what is open; the container goes. So does the one an earlier process left, when nobody needs it any more.
    pub(super) async fn leave(&mut self) {
        if self.state == State::Done {
            self.forget_commits().await;
        }
        if let Some(desk) = self.desk.take() {
            let container = desk.clear().await;
            self.note(Fact::EnvironmentRemoved { container });
        } else if self.was_taken_up && self.state.is_final() {
            self.remove_left_container().await;
        }
    }
}

/// Returns the record of a run whose own cannot be read: one that only fails, visibly. To begin anew would comment, pay and
/// perhaps push a second time.
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
