//! The tools of the code index: the places of a folder that fit a question best, and which paths
//! are in the index or left out of it, for other programs.

use std::path::{Path, PathBuf};

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, JsonObject, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer;
use super::arguments::{read, schema};
use crate::index::{self, FolderIndex, Hit, IndexError, Ingest, Ingested, NotDone, Pruned, Reranker, Wanted};
use crate::plain::{agreeing, counted};
use crate::repository;
use crate::secret::Redactor;

pub(super) const SEARCH_CODE: &str = "search_code";
pub(super) const INGEST_CODE: &str = "ingest_code";
pub(super) const PRUNE_CODE: &str = "prune_code";

/// The settings for searching folders.
pub struct Folders {
    pub index: index::Config,
    /// The model that reorders places by their meaning, if one is configured.
    pub reranker: Option<Reranker>,
    pub repository: repository::Config,
    pub state_dir: PathBuf,
}

/// Arguments of `search_code`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchCode {
    /// Words, names, or the whole question.
    query: String,
    /// The folder that is searched, as it lies there; the current one of the server when left out.
    project_path: Option<PathBuf>,
    /// Number of places; 8 when left out, at most 50.
    top_k: Option<usize>,
    /// Only files whose paths begin with this.
    path_prefix: Option<String>,
    /// The same, as the HTTP API has it.
    #[serde(default)]
    filters: Filters,
}

/// Filters that narrow a search.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Filters {
    /// Only files whose paths begin with this.
    path_prefix: String,
}

/// Arguments of `ingest_code`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct IngestCode {
    /// The folder; the current one of the server when left out.
    project_path: Option<PathBuf>,
    /// Files, and folders with all that is in them.
    #[serde(default)]
    paths: Vec<String>,
    /// The files that changed, instead of `paths` or in addition to them.
    diff: Option<index::Diff>,
}

/// Arguments of `prune_code`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PruneCode {
    /// The folder; the current one of the server when left out.
    project_path: Option<PathBuf>,
    /// Files, and folders with all that is in them.
    paths: Vec<String>,
}

/// The places, best first.
#[derive(Debug, Serialize)]
struct Chunks {
    chunks: Vec<Hit>,
}

pub(super) fn tools() -> [Tool; 3] {
    [
        Tool::new(
            SEARCH_CODE,
            "Find the functions, classes and sections of a project that fit a question best, with path and lines.",
            schema::<SearchCode>(),
        ),
        Tool::new(
            INGEST_CODE,
            "Bring files of a project into its code index now, also ones that were left out, and say what is known of them.",
            schema::<IngestCode>(),
        )
        .with_raw_output_schema(schema::<Ingested>()),
        Tool::new(
            PRUNE_CODE,
            "Leave files and folders of a project out of every search, until they are brought in again.",
            schema::<PruneCode>(),
        )
        .with_raw_output_schema(schema::<Pruned>()),
    ]
}

impl Folders {
    /// Answers a call of one of the tools.
    pub(super) async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        redactor: &Redactor,
    ) -> Result<CallToolResult, ErrorData> {
        match tool {
            SEARCH_CODE => self.search(arguments, redactor).await,
            INGEST_CODE => self.ingest(arguments, redactor).await,
            _ => self.prune(arguments, redactor).await,
        }
    }

    async fn search(&self, arguments: JsonObject, redactor: &Redactor) -> Result<CallToolResult, ErrorData> {
        let asked: SearchCode = read(arguments)?;
        index::check_query(&asked.query).map_err(|reason| ErrorData::invalid_params(reason, None))?;
        let opened = self.open(asked.project_path.as_deref()).await?;
        let opened = opened.reordered_by(self.reranker.clone());
        let wanted = Wanted {
            question: &asked.query,
            top_k: index::places(asked.top_k),
            path_prefix: asked.path_prefix.as_deref().unwrap_or(&asked.filters.path_prefix),
            takes: &|_| true,
            redactor,
        };
        let chunks = opened.search(&wanted).await.map_err(broken)?;
        let text: Vec<String> = chunks
            .iter()
            .map(|hit| format!("{}#{} {} {}\n{}", hit.path, hit.span, hit.kind, hit.name, hit.text))
            .collect();
        Ok(answer::result(&Chunks { chunks }, &text.join("\n"), redactor))
    }

    async fn ingest(&self, arguments: JsonObject, redactor: &Redactor) -> Result<CallToolResult, ErrorData> {
        let asked: IngestCode = read(arguments)?;
        let opened = self.open(asked.project_path.as_deref()).await?;
        let wanted = Ingest {
            paths: asked.paths,
            diff: asked.diff,
        };
        let ingested = opened.ingest(&wanted).await.map_err(not_done)?;
        let text = format!(
            "{} {} in the index, {} {} parsed, {} {} not there",
            counted(ingested.files.len(), "file"),
            agreeing(ingested.files.len(), "is", "are"),
            ingested.parsed,
            agreeing(ingested.parsed, "was", "were"),
            ingested.gone.len(),
            agreeing(ingested.gone.len(), "is", "are")
        );
        Ok(answer::result(&ingested, &text, redactor))
    }

    async fn prune(&self, arguments: JsonObject, redactor: &Redactor) -> Result<CallToolResult, ErrorData> {
        let asked: PruneCode = read(arguments)?;
        let opened = self.open(asked.project_path.as_deref()).await?;
        let pruned = opened.prune(&asked.paths).await.map_err(not_done)?;
        let text = format!(
            "{} {} left out of every search",
            counted(pruned.files, "file"),
            agreeing(pruned.files, "is", "are")
        );
        Ok(answer::result(&pruned, &text, redactor))
    }

    async fn open(&self, folder: Option<&Path>) -> Result<FolderIndex, ErrorData> {
        let folder = folder.unwrap_or(Path::new("."));
        let opened = FolderIndex::open(&self.index, &self.repository, &self.state_dir, folder).await;
        opened.map_err(broken)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what map_err gives")]
fn broken(error: IndexError) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}

fn not_done(error: NotDone) -> ErrorData {
    match error {
        NotDone::Unfit(reason) => ErrorData::invalid_params(reason, None),
        NotDone::Index(error) => broken(error),
    }
}
