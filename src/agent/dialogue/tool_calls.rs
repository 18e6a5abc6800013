//! Runs the tool calls of one reply: read-only calls in parallel, all others one after the other.

use std::time::Instant;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt, StreamExt, stream};
use serde_json::Value;

use crate::agent::claim::Claim;
use crate::agent::dialogue::changes;
use crate::agent::dialogue::network_refusals;
use crate::agent::dialogue::policy::{self, Outcome, Refusal};
use crate::agent::record::interruption::Interruption;
use crate::conversation::{ToolCall, ToolResult, excerpt};
use crate::gateway::ledger::Ledger;
use crate::journal::fact::Fact;
use crate::tool::toolbox::Toolbox;
use crate::tool::{ToolError, ToolOutput};
use crate::workspace::containers::milliseconds_since;

/// Arguments that best identify a call in the journal, in order of preference.
const TELLING: [&str; 3] = ["command", "path", "pattern"];
/// Maximum length of the identifying argument in the journal.
const LONGEST_ABOUT: usize = 120;

/// Result for a call that was interrupted, so that its outcome is unknown.
pub(crate) const UNKNOWN_OUTCOME: &str =
    "The program was stopped while this ran. Whether it took effect is unknown: look before you repeat it.";

/// Result for a call that was not started, because the program was asked to stop.
const NOT_RUN: &str = "The program was stopped before this was run. Repeat it if it is still needed.";

/// Maximum number of parallel calls; more concurrent reads would not speed up a disk.
const SIDE_BY_SIDE: usize = 4;

/// Output of a call, and the refusal if a rule refused it.
type JudgedOutput = (ToolOutput, Option<Refusal>);

/// Results of all calls of one reply.
pub(crate) struct Called {
    pub(crate) results: Vec<ToolResult>,
    /// Refusals by rules among these calls.
    pub(crate) refused: Vec<Refusal>,
    /// Whether each call could be carried out. A command that ran was carried out, whatever its
    /// exit code.
    pub(crate) carried_out: Vec<bool>,
}

impl Called {
    pub(crate) fn has_failures(&self) -> bool {
        self.results.iter().any(|result| result.is_error)
    }

    /// Adds the results of calls that were left out.
    pub(crate) fn add_left_out(&mut self, results: Vec<ToolResult>) {
        self.carried_out.extend(results.iter().map(|result| !result.is_error));
        self.results.extend(results);
    }

    pub(crate) fn has_success(&self) -> bool {
        self.results.iter().any(|result| !result.is_error)
    }

    /// Returns true if a command failed because the network refused it.
    pub(crate) fn was_cut_off(&self) -> bool {
        self.refused.iter().any(|refusal| refusal.rule == policy::EGRESS)
    }
}

/// Runs `calls` in order. A failed call is reported to the model; a lost workspace is an error.
/// Adjacent read-only calls run in parallel: a call that may write waits for all before it, and all
/// after it wait for it.
pub(crate) async fn call_all(
    claim: &Claim,
    ledger: &Ledger,
    toolbox: &Toolbox,
    calls: Vec<ToolCall>,
) -> Result<Called, Interruption> {
    call_all_within(claim, ledger, toolbox, (calls, usize::MAX)).await
}

/// Like [`call_all`], with outputs of at most about `in_all` bytes together.
pub(crate) async fn call_all_within(
    claim: &Claim,
    ledger: &Ledger,
    toolbox: &Toolbox,
    (calls, in_all): (Vec<ToolCall>, usize),
) -> Result<Called, Interruption> {
    let mut called = Called {
        results: Vec::with_capacity(calls.len()),
        refused: Vec::new(),
        carried_out: Vec::with_capacity(calls.len()),
    };
    // The total is bounded as well, so that many calls in a reply cannot fill the window.
    let most = excerpt::most_bytes_of_output(claim.window(), calls.len()).min(in_all / calls.len().max(1));
    let mut meant = Vec::with_capacity(calls.len());
    for call in &calls {
        meant.push(toolbox.meant(call).await?);
    }
    let mut as_written = calls.into_iter();
    for together in meant.chunk_by(|one, next| toolbox.only_reads(one) && toolbox.only_reads(next)) {
        // Earlier refusals must not be attributed to these calls.
        let _ = network_refusals::refused_just_now(claim, ledger);
        let ended = side_by_side(claim, toolbox, together).await?;
        // Several calls only run together if they read, and those need no network: the refusal was
        // caused by a background process.
        let mut refused = network_refusals::refused_just_now(claim, ledger);
        for (place, (call, ended)) in together.iter().zip(ended).enumerate() {
            let news = refused.take_if(|_| place + 1 == together.len());
            let may_be_its = !toolbox.only_reads(call);
            let (output, refusal) = result_for_model(claim, call, ended, most, news, may_be_its).await;
            called.refused.extend(refusal);
            called
                .carried_out
                .push(!output.is_error || policy::ran_a_command(&output));
            called.results.push(ToolResult {
                call: as_written.next().unwrap_or_else(|| call.clone()),
                output: output.text,
                is_error: output.is_error,
            });
        }
    }
    Ok(called)
}

/// Runs calls in parallel, and notes them in their order when all have ended.
async fn side_by_side(claim: &Claim, toolbox: &Toolbox, calls: &[ToolCall]) -> Result<Vec<JudgedOutput>, Interruption> {
    // Boxed: the compiler cannot prove a stream of bare futures Send.
    let begun: Vec<BoxFuture<'_, _>> = calls
        .iter()
        .map(|call| call_unless_stopped(claim, toolbox, call).boxed())
        .collect();
    let through: Vec<Result<_, Interruption>> = stream::iter(begun).buffered(SIDE_BY_SIDE).collect().await;
    let mut ended = Vec::with_capacity(calls.len());
    for through in through {
        let (one, fact) = through?;
        if let Some(fact) = fact {
            claim.note(fact);
        }
        ended.push(one);
    }
    Ok(ended)
}

async fn call_unless_stopped(
    claim: &Claim,
    toolbox: &Toolbox,
    call: &ToolCall,
) -> Result<(JudgedOutput, Option<Fact>), Interruption> {
    if claim.stop.asked.is_cancelled() {
        return Ok(((failed(NOT_RUN.to_owned()), None), None));
    }
    let (ended, fact) = call_unnoted(claim, toolbox.call(call), call).await?;
    Ok((ended, Some(fact)))
}

/// Returns the result for the model: the output, cut to `most` bytes, and the hosts that were
/// `refused` meanwhile. These count as a refusal of the call only if it failed and `may_be_its`
/// doing.
async fn result_for_model(
    claim: &Claim,
    call: &ToolCall,
    (output, mut refusal): JudgedOutput,
    most: usize,
    refused: Option<String>,
    may_be_its: bool,
) -> JudgedOutput {
    let changed = policy::is_own_command(call)
        .then(|| changes::line(call, &output))
        .flatten();
    let changed = changed.map(|line| claim.services.redactor.clean(&line).into_string());
    let mut text = cut_for_window(claim, output.text, most).await;
    if let Some(line) = changed {
        text = changes::above_ending(&text, &line);
    }
    if let Some(refused) = refused {
        // Many programs report only that a connection failed.
        text = format!("{text}\n{refused}");
        // If the call succeeded nevertheless, the refused host did not matter.
        if may_be_its && output.is_error && refusal.is_none() {
            refusal = Some(Refusal {
                rule: policy::EGRESS.to_owned(),
                reason: refused,
            });
        }
    }
    if let Some(refusal) = &refusal {
        policy::note_refusal(claim, refusal);
    }
    (ToolOutput { text, ..output }, refusal)
}

/// Waits for one call and returns its full output, with secrets redacted.
pub(crate) async fn call_whole(
    claim: &Claim,
    calling: impl Future<Output = Result<ToolOutput, ToolError>>,
    call: &ToolCall,
) -> Result<JudgedOutput, Interruption> {
    let (ended, fact) = call_unnoted(claim, calling, call).await?;
    claim.note(fact);
    Ok(ended)
}

/// Like [`call_whole`], but returns the journal entry instead of writing it.
async fn call_unnoted(
    claim: &Claim,
    calling: impl Future<Output = Result<ToolOutput, ToolError>>,
    call: &ToolCall,
) -> Result<(JudgedOutput, Fact), Interruption> {
    tracing::debug!(task = %claim.lease.task, tool = call.tool, "a call begins");
    let begun = Instant::now();
    let ended = tokio::select! {
        ended = calling => ended,
        () = claim.stop.deadline.cancelled() => Err(ToolError::TellModel(UNKNOWN_OUTCOME.to_owned())),
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
    let fact = Fact::ToolCalled {
        tool: call.tool.clone(),
        about: about(claim, call),
        is_error: output.is_error,
        bytes: output.text.len(),
        milliseconds: milliseconds_since(begun),
        path: policy::path(call).map(str::to_owned),
        size: outcome.size,
        status: outcome.status,
    };
    let text = claim.services.redactor.clean(&output.text).into_string();
    Ok(((ToolOutput { text, ..output }, outcome.refusal), fact))
}

/// Returns the argument that identifies a call: its command, its path, or its first text.
fn about(claim: &Claim, call: &ToolCall) -> String {
    let named = TELLING.iter().find_map(|name| call.args.get(*name)?.as_str());
    let text = named.or_else(|| call.args.values().find_map(Value::as_str));
    // Redacted before it is cut, since the redactor would not recognise half of a secret.
    let text = claim.services.redactor.clean(text.unwrap_or_default()).into_string();
    text.lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(LONGEST_ABOUT)
        .collect()
}

/// Cuts `text` in the middle; the full text is kept on disk.
async fn cut_for_window(claim: &Claim, text: String, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    claim.outputs.keep(claim.record.worked.turns, &text).await;
    excerpt::middle_cut(&text, most, None)
}

fn failed(text: String) -> ToolOutput {
    ToolOutput {
        text,
        is_error: true,
        structured: None,
    }
}
