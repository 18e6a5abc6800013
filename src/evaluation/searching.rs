//! The tool `search_code`: the places of a folder that fit a question best, for other programs.

use std::path::PathBuf;

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, JsonObject, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::answer;
use super::arguments::{read, schema};
use crate::index::{self, FolderIndex, Hit, IndexError, Wanted};
use crate::repository;
use crate::secret::Redactor;

pub(super) const SEARCH_CODE: &str = "search_code";

/// Places of an answer that names no number, and of any.
const PLACES: usize = 8;
const MOST_PLACES: usize = 50;

/// What is needed to search folders.
pub struct Folders {
    pub index: index::Config,
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
    /// Number of places; 8 when left out.
    top_k: Option<usize>,
    /// Only files whose paths begin so.
    path_prefix: Option<String>,
}

/// The places, best first.
#[derive(Debug, Serialize)]
struct Chunks {
    chunks: Vec<Hit>,
}

pub(super) fn tool() -> Tool {
    Tool::new(
        SEARCH_CODE,
        "Find the functions, classes and sections of a project that fit a question best, with path and lines.",
        schema::<SearchCode>(),
    )
}

impl Folders {
    pub(super) async fn search(&self, arguments: JsonObject, redactor: &Redactor) -> Result<CallToolResult, ErrorData> {
        let asked: SearchCode = read(arguments)?;
        let chunks = self.found(&asked).await;
        let chunks = chunks.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let text: Vec<String> = chunks
            .iter()
            .map(|hit| format!("{}#{} {} {}\n{}", hit.path, hit.span, hit.kind, hit.name, hit.text))
            .collect();
        Ok(answer::result(&Chunks { chunks }, &text.join("\n"), redactor))
    }

    async fn found(&self, asked: &SearchCode) -> Result<Vec<Hit>, IndexError> {
        let folder = asked.project_path.clone().unwrap_or_else(|| ".".into());
        let opened = FolderIndex::open(&self.index, &self.repository, &self.state_dir, &folder).await?;
        let wanted = Wanted {
            question: &asked.query,
            top_k: asked.top_k.unwrap_or(PLACES).clamp(1, MOST_PLACES),
            path_prefix: asked.path_prefix.as_deref().unwrap_or_default(),
            takes: &|_| true,
        };
        opened.index.search(&opened.commit, &wanted).await
    }
}
