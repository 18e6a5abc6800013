//! Runs the program's own commands in a container.

use crate::agent::dialogue::network_refusals;
use crate::agent::dialogue::tool_calls;
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::conversation::ToolCall;
use crate::tool::ToolOutput;
use crate::tool::toolbox::Toolbox;

/// Runs a command of the program itself in the container behind `toolbox`, and returns its full
/// output.
///
/// # Errors
/// [`Interruption::Cancelled`] if the stop of the program may have cut the command
/// short: its result is meaningless then, and the next process runs it again.
pub(crate) async fn execute_with(run: &mut Run, toolbox: &Toolbox, command: &str) -> Result<ToolOutput, Interruption> {
    if run.claim.stop.asked.is_cancelled() {
        return Err(Interruption::Cancelled);
    }
    let args = serde_json::Map::from_iter([("command".to_owned(), command.into())]);
    let call = ToolCall {
        id: String::new(),
        tool: format!("{}/execute_command", crate::workspace::WORKSPACE),
        args,
    };
    let (output, _) = tool_calls::call_whole(&run.claim, toolbox.call_unbound(&call), &call).await?;
    network_refusals::note_refused(&mut run.claim, &run.workspace.ledger);
    if run.claim.stop.deadline.is_cancelled() {
        return Err(Interruption::Cancelled);
    }
    Ok(output)
}
