//! Calls of a client: the tools, their arguments, and the project that evidence is checked against.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use rmcp::ErrorData;
use rmcp::model::{JsonObject, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::review::evidence::{LARGEST_FILE, MOST_BYTES};
use crate::review::score::Score;

use super::answer::{Evaluation, Evaluations};

pub(super) const EVALUATE_DOCUMENT: &str = "evaluate_document";
pub(super) const EVALUATE_DOCUMENTS: &str = "evaluate_documents";

/// Most documents of one call.
const MOST_DOCUMENTS: usize = 20;

/// Arguments of `evaluate_document`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OneDocument {
    /// The document.
    content: String,
    /// Folder of the project that the document is about. Places that the reviewer names are looked
    /// up there, and blockers without such evidence do not count.
    project_path: Option<PathBuf>,
    /// The least score, from 0 to 10, with which the document passes.
    target_score: Option<Score>,
}

/// Arguments of `evaluate_documents`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SeveralDocuments {
    /// The documents, each evaluated by itself.
    documents: Vec<Document>,
    /// As in `evaluate_document`, for all of them.
    project_path: Option<PathBuf>,
    /// As in `evaluate_document`, for all of them.
    target_score: Option<Score>,
}

/// A document of several.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    /// A name for it in the answer.
    pub(super) name: Option<String>,
    pub(super) content: String,
}

/// The content of a call.
pub(super) struct EvaluationRequest {
    pub(super) documents: Vec<Document>,
    pub(super) is_one: bool,
    pub(super) project: Option<Arc<Dir>>,
    pub(super) target_score: Option<Score>,
}

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            EVALUATE_DOCUMENT,
            "Have a plan or another document reviewed: is it ready to be carried out, with which score, and what stands in the way?",
            schema::<OneDocument>(),
        )
        .with_raw_output_schema(schema::<Evaluation>()),
        Tool::new(
            EVALUATE_DOCUMENTS,
            "Have several documents reviewed, one after the other. One without a review has the reason in `error`.",
            schema::<SeveralDocuments>(),
        )
        .with_raw_output_schema(schema::<Evaluations>()),
    ]
}

pub(super) fn schema<T: JsonSchema>() -> Arc<JsonObject> {
    match schemars::schema_for!(T).to_value() {
        Value::Object(schema) => Arc::new(schema),
        _ => Arc::default(),
    }
}

/// Reads the arguments of `evaluate_document`.
pub(super) fn one(arguments: JsonObject) -> Result<EvaluationRequest, ErrorData> {
    let asked: OneDocument = read(arguments)?;
    let document = Document {
        name: None,
        content: asked.content,
    };
    checked(vec![document], true, asked.project_path, asked.target_score)
}

/// Reads the arguments of `evaluate_documents`.
pub(super) fn several(arguments: JsonObject) -> Result<EvaluationRequest, ErrorData> {
    let asked: SeveralDocuments = read(arguments)?;
    checked(asked.documents, false, asked.project_path, asked.target_score)
}

pub(super) fn read<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, ErrorData> {
    let read = serde_path_to_error::deserialize(Value::Object(arguments));
    read.map_err(|error| ErrorData::invalid_params(format!("the arguments cannot be used: {error}"), None))
}

fn checked(
    documents: Vec<Document>,
    is_one: bool,
    project_path: Option<PathBuf>,
    target_score: Option<Score>,
) -> Result<EvaluationRequest, ErrorData> {
    let refused = |what: String| Err(ErrorData::invalid_params(what, None));
    if documents.is_empty() || documents.len() > MOST_DOCUMENTS {
        return refused(format!("there must be 1 to {MOST_DOCUMENTS} documents"));
    }
    if documents.iter().any(|document| document.content.trim().is_empty()) {
        return refused("a document is empty".to_owned());
    }
    let project = match project_path {
        None => None,
        Some(path) => match Dir::open_ambient_dir(&path, ambient_authority()) {
            Ok(folder) => Some(Arc::new(folder)),
            Err(error) => return refused(format!("project_path {} cannot be opened: {error}", path.display())),
        },
    };
    Ok(EvaluationRequest {
        documents,
        is_one,
        project,
        target_score,
    })
}

/// Returns the text of each of `paths` that is a file below the project.
pub(super) async fn files(project: Arc<Dir>, paths: BTreeSet<String>) -> BTreeMap<String, String> {
    let read = tokio::task::spawn_blocking(move || {
        let mut room = MOST_BYTES;
        let read = paths.into_iter().filter_map(|path| {
            let file = project.open(&path).ok()?;
            // Nothing is read that could wait for a writer.
            file.metadata().ok().filter(cap_std::fs::Metadata::is_file)?;
            let mut bytes = Vec::new();
            room -= file.take(LARGEST_FILE.min(room)).read_to_end(&mut bytes).ok()? as u64;
            Some((path, String::from_utf8_lossy(&bytes).into_owned()))
        });
        read.collect()
    });
    read.await.unwrap_or_default()
}
