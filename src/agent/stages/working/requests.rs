//! Requests of the model to the program, besides its work in the project, and the commands that a
//! new container has to repeat.

use crate::agent::claim::Claim;
use crate::agent::dialogue::control_tools::ControlRequests;
use crate::agent::run::Run;
use crate::conversation::ToolResult;
use crate::workspace::set_up::dependencies;

/// Maximum number of commands that are recorded for new containers.
const MOST_COMMANDS: usize = 50;

/// Records pure install commands, which a new container has to repeat.
pub(super) fn note_installed(claim: &mut Claim, results: &[ToolResult]) {
    for result in results.iter().filter(|result| !result.is_error) {
        if let Some(command) = dependencies::installed_by(&result.call) {
            remember(&mut claim.record.worked.installed, command);
        }
    }
}

/// Tells the tools which subtasks the plan has now.
pub(super) fn name_subtasks(run: &Run) {
    if let (Some(opened), Some(plan)) = (&run.workspace.open, &run.claim.record.planned.plan) {
        let ids = plan.ordered().into_iter().map(|subtask| subtask.id.clone());
        opened.control_tools.know_subtasks(ids.collect());
    }
}

/// Takes the model's requests to the program, and marks subtasks as finished.
pub(super) fn take(run: &mut Run) -> ControlRequests {
    let mut requested = run
        .workspace
        .open
        .as_ref()
        .map(|opened| opened.control_tools.take())
        .unwrap_or_default();
    let known = |id: &String| {
        run.claim
            .record
            .planned
            .plan
            .as_ref()
            .is_some_and(|plan| plan.subtask(id).is_some())
    };
    requested.finished.retain(known);
    run.claim
        .record
        .worked
        .finished_subtasks
        .append(&mut requested.finished);
    for command in std::mem::take(&mut requested.set_up) {
        remember(&mut run.claim.record.worked.added_set_up, &command);
    }
    requested
}

fn remember(commands: &mut Vec<String>, command: &str) {
    if commands.len() < MOST_COMMANDS && !commands.iter().any(|known| known == command) {
        commands.push(command.to_owned());
    }
}
