//! Puts the best places by words in another order, by the meaning that a model of embeddings sees
//! in them.
//!
//! It only reorders: a place that the words did not find is not found, and where the model does not
//! answer the order of the words stays. So a server that is away costs an answer nothing but time.

use std::sync::Arc;

use super::Hit;
use crate::llm::error::LlmError;
use crate::llm::model::Model;
use crate::secret::{Clean, Redactor};

/// Places that are reordered.
pub(super) const MOST: usize = 50;
/// Weight of the meaning, where the words of the best place weigh 1.
const OF_MEANING: f64 = 0.5;
/// Most characters of a question and of a place that the model gets: those of small models end
/// at 512 tokens.
const LONGEST_QUESTION: usize = 2_000;
const LONGEST_PLACE: usize = 1_500;

/// A model of embeddings, which sees what the redactor leaves.
#[derive(Clone)]
pub struct Reranker {
    pub model: Model,
    pub redactor: Arc<Redactor>,
}

impl std::fmt::Debug for Reranker {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Reranker").field(&self.model.name()).finish()
    }
}

impl Reranker {
    /// Returns the places in their new order, or in the old one where the model does not answer.
    pub(super) async fn reordered(&self, question: &str, hits: Vec<Hit>) -> Vec<Hit> {
        match self.meanings(question, &hits).await {
            Ok(meanings) => joined(hits, &meanings),
            Err(error) => {
                tracing::warn!("places were not reordered by their meaning: {error}");
                hits
            }
        }
    }

    /// Returns how near each of the first places is to the question.
    async fn meanings(&self, question: &str, hits: &[Hit]) -> Result<Vec<f64>, LlmError> {
        let places = hits.iter().take(MOST).map(|hit| {
            let place = format!("{} {}\n{}", hit.path, hit.name, hit.text);
            self.clean_cut(&place, LONGEST_PLACE)
        });
        let question = self.clean_cut(question, LONGEST_QUESTION);
        let texts: Vec<_> = std::iter::once(question).chain(places).collect();
        let vectors = self.model.embed(&texts).await?;
        let Some((question, places)) = vectors.split_first() else {
            return Ok(Vec::new());
        };
        Ok(places.iter().map(|place| cosine(question, place)).collect())
    }

    /// Returns the beginning of a text without secrets. It is cleaned before it is cut: nobody
    /// recognises the half of a secret that a cut leaves.
    fn clean_cut(&self, text: &str, most: usize) -> Clean {
        let clean = self.redactor.clean(text).into_string();
        self.redactor.clean(&clean.chars().take(most).collect::<String>())
    }
}

/// Returns the places by the sum of both scores, each measured by its best; places without a
/// meaning stay behind those that have one.
fn joined(mut hits: Vec<Hit>, meanings: &[f64]) -> Vec<Hit> {
    let rest = hits.split_off(meanings.len().min(hits.len()));
    let best = hits.iter().map(|hit| hit.score).fold(f64::MIN_POSITIVE, f64::max);
    let (least, most) = meanings.iter().fold((f64::MAX, f64::MIN), |(least, most), one| {
        (least.min(*one), most.max(*one))
    });
    let width = (most - least).max(f64::MIN_POSITIVE);
    for (hit, meaning) in hits.iter_mut().zip(meanings) {
        let score = hit.score / best + OF_MEANING * (meaning - least) / width;
        hit.score = (score * 1_000.0).round() / 1_000.0;
    }
    hits.sort_by(|one, other| other.score.total_cmp(&one.score));
    hits.extend(rest);
    hits
}

fn cosine(one: &[f32], other: &[f32]) -> f64 {
    let dot = |one: &[f32], other: &[f32]| -> f64 {
        let products = one
            .iter()
            .zip(other)
            .map(|(one, other)| f64::from(*one) * f64::from(*other));
        products.sum()
    };
    dot(one, other) / (dot(one, one) * dot(other, other)).sqrt().max(f64::MIN_POSITIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meaning_reorders_and_neither_adds_nor_drops_a_place() {
        let hit = |path: &str, score: f64| Hit {
            path: path.to_owned(),
            span: "L1-L1".to_owned(),
            first: 1,
            last: 1,
            name: String::new(),
            kind: "lines".to_owned(),
            score,
            text: String::new(),
        };
        let hits = vec![hit("a", 2.0), hit("b", 1.9), hit("c", 0.2), hit("d", 0.1)];
        let order = |meanings: &[f64]| {
            let joined = joined(hits.clone(), meanings).into_iter();
            joined.map(|hit| hit.path).collect::<String>()
        };
        assert_eq!(order(&[0.1, 0.9, 0.8]), "bacd");
        assert_eq!(order(&[0.5, 0.5, 0.5]), "abcd");
        assert_eq!(order(&[]), "abcd");
        assert!((cosine(&[1.0, 1.0], &[2.0, 2.0]) - 1.0).abs() < 1e-6);
        assert!(cosine(&[0.0, 0.0], &[1.0, 0.0]).abs() < 1e-6);
    }
}
