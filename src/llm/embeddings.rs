//! Texts as vectors, by a server that speaks the protocol of OpenAI's embeddings.
//!
//! An answer counts only if it has one vector for each text, all of one length and of finite
//! numbers: servers differ in what they do with a text that is too long, and a vector at the wrong
//! place would be a place at the wrong rank.

use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::llm::connection::Connection;
use crate::llm::error::LlmError;
use crate::llm::model::Model;
use crate::secret::Clean;
use crate::secret::personal::masked;

#[derive(Deserialize)]
struct Answer {
    data: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    index: usize,
    embedding: Vec<f32>,
}

impl Model {
    /// Returns the vector of each text, in their order.
    pub async fn embed(&self, texts: &[Clean]) -> Result<Vec<Vec<f32>>, LlmError> {
        embedded(self.connection(), texts).await
    }
}

async fn embedded(connection: &Connection, texts: &[Clean]) -> Result<Vec<Vec<f32>>, LlmError> {
    let info = connection.provider.info();
    let Some(url) = connection.provider.embeddings_url() else {
        return Err(LlmError::Refused {
            what: format!("{} has no embeddings", info.name),
            hint: "name a model of the provider openai, ollama or lmstudio in index.embeddings".to_owned(),
        });
    };
    let texts: Vec<String> = texts
        .iter()
        .map(|text| {
            if connection.masks_personal_data {
                masked(text.as_str())
            } else {
                text.as_str().to_owned()
            }
        })
        .collect();
    let body = json!({ "model": info.model, "input": texts, "encoding_format": "float" });
    let _slot = connection.limit.slot(&CancellationToken::new()).await?;
    let answer = connection.transport.ask_patiently(info, &url, &body).await?;
    read(answer, texts.len()).map_err(|reason| LlmError::Unreachable {
        address: info.address.clone(),
        reason: reason.into(),
        is_away: false,
    })
}

fn read(answer: Value, count: usize) -> Result<Vec<Vec<f32>>, String> {
    let answer: Answer =
        serde_json::from_value(answer).map_err(|error| format!("its answer has no embeddings: {error}"))?;
    let mut vectors: Vec<Vec<f32>> = vec![Vec::new(); count];
    for Entry { index, embedding } in answer.data {
        let place = vectors
            .get_mut(index)
            .ok_or("its answer has a vector for a text that was not sent")?;
        *place = embedding;
    }
    let length = vectors.first().map_or(0, Vec::len);
    let is_fit = |vector: &Vec<f32>| {
        !vector.is_empty() && vector.len() == length && vector.iter().all(|number| number.is_finite())
    };
    if vectors.iter().all(is_fit) {
        Ok(vectors)
    } else {
        Err(format!("its answer has no vectors of one length for {count} texts"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::read;

    #[test]
    fn an_answer_counts_with_a_vector_for_each_text() {
        let of = |data| read(json!({ "data": data }), 2);
        let one = json!({"index": 0, "embedding": [1.0, 0.5]});
        let other = json!({"index": 1, "embedding": [0.0, 2.0]});
        // Servers may answer in another order.
        assert_eq!(of(json!([other, one])), Ok(vec![vec![1.0, 0.5], vec![0.0, 2.0]]));
        for data in [
            json!([one]),
            json!([one, {"index": 1, "embedding": [1.0]}]),
            json!([one, {"index": 1, "embedding": []}]),
            json!([one, {"index": 2, "embedding": [1.0, 1.0]}]),
            json!([one, {"index": 1, "embedding": [1e39, 1.0]}]),
            json!("none"),
        ] {
            assert!(of(data.clone()).is_err(), "{data}");
        }
    }
}
