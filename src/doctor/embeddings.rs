//! The model that reorders places of the code index.

use crate::finding::Finding;
use crate::llm::models::Models;
use crate::secret::Redactor;

/// Asks it for a vector, if it is configured. Runs go on without it.
pub(super) async fn examine(models: &Models) -> Option<Finding> {
    let model = models.embedder(None)?;
    let subject = format!("model {} (embeddings)", model.name());
    let text = Redactor::default().clean("def close(pool): pool.close()");
    Some(match model.embed(&[text]).await {
        Ok(vectors) => {
            let length = vectors.first().map_or(0, Vec::len);
            Finding::good(
                subject,
                format!("{} gives vectors of {length} numbers", model.describe()),
            )
        }
        Err(error) => Finding::doubtful(
            subject,
            error,
            "places are found by words alone until it answers; mend it, or write `embeddings: none` in the section index",
        ),
    })
}
