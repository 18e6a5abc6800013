//! Runs the tool calls of one reply.

use std::time::Instant;

use serde_json::Value;

use super::ask::milliseconds;
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

impl Run {
    /// Runs `calls` one after the other; what fails is told to the model, a lost workspace is not.
    pub(super) async fn call_all(&self, toolbox: &Toolbox, calls: Vec<ToolCall>) -> Result<Vec<ToolResult>, Setback> {
        let mut results = Vec::with_capacity(calls.len());
        // However many calls a reply has, their outputs together leave room for what was said before.
        let most = self.most_bytes(calls.len());
        for call in calls {
            let output = if self.stop.asked.is_cancelled() {
                ToolOutput {
                    text: NOT_RUN.to_owned(),
                    is_error: true,
                    structured: None,
                }
            } else {
                self.call(toolbox.call(&call), &call, most).await?
            };
            results.push(ToolResult {
                call,
                output: output.text,
                is_error: output.is_error,
            });
        }
        Ok(results)
    }

    /// Waits for one call and returns its output, cleaned of secrets and cut to `most` bytes.
    async fn call(
        &self,
        calling: impl Future<Output = Result<ToolOutput, ToolError>>,
        call: &ToolCall,
        most: usize,
    ) -> Result<ToolOutput, Setback> {
        // What was refused before this call is no news of it.
        let _ = self.refused_just_now();
        let output = self.call_whole(calling, call).await?;
        let mut text = self.cut_for_window(output.text, most).await;
        if let Some(refused) = self.refused_just_now() {
            // Many programs only say that a connection failed.
            text = format!("{text}\n{refused}");
        }
        Ok(ToolOutput { text, ..output })
    }

    /// Waits for one call and returns its output, cleaned of secrets and as long as the tool gives it.
    pub(super) async fn call_whole(
        &self,
        calling: impl Future<Output = Result<ToolOutput, ToolError>>,
        call: &ToolCall,
    ) -> Result<ToolOutput, Setback> {
        let begun = Instant::now();
        let outcome = tokio::select! {
            outcome = calling => outcome,
            () = self.stop.deadline.cancelled() => Err(ToolError::TellModel(UNKNOWN_OUTCOME.to_owned())),
        };
        let output = match outcome {
            Ok(output) => output,
            Err(ToolError::TellModel(text)) => ToolOutput {
                text,
                is_error: true,
                structured: None,
            },
            Err(lost @ ToolError::Lost { .. }) => return Err(lost.into()),
        };
        self.note(Fact::ToolCalled {
            tool: call.tool.clone(),
            about: self.about(call),
            is_error: output.is_error,
            bytes: output.text.len(),
            milliseconds: milliseconds(begun),
        });
        let text = self.workshop.redactor.clean(&output.text).into_string();
        Ok(ToolOutput { text, ..output })
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
