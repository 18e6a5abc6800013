//! The places that a search finds, for people and for scripts.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::cli::arguments::Search;
use crate::config::Config;
use crate::index::{Reranker, Wanted};
use crate::llm::models::Models;
use crate::secret::Redactor;
use crate::workspace::tools::code_search;

/// Lines of a place that people are shown.
const LINES: usize = 6;

/// Searches, and returns what is printed.
pub(super) async fn told(config: &Config, asked: &Search) -> Result<String, String> {
    let root = asked.root.clone().unwrap_or_else(|| ".".into());
    let opened = super::open(config, &root).await?.reordered_by(reranker(config)?);
    let redactor = Redactor::new(&config.secrets());
    let wanted = Wanted {
        question: &asked.query,
        top_k: asked.top_k,
        path_prefix: asked.path_prefix.as_deref().unwrap_or_default(),
        takes: &|_| true,
        redactor: &redactor,
    };
    let hits = opened.search(&wanted).await.map_err(|error| error.to_string())?;
    if asked.json {
        return Ok(serde_json::json!({ "chunks": hits }).to_string());
    }
    if hits.is_empty() {
        return Ok("no place has these words".to_owned());
    }
    Ok(hits.iter().fold(String::new(), |mut text, hit| {
        let _ = writeln!(text, "{:.3} {}", hit.score, code_search::shown(hit, LINES));
        text
    }))
}

/// Returns the model that reorders places by their meaning, if one is configured.
pub(in crate::cli) fn reranker(config: &Config) -> Result<Option<Reranker>, String> {
    if config.index.embedder().is_none() {
        return Ok(None);
    }
    let models = Models::new(&config.llm).map_err(|error| error.to_string())?;
    Ok(models.embedder(None).map(|model| Reranker {
        model,
        redactor: Arc::new(Redactor::new(&config.secrets())),
    }))
}
