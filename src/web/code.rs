//! The code index of the repositories that are worked on, for scripts: places for a question, paths
//! that are taken in or left out.
//!
//! Nothing is fetched: what the last run fetched is searched. The answers show code, so only users
//! who may act get them; the gate refuses every POST of others.

use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Web;
use super::problem::Problem;
use crate::index::{self, Diff, Filled, Hit, Index, IndexError, Ingest, Ingested, NotDone, Pruned, Wanted};
use crate::repository::mirror::Mirror;
use crate::repository::{CommitId, RepositoryError};

/// A question about a repository.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchCode {
    /// Such as `github:owner/repo` or `gitlab:group/project`.
    repository: String,
    /// The branch; if left out, the main branch, else the one that changed last.
    #[serde(default)]
    branch: Option<String>,
    /// Words, names, or the whole question.
    query: String,
    /// Number of places; 8 when left out, at most 50.
    #[serde(default)]
    top_k: Option<usize>,
    #[serde(default)]
    filters: Filters,
}

/// Filters that narrow a search.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Filters {
    /// Only files whose paths begin with this.
    path_prefix: String,
}

/// The places, best first.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(super) struct Chunks {
    chunks: Vec<Hit>,
}

/// Paths of a repository that are to be taken in.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct IngestCode {
    /// Such as `github:owner/repo` or `gitlab:group/project`.
    repository: String,
    /// The branch; if left out, the main branch, else the one that changed last.
    #[serde(default)]
    branch: Option<String>,
    /// Files, and folders with all that is in them.
    #[serde(default)]
    paths: Vec<String>,
    /// The files that changed, instead of `paths` or in addition to them.
    #[serde(default)]
    diff: Option<Diff>,
}

/// Paths of a repository that are to be left out.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PruneCode {
    /// Such as `github:owner/repo` or `gitlab:group/project`.
    repository: String,
    /// Files, and folders with all that is in them.
    paths: Vec<String>,
}

impl Web {
    pub(super) async fn search_code(&self, asked: SearchCode) -> Result<Chunks, Problem> {
        index::check_query(&asked.query).map_err(Problem::bad_request)?;
        let _one_at_a_time = self.indexing.lock().await;
        let (index, commit, _) = self.indexed(&asked.repository, asked.branch.as_deref()).await?;
        let index = index.reordered_by(self.service.reranker());
        let wanted = Wanted {
            question: &asked.query,
            top_k: index::places(asked.top_k),
            path_prefix: &asked.filters.path_prefix,
            takes: &|_| true,
            redactor: self.service.redactor(),
        };
        let chunks = index.search(&commit, &wanted).await.map_err(|error| unusable(&error))?;
        index.close().await;
        Ok(Chunks { chunks })
    }

    pub(super) async fn ingest_code(&self, asked: IngestCode) -> Result<Ingested, Problem> {
        let _one_at_a_time = self.indexing.lock().await;
        let (index, commit, filled) = self.indexed(&asked.repository, asked.branch.as_deref()).await?;
        let wanted = Ingest {
            paths: asked.paths,
            diff: asked.diff,
        };
        let ingested = index.ingest(&commit, filled, &wanted).await.map_err(not_done)?;
        index.close().await;
        Ok(ingested)
    }

    pub(super) async fn prune_code(&self, asked: PruneCode) -> Result<Pruned, Problem> {
        let _one_at_a_time = self.indexing.lock().await;
        let (index, commit, _) = self.indexed(&asked.repository, None).await?;
        let pruned = index.prune(&commit, &asked.paths).await.map_err(not_done)?;
        index.close().await;
        Ok(pruned)
    }

    /// Returns the index of a repository, brought up to what was fetched of a branch last.
    async fn indexed(&self, repository: &str, branch: Option<&str>) -> Result<(Index, CommitId, Filled), Problem> {
        let config = self.service.config();
        if !self.service.works_on(repository) {
            let detail =
                "`repository` is not among those that the configuration names; write it like github:owner/repo";
            return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail));
        }
        if !config.index.enabled {
            let detail = "there is no code index: `index.enabled` is off in the configuration";
            return Err(Problem::new(StatusCode::CONFLICT, detail));
        }
        let name = repository.split_once(':').map_or(repository, |(_, name)| name);
        let mut mirrors = Mirror::all(&config.git, &config.state_dir);
        mirrors.retain(|mirror| mirror.is_called(name));
        let [mirror] = &mirrors[..] else {
            let detail = match mirrors.len() {
                0 => "nothing of this repository is here yet: the first task on it fetches it",
                _ => "several forges have a repository of this name, and their copies cannot be told apart here",
            };
            return Err(Problem::not_found(detail));
        };
        let unreadable = |error: RepositoryError| unusable(&error.into());
        let commit = match branch {
            Some(branch) => mirror.branch(branch).await.map_err(unreadable)?,
            None => mirror.main_commit().await.map_err(unreadable)?,
        };
        let commit = commit.ok_or_else(|| Problem::not_found("there is no such branch in what was fetched last"))?;
        let opened = Index::open_at(&config.index, mirror, &commit).await;
        let (index, filled) = opened.map_err(|error| unusable(&error))?;
        Ok((index, commit, filled))
    }
}

/// The index cannot be used: the reason is in the log, since it names files of the machine.
fn unusable(error: &IndexError) -> Problem {
    tracing::warn!("the code index could not be used: {error}");
    let detail = "the code index cannot be used now; the log of the program says why";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
}

fn not_done(error: NotDone) -> Problem {
    match error {
        NotDone::Unfit(reason) => Problem::bad_request(reason),
        NotDone::Index(error) => unusable(&error),
    }
}
