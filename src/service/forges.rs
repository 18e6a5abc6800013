//! The configured forges.

use std::sync::Arc;

use crate::agent::reporter::destination::Thread;
use crate::config::{Config, TaskSource};
use crate::forge::github::GitHub;
use crate::forge::gitlab::GitLab;
use crate::forge::{Forge, ForgeError};
use crate::store::Store;
use crate::task::id::TaskId;
use crate::task::labels::Labels;

/// A forge and the names of its labels.
#[derive(Clone)]
pub struct Connected {
    pub forge: Arc<dyn Forge>,
    pub labels: Labels,
    /// Where the store keeps what the next process should know of the forge's answers.
    memory: String,
}

impl Connected {
    fn new(forge: Arc<dyn Forge>, labels: &Labels, api_url: &str) -> Self {
        Self {
            forge,
            labels: labels.clone(),
            memory: format!("answers of {api_url}"),
        }
    }

    /// Tells the forge's client what an earlier process left. Without it everything is asked for in
    /// full, as the first time.
    pub async fn recall(&self, store: &Store) {
        let left = match store.remembered(&self.memory).await {
            Ok(Some(text)) => serde_json::from_str(&text).map_err(|error| error.to_string()),
            Ok(None) => return,
            Err(error) => Err(error.to_string()),
        };
        match left {
            Ok(answers) => self.forge.recall(answers),
            Err(error) => tracing::warn!("the {} could not be read: {error}", self.memory),
        }
    }

    /// Leaves what the forge's client knows to the next process.
    pub async fn remember(&self, store: &Store) {
        let Some(answers) = self.forge.news() else { return };
        let written = match serde_json::to_string(&answers) {
            Ok(text) => store
                .remember(&self.memory, &text)
                .await
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(error) = written {
            tracing::warn!("the {} could not be kept: {error}", self.memory);
        }
    }
}

/// The forges that `task_sources` names.
pub struct Forges {
    github: Option<Connected>,
    gitlab: Option<Connected>,
}

impl Forges {
    pub async fn connect(config: &Config) -> Result<Self, ForgeError> {
        let mut forges = Self {
            github: None,
            gitlab: None,
        };
        for source in &config.task_sources {
            match source {
                TaskSource::Github => {
                    let forge = Arc::new(GitHub::connect(&config.github).await?);
                    let section = &config.github;
                    forges.github = Some(Connected::new(forge, &section.labels, &section.api_url));
                }
                TaskSource::Gitlab => {
                    let forge = Arc::new(GitLab::connect(&config.gitlab).await?);
                    let section = &config.gitlab;
                    forges.gitlab = Some(Connected::new(forge, &section.labels, &section.api_url));
                }
            }
        }
        Ok(forges)
    }

    pub fn all(&self) -> impl Iterator<Item = &Connected> {
        self.github.iter().chain(&self.gitlab)
    }

    /// Returns the forge of a task, if it is configured.
    pub fn of(&self, task: &TaskId) -> Option<&Connected> {
        match task {
            TaskId::GitHub { .. } => self.github.as_ref(),
            TaskId::GitLabIssue { .. } | TaskId::GitLabMergeRequest { .. } => self.gitlab.as_ref(),
            TaskId::Local { .. } => None,
        }
    }

    /// Returns where a task's people are told, or `None` where its forge is not configured any
    /// more.
    pub fn thread(&self, task: &TaskId) -> Option<Thread> {
        let Connected { forge, labels, .. } = self.of(task)?.clone();
        Some(Thread::Item { forge, labels })
    }
}
