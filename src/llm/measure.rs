//! How much of a long prompt a model really gets to read.
//!
//! A server with a smaller window than the configured one drops the beginning of a prompt, most of
//! them without a word. So a prompt begins with a marker, goes on with lines that mean nothing, and
//! ends with the question for the marker: if it comes back, everything was read. What the server
//! counts stands in for a model that does not repeat well. A handful of requests at most; the
//! longest is as long as the configured window allows.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::LlmError;
use super::chat::Model;
use crate::conversation::excerpt;
use crate::secret::Redactor;

/// Part of the window, in percent, that the longest prompt takes by our own cautious estimate; the
/// reply needs some, too.
const LONGEST: u64 = 92;
/// The first prompt takes this part, to learn how the server counts and whether the model repeats.
const FIRST: u64 = 8;
/// Most further prompts, to find the place where it is cut.
const SEARCHES: u32 = 5;
/// A count of less than this part of what was expected, in percent, is that of a prompt that was
/// cut.
const HONEST: u64 = 90;

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measured {
    /// As many tokens as this arrived, and nothing was missing.
    Whole { tokens: u64 },
    /// The server cuts the prompt, or refuses it: more than `arrived` tokens did not arrive
    /// together.
    Cut { arrived: u64, is_silent: bool },
    /// The model does not repeat the marker, and the server counts nothing or everything.
    Unsure { tokens: u64 },
}

/// What became of one prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Repeated {
        counted: Option<u64>,
    },
    Forgotten {
        counted: Option<u64>,
    },
    Refused,
    /// By its own count the server has cut it.
    Cut {
        counted: u64,
    },
}

impl Model {
    /// Measures how much of a prompt arrives.
    ///
    /// # Errors
    /// Where the model gives no reply at all.
    pub async fn measure_window(&self) -> Result<Measured, LlmError> {
        let most = lines_for(self.window() * LONGEST / 100);
        let few = lines_for(self.window() * FIRST / 100).max(1);
        let first = self.ask_for_marker(few).await?;
        let (repeats, each) = match first {
            Seen::Repeated { counted } => (true, counted.map(|counted| (counted, few))),
            Seen::Forgotten { counted } => (false, counted.map(|counted| (counted, few))),
            Seen::Refused => {
                let arrived = 0;
                return Ok(Measured::Cut {
                    arrived,
                    is_silent: false,
                });
            }
            Seen::Cut { counted } => {
                return Ok(Measured::Cut {
                    arrived: counted,
                    is_silent: true,
                });
            }
        };
        // Not from the line for the marker on: the few words around the lines are counted with the
        // first prompt.
        let expected = |lines: u64| each.map_or_else(|| tokens_of(lines), |(counted, few)| counted * lines / few);
        let whole = self.ask_for_marker(most).await?;
        match whole {
            Seen::Repeated { counted } => {
                return Ok(Measured::Whole {
                    tokens: counted.unwrap_or_else(|| expected(most)),
                });
            }
            Seen::Cut { counted } => {
                return Ok(Measured::Cut {
                    arrived: counted,
                    is_silent: true,
                });
            }
            Seen::Forgotten { counted: Some(counted) } if counted < expected(most) * HONEST / 100 => {
                return Ok(Measured::Cut {
                    arrived: counted,
                    is_silent: true,
                });
            }
            Seen::Forgotten { .. } if !repeats => {
                return Ok(Measured::Unsure { tokens: expected(most) });
            }
            Seen::Forgotten { .. } | Seen::Refused => {}
        }
        let (mut good, mut bad) = (few, most);
        for _ in 0..SEARCHES {
            let middle = u64::midpoint(good, bad);
            match self.ask_for_marker(middle).await? {
                Seen::Repeated { .. } => good = middle,
                Seen::Forgotten { .. } if whole == Seen::Refused => good = middle,
                Seen::Forgotten { .. } | Seen::Refused | Seen::Cut { .. } => bad = middle,
            }
        }
        Ok(Measured::Cut {
            arrived: expected(good),
            is_silent: whole != Seen::Refused,
        })
    }

    async fn ask_for_marker(&self, lines: u64) -> Result<Seen, LlmError> {
        let nothing_to_hide = Redactor::default();
        // Another one each time, so that none is known from the prompt before.
        let marker = format!("heron-{}", 1_000 + lines % 9_000);
        let mut chat = self.chat(Arc::from([]), false, CancellationToken::new());
        chat.send_system_prompt(&nothing_to_hide.clean("You answer questions about a text in one word."));
        let mut text = format!("The password is {marker}.\n");
        for line in 0..lines {
            text.push_str(&filler(line));
        }
        text.push_str("What is the password in the first line of this text? Reply with it alone.");
        chat.send_user_message(&nothing_to_hide.clean(&text));
        match chat.get_response().await {
            Ok(reply) if reply.text.contains(&marker) => Ok(Seen::Repeated {
                counted: chat.counted(),
            }),
            Ok(_) => Ok(Seen::Forgotten {
                counted: chat.counted(),
            }),
            Err(LlmError::Truncated { counted, .. }) => Ok(Seen::Cut { counted }),
            Err(LlmError::TooLong { .. }) => Ok(Seen::Refused),
            Err(error) => Err(error),
        }
    }
}

/// Lines of one length, which no server can keep in its cache for another.
fn filler(line: u64) -> String {
    format!("Line {line:06} of this text says nothing of interest to anybody.\n")
}

/// Returns how many lines are about `tokens`, by the estimate that the program goes by.
fn lines_for(tokens: u64) -> u64 {
    tokens / excerpt::estimated_tokens(&filler(0)).max(1)
}

fn tokens_of(lines: u64) -> u64 {
    lines * excerpt::estimated_tokens(&filler(0))
}
