//! The configured forges.

use std::sync::Arc;

use crate::agent::thread::Thread;
use crate::config::{Config, TaskSource};
use crate::forge::github::GitHub;
use crate::forge::gitlab::GitLab;
use crate::forge::{Forge, ForgeError};
use crate::task::id::TaskId;
use crate::task::labels::Labels;

/// A forge and the names of its labels.
#[derive(Clone)]
pub struct Connected {
    pub forge: Arc<dyn Forge>,
    pub labels: Labels,
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
                    forges.github = Some(Connected {
                        forge,
                        labels: config.github.labels.clone(),
                    });
                }
                TaskSource::Gitlab => {
                    let forge = Arc::new(GitLab::connect(&config.gitlab).await?);
                    forges.gitlab = Some(Connected {
                        forge,
                        labels: config.gitlab.labels.clone(),
                    });
                }
            }
        }
        Ok(forges)
    }

    pub fn all(&self) -> impl Iterator<Item = &Connected> {
        self.github.iter().chain(&self.gitlab)
    }

    /// Returns where a task's people are told, or `None` where its forge is not configured any more.
    pub fn thread(&self, task: &TaskId) -> Option<Thread> {
        let connected = match task {
            TaskId::GitHub { .. } => self.github.clone(),
            TaskId::GitLabIssue { .. } | TaskId::GitLabMergeRequest { .. } => self.gitlab.clone(),
            TaskId::Local { .. } => None,
        };
        connected.map(|Connected { forge, labels }| Thread::Item { forge, labels })
    }
}
