//! Keeps what was evaluated and how it ended, for `coding-agent evaluations`, notes both in the
//! journal, and counts what the reviewer used.
//!
//! The store is open only while something is written: each process that has it open counts as one
//! that works on runs. An evaluation never fails because it cannot be recorded.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rmcp::ErrorData;
use serde_json::{Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use super::answer::{Evaluation, cleaned};
use super::arguments::EvaluationRequest;
use super::stored::LONGEST_ANSWERS;
use crate::agent::record::budget::PerDay;
use crate::agent::record::usage::ModelCall;
use crate::approval::digest::Digest;
use crate::journal::fact::evaluation::{Ended, Failed, Started};
use crate::journal::fact::{Fact, Subject};
use crate::journal::{Journal, LogConfig};
use crate::llm::config::role::Role;
use crate::review::score::Score;
use crate::reviewer::Call;
use crate::secret::Redactor;
use crate::store::{Address, Store, StoreError};

/// Longest time that writing may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Most characters of a document that is named by its first line.
const LONGEST_NAME: usize = 80;

/// The places where an installation keeps evaluations and what they used.
pub struct Records {
    pub store: Address,
    pub logs: LogConfig,
    /// The limits of a day, for which evaluations count.
    pub per_day: PerDay,
}

/// The evaluations of an installation.
pub(super) struct History {
    pub(super) records: Records,
    pub(super) redactor: Arc<Redactor>,
}

/// An evaluation under way.
pub(super) struct Entry {
    id: Uuid,
    begun: Instant,
    document: Value,
}

impl Entry {
    /// Returns a text that is known of the document.
    fn text(&self, key: &str) -> String {
        self.document[key].as_str().unwrap_or_default().to_owned()
    }
}

impl History {
    /// Records that one of the documents of a call is being evaluated, and how long the answers may
    /// take that it needs.
    pub(super) async fn begin(
        &self,
        asked: &EvaluationRequest,
        number: usize,
        target_score: Score,
        longest_answers: Duration,
    ) -> Entry {
        let document = &asked.documents[number];
        let name = document.name.clone().unwrap_or_else(|| first_line(&document.content));
        let known = json!({
            "name": name,
            "digest": Digest::of(&[document.content.as_bytes()]),
            "bytes": document.content.len(),
            "target_score": target_score,
        });
        let entry = Entry {
            id: Uuid::now_v7(),
            begun: Instant::now(),
            document: cleaned(known, &self.redactor),
        };
        let (id, mut document) = (entry.id, entry.document.clone());
        document[LONGEST_ANSWERS] = json!(longest_answers.as_secs());
        let started = Fact::EvaluationStarted(Started {
            id,
            name: entry.text("name"),
            digest: entry.text("digest"),
            target_score,
        });
        self.write(|store| async move {
            store.begin_evaluation(id, &document).await?;
            self.note(&store, started).await;
            Ok(())
        })
        .await;
        entry
    }

    /// Records how the evaluation ended.
    pub(super) async fn end(&self, entry: Entry, evaluation: &Result<Evaluation, ErrorData>) {
        let (id, name, digest) = (entry.id, entry.text("name"), entry.text("digest"));
        let took = entry.begun.elapsed();
        let milliseconds = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        let mut document = entry.document;
        document["seconds"] = json!(took.as_secs());
        let fact = match evaluation {
            Ok(evaluation) => {
                document["evaluation"] = json!(evaluation);
                Fact::EvaluationEnded(Ended {
                    id,
                    name,
                    digest,
                    score: evaluation.review.score,
                    ready: evaluation.review.ready_for_implementation,
                    passed: evaluation.passed,
                    milliseconds,
                })
            }
            Err(error) => {
                document["error"] = json!(error.message);
                Fact::EvaluationFailed(Failed {
                    id,
                    name,
                    digest,
                    reason: error.message.to_string(),
                    milliseconds,
                })
            }
        };
        let document = cleaned(document, &self.redactor);
        self.write(|store| async move {
            store.end_evaluation(id, &document).await?;
            self.note(&store, fact).await;
            Ok(())
        })
        .await;
    }

    /// Notes a fact in the journal, which is open only for that, as the store is.
    async fn note(&self, store: &Store, fact: Fact) {
        match Journal::open(&self.records.logs, Arc::clone(&self.redactor)) {
            Ok(journal) => {
                journal.keep_in(store);
                journal.record(&Subject::default(), fact);
                journal.close().await;
            }
            Err(error) => tracing::warn!(%error, "an evaluation is not in the journal"),
        }
    }

    /// Counts calls of the reviewer's model: in the journal, and for the limits of the day.
    pub(super) async fn count(&self, calls: &[Call]) {
        if !calls.is_empty() {
            self.write(|store| self.count_in(store, calls)).await;
        }
    }

    async fn count_in(&self, store: Store, calls: &[Call]) -> Result<(), StoreError> {
        let calls: Vec<ModelCall<'_>> = calls
            .iter()
            .map(|call| ModelCall {
                model: &call.model,
                role: Role::Reviewer,
                usage: call.usage,
                took: call.took,
            })
            .collect();
        let Records { logs, per_day, .. } = &self.records;
        per_day.count_apart(&store, (logs, &self.redactor), &calls).await
    }

    async fn write<F: Future<Output = Result<(), StoreError>>>(&self, what: impl FnOnce(Store) -> F) {
        let written = timeout(PATIENCE, async {
            what(Store::open(self.records.store.clone()).await?).await
        })
        .await;
        match written {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "an evaluation was not recorded"),
            Err(_) => tracing::warn!("an evaluation was not recorded: the store did not answer"),
        }
    }
}

/// Returns the first line that says something, without the signs of a heading.
fn first_line(text: &str) -> String {
    let line = text.lines().map(|line| line.trim().trim_start_matches('#').trim());
    let line = line.into_iter().find(|line| !line.is_empty()).unwrap_or("(empty)");
    line.chars().take(LONGEST_NAME).collect()
}
