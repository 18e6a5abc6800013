//! The commands that set a project up, and the report on them for the model.

use std::fmt::Write as _;

use tokio::time::Instant;

use crate::agent::claim::Claim;
use crate::agent::dialogue::ask;
use crate::agent::dialogue::network_refusals;
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::workspace::execute;
use crate::conversation::excerpt;
use crate::tool::toolbox::Toolbox;
use crate::workspace::project::Project;

/// The outcome of the set-up commands.
pub(crate) struct SetUpReport {
    /// The report that the model reads.
    pub(crate) text: String,
    /// Whether all commands succeeded.
    pub(crate) is_whole: bool,
}

/// Runs the set-up commands in an open workspace, and reverts their changes to the project's files:
/// set-up is not part of the work. A failed command does not end the run: the model is told, and
/// can judge the consequences better.
pub(crate) async fn set_up(run: &mut Run, workspace: &Project, toolbox: &Toolbox) -> Result<SetUpReport, Interruption> {
    let mut done = SetUpReport {
        text: String::new(),
        is_whole: true,
    };
    let commands = [
        set_up_commands(&run.claim),
        run.claim.record.worked.added_set_up.clone(),
    ]
    .concat();
    if commands.is_empty() {
        return Ok(done);
    }
    let _let_out = workspace.let_out();
    let begun = Instant::now();
    for command in &commands {
        ask::check_limits(&run.claim).await?;
        let output = execute::execute_with(run, toolbox, command).await?;
        let verdict = if output.is_error { "failed" } else { "done" };
        let _ = writeln!(done.text, "- `{command}`: {verdict}");
        if output.is_error {
            done.is_whole = false;
            let _ = writeln!(done.text, "{}", excerpt::middle_cut(&output.text, 2_000, None));
            if let Some(refused) = network_refusals::refused_just_now(&run.claim, &run.workspace.ledger) {
                let _ = writeln!(done.text, "{refused}");
            }
            run.claim.warn(format!(
                "The set-up command `{command}` failed; the work went on without it."
            ));
        }
    }
    run.claim.record.prepared.set_up_milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let undone = workspace.end_set_up().await?;
    if !undone.trim().is_empty() {
        let names: Vec<_> = undone
            .lines()
            .map(|name| format!("`{}`", name.escape_debug()))
            .collect();
        let _ = writeln!(
            done.text,
            "They also changed files of the project, and that was undone, because set-up is no part of the work: {}. Where the task \
             needs such a change, make it yourself.",
            names.join(", ")
        );
    }
    Ok(done)
}

/// Returns the report for a container that was started from a saved set-up.
pub(crate) fn done_before(claim: &Claim) -> String {
    let mut report = String::new();
    for command in set_up_commands(claim) {
        let _ = writeln!(report, "- `{command}`: done");
    }
    report
}

/// Returns the set-up commands of the project's rules, if the configuration allows them, and then
/// the plan's.
pub(crate) fn set_up_commands(claim: &Claim) -> Vec<String> {
    let planned = &claim.record.planned;
    let mut commands = if claim.services.containers.config.by_rules.setup_commands {
        planned.rules.environment.setup_commands.clone()
    } else {
        Vec::new()
    };
    let environment = planned
        .plan
        .as_ref()
        .and_then(|plan| plan.selected_environment.as_ref());
    for command in environment.iter().flat_map(|environment| &environment.setup_commands) {
        if !command.trim().is_empty() && !commands.contains(command) {
            commands.push(command.clone());
        }
    }
    commands
}
