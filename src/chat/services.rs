//! The state and the connections that the handling of all messages shares.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use crate::agent::record::stop::Stop;
use crate::journal::fact::{Fact, Subject};
use crate::llm::config::role::Role;
use crate::llm::model::Model;
use crate::messenger::config::Accounts;
use crate::messenger::line::Line;
use crate::messenger::place::{Incoming, Messenger, Place};
use crate::messenger::slack::Slack;
use crate::routing::Route;
use crate::service::Service;
use crate::store::{Store, StoreError};

use super::session::{LOCAL_ONLY, Session};
use super::watched::UnreadableTasks;

/// The state and the connections that the handling of all messages shares.
pub(super) struct ChatServices {
    pub(super) service: Arc<Service>,
    pub(super) slack: Option<Slack>,
    pub(super) line: Option<Line>,
    /// People without access of whom the journal was told.
    pub(super) strangers: Mutex<HashSet<String>>,
    /// The tasks that cannot be told of, since their runs cannot be read.
    pub(super) unreadable: UnreadableTasks,
    /// Held while a picture is decoded.
    pub(super) decoding: tokio::sync::Mutex<()>,
    /// Ends questions to models with the process.
    pub(super) stop: Stop,
}

impl ChatServices {
    pub(super) fn new(service: &Arc<Service>) -> anyhow::Result<Self> {
        let config = &service.config().chat;
        Ok(Self {
            slack: Slack::new(&config.slack)?,
            line: Line::new(&config.line)?,
            service: Arc::clone(service),
            strangers: Mutex::default(),
            unreadable: UnreadableTasks::default(),
            decoding: tokio::sync::Mutex::default(),
            stop: Stop::default(),
        })
    }

    pub(super) fn store(&self) -> &Store {
        self.service.store()
    }

    /// Returns the accounts of somebody who is heard.
    pub(super) fn accounts(&self, messenger: Messenger, user: &str) -> Option<&Accounts> {
        let chat = &self.service.config().chat;
        match messenger {
            Messenger::Slack => chat.slack.allowed_users.get(user),
            Messenger::Line => chat.line.allowed_users.get(user),
        }
    }

    /// Returns what is known of a conversation.
    pub(super) async fn session(&self, place: &Place) -> Result<Session, StoreError> {
        let document = self.store().chat_session(&place.to_string()).await?;
        Ok(document.map(Session::read).unwrap_or_default())
    }

    /// Writes down, with a note, that the request of a message is carried out; returns false, and
    /// changes nothing, if that was written before.
    pub(super) async fn first_time(&self, incoming: &Incoming, note: &str) -> Result<bool, StoreError> {
        self.store().first_time(&format!("chat {}", incoming.id), note).await
    }

    /// Returns the model of a role, for what a conversation remembers and what may be said of
    /// `repository`.
    pub(super) fn model(&self, role: Role, session: &Session, repository: Option<&str>) -> Model {
        let local_only = session.local_only_rule().map(str::to_owned);
        let local_only = local_only.or_else(|| self.rule(repository?));
        self.service.models().of(role, local_only.as_deref())
    }

    /// Returns the rule that keeps what is said of a repository on near models; `None` where there
    /// is none, or where everything is kept there, which every model is held to anyway.
    pub(super) fn rule(&self, repository: &str) -> Option<String> {
        let models = self.service.models();
        let is_for_all = models.local_only_rule(None, &[]).is_some();
        models.local_only_rule(Some(repository), &[]).filter(|_| !is_for_all)
    }

    /// Tells whether what people say may go to a model elsewhere, where nothing keeps it near: to
    /// the first one, or to one that takes its place when it cannot be reached.
    pub(super) fn talks_far(&self) -> bool {
        let models = self.service.models();
        let is_far = |role: Role| !models.of(role, None).stays_near();
        is_far(Role::Chat) || is_far(Role::Classifier)
    }

    /// Has the server of a model load it, where the configuration has that done; the error says why
    /// the model cannot be asked.
    pub(super) async fn make_ready(&self, model: &Model) -> Result<(), String> {
        match self.service.make_ready(model).await {
            Ok(None) => Ok(()),
            Ok(Some(missing)) => Err(missing),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Returns the routes of which a model is not near, even where only near ones are asked.
    pub(super) fn far_routes(&self) -> Vec<Route> {
        let models = self.service.models();
        let near_chat = models.of(Role::Chat, Some(LOCAL_ONLY)).is_near();
        let near_planner = models.of(Role::Planner, Some(LOCAL_ONLY)).is_near();
        Route::ALL
            .into_iter()
            .filter(|route| match route {
                Route::Chat => !near_chat,
                Route::Plan | Route::Analyze | Route::Research => !near_chat || !near_planner,
                Route::Ops => false,
                // The run is one as every other: it knows nothing of the conversation.
                Route::Code => models.run_may_ask_far(),
            })
            .collect()
    }

    pub(super) fn note(&self, fact: Fact) {
        self.service.journal().record(&Subject::default(), fact);
    }
}
