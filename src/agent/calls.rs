//! Runs the tool calls of one reply.

use std::time::Instant;

use serde_json::Value;

use super::ask::milliseconds;
use super::policy::{self, Outcome, Refusal};
use super::run::Run;
use super::setback::Setback;
use crate::conversation::{ToolCall, ToolResult, excerpt};
use crate::journal::fact::Fact;
use crate::tool::toolbox::Toolbox;
use crate::tool::{ToolError, ToolOutput};

/// Most bytes of one output in the conversation, whatever the window.
const MOST_BYTES: usize = 32 * 1024;
const FEWEST_BYTES: usize = 4 * 1024;
/// Part of the window, in percent, that one output may take.
const SHARE: u64 = 10;

/// Arguments that tell one call of a tool from another, most telling first.
const TELLING: [&str; 3] = ["command", "path", "pattern"];
/// Most characters of that in the journal.
const LONGEST_ABOUT: usize = 120;

/// What the model is told of a call whose end nobody saw.
pub(super) const UNKNOWN_OUTCOME: &str =
    "The program was stopped while this ran. Whether it took effect is unknown: look before you repeat it.";

/// What the model is told of a call that was not begun, because the program was asked to stop.
const NOT_RUN: &str = "The program was stopped before this was run. Repeat it if it is still needed.";

/// What became of the calls of one reply.
pub(super) struct Called {
    pub(super) results: Vec<ToolResult>,
    /// What rules refused of them.
    pub(super) refused: Vec<Refusal>,
}

impl Called {
    pub(super) fn has_failures(&self) -> bool {
        self.results.iter().any(|result| result.is_error)
    }

    pub(super) fn has_success(&self) -> bool {
        self.results.iter().any(|result| !result.is_error)
    }
}

impl Run {
    /// Runs `calls` one after the other; what fails is told to the model, a lost workspace is not.
    pub(super) async fn call_all(&self, toolbox: &Toolbox, calls: Vec<ToolCall>) -> Result<Called, Setback> {
        let mut results = Vec::with_capacity(calls.len());
        let mut refused = Vec::new();
        // However many calls a reply has, their outputs together leave room for what was said before.
        let most = self.most_bytes(calls.len());
        for call in calls {
            let output = if self.stop.asked.is_cancelled() {
                failed(NOT_RUN.to_owned())
            } else {
                let (output, refusal) = self.call(toolbox.call(&call), &call, most).await?;
                refused.extend(refusal);
                output
            };
            results.push(ToolResult {
                call,
                output: output.text,
                is_error: output.is_error,
            });
        }
        Ok(Called { results, refused })
    }

    /// Waits for one call and returns its output, cleaned of secrets and cut to `most` bytes.
    async fn call(
        &self,
        calling: impl Future<Output = Result<ToolOutput, ToolError>>,
        call: &ToolCall,
        most: usize,
    ) -> Result<(ToolOutput, Option<Refusal>), Setback> {
        // What was refused before this call is no news of it.
        let _ = self.refused_just_now();
        let (output, mut refusal) = self.call_whole(calling, call).await?;
        let mut text = self.cut_for_window(output.text, most).await;
        if let Some(refused) = self.refused_just_now() {
            // Many programs only say that a connection failed.
            text = format!("{text}\n{refused}");
            // Of a call that succeeded all the same it was no part that mattered.
            if output.is_error && refusal.is_none() {
                refusal = Some(Refusal {
                    rule: policy::EGRESS.to_owned(),
                    reason: refused,
                });
            }
        }
        if let Some(refusal) = &refusal {
            self.note_refusal(refusal);
        }
        Ok((ToolOutput { text, ..output }, refusal))
    }

    /// Waits for one call and returns its output, cleaned of secrets and as long as the tool gives it.
    pub(super) async fn call_whole(
        &self,
        calling: impl Future<Output = Result<ToolOutput, ToolError>>,
        call: &ToolCall,
    ) -> Result<(ToolOutput, Option<Refusal>), Setback> {
        let begun = Instant::now();
        let ended = tokio::select! {
            ended = calling => ended,
            () = self.stop.deadline.cancelled() => Err(ToolError::TellModel(UNKNOWN_OUTCOME.to_owned())),
        };
        let (output, outcome) = match ended {
            Ok(output) => {
                let outcome = Outcome::of(call, &output);
                (output, outcome)
            }
            Err(ToolError::TellModel(text)) => {
                let output = failed(text);
                let outcome = Outcome::of(call, &output);
                (output, outcome)
            }
            Err(forbidden @ ToolError::Forbidden { rule, status, .. }) => {
                let text = forbidden.to_string();
                (failed(text.clone()), Outcome::forbidden(call, rule, status, text))
            }
            Err(gone @ (ToolError::Away { .. } | ToolError::Lost { .. })) => return Err(gone.into()),
        };
        self.note(Fact::ToolCalled {
            tool: call.tool.clone(),
            about: self.about(call),
            is_error: output.is_error,
            bytes: output.text.len(),
            milliseconds: milliseconds(begun),
            path: policy::path(call).map(str::to_owned),
            size: outcome.size,
            status: outcome.status,
        });
        let text = self.workshop.redactor.clean(&output.text).into_string();
        Ok((ToolOutput { text, ..output }, outcome.refusal))
    }

    /// Returns what tells this call from others of the same tool: its command, its path, or its first text.
    fn about(&self, call: &ToolCall) -> String {
        let named = TELLING.iter().find_map(|name| call.args.get(*name)?.as_str());
        let text = named.or_else(|| call.args.values().find_map(Value::as_str));
        // Cleaned before it is cut: the half of a secret would not be recognised.
        let text = self.workshop.redactor.clean(text.unwrap_or_default()).into_string();
        text.lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(LONGEST_ABOUT)
            .collect()
    }

    /// Returns how many bytes the output of each of so many calls in one reply may have.
    pub(super) fn most_bytes(&self, calls: usize) -> usize {
        let of_one = self.bytes_of_window(SHARE).clamp(FEWEST_BYTES, MOST_BYTES);
        of_one.min(of_one * 5 / 2 / calls.max(1))
    }

    /// Cuts `text` in the middle; the whole is kept on disk.
    async fn cut_for_window(&self, text: String, most: usize) -> String {
        if text.len() <= most {
            return text;
        }
        self.outputs.keep(self.record.turns, &text).await;
        excerpt::middle_cut(&text, most, None)
    }

    /// Returns `percent` of the model's window as bytes of text, at four bytes a token.
    pub(super) fn bytes_of_window(&self, percent: u64) -> usize {
        usize::try_from(self.workshop.model.window() * 4 * percent / 100).unwrap_or(usize::MAX)
    }
}

fn failed(text: String) -> ToolOutput {
    ToolOutput {
        text,
        is_error: true,
        structured: None,
    }
}
