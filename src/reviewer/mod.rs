//! Asks a reviewer, a model or a program, for its judgement of a document.
//!
//! Every wait has a time-out, and an attempt that fails is repeated twice. What came of it is a
//! [`Review`] or the reason why there is none; whether a document passes is decided in
//! [`crate::review`].

pub mod config;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::conversation::{Reply, Usage};
use crate::llm::error::LlmError;
use crate::llm::model::Model;
use crate::review::{Mode, Review, reading};
use crate::secret::{Clean, Redactor};
use crate::tool::program::{Program, ProgramError};

/// The shipped prompt.
const PROMPT: &str = include_str!("prompt.txt");
/// What stands for the document in a prompt.
const DOCUMENT: &str = "{{document_content}}";
/// Repetitions of an attempt that failed.
const RETRIES: usize = 2;
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Whoever gives the judgement.
pub enum Asked {
    Model(Model),
    Program(Program),
}

/// A reviewer with its prompt.
pub struct Reviewer {
    pub asked: Asked,
    pub mode: Mode,
    pub prompt: String,
    pub timeout: Duration,
    pub redactor: Arc<Redactor>,
}

/// What came of asking.
#[derive(Debug)]
pub struct Judgement {
    pub review: Result<Review, NoReview>,
    /// Tokens of all attempts.
    pub usage: Usage,
}

/// Why there is no review.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoReview {
    #[error("the reviewer did not answer within {0} s, at any of {tries} attempts; raise review.timeout_seconds", tries = RETRIES + 1)]
    TimedOut(u64),
    #[error("the reviewer cannot be found: {0}")]
    NotFound(String),
    #[error("the reviewer's answer cannot be read: {0}")]
    Unreadable(String),
    #[error("the reviewer failed: {0}")]
    Failed(String),
}

/// Why an attempt failed, and whether another may do better.
enum Miss {
    Again(NoReview),
    Final(NoReview),
}

/// Returns the prompt in `file`, or the shipped one; the second value says why it is not the file's
/// own.
pub fn prompt(file: Option<&Path>) -> (String, Option<String>) {
    let shipped = PROMPT.to_owned();
    let Some(file) = file else {
        return (shipped, None);
    };
    match std::fs::read_to_string(file) {
        Ok(text) if text.contains(DOCUMENT) => (text, None),
        Ok(_) => (
            shipped,
            Some(format!(
                "{} has no {DOCUMENT}; the shipped prompt is used",
                file.display()
            )),
        ),
        Err(error) => (
            shipped,
            Some(format!(
                "{} cannot be read ({error}); the shipped prompt is used",
                file.display()
            )),
        ),
    }
}

impl Reviewer {
    /// Asks for a judgement of `document`.
    pub async fn review(&self, document: &str) -> Judgement {
        let prompt = self.prompt.replace(DOCUMENT, document);
        let mut usage = Usage::default();
        let mut pauses = ExponentialBuilder::new()
            .with_min_delay(FIRST_PAUSE)
            .with_factor(4.0)
            .with_max_times(RETRIES)
            .build();
        let mut complaint = String::new();
        loop {
            let question = self.redactor.clean(&format!("{prompt}{complaint}"));
            let miss = match self.attempt(&question, &mut usage).await {
                Ok(review) => {
                    return Judgement {
                        review: Ok(review),
                        usage,
                    };
                }
                Err(miss) => miss,
            };
            let (no_review, pause) = match miss {
                Miss::Again(no_review) => (no_review, pauses.next()),
                Miss::Final(no_review) => (no_review, None),
            };
            let Some(pause) = pause else {
                return Judgement {
                    review: Err(no_review),
                    usage,
                };
            };
            if let NoReview::Unreadable(what) = no_review {
                complaint = format!("\n\nYour last answer could not be used: {what}\n");
            }
            sleep(pause).await;
        }
    }

    async fn attempt(&self, question: &Clean, usage: &mut Usage) -> Result<Review, Miss> {
        let reply = match &self.asked {
            Asked::Model(model) => self.ask_model(model, question).await?,
            Asked::Program(program) => {
                let text = program
                    .answer(question)
                    .await
                    .map_err(|error| self.miss_of_program(&error))?;
                Reply {
                    text,
                    ..Reply::default()
                }
            }
        };
        *usage += reply.usage;
        reading::read(&reply, self.mode).map_err(|error| Miss::Again(NoReview::Unreadable(error.to_string())))
    }

    async fn ask_model(&self, model: &Model, question: &Clean) -> Result<Reply, Miss> {
        let mut chat = model.chat(Arc::new([]), false, CancellationToken::new());
        chat.send_user_message(question);
        let Ok(answer) = timeout(self.timeout, chat.get_response()).await else {
            return Err(Miss::Again(self.timed_out()));
        };
        answer.map_err(|error| {
            let failed = NoReview::Failed(error.to_string());
            match error {
                LlmError::Unreachable { .. } => Miss::Again(failed),
                LlmError::Refused { .. }
                | LlmError::Truncated { .. }
                | LlmError::TooLong { .. }
                | LlmError::SmallWindow { .. }
                | LlmError::ToolsUnsupported(_)
                | LlmError::RateLimited { .. }
                | LlmError::NotLocal { .. }
                | LlmError::Cancelled => Miss::Final(failed),
            }
        })
    }

    fn miss_of_program(&self, error: &ProgramError) -> Miss {
        let what = self.redactor.clean(&error.to_string()).into_string();
        match error {
            ProgramError::NotFound { .. } => Miss::Final(NoReview::NotFound(what)),
            ProgramError::TimedOut { .. } => Miss::Again(self.timed_out()),
            // One that floods or is no text does so again.
            ProgramError::TooLong { .. } | ProgramError::NotText { .. } => Miss::Final(NoReview::Unreadable(what)),
            ProgramError::Failed { .. } | ProgramError::Machine { .. } => Miss::Again(NoReview::Failed(what)),
        }
    }

    fn timed_out(&self) -> NoReview {
        NoReview::TimedOut(self.timeout.as_secs())
    }
}
