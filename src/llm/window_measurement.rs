//! Measures how much of a long prompt a model really gets to read.
//!
//! A server with a smaller window than the configured one drops the beginning of a prompt, mostly
//! without saying so. So a prompt begins with a marker, goes on with meaningless lines, and ends
//! with the question for the marker: if it comes back, everything was read. For a model that does
//! not repeat well, the server's count decides, and the window that it tells of itself. It takes a
//! handful of requests at most; the longest is as long as the configured window allows.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::conversation::excerpt;
use crate::llm::chat::PaidReply;
use crate::llm::error::LlmError;
use crate::llm::model::Model;
use crate::secret::Redactor;

/// Part of what a prompt may have of the window, in percent, that the longest one takes by our own
/// cautious estimate; the reply needs some of it, too.
const LONGEST: u64 = 92;
/// Part that the first prompt takes, to learn how the server counts and whether the model repeats.
const FIRST: u64 = 8;
/// Most further prompts, to find the length at which it is cut.
const SEARCHES: u32 = 5;
/// Least share of the expected count, in percent: a lower count shows that the prompt was cut.
const HONEST: u64 = 90;

const SYSTEM_PROMPT: &str = "You answer questions about a text in one word.";

/// The result of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowMeasurement {
    /// This many tokens arrived, and nothing was missing.
    Whole { tokens: u64 },
    /// The server cuts the prompt or refuses it: more than `arrived` tokens did not arrive
    /// together.
    Cut { arrived: u64, is_silent: bool },
    /// The model does not repeat the marker, but the server counted the whole prompt, and tells a
    /// window at least as large as the configured one.
    Counted { tokens: u64, window: u64 },
    /// The model does not repeat the marker, and the server does not tell enough of itself.
    Unsure { tokens: u64 },
}

impl WindowMeasurement {
    fn silent_cut(arrived: u64) -> Self {
        Self::Cut {
            arrived,
            is_silent: true,
        }
    }
}

/// The result of one prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MarkerReply {
    Repeated {
        counted: Option<u64>,
    },
    Forgotten {
        counted: Option<u64>,
    },
    Refused,
    /// The server has cut the prompt, by its own count.
    Cut {
        counted: u64,
    },
}

/// A prompt that begins with a marker and ends with the question for it.
struct MarkerPrompt {
    marker: String,
    text: String,
}

impl MarkerPrompt {
    /// Returns the prompt with so many meaningless lines between marker and question.
    fn with(lines: u64) -> Self {
        // A different one each time, so that no reply repeats the marker of the prompt before.
        let marker = format!("heron-{}", 1_000 + lines % 9_000);
        let filler: String = (0..lines).map(filler).collect();
        let text = format!(
            "The password is {marker}.\n{filler}What is the password in the first line of this text? Reply with it alone."
        );
        Self { marker, text }
    }

    fn estimated_tokens(&self) -> u64 {
        excerpt::estimated_tokens(SYSTEM_PROMPT) + excerpt::estimated_tokens(&self.text)
    }
}

impl Model {
    /// Measures how much of a prompt arrives; adds the replies that it takes to `paid`.
    ///
    /// # Errors
    /// Fails if the model gives no reply at all.
    pub async fn measure_window(&self, paid: &mut Vec<PaidReply>) -> Result<WindowMeasurement, LlmError> {
        let most = lines_for(self.window() * LONGEST / 100);
        let few = lines_for(self.window() * FIRST / 100).max(1);
        let first = self.ask_for_marker(few, paid).await?;
        let (repeats, each) = match first {
            MarkerReply::Repeated { counted } => (true, counted.map(|counted| (counted, few))),
            MarkerReply::Forgotten { counted } => (false, counted.map(|counted| (counted, few))),
            MarkerReply::Refused => {
                return Ok(WindowMeasurement::Cut {
                    arrived: 0,
                    is_silent: false,
                });
            }
            MarkerReply::Cut { counted } => {
                return Ok(WindowMeasurement::silent_cut(counted));
            }
        };
        // By estimated tokens and not by lines: a short prompt consists for a good part of the
        // words around its lines.
        let expected = |lines: u64| {
            let estimated = MarkerPrompt::with(lines).estimated_tokens();
            let scaled = |(counted, few): (u64, u64)| counted * estimated / MarkerPrompt::with(few).estimated_tokens();
            each.map_or(estimated, scaled)
        };
        let whole = self.ask_for_marker(most, paid).await?;
        match whole {
            MarkerReply::Repeated { counted } => {
                return Ok(WindowMeasurement::Whole {
                    tokens: counted.unwrap_or_else(|| expected(most)),
                });
            }
            MarkerReply::Cut { counted } => {
                return Ok(WindowMeasurement::silent_cut(counted));
            }
            MarkerReply::Forgotten { counted: Some(counted) }
                if counted < expected(most) * HONEST / 100 && !self.is_all(counted, most, each, paid).await? =>
            {
                return Ok(WindowMeasurement::silent_cut(counted));
            }
            MarkerReply::Forgotten { counted } => {
                // A weak model forgets what it has read, which is no proof that it was cut off.
                if let (Some(tokens), Some(window)) = (counted, self.sufficient_window().await) {
                    return Ok(WindowMeasurement::Counted { tokens, window });
                }
                if !repeats {
                    return Ok(WindowMeasurement::Unsure { tokens: expected(most) });
                }
            }
            MarkerReply::Refused => {}
        }
        let longest = self.longest_that_arrives((few, most), whole, paid).await?;
        Ok(WindowMeasurement::Cut {
            arrived: expected(longest),
            is_silent: whole != MarkerReply::Refused,
        })
    }

    /// Returns how many lines of a prompt arrive, by halving the distance between those that did
    /// and those that did not, which were answered with `whole`.
    async fn longest_that_arrives(
        &self,
        (mut good, mut bad): (u64, u64),
        whole: MarkerReply,
        paid: &mut Vec<PaidReply>,
    ) -> Result<u64, LlmError> {
        for _ in 0..SEARCHES {
            let middle = u64::midpoint(good, bad);
            match self.ask_for_marker(middle, paid).await? {
                MarkerReply::Repeated { .. } => good = middle,
                MarkerReply::Forgotten { .. } if whole == MarkerReply::Refused => good = middle,
                MarkerReply::Forgotten { .. } | MarkerReply::Refused | MarkerReply::Cut { .. } => bad = middle,
            }
        }
        Ok(good)
    }

    /// Tells whether `counted` tokens are a whole prompt of so many `lines`, from the counts of the
    /// first prompt and of one twice as long: together they show what a line takes, without the
    /// tokens that servers put around every conversation.
    async fn is_all(
        &self,
        counted: u64,
        lines: u64,
        first: Option<(u64, u64)>,
        paid: &mut Vec<PaidReply>,
    ) -> Result<bool, LlmError> {
        let Some((of_first, few)) = first else {
            return Ok(false);
        };
        let second = match self.ask_for_marker(2 * few, paid).await? {
            MarkerReply::Repeated { counted } | MarkerReply::Forgotten { counted } => counted,
            MarkerReply::Refused | MarkerReply::Cut { .. } => None,
        };
        let more = second.and_then(|of_second| of_second.checked_sub(of_first));
        let expected = more.map(|more| of_first + more * lines.saturating_sub(few) / few);
        Ok(expected.is_some_and(|expected| counted >= expected * HONEST / 100))
    }

    /// Returns the window that the server tells, if it is at least as large as the configured one.
    async fn sufficient_window(&self) -> Option<u64> {
        let told = self.load().await.ok().flatten();
        told.filter(|window| *window >= self.whole_window())
    }

    async fn ask_for_marker(&self, lines: u64, paid: &mut Vec<PaidReply>) -> Result<MarkerReply, LlmError> {
        let nothing_to_hide = Redactor::default();
        let MarkerPrompt { marker, text } = MarkerPrompt::with(lines);
        let mut chat = self.chat(Arc::from([]), false, CancellationToken::new());
        chat.send_system_prompt(&nothing_to_hide.clean(SYSTEM_PROMPT));
        chat.send_user_message(&nothing_to_hide.clean(&text));
        match chat.get_counted_response(paid).await {
            Ok(reply) if reply.text.contains(&marker) => Ok(MarkerReply::Repeated {
                counted: chat.counted(),
            }),
            Ok(_) => Ok(MarkerReply::Forgotten {
                counted: chat.counted(),
            }),
            Err(LlmError::Truncated { counted, .. }) => Ok(MarkerReply::Cut { counted }),
            Err(LlmError::TooLong { .. } | LlmError::SmallWindow { .. }) => Ok(MarkerReply::Refused),
            Err(error) => Err(error),
        }
    }
}

/// Returns a meaningless line. All have the same length, and none is like another.
fn filler(line: u64) -> String {
    format!("Line {line:06} of this text says nothing of interest to anybody.\n")
}

/// Returns how many lines have about `tokens`, by the program's own estimate.
fn lines_for(tokens: u64) -> u64 {
    tokens / excerpt::estimated_tokens(&filler(0)).max(1)
}
