//! Tasks that somebody asks for away from the forge: an issue is opened for them, with the label
//! that has it worked on.
//!
//! Who asked was judged by the caller; from the label on it is a task as any other.

use uuid::Uuid;

use super::Service;
use super::forges::Connected;
use crate::forge::item::account::Account;
use crate::forge::{ForgeError, NewIssue, OpenedIssue, Post};
use crate::journal::fact::{Fact, Subject};
use crate::picture::Picture;
use crate::store::{HandedOver, StoreError};
use crate::task::id::TaskId;

/// How the names begin under which the store has what was opened for a key; the task stands between
/// spaces in the value.
const OPENED_BY_KEY: &str = "task ";

/// Why no issue is opened.
#[derive(Debug, thiserror::Error)]
pub enum NotOpened {
    #[error("{0} is not among the repositories that the configuration names")]
    NotConfigured(String),
    #[error(transparent)]
    Forge(#[from] ForgeError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An issue to open.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Such as `github:owner/repo`.
    pub repository: &'a str,
    pub title: &'a str,
    pub text: &'a str,
    /// The name of the person.
    pub by: &'a str,
    /// Names the request: the same one opens one issue, however often it is repeated.
    pub key: Uuid,
    /// Whether it was begun before.
    pub is_repeated: bool,
    /// The model that is to plan and work, by its name in the configuration.
    pub model: Option<&'a str>,
    /// Pictures that came with it, which the runs of the issue are shown.
    pub pictures: &'a [Picture],
}

impl Service {
    /// Opens an issue and puts the label on that has it worked on.
    pub async fn request(&self, request: &Request<'_>) -> Result<OpenedIssue, NotOpened> {
        let not_configured = || NotOpened::NotConfigured(request.repository.to_owned());
        let connected = self.forge_of(request.repository).ok_or_else(not_configured)?;
        let (_, repository) = request.repository.split_once(':').ok_or_else(not_configured)?;
        let redactor = &self.services.redactor;
        let issue = NewIssue {
            title: &redactor.clean(request.title),
            post: Post {
                marker: &format!("task-{}", request.key),
                body: &redactor.clean(request.text),
                search_first: request.is_repeated,
            },
        };
        let opened = connected.forge.open_issue(repository, &issue).await?;
        // Before the label: whoever finds it with the label must know whose word it is.
        self.services
            .store
            .note_once(&opened_for(&opened.task), request.by)
            .await?;
        if let Some(model) = request.model {
            let name = named_for(&opened.task);
            self.services.store.note_once(&name, model).await?;
        }
        if !request.pictures.is_empty() {
            let handed = HandedOver {
                from: request.by.to_owned(),
                pictures: request.pictures.to_vec(),
            };
            self.services.store.hand_over(&opened.task, &handed).await?;
        }
        // A run takes the label off when it begins: put on again, it would start another one.
        let has_begun = request.is_repeated && !self.services.store.runs(Some(&opened.task), 1).await?.is_empty();
        if !has_begun {
            connected
                .forge
                .add_label(&opened.task, &connected.labels.trigger)
                .await?;
        }
        let fact = Fact::Ordered {
            by: request.by.to_owned(),
            command: "start".to_owned(),
        };
        let subject = Subject {
            task: Some(opened.task.clone()),
            run: None,
        };
        self.services.journal.record(&subject, fact);
        self.bell.ring();
        Ok(opened)
    }

    /// Returns the forge of a repository such as `github:owner/repo`, if the configuration has it
    /// worked on.
    pub fn forge_of(&self, repository: &str) -> Option<&Connected> {
        let (host, path) = repository.split_once(':')?;
        let mut forges = self.forges.all();
        let connected = forges.find(|connected| connected.forge.name().as_str() == host)?;
        connected.forge.works_on(path).then_some(connected)
    }

    /// Returns the names by which people call the configured forge `host`, and those of all others.
    pub fn names_of_forges(&self, host: &str) -> (Vec<String>, Vec<String>) {
        let all = self.forges.all();
        let (own, others): (Vec<_>, Vec<_>) = all.partition(|connected| connected.forge.name().as_str() == host);
        let names = |forges: Vec<&Connected>| forges.into_iter().flat_map(Connected::names).collect();
        (names(own), names(others))
    }

    /// Tells whether an account may have the program work on a repository, as its forge says at
    /// this moment.
    pub async fn may_ask_for(&self, repository: &str, login: &str) -> Result<bool, NotOpened> {
        let not_configured = || NotOpened::NotConfigured(repository.to_owned());
        let connected = self.forge_of(repository).ok_or_else(not_configured)?;
        // Rights are those of the repository; which of its items is named does not matter.
        let task: TaskId = format!("{repository}#1").parse().map_err(|_| not_configured())?;
        let account = Account { login, id: None };
        Ok(connected.forge.is_authorised(&task, account).await?)
    }

    /// Returns the model that whoever asked for the work named for it.
    pub(super) async fn model_for(&self, task: &TaskId) -> Result<Option<String>, StoreError> {
        self.services.store.noted_once(&named_for(task)).await
    }

    /// Tells whether the program opened the item for somebody who asked for it.
    pub(super) async fn has_opened(&self, task: &TaskId) -> Result<bool, StoreError> {
        Ok(self.services.store.noted_once(&opened_for(task)).await?.is_some())
    }

    /// Forgets who asked for these tasks, by which keys, and which models were named for them.
    pub(super) async fn forget_requests(&self, tasks: &[TaskId]) -> Result<(), StoreError> {
        let store = &self.services.store;
        for task in tasks {
            store.not_yet(&opened_for(task)).await?;
            store.not_yet(&named_for(task)).await?;
            store.erase_once_with(OPENED_BY_KEY, &task.to_string()).await?;
        }
        Ok(())
    }
}

/// Returns the name under which the store has what was opened for a key.
pub fn opened_by(key: Uuid) -> String {
    format!("{OPENED_BY_KEY}{key}")
}

/// Returns the key under which the store has for whom an item was opened.
fn opened_for(task: &TaskId) -> String {
    format!("opened {task}")
}

/// Returns the key under which the store has the model that was named for an item.
fn named_for(task: &TaskId) -> String {
    format!("model for {task}")
}
